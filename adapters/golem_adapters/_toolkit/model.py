"""What the model classes of all adapters have in common. Like theirs, it knows the HTTP shell.

A model class is a thin front: it finds the server and the credentials, and hands what it was
given to its *wire*, the `golem.wire.http.WireDialect` that ties the adapter's pure parts
together. Here are the fronts (`ServedModel`, `CountingModel`) and what wires consist of.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final, Generic, Protocol, TypeVar

from golem.messages import Message
from golem.model import Request, Settings, ToolSpec
from golem.wire.http import HTTPCall, HTTPClient, HTTPModel, WireDialect
from golem_adapters._toolkit.endpoint import Credentials, model_name, shown

D = TypeVar("D")
D_co = TypeVar("D_co", covariant=True)

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"


# --- wires


class ServedWire(WireDialect, Protocol[D_co]):
    """A wire that says what it speaks to; `D` is the record of what tells the server apart."""

    @property
    def model(self) -> str:
        """The model's name at the server."""
        ...

    @property
    def dialect(self) -> D_co:
        """What tells this server apart."""
        ...

    @property
    def settings(self) -> Settings:
        """The defaults that a request's own settings override."""
        ...


class CountingWire(ServedWire[D_co], Protocol[D_co]):
    """A wire of a server that counts tokens too."""

    def count(self, request: Request) -> HTTPCall:
        """The call that asks how many tokens the prompt of `request` has."""
        ...

    def counted(self, headers: Mapping[str, str], body: bytes) -> int:
        """The number in the body of a count's answer; raises ProviderError."""
        ...


class BaseWire(Generic[D]):
    """What every wire knows: the model's name, the server, the settings."""

    takes_notes = True

    __slots__ = ("base_url", "dialect", "model", "settings")

    def __init__(self, model: str, dialect: D, base_url: str, settings: Settings) -> None:
        self.model = model_name(model)
        self.dialect = dialect
        self.base_url = base_url
        self.settings = settings


class KeyedWire(BaseWire[D]):
    """A wire of a server that is shown a key or a token."""

    __slots__ = ("_credentials",)

    def __init__(
        self, model: str, dialect: D, base_url: str, settings: Settings, credentials: Credentials
    ) -> None:
        super().__init__(model, dialect, base_url, settings)
        self._credentials = credentials

    def authorize(
        self, call: HTTPCall, now: float
    ) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        """The header that carries the credentials."""
        return self._credentials.headers()


def json_call(
    url: str, accept: str, body: bytes, headers: Mapping[str, str] | None = None
) -> HTTPCall:
    """The call that sends a JSON body and takes `accept` for an answer."""
    return HTTPCall(url, {"content-type": JSON, "accept": accept, **(headers or {})}, body)


# --- fronts


class ServedModel(HTTPModel, Generic[D]):
    """A model at a server; `D` is the record of what tells the server apart."""

    __slots__ = ("_served",)

    def __init__(
        self,
        wire: ServedWire[D],
        *,
        http_client: HTTPClient | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(wire, http_client=http_client, timeout=timeout)
        self._served = wire

    @property
    def model(self) -> str:
        """The model's name at the server, as it was given."""
        return self._served.model

    @property
    def base_url(self) -> str:
        """Where the server is, without what may be secret in an address."""
        return shown(self._served.base_url)

    @property
    def dialect(self) -> D:
        """What tells this server apart."""
        return self._served.dialect

    @property
    def settings(self) -> Settings:
        """The defaults that a request's own settings override."""
        return self._served.settings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={self.base_url!r})"


class CountingModel(ServedModel[D]):
    """A model at a server that counts tokens too."""

    __slots__ = ("_counting",)

    def __init__(
        self,
        wire: CountingWire[D],
        *,
        http_client: HTTPClient | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(wire, http_client=http_client, timeout=timeout)
        self._counting = wire

    async def count_tokens(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()
    ) -> int:
        """How many tokens a request with these messages and tools has, as the provider counts.

        The port of `golem.history.budget_history` and ``per_request_input_tokens``. Asks the
        provider each time. Raises as `generate` does; an `APIError` where the server does not
        count for this model.
        """
        headers, body = await self._ask(self._counting.count(Request(messages, tools)))
        return self._counting.counted(headers, body)
