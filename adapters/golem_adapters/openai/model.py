"""`OpenAI`: the model class for Chat Completions, here and at every compatible server."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from golem.errors import APIError
from golem.model import Request, Response, Settings
from golem.wire.http import HTTPCall, HTTPModel
from golem_adapters.openai.dialect import ChatDialect, dialect_named
from golem_adapters.openai.failures import http_error
from golem_adapters.openai.request import encode_request, merged
from golem_adapters.openai.response import decode_response
from golem_adapters.openai.stream import ChatStream

if TYPE_CHECKING:
    import httpx


class OpenAI(HTTPModel):
    """A model behind the Chat Completions API of OpenAI or of a compatible server.

    Args:
        model: the model's name at the server.
        api_key: the key; else the server's usual environment variable (``OPENAI_API_KEY``).
        base_url: where the server is, up to and without ``/chat/completions``; else
            ``OPENAI_BASE_URL``, else the dialect's own address.
        dialect: which server it is, by name (``openai``, ``groq``, ``mistral``, ``deepseek``,
            ``openrouter``, ``ollama``, ``vllm``, ``llama.cpp`` …), or a record of your own.
        http_client: an httpx-compatible client to use instead of golem's; never closed here.
        timeout: seconds without a byte from the server after which a request fails; by default
            the given client's own, else ten minutes. ``math.inf``: never.
        organization: OpenAI's organization header.
        project: OpenAI's project header.
        max_tokens: as all that follow, a default of `golem.model.Settings` that a request's
            own settings override.
        temperature: see `golem.model.Settings`.
        top_p: see `golem.model.Settings`.
        seed: see `golem.model.Settings`.
        stop: see `golem.model.Settings`.
        presence_penalty: see `golem.model.Settings`.
        frequency_penalty: see `golem.model.Settings`.
        reasoning_effort: see `golem.model.Settings`.
        parallel_tool_calls: see `golem.model.Settings`.
        extra_body: members merged into every request body, over golem's own.

    Raises:
        ValueError: no key although the server needs one (and no `base_url` was given), an
            unusable key or address, an unknown dialect.
    """

    __slots__ = ("_chat",)

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dialect: str | ChatDialect = "openai",
        http_client: httpx.AsyncClient | None = None,
        timeout: float | None = None,
        organization: str | None = None,
        project: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        stop: Sequence[str] = (),
        presence_penalty: float | None = None,
        frequency_penalty: float | None = None,
        reasoning_effort: str | None = None,
        parallel_tool_calls: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        record = dialect_named(dialect)
        settings = Settings(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            seed=seed,
            stop=(stop,) if isinstance(stop, str) else tuple(stop),
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
            reasoning_effort=reasoning_effort,
            parallel_tool_calls=parallel_tool_calls,
            extra_body=extra_body,
        )
        headers = dict(record.headers)
        if organization:
            headers["openai-organization"] = organization
        if project:
            headers["openai-project"] = project
        url = base_url or os.environ.get(record.base_url_variable) or ""
        key = _key(api_key, record, needed=not url)
        self._chat = _Chat(model, record, _address(url or record.base_url), key, headers, settings)
        super().__init__(self._chat, http_client=http_client, timeout=timeout)

    @property
    def model(self) -> str:
        """The model's name at the server."""
        return self._chat.model

    @property
    def base_url(self) -> str:
        """Where the server is, without what may be secret in an address."""
        return _shown(self._chat.base_url)

    @property
    def dialect(self) -> ChatDialect:
        """What tells this server apart."""
        return self._chat.dialect

    @property
    def settings(self) -> Settings:
        """The defaults that a request's own settings override."""
        return self._chat.settings

    @property
    def native_output(self) -> bool:
        """Whether the server holds an answer to an output schema, and not merely to JSON."""
        return self._chat.dialect.structured_output == "json_schema"

    def __repr__(self) -> str:
        return f"OpenAI({self.model!r}, base_url={self.base_url!r})"


class _Chat:
    """The `golem.wire.http.WireDialect` of Chat Completions: ties the pure parts together."""

    __slots__ = ("_headers", "_key", "_url", "base_url", "dialect", "model", "settings")

    def __init__(
        self,
        model: str,
        dialect: ChatDialect,
        base_url: str,
        key: str,
        headers: Mapping[str, str],
        settings: Settings,
    ) -> None:
        self.model = model
        self.dialect = dialect
        self.base_url = base_url
        self.settings = settings
        self._key = key
        self._headers = headers
        parts = urlsplit(base_url)  # a query (Azure's api-version) stays behind the path
        path = parts.path.rstrip("/") + "/chat/completions"
        self._url = urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))

    def encode(self, request: Request, *, stream: bool) -> HTTPCall:
        settings = merged(self.settings, request.settings)
        body = encode_request(
            request, model=self.model, settings=settings, dialect=self.dialect, stream=stream
        )
        accept = "text/event-stream" if stream else "application/json"
        headers = {"content-type": "application/json", "accept": accept, **self._headers}
        return HTTPCall(self._url, headers, body)

    def authorize(self, call: HTTPCall, now: float) -> Mapping[str, str]:
        if not self._key:
            return {}
        name = self.dialect.key_header
        return {name: f"Bearer {self._key}" if name == "authorization" else self._key}

    def decode(self, request: Request, headers: Mapping[str, str], body: bytes) -> Response:
        return decode_response(
            body, request=request, dialect=self.dialect, headers=headers, secret=self._key
        )

    def error(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> APIError:
        return http_error(status, headers, body, now=now, secret=self._key)

    def stream_decoder(self, request: Request, headers: Mapping[str, str]) -> ChatStream:
        return ChatStream(request, self.dialect, headers, self._key)


def _key(given: str | None, dialect: ChatDialect, *, needed: bool) -> str:
    """The key to send, empty for none. Its text never appears in the error."""
    if given is None:
        found = (os.environ.get(name, "") for name in dialect.key_variables)
        given = next((key for key in found if key.strip()), "")
        if not given and needed and dialect.key_variables:
            names = " or ".join(dialect.key_variables)
            raise ValueError(f"no API key for {dialect.name}: give api_key=… or set {names}")
    key = given.strip()  # a line break at the end, from a file or a shell
    if not key.isascii() or not key.isprintable():
        raise ValueError("api_key holds characters that no HTTP header can carry")
    return key


def _address(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"base_url must be an http(s) address, not {_shown(base_url)!r}")
    return base_url.rstrip("/")


def _shown(url: str) -> str:
    """`url` without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))
    except ValueError:
        return "…"
