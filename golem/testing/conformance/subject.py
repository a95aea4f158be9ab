"""An adapter under test, and how a check asks it and says what is wrong."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Coroutine, Generator
from contextlib import aclosing, contextmanager
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from golem.closing import closable
from golem.errors import ProviderError
from golem.messages import AssistantMessage, UserMessage
from golem.model import Delta, Model, Request, Response
from golem.testing.judge import Judge, Misbehavior, Said

ASK = Request((UserMessage("What is it?"),))

Feature = Literal["tools", "thinking"]
"""What some providers do not have."""


class Subject(Struct, frozen=True):
    """An adapter under test.

    `model` makes one that talks to a judge: to its `base_url` (or `origin`), with its `key`.
    `judge` makes the judge, called as ``judge(answers, misbehave)``: `ChatJudge`, or
    ``partial(Judge, YourProvider())``. `lacks` names what the provider does not have.
    """

    model: Callable[[Judge], Model]
    judge: Callable[..., Judge]
    lacks: frozenset[Feature] = frozenset()

    def saying(self, *answers: Said) -> Judge:
        """A judge that answers these, one for each request."""
        return self.judge(answers, None)

    def doing(self, wrong: Misbehavior, answer: Said) -> Judge:
        """A judge that gives this answer every time, as wrongly as told."""
        return self.judge(answer, wrong)


class Check(Protocol):
    """One thing to ask of an adapter. Raises AssertionError where it does not hold."""

    __name__: str

    def __call__(self, subject: Subject) -> Coroutine[Any, Any, None]:
        """Ask it."""
        ...


class Heard(NamedTuple):
    """What came of a stream before its end: the deltas, and the response."""

    deltas: list[Delta]
    response: Response


async def streamed(model: Model, request: Request = ASK) -> Heard:
    """Read a stream to its end; it has to be deltas, then one response."""
    items: list[Delta | Response] = []
    async with aclosing(closable(model.stream(request))) as stream:
        async for item in stream:
            items.append(item)  # noqa: PERF401  (an async comprehension would hide the close)
    deltas = [item for item in items if not isinstance(item, Response)]
    expect("how many responses end the stream", 1, len(items) - len(deltas))
    last = items[-1]
    if not isinstance(last, Response):
        raise AssertionError("the response is not the last item of the stream")
    return Heard(deltas, last)


async def asked(model: Model, request: Request = ASK, *, stream: bool) -> Response:
    """The response, plain or streamed."""
    return (await streamed(model, request)).response if stream else await model.generate(request)


async def failure(
    subject: Subject, judge: Judge, request: Request = ASK, *, stream: bool
) -> ProviderError:
    """The error that a request ends with, which may show the key nowhere."""
    model = subject.model(judge)
    try:
        answer = await asked(model, request, stream=stream)
    except ProviderError as error:
        shown = [*traceback.format_exception(error), repr(error), repr(model)]
        if judge.key and (judge.key in "".join(shown) or judge.key.encode() in pickle.dumps(error)):
            raise AssertionError("the key stands in the error or the model's repr") from None
        return error
    raise AssertionError(f"no error, but {answer.message!r}")


def expect(what: str, expected: object, actual: object) -> None:
    """Raise AssertionError unless both are equal."""
    if expected != actual:
        raise AssertionError(f"{what}: expected {expected!r}, not {actual!r}")


def expect_kind(what: str, expected: type[Exception], actual: object) -> None:
    """Raise AssertionError unless `actual` is an `expected`."""
    if not isinstance(actual, expected):
        raise AssertionError(f"{what}: expected {expected.__name__}, not {actual!r}")


def expect_beginning(what: str, whole: str, partial: AssistantMessage | None) -> int:
    """How much of a text a partial message has; AssertionError where it has something else."""
    text = partial.content if partial is not None else ""
    if not whole.startswith(text):
        raise AssertionError(f"{what}: {text!r} is not how {whole!r} begins")
    return len(text)


@contextmanager
def taken(judge: Judge, what: str = "a request") -> Generator[None, None, None]:
    """Around what asks a judge: a broken rule says more than the error that it leads to."""
    try:
        yield
    finally:
        expect_taken(judge, what)


def expect_taken(judge: Judge, what: str = "a request") -> None:
    """Raise AssertionError where the judge found something wrong with what it was sent."""
    if judge.violations:
        found = "; ".join(map(str, judge.violations))
        raise AssertionError(f"{what} breaks the provider's rules: {found}")
