"""What a judge has to know of a provider: the `Provider` protocol, one class for each API.

Pure: a provider judges a decoded body and spells answers, `golem.testing.judge.server` does the
HTTP. For an API that has no judge yet, subclass `Provider` in a file of its own: what most of
them share is written here, what none shares is left to it (``docs/adapters.md``).
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from golem.messages import AssistantMessage
from golem.model import Response
from golem.testing.judge.findings import JSON, Violation
from golem.testing.judge.reply import Reply, json_reply

Said = str | AssistantMessage | Response
"""What a model is to answer: a text, a message, a message with usage and finish reason."""

_BLOCK: Final = 65536
_HERE: Final = "HUGE"


class Provider(Protocol):
    """An API as its judge sees it. Every method is a pure function of its arguments."""

    path: str = ""
    """Where requests go below the base URL: ``/chat/completions``."""

    key_header: str = "authorization"
    """The header of the key, in lower case; ``authorization`` carries it as a Bearer token."""

    request_id_header: str = "x-request-id"
    """The header of an answer that its support asks for."""

    stream_type: str = "text/event-stream; charset=utf-8"
    """The content type of a stream."""

    unreadable: str = "We could not parse the JSON body of your request."
    """What it says to a body that is no JSON."""

    # --- requests

    def serves(self, path: str) -> bool:
        """Whether a model answers at this path."""
        return path.endswith(self.path)

    def streams(self, path: str, body: JSON) -> bool:
        """Whether a stream is asked for: by default a member of the body says so."""
        return body.get("stream") is True

    @abstractmethod
    def judge(self, body: Any, made_with: Mapping[str, str]) -> list[Violation]:
        """What is wrong with a decoded body; `made_with`: what `links` told of earlier answers."""
        ...

    def key_of(self, headers: Mapping[str, str]) -> str:
        """The key that a request with these headers carries, empty for none."""
        sent = headers.get(self.key_header, "")
        return sent.removeprefix("Bearer ") if self.key_header == "authorization" else sent

    def judge_request(
        self, path: str, headers: Mapping[str, str], body: Any, made_with: Mapping[str, str]
    ) -> list[Violation]:
        """What is wrong with a request whose key is right: by default what `judge` says."""
        return self.judge(body, made_with)

    # --- answers

    def aside(self, path: str, body: JSON) -> JSON | None:
        """The answer where no model is asked, such as a count of tokens; None where one is."""
        return None

    def default(self, body: JSON) -> Said:
        """What a model would answer where no answer was given to the judge."""
        return "The capital of France is Paris."

    @abstractmethod
    def answer(self, body: JSON, said: Response) -> JSON:
        """The plain answer that says `said`."""
        ...

    @abstractmethod
    def events(self, body: JSON, said: Response) -> Sequence[bytes]:
        """The same answer as the events of a stream, spelled out, terminator included."""
        ...

    def reply(self, body: JSON, status: int = 200) -> Reply:
        """The HTTP answer with this body, plain or an error."""
        return json_reply(body, status=status)

    def links(self, answer: JSON) -> Mapping[str, str]:
        """Which ids in an answer have to come back together, if any: from item to reasoning."""
        return {}

    # --- failures

    def to_wait(self, refusal: Reply, name: str, after: str) -> Reply:
        """`refusal` that says to try again `after`, by default in the header of this name."""
        return refusal.with_header(name, after)

    @abstractmethod
    def failure(self, message: str, status: int, code: str | None = None) -> JSON:
        """The body of an error with this HTTP status."""
        ...

    @abstractmethod
    def failing_event(self, message: str, code: str | None = None) -> bytes:
        """An error inside a stream, by the server's own fault."""
        ...

    @abstractmethod
    def text_event(self, text: str) -> bytes:
        """An event in the middle of a stream that brings `text`."""
        ...

    def large_event(self, size: int) -> Iterable[bytes]:
        """An event in the middle of a stream that brings `size` bytes of text, in pieces."""
        head, tail = self.text_event(_HERE).split(_HERE.encode(), 1)
        yield head
        yield from itertools.repeat(b"x" * _BLOCK, size // _BLOCK)
        yield b"x" * (size % _BLOCK)
        yield tail

    def refused_key(self, key: str) -> Violation:
        """The answer to a wrong `key`, or to none."""
        shown = f"{key[:8]}*****" if len(key) > 12 else "*" * len(key)
        text = f"Incorrect API key provided: {shown}." if key else "You didn't provide an API key."
        return Violation("key", "", text, self.failure(text, 401, "invalid_api_key"), 401)
