"""`OpenAIResponses`: the model class for the Responses API, here and at compatible servers."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from golem.errors import APIError
from golem.messages import Message
from golem.model import Request, Response, Settings, ToolSpec
from golem.wire.http import HTTPCall, HTTPClient, HTTPModel
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
from golem_adapters._toolkit.streams import is_event_stream
from golem_adapters.openai.failures import http_error
from golem_adapters.openai_responses.dialect import ResponsesDialect, dialect_named
from golem_adapters.openai_responses.request import encode_count, encode_request
from golem_adapters.openai_responses.response import decode_count, decode_response
from golem_adapters.openai_responses.stream import ResponsesStream


class OpenAIResponses(HTTPModel):
    """A model behind the Responses API of OpenAI or of a compatible server, used without state.

    The server stores nothing; what a model has to get back (encrypted reasoning, items with
    ids) is kept on the messages and goes out with them, as long as they are not changed. It is a
    counter of tokens too: ``budget_history(model, 100_000)``.

    Args:
        model: the model's name at the server.
        api_key: the key; else the server's usual environment variable (``OPENAI_API_KEY``).
        base_url: where the server is, up to and without ``/responses``; else
            ``OPENAI_BASE_URL``, else the dialect's own address.
        dialect: which server it is, by name (``openai``, ``azure``, ``openrouter``, ``xai``,
            ``deepseek``, ``ollama``, ``vllm``, ``llama.cpp``), or a record of your own.
        token: a bearer token to send instead of a key, or a function, plain or async, that
            gives the one to use now.
        http_client: an httpx-compatible client to use instead of golem's; never closed here.
        timeout: seconds without a byte from the server after which a request fails; by default
            the given client's own, else ten minutes. ``math.inf``: never.
        organization: OpenAI's organization header.
        project: OpenAI's project header.
        reasoning_summary: asks for summaries of the reasoning (``auto``, ``concise``,
            ``detailed``); without, most models show none.
        max_tokens: as all that follow, a default of `golem.model.Settings` that a request's
            own settings override. The API has no `seed`, `stop` or penalties: a request that
            sets one is refused before it is sent.
        temperature: see `golem.model.Settings`.
        top_p: see `golem.model.Settings`.
        reasoning_effort: see `golem.model.Settings`.
        parallel_tool_calls: see `golem.model.Settings`.
        prompt_cache_key: see `golem.model.Settings`.
        extra_body: members merged into every request body, over golem's own.

    Raises:
        ValueError: no key although the server needs one (and neither `base_url` nor `token` was
            given), an unusable key or address, an unknown dialect.
    """

    __slots__ = ("_responses",)

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dialect: str | ResponsesDialect = "openai",
        token: Token | None = None,
        http_client: HTTPClient | None = None,
        timeout: float | None = None,
        organization: str | None = None,
        project: str | None = None,
        reasoning_summary: str | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        reasoning_effort: str | None = None,
        parallel_tool_calls: bool | None = None,
        prompt_cache_key: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        record = dialect_named(dialect)
        settings = Settings(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            reasoning_effort=reasoning_effort,
            parallel_tool_calls=parallel_tool_calls,
            prompt_cache_key=prompt_cache_key,
            extra_body=extra_body,
        )
        headers: dict[str, str] = {}
        if organization:
            headers["openai-organization"] = checked(organization, "organization")
        if project:
            headers["openai-project"] = checked(project, "project")
        url = base_url or os.environ.get(record.base_url_variable) or ""
        key = ""
        if token is None:
            key = found_key(api_key, record.key_variables, record.name, needed=not url)
        self._responses = _ResponsesWire(
            model,
            record,
            address(url or record.base_url),
            Credentials(record.key_header, key, token=token),
            headers,
            settings,
            reasoning_summary,
        )
        super().__init__(self._responses, http_client=http_client, timeout=timeout)

    async def count_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> int:
        """How many tokens a request with these messages and tools has, as the provider counts.

        The port of `golem.history.budget_history` and ``per_request_input_tokens``. Asks the
        provider each time. Raises as `generate` does; an `APIError` at servers that do not count.
        """
        headers, body = await self._ask(self._responses.count(Request(messages, tools)))
        return self._responses.counted(headers, body)

    @property
    def model(self) -> str:
        """The model's name at the server."""
        return self._responses.model

    @property
    def base_url(self) -> str:
        """Where the server is, without what may be secret in an address."""
        return shown(self._responses.base_url)

    @property
    def dialect(self) -> ResponsesDialect:
        """What tells this server apart."""
        return self._responses.dialect

    @property
    def settings(self) -> Settings:
        """The defaults that a request's own settings override."""
        return self._responses.settings

    @property
    def native_output(self) -> bool:
        """Whether the server holds an answer to an output schema, and not merely to JSON."""
        return self._responses.dialect.structured_output == "json_schema"

    def __repr__(self) -> str:
        return f"OpenAIResponses({self.model!r}, base_url={self.base_url!r})"


class _ResponsesWire:
    """The `golem.wire.http.WireDialect` of Responses: ties the pure parts together."""

    takes_notes = True

    __slots__ = (
        "_credentials",
        "_headers",
        "_summary",
        "_url",
        "base_url",
        "dialect",
        "model",
        "settings",
    )

    def __init__(
        self,
        model: str,
        dialect: ResponsesDialect,
        base_url: str,
        credentials: Credentials,
        headers: Mapping[str, str],
        settings: Settings,
        summary: str | None,
    ) -> None:
        self.model = model_name(model)
        self.dialect = dialect
        self.base_url = base_url
        self.settings = settings
        self._credentials = credentials
        self._headers = headers
        self._summary = summary
        self._url = beneath(base_url, "/responses")

    def encode(self, request: Request, *, stream: bool) -> HTTPCall:
        body = encode_request(
            request,
            model=self.model,
            settings=merged(self.settings, request.settings),
            dialect=self.dialect,
            stream=stream,
            reasoning_summary=self._summary,
        )
        return self._call(self._url, "text/event-stream" if stream else "application/json", body)

    def count(self, request: Request) -> HTTPCall:
        effort = self.settings.reasoning_effort
        body = encode_count(request, model=self.model, dialect=self.dialect, effort=effort)
        return self._call(beneath(self._url, "/input_tokens"), "application/json", body)

    def _call(self, url: str, accept: str, body: bytes) -> HTTPCall:
        headers = {"content-type": "application/json", "accept": accept, **self._headers}
        return HTTPCall(url, headers, body)

    def authorize(
        self, call: HTTPCall, now: float
    ) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        return self._credentials.headers()

    def decode(self, request: Request, headers: Mapping[str, str], body: bytes) -> Response:
        if is_event_stream(body):
            stream = self.stream_decoder(request, headers)
            stream.feed(body)
            return stream.close()[1]
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

    def stream_decoder(self, request: Request, headers: Mapping[str, str]) -> ResponsesStream:
        return ResponsesStream(request, self.dialect, headers, self._credentials.secret)
