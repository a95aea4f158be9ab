"""`Bedrock`: the model class for the Converse API of Amazon Bedrock."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote

from golem.errors import APIError
from golem.model import Request, Response, Settings, stop_texts
from golem.wire.http import HTTPCall
from golem_adapters._toolkit.body import merged
from golem_adapters._toolkit.endpoint import Token, address, beneath
from golem_adapters._toolkit.model import JSON, BaseWire, CountingModel, json_call
from golem_adapters.bedrock.credentials import Proof, Source, proof_of
from golem_adapters.bedrock.dialect import ConverseDialect, dialect_of
from golem_adapters.bedrock.failures import http_error
from golem_adapters.bedrock.request import Options, encode_count, encode_request
from golem_adapters.bedrock.response import decode_count, decode_response
from golem_adapters.bedrock.stream import ConverseStream

if TYPE_CHECKING:
    import httpx

_REGION: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)+")
_REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
_URL_VARIABLES: Final = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_ENDPOINT_URL")
_LIFETIMES: Final = ("5m", "1h")
_EVENT_STREAM: Final = "application/vnd.amazon.eventstream"


class Bedrock(CountingModel[ConverseDialect]):
    """A model behind the Converse API of Amazon Bedrock.

    What a model has to get back (signed thinking, what the service's own tools did) is kept on
    the messages and goes out with them in place, to models of the same family, as long as they
    are not changed. It is a counter of tokens too, where the service counts for the model.

    Args:
        model: the model's id, an inference profile, or an ARN of one of them.
        region: the AWS region; else ``AWS_REGION``, ``AWS_DEFAULT_REGION``, else that of an ARN.
        credentials: an `AWSCredentials`, or a function, plain or async, that gives the ones to
            use now; else the environment's ``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY`` and
            ``AWS_SESSION_TOKEN``.
        api_key: a Bedrock API key, sent as a Bearer token in place of a signature; else
            ``AWS_BEARER_TOKEN_BEDROCK``, which goes before the environment's credentials.
        token: a function, plain or async, that gives the API key to use now, or the key itself.
        base_url: where the server is; else ``AWS_ENDPOINT_URL_BEDROCK_RUNTIME``,
            ``AWS_ENDPOINT_URL``, else the region's own address.
        dialect: which family the model is of, where its name does not tell (an application
            inference profile): the name of a model of it, or a record of your own.
        http_client: an httpx-compatible client to use instead of golem's; never closed here.
        timeout: seconds without a byte from the server after which a request fails; by default
            the given client's own, else ten minutes. ``math.inf``: never.
        cache: has the prompt cached for ``5m`` or ``1h``: the conversation up to its last
            block, and the instructions (the tools, where there are none) by themselves.
        server_tools: tools that the service runs, as the API has them
            (``{"systemTool": {"name": "nova_code_interpreter"}}``).
        max_tokens: see `golem.model.Settings`, whose defaults this and all that follow are. A
            request's own settings override them. The API has no `seed`, no penalties and no way
            to forbid parallel calls: a request that sets one is refused before it is sent.
        temperature: see `golem.model.Settings`.
        top_p: see `golem.model.Settings`.
        stop: see `golem.model.Settings`.
        reasoning_effort: see `golem.model.Settings`; refused for families without one.
        extra_body: members merged into every request body, over golem's own (not into counts);
            what only one family has goes under ``additionalModelRequestFields``.

    Raises:
        ValueError: no credentials (unless a `base_url` was given) or unusable ones, no region or
            an unusable one, an unusable address, a cache time that there is not, or a cache for
            a family without.
    """

    __slots__ = ("_region",)

    def __init__(
        self,
        model: str,
        *,
        region: str | None = None,
        credentials: Source | None = None,
        api_key: str | None = None,
        token: Token | None = None,
        base_url: str | None = None,
        dialect: str | ConverseDialect | None = None,
        http_client: httpx.AsyncClient | None = None,
        timeout: float | None = None,
        cache: Literal["5m", "1h"] | None = None,
        server_tools: Sequence[Mapping[str, Any]] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        stop: str | Sequence[str] = (),
        reasoning_effort: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        settings = Settings(
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            stop=stop_texts(stop),
            reasoning_effort=reasoning_effort,
            extra_body=extra_body,
        )
        record = dialect if isinstance(dialect, ConverseDialect) else dialect_of(dialect or model)
        if cache is not None and cache not in _LIFETIMES:
            raise ValueError(f"cache is '5m' or '1h', not {cache!r}")
        if cache is not None and not record.caches:
            raise ValueError(f"{record.name} has no prompt caches")
        where = _region(region, model)
        url = base_url or _first(_URL_VARIABLES)
        wire = _ConverseWire(
            model,
            record,
            address(url or _address_of(where)),
            settings,
            proof_of(api_key, token, credentials, where, own=bool(url)),
            Options(cache, tuple(server_tools)),
        )
        super().__init__(wire, http_client=http_client, timeout=timeout)
        self._region = where

    @property
    def region(self) -> str:
        """The AWS region; empty where nothing needs one."""
        return self._region

    @property
    def native_output(self) -> bool:
        """Whether the model is held to an output schema."""
        return self.dialect.structured_output


def _first(variables: Sequence[str]) -> str:
    """The first of the environment's `variables` that is set; empty for none."""
    found = (os.environ.get(name, "").strip() for name in variables)
    return next(filter(None, found), "")


def _region(given: str | None, model: str) -> str:
    """The region: given, the environment's, an ARN's; empty for none."""
    of_arn = model.split(":")[3] if model.startswith("arn:") and model.count(":") > 3 else ""
    region = (given or _first(_REGION_VARIABLES) or of_arn).strip()
    if region and not _REGION.fullmatch(region):
        raise ValueError(f"not an AWS region: {region!r}")
    return region


def _address_of(region: str) -> str:
    """The address of Bedrock's runtime in `region`."""
    if not region:
        raise ValueError("no region for Bedrock: give region=… or set AWS_REGION")
    suffix = ".cn" if region.startswith("cn-") else ""
    return f"https://bedrock-runtime.{region}.amazonaws.com{suffix}"


class _ConverseWire(BaseWire[ConverseDialect]):
    """The `golem.wire.http.WireDialect` of Converse: ties the pure parts together."""

    __slots__ = ("_options", "_path", "_proof")

    def __init__(
        self,
        model: str,
        dialect: ConverseDialect,
        base_url: str,
        settings: Settings,
        proof: Proof,
        options: Options,
    ) -> None:
        super().__init__(model, dialect, base_url, settings)
        self._proof = proof
        self._options = options
        self._path = f"/model/{quote(model, safe='')}"

    def encode(self, request: Request, *, stream: bool) -> HTTPCall:
        body = encode_request(
            request,
            settings=merged(self.settings, request.settings),
            dialect=self.dialect,
            options=self._options,
        )
        if stream:
            return self._call("/converse-stream", _EVENT_STREAM, body)
        return self._call("/converse", JSON, body)

    def count(self, request: Request) -> HTTPCall:
        body = encode_count(request, dialect=self.dialect, options=self._options)
        return self._call("/count-tokens", JSON, body)

    def _call(self, action: str, accept: str, body: bytes) -> HTTPCall:
        return json_call(beneath(self.base_url, self._path + action), accept, body)

    def authorize(
        self, call: HTTPCall, now: float
    ) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        return self._proof.headers(call.method, call.url, call.headers, call.body, now)

    def decode(self, request: Request, headers: Mapping[str, str], body: bytes) -> Response:
        return decode_response(
            body,
            request=request,
            dialect=self.dialect,
            headers=headers,
            secrets=self._proof.secrets,
        )

    def counted(self, headers: Mapping[str, str], body: bytes) -> int:
        return decode_count(body, headers=headers, secrets=self._proof.secrets)

    def error(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> APIError:
        return http_error(status, headers, body, now=now, secrets=self._proof.secrets)

    def stream_decoder(self, request: Request, headers: Mapping[str, str]) -> ConverseStream:
        return ConverseStream(request, self.dialect, headers, self._proof.secrets)
