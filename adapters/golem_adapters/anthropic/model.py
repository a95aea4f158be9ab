"""`Anthropic`: the model class for the Messages API, here and at compatible servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from golem.errors import APIError
from golem.model import Request, Response, Settings, stop_texts
from golem.wire.http import HTTPCall
from golem_adapters._toolkit.body import merged
from golem_adapters._toolkit.endpoint import Credentials, Token, beneath, checked, found_server
from golem_adapters._toolkit.model import EVENTS, JSON, CountingModel, KeyedWire, json_call
from golem_adapters.anthropic.dialect import MessagesDialect, dialect_named
from golem_adapters.anthropic.failures import http_error
from golem_adapters.anthropic.request import Options, api_version, encode_count, encode_request
from golem_adapters.anthropic.response import decode_count, decode_response
from golem_adapters.anthropic.stream import MessagesStream

if TYPE_CHECKING:
    import httpx

ThinkingMode = Literal["adaptive", "between_tools", "disabled"]

_MODES: Final = ("adaptive", "between_tools", "disabled")
_SMALLEST_BUDGET: Final = 1024
_LIFETIMES: Final = ("5m", "1h")


class Anthropic(CountingModel[MessagesDialect]):
    """A model behind the Messages API of Anthropic or of a compatible server.

    What a model has to get back (signed thinking, what server-side tools did) is kept on the
    messages and goes out with them in place, as long as they are not changed. It is a counter of
    tokens too: ``budget_history(model, 100_000)``.

    Args:
        model: the model's name at the server.
        api_key: the key; else the server's usual environment variable (``ANTHROPIC_API_KEY``).
        base_url: where the server is, with or without ``/v1`` at its end; else
            ``ANTHROPIC_BASE_URL``, else the dialect's own address.
        dialect: which server it is, by name (``anthropic``, ``deepseek``, ``ollama``,
            ``llama.cpp``), or a record of your own.
        token: a bearer token to send instead of a key, or a function, plain or async, that
            gives the one to use now.
        http_client: an httpx-compatible client to use instead of golem's; never closed here.
        timeout: seconds without a byte from the server after which a request fails; by default
            the given client's own, else ten minutes. ``math.inf``: never.
        api_version: the version of the API. By default 2026-10-21, and 2023-06-01 for a request
            with `temperature`, `top_p` or ``top_k``, which newer versions do not have.
        betas: names of beta features to ask for.
        workspace: Anthropic's workspace header.
        thinking: ``adaptive``, ``between_tools``, ``disabled``, a budget in tokens (at least
            1024), or the API's own object; None leaves it to the model.
        cache: has the prompt cached for ``5m`` or ``1h``: the conversation up to its last
            block, and the instructions with the tools by themselves.
        server_tools: tools that the server runs, as the API has them
            (``{"type": "web_search_20250305", "name": "web_search"}``).
        max_tokens: most tokens of an answer; 16,384, and a thinking budget more. As all that
            follow, a default of `golem.model.Settings` that a request's own settings override.
            The API has no `seed` and no penalties: a request that sets one is refused before it
            is sent.
        temperature: see `golem.model.Settings`.
        top_p: see `golem.model.Settings`.
        stop: see `golem.model.Settings`.
        reasoning_effort: see `golem.model.Settings`.
        parallel_tool_calls: see `golem.model.Settings`.
        extra_body: members merged into every request body, over golem's own (not into counts).

    Raises:
        ValueError: no key although the server needs one (and neither `base_url` nor `token` was
            given), an unusable key or address, an unknown dialect, thinking mode or cache time.
    """

    __slots__ = ()

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dialect: str | MessagesDialect = "anthropic",
        token: Token | None = None,
        http_client: httpx.AsyncClient | None = None,
        timeout: float | None = None,
        api_version: str | None = None,
        betas: Iterable[str] = (),
        workspace: str | None = None,
        thinking: ThinkingMode | int | Mapping[str, Any] | None = None,
        cache: Literal["5m", "1h"] | None = None,
        server_tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        stop: str | Sequence[str] = (),
        reasoning_effort: str | None = None,
        parallel_tool_calls: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        record = dialect_named(dialect)
        settings = Settings(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            stop=stop_texts(stop),
            reasoning_effort=reasoning_effort,
            parallel_tool_calls=parallel_tool_calls,
            extra_body=extra_body,
        )
        if cache is not None and cache not in _LIFETIMES:
            raise ValueError(f"cache is '5m' or '1h', not {cache!r}")
        options = Options(_thinking(thinking), cache, tuple(server_tools))
        headers: dict[str, str] = {}
        if betas:
            named = ",".join((betas,) if isinstance(betas, str) else betas)
            headers["anthropic-beta"] = checked(named, "betas")
        if workspace:
            headers["anthropic-workspace-id"] = checked(workspace, "workspace")
        url, credentials = found_server(record, base_url, api_key, token)
        version = checked(api_version, "api_version") if api_version else None
        wire = _MessagesWire(model, record, url, settings, credentials, headers, options, version)
        super().__init__(wire, http_client=http_client, timeout=timeout)

    @property
    def native_output(self) -> bool:
        """Whether the server holds an answer to an output schema."""
        return self.dialect.structured_output


def _thinking(given: ThinkingMode | int | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The API's own object for what a caller may say about thinking."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        if not isinstance(given.get("type"), str):
            raise ValueError("thinking needs a type")
        return given
    if isinstance(given, str) and given in _MODES:
        return {"type": given}
    if isinstance(given, int) and not isinstance(given, bool) and given >= _SMALLEST_BUDGET:
        return {"type": "enabled", "budget_tokens": given}
    known = ", ".join(_MODES)
    raise ValueError(
        f"thinking is one of {known}, or a budget of at least {_SMALLEST_BUDGET}, not {given!r}"
    )


class _MessagesWire(KeyedWire[MessagesDialect]):
    """The `golem.wire.http.WireDialect` of Messages: ties the pure parts together."""

    __slots__ = ("_headers", "_options", "_url", "_version")

    def __init__(
        self,
        model: str,
        dialect: MessagesDialect,
        base_url: str,
        settings: Settings,
        credentials: Credentials,
        headers: Mapping[str, str],
        options: Options,
        version: str | None,
    ) -> None:
        super().__init__(model, dialect, base_url, settings, credentials)
        self._headers = headers
        self._options = options
        self._version = version
        versioned = urlsplit(base_url).path.rstrip("/").endswith("/v1")
        self._url = beneath(base_url, "/messages" if versioned else "/v1/messages")

    def encode(self, request: Request, *, stream: bool) -> HTTPCall:
        settings = merged(self.settings, request.settings)
        version = api_version(settings, self.dialect, self._version)
        body = encode_request(
            request,
            model=self.model,
            settings=settings,
            dialect=self.dialect,
            stream=stream,
            options=self._options,
        )
        return self._call(self._url, EVENTS if stream else JSON, version, body)

    def count(self, request: Request) -> HTTPCall:
        body = encode_count(request, model=self.model, dialect=self.dialect, options=self._options)
        url = beneath(self._url, "/count_tokens")
        return self._call(url, JSON, self._version or self.dialect.version, body)

    def _call(self, url: str, accept: str, version: str, body: bytes) -> HTTPCall:
        return json_call(url, accept, body, {**self._headers, "anthropic-version": version})

    def decode(self, request: Request, headers: Mapping[str, str], body: bytes) -> Response:
        return decode_response(
            body,
            request=request,
            dialect=self.dialect,
            headers=headers,
            secret=self._credentials.secret,
        )

    def counted(self, headers: Mapping[str, str], body: bytes) -> int:
        return decode_count(body, headers=headers, secret=self._credentials.secret)

    def error(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> APIError:
        return http_error(status, headers, body, now=now, secret=self._credentials.secret)

    def stream_decoder(self, request: Request, headers: Mapping[str, str]) -> MessagesStream:
        return MessagesStream(request, self.dialect, headers, self._credentials.secret)
