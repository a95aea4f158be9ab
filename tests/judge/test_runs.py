"""Whole runs over sockets at a server that does wrong: how they end, and what is left of them.

Where nothing had been said the request is sent again; where something had, it is evidence, and
a run goes on from it.
"""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import tenacity

from golem import Agent, AssistantMessage, Partial, Result, RunError, Timeouts, ToolCall, tool
from golem.errors import APIError, ProtocolError, TransportError
from golem.testing.judge import Judge, Misbehavior, misbehave
from tests.judge.support import API, APIS, CLAUDES, OPENAI, TEXT, with_ids

AT_ONCE = tenacity.AsyncRetrying(
    retry=tenacity.retry_if_exception(lambda error: getattr(error, "retryable", False)),
    stop=tenacity.stop_after_attempt(3),
    wait=tenacity.wait_none(),
    reraise=True,
)
SAID = 8
"""After so many events of any answer some text has come, and not all."""


@tool
def look(place: str) -> str:
    """Look at a place."""
    return f"nothing at {place}"


ASKS = AssistantMessage(tool_calls=(ToolCall.of("call_1", "look", '{"place": "Rome"}'),))


def agent_at(api: API, judge: Judge, **options: Any) -> Agent[Any]:
    return Agent(api.model(judge), tools=[look], **{"retry": AT_ONCE, **options})


async def run(agent: Agent[Any], *, stream: bool, **options: Any) -> Result[Any]:
    if not stream:
        return await agent.run("Go on.", **options)
    running = agent.stream("Go on.", **options)
    async with running:
        async for _ in running:
            pass
    return running.result


async def death(agent: Agent[Any], judge: Judge, *, stream: bool) -> RunError:
    """The end of a run, which nowhere shows the key."""
    with pytest.raises(RunError) as caught:
        await run(agent, stream=stream)
    error = caught.value
    assert error.stage == "model"
    shown = pickle.dumps(error) + pickle.dumps(error.__cause__) + repr(agent).encode()
    assert judge.key.encode() not in shown
    return error


def evidence(error: RunError) -> Partial:
    assert error.partial is not None
    return error.partial


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["run", "stream"])


@both_ways
@pytest.mark.parametrize(
    "wrong",
    [
        misbehave.status(500),
        misbehave.rate_limited("0.01"),
        misbehave.html_page(),
        misbehave.cut_at(0),
        misbehave.drops_request(),
        misbehave.drops_request(100),
        misbehave.closes(),
    ],
)
async def test_a_server_that_fails_twice_is_asked_a_third_time(
    api: API, wrong: Misbehavior, stream: bool
) -> None:
    async with api.judge_type((), [wrong, wrong]) as judge:
        result = await run(agent_at(api, judge), stream=stream)
    assert result.output == "The capital of France is Paris."
    assert [call.name for call in result.messages[1].tool_calls] == ["look"]
    assert judge.violations == []


FOR_GOOD: list[tuple[Misbehavior, type[Exception], int]] = [
    (misbehave.status(503), APIError, 3),
    (misbehave.status(400), APIError, 1),
    (misbehave.rate_limited("0.01"), APIError, 3),
    (misbehave.quotes_the_key(), APIError, 1),
    (misbehave.redirects(), APIError, 1),
    (misbehave.html_page(200), ProtocolError, 1),
    (misbehave.cut_at(0), TransportError, 3),
    (misbehave.drops_request(50), TransportError, 4),
]
NO_QUOTA: tuple[Misbehavior, type[Exception], int] = (misbehave.out_of_quota(), APIError, 1)
"""Only OpenAI's own code for it says that waiting does not help."""


@both_ways
@pytest.mark.parametrize(
    ("api", "wrong", "kind", "times"),
    [
        *((APIS[name], *case) for name in (*CLAUDES, *OPENAI) for case in FOR_GOOD),
        *((APIS[name], *NO_QUOTA) for name in OPENAI),
    ],
)
async def test_a_run_keeps_what_it_had_when_a_later_request_fails_for_good(
    api: API, wrong: Misbehavior, kind: type[Exception], times: int, stream: bool
) -> None:
    """It is asked so many `times`, once more where a kept connection dies."""
    async with api.judge_type([ASKS] + [TEXT] * 4, [None, *[wrong] * times]) as judge:
        agent = agent_at(api, judge)
        error = await death(agent, judge, stream=stream)
        assert isinstance(error.__cause__, kind)
        partial = evidence(error)
        assert [message.content for message in partial.messages] == [
            *("Go on.", "", "nothing at Rome")
        ]
        assert (partial.text, partial.tool_calls) == ("", 1)
        assert partial.usage.output_tokens > 0
        resumed = await run(agent, stream=stream, history=partial.messages)
        assert resumed.messages[:3] == partial.messages
        assert len(judge.requests) + judge.dropped == times + 2
    assert judge.violations == []
    assert judge.elsewhere == []


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (misbehave.error_event(SAID), APIError),
        (misbehave.together(misbehave.without_end(3), misbehave.gzipped()), TransportError),
        (misbehave.together(misbehave.hangs(SAID), misbehave.trickle(50)), TransportError),
        (misbehave.invalid_utf8(SAID), ProtocolError),
        (misbehave.hangs(SAID), TimeoutError),
    ],
)
async def test_what_a_dying_stream_had_said_is_evidence_and_is_not_asked_for_again(
    api: API, wrong: Misbehavior, kind: type[Exception]
) -> None:
    async with api.judge_type([ASKS] + [TEXT * 10] * 2, [None, wrong]) as judge:
        patience = Timeouts(between_tokens=0.5) if kind is TimeoutError else None
        model = api.model(judge, timeout=60.0 if kind is TimeoutError else 0.5)
        options = {"timeout": patience} if patience else {}
        agent: Agent[Any] = Agent(model, tools=[look], retry=AT_ONCE, **options)
        error = await death(agent, judge, stream=True)
        assert isinstance(error.__cause__, kind)
        partial = evidence(error)
        assert partial.text
        assert (TEXT * 10).startswith(partial.text)
        assert len(judge.requests) == 2
        assert partial.messages[-1].content == "nothing at Rome"
        resumed = await run(agent, stream=True, history=partial.messages)
        assert resumed.output == TEXT * 10
    assert judge.violations == []


@with_ids
async def test_a_half_received_call_is_evidence_and_is_never_executed(api: API) -> None:
    place = "x" * 400
    asks = AssistantMessage(tool_calls=(ToolCall.of("c", "look", f'{{"place": "{place}"}}'),))
    async with api.judge(misbehave.cut_at(1500 if api.name == "chat" else 3000), asks) as judge:
        error = await death(agent_at(api, judge), judge, stream=True)
    cause = error.__cause__
    assert isinstance(cause, TransportError)
    assert cause.partial is not None
    (call,) = cause.partial.tool_calls
    assert (call.name, call.truncated) == ("look", True)
    assert (evidence(error).tool_calls, evidence(error).requests) == (0, 1)
