"""What goes wrong: the right error with what had come, no secret, no connection left open."""

from __future__ import annotations

from typing import Final

import anyio

from golem.errors import APIError, ProtocolError, ProviderError, TransportError
from golem.messages import AssistantMessage, ToolCall
from golem.model import TextDelta
from golem.testing.conformance.subject import (
    ASK,
    Check,
    Subject,
    asked,
    expect,
    expect_beginning,
    expect_kind,
    failure,
    streamed,
)
from golem.testing.judge import Judge, Misbehavior, Reply, misbehave

_TEXT: Final = "One two three four five six seven eight nine ten eleven twelve."
_PLACES: Final = 12
"""In so many places a body is cut."""

_FINAL: Final = (400, 401, 403, 404)
_PASSING: Final = (500, 503)
_ODD: Final[tuple[Misbehavior, ...]] = (
    misbehave.trickle(7),
    misbehave.slow_head(0.0),
    misbehave.gzipped(),
    misbehave.together(misbehave.gzipped(), misbehave.trickle()),
    misbehave.closes(),
)
_SAID: Final = 8
"""After so many events of a stream some of a text has come, and not all."""


async def a_stream_cut_anywhere_is_whole_or_an_error(subject: Subject) -> None:
    """Also one that ends as if it were whole: half an answer never passes for an answer."""
    answer = _answer(subject)
    size = await _size(subject, answer)
    most = 0
    for wrong in (misbehave.cut_at, misbehave.ends_at):
        for length in range(0, size, max(1, size // _PLACES)):
            async with subject.doing(wrong(length), answer) as judge:
                most = max(most, await _cut(subject, judge, answer))
    if not most:
        raise AssertionError("no error of a cut stream has the text that had come as `partial`")


async def a_plain_answer_cut_anywhere_is_an_error(subject: Subject) -> None:
    """The connection is lost, so it may be sent again."""
    for length in (0, 1, 20):
        async with subject.doing(misbehave.cut_at(length), _TEXT) as judge:
            error = await failure(subject, judge, stream=False)
        _expect_error(f"a body cut after {length} bytes", TransportError, error, retryable=True)


async def a_refusal_says_whether_to_try_again(subject: Subject) -> None:
    """Its status, words and request id, plain and streamed."""
    for status in (*_FINAL, *_PASSING):
        wrong = misbehave.status(status, "no, thank you")
        error = await _refused(subject, wrong, retryable=status in _PASSING)
        expect("the status", status, error.status)
        if "no, thank you" not in error.message or not error.request_id:
            raise AssertionError(f"message or request id of {error!r} is not the provider's")
    error = await _refused(subject, misbehave.html_page(502), retryable=True)
    if "<" in str(error):
        raise AssertionError(f"the error quotes a page: {error}")


async def a_refusal_says_how_long_to_wait(subject: Subject) -> None:
    """Where the provider does."""
    error = await _refused(subject, misbehave.rate_limited("7"), retryable=True)
    expect("seconds to wait", 7.0, error.retry_after)
    error = await _refused(subject, misbehave.rate_limited(), retryable=True)
    expect("seconds to wait where nothing is said", None, error.retry_after)


async def a_wrong_key_is_refused_and_never_shown(subject: Subject) -> None:
    """Nor one that the provider's error quotes (`failure` looks for it)."""
    await _refused(subject, misbehave.quotes_the_key(), retryable=False)
    async with subject.saying() as judge:
        model = subject.model(judge)
        judge.key = "another-key-0123456789"
        try:
            await model.generate(ASK)
        except APIError as error:
            expect("whether a wrong key may be retried", False, error.retryable)
            return
    raise AssertionError("a wrong key is no error")


async def redirects_are_not_followed(subject: Subject) -> None:
    """They would take the key to another host."""
    for code in (301, 302, 303, 307, 308):
        for stream in (False, True):
            async with subject.doing(misbehave.redirects(code), _TEXT) as judge:
                error = await failure(subject, judge, stream=stream)
                expect("requests at another host", 0, len(judge.elsewhere))
            _expect_error(f"a redirect ({code})", APIError, error, retryable=False)


async def an_error_inside_a_stream_is_typed(subject: Subject) -> None:
    """With what had come before it."""
    async with subject.doing(misbehave.error_event(_SAID, "no more"), _TEXT) as judge:
        error = await failure(subject, judge, stream=True)
    expect_kind("an error event", APIError, error)
    if not expect_beginning("an error event's partial", _TEXT, error.partial):
        raise AssertionError("an error event's error lacks the text before it")


async def what_is_no_answer_is_an_error(subject: Subject) -> None:
    """A page or nothing where an answer should be, and a line without end."""
    for stream in (False, True):
        for wrong in (misbehave.html_page(200), misbehave.endless("line")):
            async with subject.doing(wrong, _TEXT) as judge:
                error = await failure(subject, judge, stream=stream)
            expect_kind("no answer", ProtocolError, error)
        async with subject.doing(misbehave.empty(), _TEXT) as judge:
            expect_kind("no body", ProviderError, await failure(subject, judge, stream=stream))


async def an_odd_but_whole_answer_is_taken(subject: Subject) -> None:
    """Compressed, byte by byte, on connections that end."""
    for wrong in _ODD:
        async with subject.doing(wrong, _TEXT) as judge:
            for stream in (False, True):
                answer = await asked(subject.model(judge), stream=stream)
                expect("the text", _TEXT, answer.message.content)


async def a_dropped_request_is_sent_again_or_an_error(subject: Subject) -> None:
    """As every server drops one now and then, when it closes a connection that was kept."""
    for after in (0, 10):
        wrong = [None, misbehave.drops_request(after)]
        async with subject.judge(_TEXT, wrong) as judge:
            model = subject.model(judge)
            await model.generate(ASK)
            try:
                answer = await model.generate(ASK)
            except ProviderError as error:
                _expect_error("a dropped request", TransportError, error, retryable=True)
            else:
                expect("the text", _TEXT, answer.message.content)


async def leaving_closes_the_connection(subject: Subject) -> None:
    """At once: it is what stops a provider from generating on. Cancelling does too."""
    async with subject.doing(misbehave.endless(), _TEXT) as judge:
        stream = subject.model(judge).stream(ASK)
        async for item in stream:
            if isinstance(item, TextDelta):
                break
        close = getattr(stream, "aclose", None)
        if close is None:
            raise AssertionError("the stream has no aclose")
        await close()
        await _closed(judge, "leaving a stream")
    for stream_it in (False, True):
        async with subject.doing(misbehave.hangs(_SAID if stream_it else 0), _TEXT) as judge:
            with anyio.move_on_after(0.2) as scope:
                await asked(subject.model(judge), stream=stream_it)
            expect("whether the cancellation passed", True, scope.cancelled_caught)
            await _closed(judge, "cancelling a request")


CHECKS: Final[tuple[Check, ...]] = (
    a_stream_cut_anywhere_is_whole_or_an_error,
    a_plain_answer_cut_anywhere_is_an_error,
    a_refusal_says_whether_to_try_again,
    a_refusal_says_how_long_to_wait,
    a_wrong_key_is_refused_and_never_shown,
    redirects_are_not_followed,
    an_error_inside_a_stream_is_typed,
    what_is_no_answer_is_an_error,
    an_odd_but_whole_answer_is_taken,
    a_dropped_request_is_sent_again_or_an_error,
    leaving_closes_the_connection,
)


def _answer(subject: Subject) -> AssistantMessage:
    calls = (ToolCall.of("abcDEF123", "f", '{"a": "b c d e f"}'),)
    return AssistantMessage(_TEXT, tool_calls=() if "tools" in subject.lacks else calls)


async def _size(subject: Subject, answer: AssistantMessage) -> int:
    """Bytes of the streamed answer."""
    sizes: list[int] = []

    def measured(reply: Reply, scene: misbehave.Scene) -> Reply:
        sizes.append(len(reply.body()))
        return reply

    async with subject.doing(measured, answer) as judge:
        await streamed(subject.model(judge))
    return sizes[0]


async def _cut(subject: Subject, judge: Judge, answer: AssistantMessage) -> int:
    """How much text there is of a stream that was cut, as an answer or in its error."""
    try:
        heard = await streamed(subject.model(judge))
    except ProviderError as error:
        _expect_error("a stream that was cut", TransportError, error, retryable=True)
        for call in error.partial.tool_calls if error.partial else ():
            if call.args != "{}" and not _begins(answer.tool_calls[0].args, call.args):
                raise AssertionError(f"a cut call is not how it began: {call!r}") from None
        return expect_beginning("what had come", _TEXT, error.partial)
    message = heard.response.message
    args = [call.args for call in message.tool_calls]
    expect("an answer that was cut", _TEXT, message.content)
    expect("how many calls it has", len(answer.tool_calls), len(args))
    return 0


def _begins(args: str, cut: str) -> bool:
    """Whether arguments begin so; where an API sends values, its server spells the blanks."""
    return args.replace(" ", "").startswith(cut.replace(" ", ""))


async def _refused(subject: Subject, wrong: Misbehavior, *, retryable: bool) -> APIError:
    """The error of a request that is refused, the same plain and streamed."""
    errors: list[APIError] = []
    for stream in (False, True):
        async with subject.doing(wrong, _TEXT) as judge:
            error = await failure(subject, judge, stream=stream)
        _expect_error("a refusal", APIError, error, retryable=retryable)
        if isinstance(error, APIError):
            errors.append(error)
    plain, streamed_ = errors
    expect("the streamed request's error", str(plain), str(streamed_))
    return plain


def _expect_error(
    what: str, kind: type[ProviderError], error: ProviderError, *, retryable: bool
) -> None:
    expect_kind(what, kind, error)
    expect(f"whether {what} may be retried ({error})", retryable, error.retryable)


async def _closed(judge: Judge, what: str) -> None:
    try:
        await judge.until_closed()
    except TimeoutError:
        raise AssertionError(f"{what} leaves the connection open") from None
