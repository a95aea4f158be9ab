"""The protocols that clients of an app speak: how they post a conversation and read a run. Pure.

Reading makes messages of what was posted and judges nothing; that is ``requests``'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct

from golem.deferral import DeferredResults, Pending
from golem.errors import HistoryError
from golem.messages import Message, UserMessage
from golem.web.agui import agui
from golem.web.chat_chunks import chat_chunks
from golem.web.disclosure import Describe
from golem.web.frames import EncoderFactory
from golem.web.from_agui import answers_from_agui, messages_from_agui
from golem.web.from_chat import messages_from_chat
from golem.web.from_ui import answers_from_ui, messages_from_ui
from golem.web.golem_events import golem_events
from golem.web.requests import (
    Posted,
    bad_history,
    check_count,
    decoded,
    golem_body,
    identifier,
    read_members,
)
from golem.web.ui_messages import ui_messages

NOTHING: Final = DeferredResults()


class Dialect:
    """One protocol. `name` is what ``?format=`` has for it.

    `system_is_usual`: its clients send system messages as a matter of course. `stateless`: what an
    event is encoded as does not hang on those before it, so that reading begins anywhere.
    """

    name = ""
    system_is_usual = False
    stateless = False

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    def read(self, body: bytes, max_messages: int) -> Posted:
        """The conversation that is posted. Raises Refusal."""
        raise NotImplementedError

    def answers(self, body: bytes, pending: Pending) -> DeferredResults:
        """What the body says to calls that the server knows to wait. Raises Refusal."""
        del body, pending
        return NOTHING

    def is_answer(self, body: bytes) -> bool:
        """Whether the body says that it answers calls, whichever they are."""
        del body
        return False

    def encoder(self, body: bytes = b"", *, resumes: bool = False) -> EncoderFactory:
        """Encoders for whoever posted that; `resumes`: it has answered a paused run."""
        raise NotImplementedError


class GolemDialect(Dialect):
    """Golem's own body and events."""

    name = "golem"
    stateless = True

    def read(self, body: bytes, max_messages: int) -> Posted:
        """See `golem.web.requests.golem_body`."""
        return golem_body(body, max_messages)

    def encoder(self, body: bytes = b"", *, resumes: bool = False) -> EncoderFactory:
        """The events as they are."""
        return partial(golem_events, describe=self._describe)


class UIDialect(Dialect):
    """The Vercel AI SDK's: what ``useChat`` posts, with the chat's id as the conversation's."""

    name = "ui"

    def read(self, body: bytes, max_messages: int) -> Posted:
        """``{"id", "messages"}``."""
        return _posted(body, "id", messages_from_ui, max_messages)

    def answers(self, body: bytes, pending: Pending) -> DeferredResults:
        """Approvals and outputs in the last message."""
        return _answers(body, pending, answers_from_ui)

    def is_answer(self, body: bytes) -> bool:
        """Whether its last message has a call that somebody said yes or no to, and no more."""
        said: _Said = decoded(body, _Said, "the body")
        parts = said.messages[-1].parts if said.messages else None
        return any(part.state == "approval-responded" for part in parts or ())

    def encoder(self, body: bytes = b"", *, resumes: bool = False) -> EncoderFactory:
        """A resumed run goes on in the message that asked: the last one posted."""
        message_id = _last_id(body) if resumes else ""
        return partial(ui_messages, message_id=message_id, describe=self._describe)


class AGUIDialect(Dialect):
    """AG-UI's ``RunAgentInput``, with the thread's id as the conversation's.

    The run's id is the server's, whatever the client proposes; tools of the client are not offered
    to the model.
    """

    name = "agui"
    system_is_usual = True

    def read(self, body: bytes, max_messages: int) -> Posted:
        """``{"threadId", "messages"}``."""
        return _posted(body, "threadId", messages_from_agui, max_messages)

    def answers(self, body: bytes, pending: Pending) -> DeferredResults:
        """The entries of ``resume``."""
        return _answers(body, pending, answers_from_agui)

    def is_answer(self, body: bytes) -> bool:
        """Whether there are entries of ``resume``."""
        return bool(decoded(body, _Resuming, "the body").resume)

    def encoder(self, body: bytes = b"", *, resumes: bool = False) -> EncoderFactory:
        """AG-UI events."""
        return partial(agui, describe=self._describe)


class StreamOptions(Struct, frozen=True):
    """OpenAI's ``stream_options``."""

    include_usage: bool | None = False


class ChatRequest(Struct, frozen=True):
    """What of a Chat Completions request is heeded beside its messages."""

    model: str = "golem"
    stream: bool | None = False
    stream_options: StreamOptions | None = None


class ChatDialect(Dialect):
    """OpenAI's Chat Completions: an agent as a model of any client of that API.

    Sampling settings and tools of the request are the agent's business and not heeded.
    """

    name = "chat"
    system_is_usual = True

    def __init__(self, describe: Describe, clock: Callable[[], float]) -> None:
        super().__init__(describe)
        self.clock = clock

    def read(self, body: bytes, max_messages: int) -> Posted:
        """``{"messages"}``; such a conversation has no id."""
        return _posted(body, "", messages_from_chat, max_messages)

    @staticmethod
    def request(body: bytes) -> ChatRequest:
        """Which model, and whether to stream. Raises Refusal."""
        found: ChatRequest = decoded(body, ChatRequest, "the body")
        return found

    def encoder(self, body: bytes = b"", *, resumes: bool = False) -> EncoderFactory:
        """Chunks that name the model asked for."""
        request = self.request(body)
        options = request.stream_options
        return chat_chunks(
            model=request.model,
            created=int(self.clock()),
            include_usage=bool(options and options.include_usage),
            describe=self._describe,
        )


def _posted(
    body: bytes, id_name: str, read: Callable[[bytes], list[Message]], max_messages: int
) -> Posted:
    """A conversation whose last message, where it is the user's, is what is said now."""
    members = read_members(body)
    messages = members.get("messages", b"[]")
    check_count(messages, max_messages)
    try:
        history = read(messages)
    except HistoryError as error:
        raise bad_history(error) from error
    prompt: UserMessage | None = None
    if history and isinstance(history[-1], UserMessage):
        prompt = history[-1]
        history = history[:-1]
    return Posted(history, prompt, identifier(members, id_name) if id_name else "")


def _answers(
    body: bytes, pending: Pending, read: Callable[[Any, Pending], DeferredResults]
) -> DeferredResults:
    try:
        return read(body, pending)
    except HistoryError as error:
        raise bad_history(error) from error


class _Identified(Struct, frozen=True):
    id: str = ""


class _Listed(Struct, frozen=True):
    messages: list[_Identified] = []


class _Part(Struct, frozen=True):
    state: Any = None


class _Message(Struct, frozen=True):
    parts: list[_Part] | None = None


class _Said(Struct, frozen=True):
    messages: list[_Message] | None = None


class _Resuming(Struct, frozen=True):
    resume: Any = None


def _last_id(body: bytes) -> str:
    listed: _Listed = decoded(body, _Listed, "the body")
    return listed.messages[-1].id if listed.messages else ""


def dialects(describe: Describe, clock: Callable[[], float]) -> Mapping[str, Dialect]:
    """The protocols an app speaks, by name."""
    spoken = (
        GolemDialect(describe),
        UIDialect(describe),
        AGUIDialect(describe),
        ChatDialect(describe, clock),
    )
    return {dialect.name: dialect for dialect in spoken}
