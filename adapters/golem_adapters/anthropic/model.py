"""`Anthropic`: the model class for the Messages API, here and at compatible servers."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from golem.errors import APIError
from golem.messages import Message
from golem.model import Request, Response, Settings, ToolSpec, stop_texts
from golem.wire.http import HTTPCall, HTTPModel
from golem_adapters._toolkit.body import merged
from golem_adapters._toolkit.endpoint import (
    Credentials,
    Token,
    address,
    beneath,
    checked,
    found_key,
    model_name,
    shown,
)
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


class Anthropic(HTTPModel):
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

    __slots__ = ("_messages",)

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
        url = base_url or os.environ.get(record.base_url_variable) or ""
        key = ""
        if token is None:
            key = found_key(api_key, record.key_variables, record.name, needed=not url)
        self._messages = _MessagesWire(
            model,
            record,
            address(url or record.base_url),
            Credentials(record.key_header, key, token=token),
            headers,
            settings,
            options,
            checked(api_version, "api_version") if api_version else None,
        )
        super().__init__(self._messages, http_client=http_client, timeout=timeout)

    async def count_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> int:
        """How many tokens a request with these messages and tools has, as the provider counts.

        The port of `golem.history.budget_history` and ``per_request_input_tokens``. Asks the
        provider each time. Raises as `generate` does.
        """
        headers, body = await self._ask(self._messages.count(Request(messages, tools)))
        return self._messages.counted(headers, body)

    @property
    def model(self) -> str:
        """The model's name at the server."""
        return self._messages.model

    @property
    def base_url(self) -> str:
        """Where the server is, without what may be secret in an address."""
        return shown(self._messages.base_url)

    @property
    def dialect(self) -> MessagesDialect:
        """What tells this server apart."""
        return self._messages.dialect

    @property
    def settings(self) -> Settings:
        """The defaults that a request's own settings override."""
        return self._messages.settings

    @property
    def native_output(self) -> bool:
        """Whether the server holds an answer to an output schema."""
        return self._messages.dialect.structured_output

    def __repr__(self) -> str:
        return f"Anthropic({self.model!r}, base_url={self.base_url!r})"


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


class _MessagesWire:
    """The `golem.wire.http.WireDialect` of Messages: ties the pure parts together."""

    takes_notes = True

    __slots__ = (
        "_credentials",
        "_headers",
        "_options",
        "_url",
        "_version",
        "base_url",
        "dialect",
        "model",
        "settings",
    )

    def __init__(
        self,
        model: str,
        dialect: MessagesDialect,
        base_url: str,
        credentials: Credentials,
        headers: Mapping[str, str],
        settings: Settings,
        options: Options,
        version: str | None,
    ) -> None:
        self.model = model_name(model)
        self.dialect = dialect
        self.base_url = base_url
        self.settings = settings
        self._credentials = credentials
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
        accept = "text/event-stream" if stream else "application/json"
        return self._call(self._url, accept, version, body)

    def count(self, request: Request) -> HTTPCall:
        body = encode_count(request, model=self.model, dialect=self.dialect, options=self._options)
        url = beneath(self._url, "/count_tokens")
        return self._call(url, "application/json", self._version or self.dialect.version, body)

    def _call(self, url: str, accept: str, version: str, body: bytes) -> HTTPCall:
        headers = {"content-type": "application/json", "accept": accept, **self._headers}
        headers["anthropic-version"] = version
        return HTTPCall(url, headers, body)

    def authorize(
        self, call: HTTPCall, now: float
    ) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        return self._credentials.headers()

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
