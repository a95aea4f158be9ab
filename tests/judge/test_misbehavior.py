"""What golem's adapters make of a server that does wrong, over real sockets.

Every misbehaviour has to end in an error of the right class with what had come, or in the whole
answer where nothing was lost; never in a hang, a leak of the key or unbounded memory.
"""

from __future__ import annotations

import gc
from contextlib import aclosing
from email.utils import formatdate
from time import time

import anyio
import httpx
import pytest

from golem.errors import APIError, ProtocolError, TransportError
from golem.messages import AssistantMessage, Thinking, UserMessage
from golem.model import Request, Response
from golem.testing.judge import ChatJudge, Misbehavior, misbehave
from golem.testing.judge.reply import plain
from golem_adapters import OpenAI
from tests.judge.support import (
    ANSWER,
    API,
    APIS,
    ASK,
    CLAUDES,
    OPENAI,
    TEXT,
    both_ways,
    failure,
    outcome,
    over,
    read,
    with_ids,
)

WHOLE = b'{"choices":[{"index":0,"message":{"content":"Hi."},"finish_reason":"stop"}]}'

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
@pytest.mark.parametrize(
    ("api", "name"),
    [
        pytest.param(APIS[api], name, id=f"{api}-{name}")
        for api in (*CLAUDES, *OPENAI)
        for name in HARMLESS
        if (api, name) != ("bedrock", "carriage returns")  # frames are no lines
    ],
)
async def test_an_odd_but_whole_answer_is_taken(api: API, name: str, stream: bool) -> None:
    async with api.judge(HARMLESS[name]) as judge:
        model = api.model(judge)
        for _ in range(3):
            answer = await (read(model) if stream else model.generate(ASK))
            assert answer.message == ANSWER
            assert answer.finish_reason == "tool_call"
    assert judge.violations == []


async def test_a_kept_connection_is_used_again(api: API) -> None:
    async with api.judge(None) as judge:
        for _ in range(3):
            await api.model(judge).generate(ASK)
            await read(api.model(judge))
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
        (misbehave.rate_limited("3600"), 429, "rate_limit_exceeded", False, 3600.0),
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
@over(*OPENAI)
async def test_a_refusal_tells_whether_and_when_to_try_again(
    api: API,
    wrong: Misbehavior,
    status: int,
    code: str | None,
    retryable: bool,
    wait: float | None,
    stream: bool,
) -> None:
    async with api.judge(wrong) as judge:
        error = await failure(api.model(judge), judge, stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.code, error.retryable) == (status, code, retryable)
    assert error.retry_after == wait
    assert error.message
    assert "<" not in error.message
    assert error.partial is None


@both_ways
@with_ids
async def test_a_date_to_try_again_at_is_a_number_of_seconds(api: API, stream: bool) -> None:
    date = formatdate(time() + 30, usegmt=True)
    async with api.judge(misbehave.rate_limited(date)) as judge:
        error = await failure(api.model(judge), judge, stream=stream)
    assert isinstance(error, APIError)
    assert error.retry_after is not None
    assert 25 < error.retry_after <= 30


@both_ways
@pytest.mark.parametrize("key", ["", "sk-wrong-0123456789"])
@over(*OPENAI)
async def test_a_wrong_key_is_the_providers_401(api: API, key: str, stream: bool) -> None:
    async with api.judge(None) as judge:
        model = api.model(judge, api_key=key)
        error = await failure(model, judge, stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.retryable) == (401, False)
    assert "API key" in error.message


@both_ways
async def test_an_error_that_quotes_the_key_is_blanked(api: API, stream: bool) -> None:
    async with api.judge(misbehave.quotes_the_key()) as judge:
        error = await failure(api.model(judge), judge, stream=stream)
    assert "[key]" in str(error)


@both_ways
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_the_key_never_arrives_at_another_host(api: API, code: int, stream: bool) -> None:
    async with api.judge(misbehave.redirects(code)) as judge:
        error = await failure(api.model(judge), judge, stream=stream)
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


@with_ids
async def test_a_stream_cut_anywhere_is_whole_or_an_error_with_what_had_come(api: API) -> None:
    async with api.judge(None) as judge:
        await read(api.model(judge))
        events = judge.provider.events(judge.requests[0].json or {}, Response(ANSWER))
    size = len(b"".join(events))
    told = 0
    for length in range(0, size, 97):
        async with api.judge(misbehave.cut_at(length)) as judge:
            answer, error = await outcome(api.model(judge))
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


async def test_a_plain_answer_cut_anywhere_is_a_transport_error(api: API) -> None:
    for length in range(0, 300, 50):
        async with api.judge(misbehave.cut_at(length)) as judge:
            error = await failure(api.model(judge), judge, stream=False)
        assert isinstance(error, TransportError)
        assert error.retryable


@over(*OPENAI)
async def test_a_stream_without_its_end_is_a_transport_error(api: API) -> None:
    count = 3 if api.name == "chat" else 1
    async with api.judge(misbehave.without_end(count)) as judge:
        error = await failure(api.model(judge), judge, stream=True)
    assert isinstance(error, TransportError)
    assert error.partial is not None
    assert error.partial.content == TEXT


@over(*OPENAI)
async def test_an_error_in_the_middle_of_a_stream_keeps_what_had_come(api: API) -> None:
    wrong = misbehave.error_event(8, "Overloaded, sorry.", code="server_error")
    async with api.judge(wrong) as judge:
        error = await failure(api.model(judge), judge, stream=True)
    assert isinstance(error, APIError)
    assert (error.message, error.code, error.retryable) == (
        "Overloaded, sorry.",
        "server_error",
        True,
    )
    assert error.partial is not None
    assert error.partial.content
    assert TEXT.startswith(error.partial.content)


@with_ids
async def test_an_error_in_a_plain_answer_of_status_200_is_an_error(api: API) -> None:
    async with api.judge(misbehave.error_event(message="No.", code="server_error")) as judge:
        error = await failure(api.model(judge), judge, stream=False)
    assert isinstance(error, APIError)
    assert error.message == "No."


@both_ways
async def test_a_page_of_status_200_is_a_protocol_error(api: API, stream: bool) -> None:
    async with api.judge(misbehave.html_page(200)) as judge:
        error = await failure(api.model(judge), judge, stream=stream)
    assert isinstance(error, ProtocolError)


@both_ways
async def test_no_body_at_all_is_an_error(api: API, stream: bool) -> None:
    async with api.judge(misbehave.empty()) as judge:
        error = await failure(api.model(judge), judge, stream=stream)
    assert isinstance(error, TransportError if stream else ProtocolError)


async def test_a_plain_answer_to_the_wish_for_a_stream_is_taken() -> None:
    async with ChatJudge(["Hi."], lambda reply, scene: plain(WHOLE)) as judge:
        answer = await read(OpenAI("m", base_url=judge.base_url, api_key=judge.key))
    assert answer.message.content == "Hi."


@with_ids
async def test_bytes_that_are_no_utf8_never_pass_for_an_answer(api: API) -> None:
    async with api.judge(misbehave.invalid_utf8(6)) as judge:
        error = await failure(api.model(judge), judge, stream=True)
    assert isinstance(error, ProtocolError)


@over("anthropic", "gemini", *OPENAI)
async def test_text_with_bytes_that_are_no_utf8_is_read_as_replacements(api: API) -> None:
    async with api.judge(misbehave.replaced(b"three", b"thr\xff\xfee")) as judge:
        answer = await read(api.model(judge))
        plain = await api.model(judge).generate(ASK)
    assert (
        answer.message.content == plain.message.content == TEXT.replace("three", "thr\ufffd\ufffde")
    )


# --- requests that are not read

LONG = Request([UserMessage("x" * 20_000_000)])
"""More than fits into the buffers on the way."""


@with_ids
async def test_a_kept_connection_that_dies_under_a_request_is_replaced(api: API) -> None:
    async with api.judge([None, misbehave.drops_request()]) as judge:
        for _ in range(2):
            answer = await api.model(judge).generate(ASK)
            assert answer.message == ANSWER
        assert (judge.dropped, judge.connections) == (1, 2)


@pytest.mark.parametrize("after", [0, 100_000, 10_000_000])
@with_ids
async def test_a_kept_connection_that_dies_in_the_middle_of_a_body_is_replaced(
    api: API, after: int
) -> None:
    async with api.judge([None, misbehave.drops_request(after)]) as judge:
        await api.model(judge).generate(ASK)
        answer = await api.model(judge).generate(LONG)
        assert answer.message == ANSWER
        assert (judge.dropped, judge.connections) == (1, 2)
    gc.collect()


@both_ways
@pytest.mark.parametrize("after", [0, 100_000])
async def test_a_new_connection_that_dies_under_a_request_is_a_transport_error(
    api: API, after: int, stream: bool
) -> None:
    async with api.judge(misbehave.drops_request(after)) as judge:
        error = await failure(api.model(judge), judge, stream=stream, request=LONG)
        assert judge.connections == 1
    assert isinstance(error, TransportError)
    assert error.retryable
    gc.collect()


@both_ways
async def test_a_server_that_stops_reading_is_given_up(api: API, stream: bool) -> None:
    async with api.judge(misbehave.stops_reading(1000)) as judge:
        model = api.model(judge, timeout=0.1)
        error = await failure(model, judge, stream=stream, request=LONG)
    assert isinstance(error, TransportError)
    assert error.retryable
    gc.collect()


# --- silence and leaving


@both_ways
async def test_a_silent_server_is_given_up(api: API, stream: bool) -> None:
    async with api.judge(misbehave.hangs(2 if stream else 0)) as judge:
        error = await failure(api.model(judge, timeout=0.1), judge, stream=stream)
        await judge.until_closed()
    assert isinstance(error, TransportError)
    assert error.retryable


@both_ways
async def test_cancelling_closes_the_connection(api: API, stream: bool) -> None:
    async with api.judge(misbehave.hangs(5 if stream else 0)) as judge:
        with anyio.move_on_after(0.1) as scope:
            model = api.model(judge)
            await (read(model) if stream else model.generate(ASK))
        assert scope.cancelled_caught
        await judge.until_closed()
    gc.collect()


async def test_leaving_a_stream_closes_the_connection(api: API) -> None:
    async with api.judge(misbehave.endless()) as judge:
        async with aclosing(api.model(judge).stream(ASK)) as items:
            async for _ in items:
                break
        await judge.until_closed()
    gc.collect()


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
