"""`OpenAI`: the model class for Chat Completions, here and at every compatible server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from golem.errors import APIError
from golem.model import Request, Response, Settings, stop_texts
from golem.wire.http import HTTPCall, HTTPClient
from golem_adapters._toolkit.body import merged
from golem_adapters._toolkit.endpoint import (
    Credentials,
    beneath,
    checked,
    found_server,
    header_value,
)
from golem_adapters._toolkit.model import EVENTS, JSON, KeyedWire, ServedModel, json_call
from golem_adapters._toolkit.streams import is_event_stream
from golem_adapters.openai.dialect import ChatDialect, dialect_named
from golem_adapters.openai.failures import http_error
from golem_adapters.openai.request import encode_request
from golem_adapters.openai.response import decode_response
from golem_adapters.openai.stream import ChatStream


class OpenAI(ServedModel[ChatDialect]):
    """A model behind the Chat Completions API of OpenAI or of a compatible server.

    Args:
        model: the model's name at the server.
        api_key: the key; else the server's usual environment variable (``OPENAI_API_KEY``).
        base_url: where the server is, up to and without ``/chat/completions``; else
            ``OPENAI_BASE_URL``, else the dialect's own address.
        dialect: which server it is, by name (``openai``, ``groq``, ``mistral``, ``openrouter``,
            ``deepseek``, ``xai``, ``together``, ``fireworks``, ``cerebras``, ``z.ai``, ``kimi``,
            ``ollama``, ``vllm``, ``llama.cpp`` …), or a record of your own.
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
        prompt_cache_key: see `golem.model.Settings`.
        extra_body: members merged into every request body, over golem's own.

    Raises:
        ValueError: no key although the server needs one (and no `base_url` was given), an
            unusable key or address, an unknown dialect.
    """

    __slots__ = ()

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dialect: str | ChatDialect = "openai",
        http_client: HTTPClient | None = None,
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
        prompt_cache_key: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        record = dialect_named(dialect)
        settings = Settings(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            seed=seed,
            stop=stop_texts(stop),
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
            reasoning_effort=reasoning_effort,
            parallel_tool_calls=parallel_tool_calls,
            prompt_cache_key=prompt_cache_key,
            extra_body=extra_body,
        )
        headers = dict(record.headers)
        if organization:
            headers["openai-organization"] = checked(organization, "organization")
        if project:
            headers["openai-project"] = checked(project, "project")
        url, credentials = found_server(record, base_url, api_key)
        wire = ChatWire(model, record, url, settings, credentials, headers)
        super().__init__(wire, http_client=http_client, timeout=timeout)

    @property
    def native_output(self) -> bool:
        """Whether the server holds an answer to an output schema, and not merely to JSON."""
        return self.dialect.structured_output == "json_schema"


class ChatWire(KeyedWire[ChatDialect]):
    """The `golem.wire.http.WireDialect` of Chat Completions: ties the pure parts together.

    `base_url` is the address up to and without ``/chat/completions``.
    """

    __slots__ = ("_headers", "_url")

    def __init__(
        self,
        model: str,
        dialect: ChatDialect,
        base_url: str,
        settings: Settings,
        credentials: Credentials,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(model, dialect, base_url, settings, credentials)
        self._headers = headers
        self._url = beneath(base_url, "/chat/completions")

    def encode(self, request: Request, *, stream: bool) -> HTTPCall:
        """The call that asks for `request`."""
        settings = merged(self.settings, request.settings)
        body = encode_request(
            request, model=self.model, settings=settings, dialect=self.dialect, stream=stream
        )
        headers = dict(self._headers)
        if self.dialect.cache_key_header and settings.prompt_cache_key:
            headers[self.dialect.cache_key_header] = header_value(settings.prompt_cache_key)
        return json_call(self._url, EVENTS if stream else JSON, body, headers)

    def decode(self, request: Request, headers: Mapping[str, str], body: bytes) -> Response:
        """The response in `body`."""
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

    def error(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> APIError:
        """The error in `body`."""
        return http_error(status, headers, body, now=now, secret=self._credentials.secret)

    def stream_decoder(self, request: Request, headers: Mapping[str, str]) -> ChatStream:
        """A decoder for one streamed answer."""
        return ChatStream(request, self.dialect, headers, self._credentials.secret)
