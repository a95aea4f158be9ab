"""`AzureOpenAI`: Chat Completions at Azure, on its v1 surface or the classic one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from golem.model import Settings, stop_texts
from golem.wire.http import HTTPClient
from golem_adapters._toolkit.endpoint import Credentials, Token, address, found_key
from golem_adapters._toolkit.model import ServedModel
from golem_adapters.openai.dialect import AZURE, ChatDialect
from golem_adapters.openai.model import ChatWire

_URL_VARIABLES: Final = ("AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT")


class AzureOpenAI(ServedModel[ChatDialect]):
    """A deployment behind Azure's Chat Completions API.

    For Azure's Responses API use ``OpenAIResponses(…, dialect="azure")``.

    Args:
        model: the name of the deployment.
        base_url: the resource (``https://NAME.openai.azure.com``), or the whole address up to
            and without ``/chat/completions``; else ``AZURE_OPENAI_BASE_URL`` or
            ``AZURE_OPENAI_ENDPOINT``.
        api_version: asks for the classic surface in this version
            (``/openai/deployments/NAME/chat/completions?api-version=…``); without, the v1
            surface is used, which needs none.
        api_key: the key; else ``AZURE_OPENAI_API_KEY``.
        token: an Entra token to send instead of a key, or a function, plain or async, that gives
            the one to use now (``get_bearer_token_provider`` of azure-identity makes such ones).
        http_client: an httpx-compatible client to use instead of golem's; never closed here.
        timeout: seconds without a byte from the server after which a request fails; by default
            the given client's own, else ten minutes. ``math.inf``: never.
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
        ValueError: no address, neither key nor token (and no `base_url` was given), or one that
            cannot be used.
    """

    __slots__ = ()

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_version: str | None = None,
        api_key: str | None = None,
        token: Token | None = None,
        http_client: HTTPClient | None = None,
        timeout: float | None = None,
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
        key = ""
        if token is None:
            key = found_key(api_key, AZURE.key_variables, "azure", needed=not base_url)
        url = surface(address(base_url or _found_url()), model, api_version)
        credentials = Credentials(AZURE.key_header, key, token=token)
        wire = ChatWire(model, AZURE, url, settings, credentials, AZURE.headers)
        super().__init__(wire, http_client=http_client, timeout=timeout)

    @property
    def native_output(self) -> bool:
        """Whether the server holds an answer to an output schema, and not merely to JSON."""
        return self.dialect.structured_output == "json_schema"


def _found_url() -> str:
    for name in _URL_VARIABLES:
        if url := os.environ.get(name, "").strip():
            return url
    raise ValueError(f"no address: give base_url=… or set {' or '.join(_URL_VARIABLES)}")


def surface(base_url: str, deployment: str, api_version: str | None) -> str:
    """The address up to and without ``/chat/completions``.

    A path of more than ``/openai`` is a whole address already and stays as it is.
    """
    parts = urlsplit(base_url)
    path, query = parts.path.rstrip("/"), parts.query
    if path in ("", "/openai"):
        name = quote(deployment, safe="")
        path = f"/openai/deployments/{name}" if api_version else "/openai/v1"
    if api_version:
        query = "&".join(filter(None, [query, urlencode({"api-version": api_version})]))
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))
