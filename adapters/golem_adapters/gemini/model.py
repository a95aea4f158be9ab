"""`Gemini`: the model class for Google's API, at AI Studio and at Vertex AI."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from golem.errors import APIError
from golem.model import Request, Response, Settings, stop_texts
from golem.wire.http import HTTPCall
from golem_adapters._toolkit.body import merged
from golem_adapters._toolkit.endpoint import Credentials, Token, address, beneath, found_key
from golem_adapters._toolkit.model import EVENTS, JSON, CountingModel, KeyedWire, json_call
from golem_adapters.gemini.dialect import (
    AI_STUDIO,
    VERTEX,
    GeminiDialect,
    dialect_named,
    traits_of,
)
from golem_adapters.gemini.failures import http_error
from golem_adapters.gemini.place import Place, asking, versioned, word
from golem_adapters.gemini.request import Options, encode_count, encode_request
from golem_adapters.gemini.response import decode_count, decode_response
from golem_adapters.gemini.stream import GeminiStream

if TYPE_CHECKING:
    import httpx

_SMALLEST_BUDGET: Final = -1  # the model decides


class Gemini(CountingModel[GeminiDialect]):
    """A Gemini model, at AI Studio with an API key or at Vertex AI with a token.

    Thought signatures are kept on the messages and go out with them in the part they came in,
    as long as a message is not changed. It is a counter of tokens too:
    ``budget_history(model, 100_000)``.

    Args:
        model: the model's name (``gemini-3-flash-preview``), or a whole resource name
            (``tunedModels/…``, ``projects/…/endpoints/…``).
        api_key: the key; else ``GEMINI_API_KEY`` or ``GOOGLE_API_KEY``, at AI Studio only.
        base_url: where the server is, with or without the version at its end; else
            ``GOOGLE_GEMINI_BASE_URL`` (``GOOGLE_VERTEX_BASE_URL``), else Google's own.
        dialect: ``gemini`` (AI Studio) or ``vertex``, or a record of your own. By default
            Vertex where a `project` or `location` is given.
        project: the Google Cloud project; else ``GOOGLE_CLOUD_PROJECT``, at Vertex only.
        location: where the model runs; else ``GOOGLE_CLOUD_LOCATION``, else ``global``.
        token: an OAuth token to send instead of a key, or a function, plain or async, that
            gives the one to use now.
        http_client: an httpx-compatible client to use instead of golem's; never closed here.
        timeout: seconds without a byte from the server after which a request fails; by default
            the given client's own, else ten minutes. ``math.inf``: never.
        api_version: the version of the API; by default v1beta, at Vertex v1beta1.
        thinking: how much to think: a budget in tokens (0: not at all, -1: as the model likes),
            a level (``low``, ``high`` …, Gemini 3 and newer), or the API's own
            ``thinkingConfig``; None leaves it to the model.
        include_thoughts: whether the model tells a summary of its thoughts.
        safety_settings: what the server blocks, as the API has it.
        server_tools: tools that the server runs, as the API has them (``{"googleSearch": {}}``).
        max_tokens: see `golem.model.Settings`. As all that follow, a default that a request's
            own settings override.
        temperature: see `golem.model.Settings`.
        top_p: see `golem.model.Settings`.
        seed: see `golem.model.Settings`.
        stop: see `golem.model.Settings`.
        presence_penalty: see `golem.model.Settings`.
        frequency_penalty: see `golem.model.Settings`.
        reasoning_effort: a level of thinking; for models before Gemini 3 one of none, minimal,
            low, medium and high, which stand for budgets.
        parallel_tool_calls: Gemini has no such setting: a request with False is refused before
            it is sent.
        extra_body: members merged into every request body, over golem's own, objects member by
            member (not into counts).

    Raises:
        ValueError: neither key, token nor `base_url` at AI Studio; no project, or neither key,
            token nor `base_url` at Vertex; an unusable key, address, project or location; an
            unknown dialect or thinking.
    """

    __slots__ = ()

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        dialect: str | GeminiDialect | None = None,
        project: str | None = None,
        location: str | None = None,
        token: Token | None = None,
        http_client: httpx.AsyncClient | None = None,
        timeout: float | None = None,
        api_version: str | None = None,
        thinking: int | str | Mapping[str, Any] | None = None,
        include_thoughts: bool | None = None,
        safety_settings: Sequence[Mapping[str, Any]] = (),
        server_tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
        presence_penalty: float | None = None,
        frequency_penalty: float | None = None,
        reasoning_effort: str | None = None,
        parallel_tool_calls: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
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
            extra_body=extra_body,
        )
        thoughts = _thinking(thinking, include_thoughts)
        options = Options(thoughts, tuple(safety_settings), tuple(server_tools))
        record = _record(dialect, project, location)
        server = _server(record, base_url, api_version, project, location)
        credentials = _credentials(record, api_key, token, server.given)
        if record.vertex and not (server.place.project or api_key or "projects/" in model):
            raise ValueError("no project for Vertex: give project=… or set GOOGLE_CLOUD_PROJECT")
        wire = _GeminiWire(model, record, server, settings, credentials, options)
        super().__init__(wire, http_client=http_client, timeout=timeout)

    @property
    def native_output(self) -> bool:
        """Whether the server holds an answer to an output schema, also beside tools."""
        return traits_of(self.model).schema_beside_tools


class _Server(NamedTuple):
    """Where requests go; `given`: whether the address was, by the caller or the environment."""

    base_url: str
    version: str
    place: Place
    given: bool


def _record(
    dialect: str | GeminiDialect | None, project: str | None, location: str | None
) -> GeminiDialect:
    if dialect is None:
        return VERTEX if project or location else AI_STUDIO
    return dialect_named(dialect)


def _server(
    record: GeminiDialect,
    base_url: str | None,
    version: str | None,
    project: str | None,
    location: str | None,
) -> _Server:
    url = base_url or os.environ.get(record.base_url_variable) or ""
    place = Place.found(project, location) if record.vertex else Place()
    return _Server(
        address(url or record.base_url or place.address),
        word(version or record.version, "version"),
        place,
        bool(url),
    )


def _credentials(
    record: GeminiDialect, api_key: str | None, token: Token | None, addressed: bool
) -> Credentials:
    key = ""
    if token is None:
        key = found_key(api_key, record.key_variables, record.name, needed=not addressed)
        if record.vertex and not key and not addressed:
            raise ValueError("no token for Vertex: give token=… (a text or a function)")
    return Credentials("x-goog-api-key", key, token=token)


def _thinking(
    given: int | str | Mapping[str, Any] | None, include: bool | None
) -> Mapping[str, Any] | None:
    """The API's own object for what a caller may say about thinking."""
    config: dict[str, Any] = {}
    if isinstance(given, Mapping):
        config = dict(given)
    elif isinstance(given, str) and given.strip():
        config = {"thinkingLevel": given.upper()}
    elif isinstance(given, int) and not isinstance(given, bool) and given >= _SMALLEST_BUDGET:
        config = {"thinkingBudget": given}
    elif given is not None:
        raise ValueError(
            f"thinking is a level, or a budget of tokens from {_SMALLEST_BUDGET}, not {given!r}"
        )
    if include is not None:
        config["includeThoughts"] = include
    return config or None


class _GeminiWire(KeyedWire[GeminiDialect]):
    """The `golem.wire.http.WireDialect` of Gemini: ties the pure parts together."""

    __slots__ = ("_options", "_resource", "_root", "_traits")

    def __init__(
        self,
        model: str,
        dialect: GeminiDialect,
        server: _Server,
        settings: Settings,
        credentials: Credentials,
        options: Options,
    ) -> None:
        super().__init__(model, dialect, server.base_url, settings, credentials)
        self._traits = traits_of(model)
        self._options = options
        self._resource = server.place.resource(model, vertex=dialect.vertex)
        self._root = versioned(server.base_url, server.version)

    def encode(self, request: Request, *, stream: bool) -> HTTPCall:
        body = encode_request(
            request,
            settings=merged(self.settings, request.settings),
            dialect=self.dialect,
            traits=self._traits,
            options=self._options,
        )
        if stream:
            url = asking(self._url("streamGenerateContent"), "alt=sse")
            return json_call(url, EVENTS, body)
        return json_call(self._url("generateContent"), JSON, body)

    def count(self, request: Request) -> HTTPCall:
        body = encode_count(
            request,
            model=self._resource,
            dialect=self.dialect,
            traits=self._traits,
            options=self._options,
        )
        return json_call(self._url("countTokens"), JSON, body)

    def _url(self, method: str) -> str:
        return beneath(self._root, f"/{quote(self._resource, safe='/:@._-')}:{method}")

    def decode(self, request: Request, headers: Mapping[str, str], body: bytes) -> Response:
        return decode_response(
            body, request=request, headers=headers, secret=self._credentials.secret
        )

    def counted(self, headers: Mapping[str, str], body: bytes) -> int:
        return decode_count(body, headers=headers, secret=self._credentials.secret)

    def error(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> APIError:
        return http_error(status, headers, body, now=now, secret=self._credentials.secret)

    def stream_decoder(self, request: Request, headers: Mapping[str, str]) -> GeminiStream:
        return GeminiStream(request, headers, self._credentials.secret)
