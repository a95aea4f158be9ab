"""What nobody should send, for the laws of decoders, and what holds whatever is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

from golem.codec import dump_message, load_message
from golem.errors import ProviderError
from golem.messages import AssistantMessage
from golem.model import Response
from tests.adapters.driving import Outcome, bytewise, cut

WORDS = st.text(max_size=8) | st.sampled_from(["\U0001f600\U0001f600", " ", "a\nb", "é", ""])
"""Texts as models write them."""

INPUTS = st.sampled_from([{}, {"a": 1}, {"a": "\U0001f600"}, {"b": [1.5, None], "c": {"d": " "}}])
"""Arguments as models write them."""

TOKENS = st.sampled_from(["f", "x", "{", '{"a":1}', " ", "\ud83d", "\ude00", "é", "m", "[DONE]"])
"""Texts that mean something where they should not."""

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


class Odd:
    """JSON that is mostly what is expected, and sometimes anything made of `tokens`."""

    def __init__(self, tokens: st.SearchStrategy[str] = TOKENS) -> None:
        self.values: st.SearchStrategy[Any] = st.recursive(
            SCALARS | tokens,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(tokens, inner, max_size=3),
            max_leaves=5,
        )

    def odd(self, usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        """Mostly `usual`."""
        return st.one_of(usual, usual, usual, self.values)

    def objects(self, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        """Mostly an object with some of `members`, each of which is mostly what it should be."""
        named = {name: self.odd(member) for name, member in members.items()}
        return self.odd(st.fixed_dictionaries({}, optional=named))


@st.composite
def event_streams(
    draw: st.DrawFn,
    events: st.SearchStrategy[Any],
    endings: list[str],
    *,
    between: tuple[str, ...] = ("", "", ": ping\n", "event: ping\n"),
    most: int = 8,
) -> bytes:
    """An event stream of at most so many `events`, with one of the `endings`."""
    text = ""
    for event in draw(st.lists(events, max_size=most)):
        text += draw(st.sampled_from(between))
        text += f"data: {json.dumps(event)}" + draw(st.sampled_from(["\n\n", "\r\n\r\n", "\n"]))
    return (text + draw(st.sampled_from(endings))).encode()


# --- laws

Drive = Callable[[Iterable[bytes]], Outcome]


def check_cuts(drive: Drive, data: bytes, places: list[int]) -> None:
    """However a stream is cut, its outcome is one."""
    whole = drive([data])
    pieces = cut(data, [place % (len(data) + 1) for place in places])
    assert whole.shape == drive(pieces).shape
    assert whole.shape == drive(bytewise(data)).shape


def check_told(outcome: Outcome) -> None:
    """An answer is what its deltas told, can be stored, and each of its calls can be answered."""
    if outcome.response is not None:
        assert outcome.told == outcome.said
    message = outcome.message
    assert message == load_message(dump_message(message))
    ids = [call.id for call in message.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


def check_plain(decode: Callable[[bytes], Response], answer: Any) -> None:
    """A plain answer is a response that can be stored, or an error with words."""
    failure: Exception | None = None
    try:
        found = decode(json.dumps(answer).encode())
    except ProviderError as error:
        failure = error
    else:
        assert found.message == load_message(dump_message(found.message))
    assert failure is None or str(failure)


def check_same(plain: Response, streamed: Outcome, said: Callable[[AssistantMessage], Any]) -> None:
    """A streamed answer is the plain one: what `said` makes of the message, and all beside it."""
    response = streamed.response
    assert response is not None
    assert said(plain.message) == said(streamed.message)
    assert (plain.usage, plain.finish_reason) == (response.usage, response.finish_reason)
    assert plain.details == response.details
    assert streamed.told == streamed.said


def check_lost(lost: Outcome, plain: Response, kind: type[ProviderError]) -> None:
    """A stream that was cut is an error of `kind` that keeps what had come, to be tried again."""
    assert isinstance(lost.error, kind)
    assert lost.error.retryable
    assert lost.told == lost.said
    assert lost.message.native is None
    assert plain.message.content.startswith(lost.message.content)
