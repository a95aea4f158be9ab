"""`OpenAIResponses`: the model class for the Responses API, here and at compatible servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from golem.errors import APIError
from golem.model import Request, Response, Settings
from golem.wire.http import HTTPCall, HTTPClient
from golem_adapters._toolkit.body import merged
from golem_adapters._toolkit.endpoint import Credentials, Token, beneath, checked, found_server
from golem_adapters._toolkit.model import EVENTS, JSON, CountingModel, KeyedWire, json_call
from golem_adapters._toolkit.streams import is_event_stream
from golem_adapters.openai.failures import http_error
from golem_adapters.openai_responses.dialect import ResponsesDialect, dialect_named
from golem_adapters.openai_responses.request import encode_count, encode_request
from golem_adapters.openai_responses.response import decode_count, decode_response
from golem_adapters.openai_responses.stream import ResponsesStream


class OpenAIResponses(CountingModel[ResponsesDialect]):
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

    __slots__ = ()

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
        url, credentials = found_server(record, base_url, api_key, token)
        wire = _ResponsesWire(model, record, url, settings, credentials, headers, reasoning_summary)
        super().__init__(wire, http_client=http_client, timeout=timeout)

    @property
    def native_output(self) -> bool:
        """Whether the server holds an answer to an output schema, and not merely to JSON."""
        return self.dialect.structured_output == "json_schema"


class _ResponsesWire(KeyedWire[ResponsesDialect]):
    """The `golem.wire.http.WireDialect` of Responses: ties the pure parts together."""

    __slots__ = ("_headers", "_summary", "_url")

    def __init__(
        self,
        model: str,
        dialect: ResponsesDialect,
        base_url: str,
        settings: Settings,
        credentials: Credentials,
        headers: Mapping[str, str],
        summary: str | None,
    ) -> None:
        super().__init__(model, dialect, base_url, settings, credentials)
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
        return json_call(self._url, EVENTS if stream else JSON, body, self._headers)

    def count(self, request: Request) -> HTTPCall:
        effort = self.settings.reasoning_effort
        body = encode_count(request, model=self.model, dialect=self.dialect, effort=effort)
        return json_call(beneath(self._url, "/input_tokens"), JSON, body, self._headers)

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
