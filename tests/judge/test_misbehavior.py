"""What golem's adapters make of a server that does wrong, over real sockets.

Every misbehaviour has to end in an error of the right class with what had come, or in the whole
answer where nothing was lost; never in a hang, a leak of the key or unbounded memory.
"""

from __future__ import annotations

import gc
import pickle
import traceback
import tracemalloc
from collections.abc import Callable
from contextlib import aclosing
from email.utils import formatdate
from time import time
from typing import Any

import anyio
import httpx
import pytest

from golem.errors import APIError, ProtocolError, ProviderError, TransportError
from golem.messages import AssistantMessage, Thinking, ToolCall, UserMessage
from golem.model import Request, Response, TextDelta
from golem.testing.judge import ChatJudge, Judge, Misbehavior, ResponsesJudge, misbehave
from golem.testing.judge.reply import plain
from golem.wire.sse import MAX_EVENT
from golem_adapters import OpenAI, OpenAIResponses

WHOLE = b'{"choices":[{"index":0,"message":{"content":"Hi."},"finish_reason":"stop"}]}'
ASK = Request([UserMessage("hi")])
TEXT = "One two three four five six seven."
ANSWER = AssistantMessage(
    TEXT,
    tool_calls=(ToolCall.of("call_1", "f", '{"a": "b c d"}'), ToolCall.of("call_2", "g", "{}")),
)

Start = Callable[..., Judge]
APIS = {"chat": (ChatJudge, OpenAI), "responses": (ResponsesJudge, OpenAIResponses)}


@pytest.fixture(params=sorted(APIS))
def api(request: pytest.FixtureRequest) -> tuple[Start, Callable[..., Any]]:
    found: tuple[Start, Callable[..., Any]] = APIS[request.param]
    return found


def started(api: Any, wrong: Any, *answers: Any) -> Judge:
    judge: Judge = api[0](answers or [ANSWER] * 20, wrong)
    return judge


def model_of(api: Any, judge: Judge, **options: Any) -> Any:
    return api[1]("m", base_url=judge.base_url, api_key=judge.key, **options)


async def read(model: Any) -> Response:
    last = None
    async with aclosing(model.stream(ASK)) as items:
        async for item in items:
            last = item
    assert isinstance(last, Response)
    return last


async def failure(model: Any, judge: Judge, *, stream: bool) -> ProviderError:
    """The error, which nowhere shows the key."""
    with pytest.raises(ProviderError) as caught:
        await (read(model) if stream else model.generate(ASK))
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(model)
    assert judge.key not in shown
    assert judge.key.encode() not in pickle.dumps(caught.value)
    return caught.value


async def outcome(model: Any) -> tuple[Response | None, ProviderError | None]:
    """What a stream came to: the answer or the error."""
    try:
        return await read(model), None
    except ProviderError as error:
        return None, error


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])


# --- answers that are whole all the same

HARMLESS: dict[str, Misbehavior] = {
    "trickle": misbehave.trickle(),
    "three bytes at a time": misbehave.trickle(3),
    "slow head": misbehave.slow_head(0.0005),
    "late": misbehave.late(0.02),
    "gzip": misbehave.gzipped(),
    "gzip, trickled": misbehave.together(misbehave.gzipped(), misbehave.trickle()),
    "closed connections": misbehave.closes(),
    "another content type": misbehave.content_type("text/plain"),
    "no content type that is known": misbehave.content_type("application/octet-stream"),
    "twice done": misbehave.twice_done(),
    "carriage returns": lambda reply, scene: (
        misbehave.replaced(b"\n", b"\r\n")(reply, scene) if reply.length is None else reply
    ),
}


@both_ways
@pytest.mark.parametrize("name", HARMLESS)
async def test_an_odd_but_whole_answer_is_taken(api: Any, name: str, stream: bool) -> None:
    async with started(api, HARMLESS[name]) as judge:
        model = model_of(api, judge)
        for _ in range(3):
            answer = await (read(model) if stream else model.generate(ASK))
            assert answer.message == ANSWER
            assert answer.finish_reason == "tool_call"
    assert judge.violations == []


async def test_a_kept_connection_is_used_again(api: Any) -> None:
    async with started(api, None) as judge:
        for _ in range(3):
            await model_of(api, judge).generate(ASK)
            await read(model_of(api, judge))
        assert judge.connections == 1


# --- refusals


@both_ways
@pytest.mark.parametrize(
    ("wrong", "status", "code", "retryable", "wait"),
    [
        (misbehave.rate_limited("7"), 429, "rate_limit_exceeded", True, 7.0),
        (misbehave.rate_limited("0.5"), 429, "rate_limit_exceeded", True, 0.5),
        (
            misbehave.rate_limited("1500", header="retry-after-ms"),
            429,
            "rate_limit_exceeded",
            True,
            1.5,
        ),
        (misbehave.rate_limited(), 429, "rate_limit_exceeded", True, None),
        (misbehave.rate_limited("3600"), 429, "rate_limit_exceeded", False, None),
        (misbehave.rate_limited("soon"), 429, "rate_limit_exceeded", True, None),
        (misbehave.out_of_quota(), 429, "insufficient_quota", False, None),
        (misbehave.status(500), 500, "server_error", True, None),
        (misbehave.status(503), 503, "server_error", True, None),
        (misbehave.status(529), 529, "server_error", True, None),
        (misbehave.status(404), 404, "invalid_request_error", False, None),
        (misbehave.html_page(), 502, None, True, None),
        (misbehave.html_page(403), 403, None, False, None),
    ],
)
async def test_a_refusal_tells_whether_and_when_to_try_again(
    api: Any,
    wrong: Misbehavior,
    status: int,
    code: str | None,
    retryable: bool,
    wait: float | None,
    stream: bool,
) -> None:
    async with started(api, wrong) as judge:
        error = await failure(model_of(api, judge), judge, stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.code, error.retryable) == (status, code, retryable)
    assert error.retry_after == wait
    assert error.message
    assert "<" not in error.message
    assert error.partial is None


@both_ways
async def test_a_date_to_try_again_at_is_a_number_of_seconds(api: Any, stream: bool) -> None:
    date = formatdate(time() + 30, usegmt=True)
    async with started(api, misbehave.rate_limited(date)) as judge:
        error = await failure(model_of(api, judge), judge, stream=stream)
    assert isinstance(error, APIError)
    assert error.retry_after is not None
    assert 25 < error.retry_after <= 30


@both_ways
@pytest.mark.parametrize("key", ["", "sk-wrong-0123456789"])
async def test_a_wrong_key_is_the_providers_401(api: Any, key: str, stream: bool) -> None:
    async with started(api, None) as judge:
        model = api[1]("m", base_url=judge.base_url, api_key=key)
        error = await failure(model, judge, stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.retryable) == (401, False)
    assert "API key" in error.message


@both_ways
async def test_an_error_that_quotes_the_key_is_blanked(api: Any, stream: bool) -> None:
    async with started(api, misbehave.quotes_the_key()) as judge:
        error = await failure(model_of(api, judge), judge, stream=stream)
    assert "[key]" in str(error)


@both_ways
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_the_key_never_arrives_at_another_host(api: Any, code: int, stream: bool) -> None:
    async with started(api, misbehave.redirects(code)) as judge:
        error = await failure(model_of(api, judge), judge, stream=stream)
        assert judge.elsewhere == []
    assert isinstance(error, APIError)
    assert (error.status, error.code, error.retryable) == (code, "redirect", False)


async def test_another_host_would_have_noticed_the_key() -> None:
    """The judge of redirects itself: a client that follows them carries what it carries."""
    async with (
        ChatJudge([], misbehave.redirects()) as judge,
        httpx.AsyncClient(follow_redirects=True) as client,
    ):
        body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
        headers = {"x-key": judge.key}
        await client.post(judge.base_url + judge.provider.path, json=body, headers=headers)
        assert [request.headers["x-key"] for request in judge.elsewhere] == [judge.key]


# --- answers that are not whole


async def test_a_stream_cut_anywhere_is_whole_or_an_error_with_what_had_come(api: Any) -> None:
    async with started(api, None) as judge:
        await read(model_of(api, judge))
        events = judge.provider.events(judge.requests[0].json or {}, Response(ANSWER))
    size = len(b"".join(events))
    told = 0
    for length in range(0, size, 97):
        async with started(api, misbehave.cut_at(length)) as judge:
            answer, error = await outcome(model_of(api, judge))
        if answer is not None:
            assert answer.message == ANSWER
            continue
        assert isinstance(error, TransportError)
        assert error.retryable
        partial = error.partial or AssistantMessage()
        assert TEXT.startswith(partial.content)
        assert len(partial.content) >= told
        told = len(partial.content)
        for call, whole in zip(partial.tool_calls, ANSWER.tool_calls, strict=False):
            assert whole.args.startswith(call.args) or call.args == "{}"
    assert told > 0


async def test_a_plain_answer_cut_anywhere_is_a_transport_error(api: Any) -> None:
    for length in range(0, 300, 50):
        async with started(api, misbehave.cut_at(length)) as judge:
            error = await failure(model_of(api, judge), judge, stream=False)
        assert isinstance(error, TransportError)
        assert error.retryable


async def test_a_stream_without_its_end_is_a_transport_error(api: Any) -> None:
    count = 3 if api[0] is ChatJudge else 1
    async with started(api, misbehave.without_end(count)) as judge:
        error = await failure(model_of(api, judge), judge, stream=True)
    assert isinstance(error, TransportError)
    assert error.partial is not None
    assert error.partial.content == TEXT


async def test_an_error_in_the_middle_of_a_stream_keeps_what_had_come(api: Any) -> None:
    wrong = misbehave.error_event(8, "Overloaded, sorry.", code="server_error")
    async with started(api, wrong) as judge:
        error = await failure(model_of(api, judge), judge, stream=True)
    assert isinstance(error, APIError)
    assert (error.message, error.code, error.retryable) == (
        "Overloaded, sorry.",
        "server_error",
        True,
    )
    assert error.partial is not None
    assert error.partial.content
    assert TEXT.startswith(error.partial.content)


async def test_an_error_in_a_plain_answer_of_status_200_is_an_error(api: Any) -> None:
    async with started(api, misbehave.error_event(message="No.", code="server_error")) as judge:
        error = await failure(model_of(api, judge), judge, stream=False)
    assert isinstance(error, APIError)
    assert error.message == "No."


@both_ways
async def test_a_page_of_status_200_is_a_protocol_error(api: Any, stream: bool) -> None:
    async with started(api, misbehave.html_page(200)) as judge:
        error = await failure(model_of(api, judge), judge, stream=stream)
    assert isinstance(error, ProtocolError)


@both_ways
async def test_no_body_at_all_is_an_error(api: Any, stream: bool) -> None:
    async with started(api, misbehave.empty()) as judge:
        error = await failure(model_of(api, judge), judge, stream=stream)
    assert isinstance(error, TransportError if stream else ProtocolError)


async def test_a_plain_answer_to_the_wish_for_a_stream_is_taken() -> None:
    async with ChatJudge(["Hi."], lambda reply, scene: plain(WHOLE)) as judge:
        answer = await read(OpenAI("m", base_url=judge.base_url, api_key=judge.key))
    assert answer.message.content == "Hi."


async def test_bytes_that_are_no_utf8_never_pass_for_an_answer(api: Any) -> None:
    async with started(api, misbehave.invalid_utf8(6)) as judge:
        error = await failure(model_of(api, judge), judge, stream=True)
    assert isinstance(error, ProtocolError)


async def test_text_with_bytes_that_are_no_utf8_is_read_as_replacements(api: Any) -> None:
    async with started(api, misbehave.replaced(b"three", b"thr\xff\xfee")) as judge:
        answer = await read(model_of(api, judge))
        plain = await model_of(api, judge).generate(ASK)
    assert (
        answer.message.content == plain.message.content == TEXT.replace("three", "thr\ufffd\ufffde")
    )


# --- silence and leaving


@both_ways
async def test_a_silent_server_is_given_up(api: Any, stream: bool) -> None:
    async with started(api, misbehave.hangs(2 if stream else 0)) as judge:
        error = await failure(model_of(api, judge, timeout=0.1), judge, stream=stream)
        await judge.until_closed()
    assert isinstance(error, TransportError)
    assert error.retryable


@both_ways
async def test_cancelling_closes_the_connection(api: Any, stream: bool) -> None:
    async with started(api, misbehave.hangs(5 if stream else 0)) as judge:
        with anyio.move_on_after(0.1) as scope:
            model = model_of(api, judge)
            await (read(model) if stream else model.generate(ASK))
        assert scope.cancelled_caught
        await judge.until_closed()
    gc.collect()


async def test_leaving_a_stream_closes_the_connection(api: Any) -> None:
    async with started(api, misbehave.endless()) as judge:
        async with aclosing(model_of(api, judge).stream(ASK)) as items:
            async for _ in items:
                break
        await judge.until_closed()
    gc.collect()


# --- bounds


def peak_of(begin: int) -> int:
    return tracemalloc.get_traced_memory()[1] - begin


async def test_ten_megabytes_in_one_event_are_text_like_any_other(api: Any) -> None:
    size = 10_000_000
    async with started(api, misbehave.huge_event(size, after=4), TEXT) as judge:
        model = model_of(api, judge)
        tracemalloc.start()
        try:
            begin = tracemalloc.get_traced_memory()[0]
            answer = await read(model)
            assert peak_of(begin) < 8 * size  # the bytes, the text, the delta and the message
        finally:
            tracemalloc.stop()
    if api[0] is ChatJudge:  # on Responses the last event has the word, and says less
        assert len(answer.message.content) == len(TEXT) + size


@pytest.mark.parametrize(
    ("what", "bound"), [("line", MAX_EVENT + 20_000_000), ("comments", 5_000_000)]
)
async def test_a_stream_without_end_does_not_fill_the_memory(
    api: Any, what: str, bound: int
) -> None:
    error: ProviderError | None = None
    async with started(api, misbehave.endless(what)) as judge:
        tracemalloc.start()
        try:
            begin = tracemalloc.get_traced_memory()[0]
            with anyio.move_on_after(0.5 if what == "comments" else 60):
                error = await failure(model_of(api, judge), judge, stream=True)
            await judge.until_closed()
            assert peak_of(begin) < bound
        finally:
            tracemalloc.stop()
    assert what == "comments" or isinstance(error, ProtocolError)


async def test_a_reader_of_an_endless_stream_keeps_no_more_than_the_answer(api: Any) -> None:
    async with started(api, misbehave.endless()) as judge:
        count = 0
        async with aclosing(model_of(api, judge).stream(ASK)) as items:
            async for item in items:
                count += isinstance(item, TextDelta)
                if count == 2000:
                    break
        await judge.until_closed()


# --- reasoning


@pytest.mark.parametrize("dialect", ["deepseek", "mistral", "groq", "openrouter", "zai"])
@both_ways
async def test_reasoning_comes_as_the_server_spells_it(dialect: str, stream: bool) -> None:
    answer = AssistantMessage("Paris.", thinking=(Thinking("Where was it? "),))
    async with ChatJudge([answer], dialect=dialect) as judge:
        model = OpenAI("m", base_url=judge.base_url, api_key=judge.key, dialect=dialect)
        response = await (read(model) if stream else model.generate(ASK))
    (thinking,) = response.message.thinking
    assert (thinking.text, response.message.content) == ("Where was it? ", "Paris.")
    assert response.usage.reasoning_tokens > 0
