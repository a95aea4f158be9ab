"""What a run may consume, when that is checked, and how long golem waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import tenacity

from golem import (
    Agent,
    AssistantMessage,
    EstimatedTokens,
    Event,
    Message,
    RunError,
    RunStream,
    Timeouts,
    ToolDeferred,
    ToolMessage,
    TransportError,
    Usage,
    UsageLimitError,
    UsageLimits,
    tool,
)
from golem.events import RunFailed
from golem.history.repair import NO_RESULT
from golem.model import Response
from golem.testing import FunctionModel, ScriptedModel, hangs
from tests.run import virtual_time
from tests.run.support import Recorder, asks, echo, resumes, well_formed

pytestmark = pytest.mark.virtual_time

EACH = Usage(10, 5)


def looping(**options: Any) -> Agent[Any, Any]:
    """An agent whose model asks for a tool for ever."""
    count = iter(range(1000))
    model = FunctionModel(lambda request: asks((str(next(count)), "echo")), usage=EACH)
    return Agent(model, tools=[echo], max_turns=100, **options)


async def read(stream: RunStream[Any], *slow: str) -> None:
    """Read to the end; slowly at events of these kinds."""
    async with stream:
        async for event in stream:
            if event.kind in slow:
                await anyio.sleep(0.4)


LIMITS = [
    ("input token", UsageLimits(input_tokens=20), 30, 3, 2),
    ("output token", UsageLimits(output_tokens=10), 15, 3, 2),
    ("total token", UsageLimits(total_tokens=44), 45, 3, 2),
    ("request", UsageLimits(requests=2), 3, 3, 2),
    ("tool call", UsageLimits(tool_calls=2), 3, 3, 2),
    ("cost", UsageLimits(cost=0.5), 0.75, 3, 2),
]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("kind", "limits", "actual", "requests", "tool_calls"), LIMITS, ids=[x[0] for x in LIMITS]
)
async def test_each_limit_ends_the_run_where_it_is_crossed(
    kind: str, limits: UsageLimits, actual: float, requests: int, tool_calls: int, streamed: bool
) -> None:
    agent = looping(limits=limits, price=lambda usage: usage.output_tokens * 0.05)
    with pytest.raises(RunError) as caught:
        await (read(agent.stream("p")) if streamed else agent.run("p"))
    cause = caught.value.__cause__
    assert isinstance(cause, UsageLimitError)
    assert ("usage", kind, actual) == (caught.value.stage, cause.kind, cause.actual)
    partial = caught.value.partial
    assert partial is not None
    assert (requests, tool_calls) == (partial.requests, partial.tool_calls)
    await resumes(partial, synthesized=["2"])


@pytest.mark.parametrize("limits", [x[1] for x in LIMITS], ids=[x[0] for x in LIMITS])
async def test_reaching_a_limit_is_fine(limits: UsageLimits) -> None:
    script = [asks(("1", "echo")), asks(("2", "echo"))]
    exact = {
        "input_tokens": 30, "output_tokens": 15, "total_tokens": 45, "requests": 3,
        "tool_calls": 2, "cost": 0.75,
    }  # fmt: skip
    (name,) = [n for n in exact if getattr(limits, n) is not None]
    result = await Agent(
        ScriptedModel([*script, "done"], usage=EACH),
        tools=[echo],
        limits=UsageLimits(**{name: exact[name]}),
        price=lambda usage: usage.output_tokens * 0.05,
    ).run("p")
    assert result.output == "done"
    assert result.cost == pytest.approx(0.75)


async def test_a_batch_that_would_cross_the_limit_does_not_start() -> None:
    ran: list[str] = []

    @tool
    async def act() -> str:
        ran.append("act")
        return ""

    script = [asks(("1", "act"), ("2", "act"))]
    with pytest.raises(RunError):
        await Agent(ScriptedModel(script), tools=[act], limits=UsageLimits(tool_calls=1)).run("p")
    assert ran == []


async def test_the_limits_of_a_run_replace_the_agents() -> None:
    agent = looping(limits=UsageLimits(requests=1))
    with pytest.raises(RunError) as caught:
        await agent.run("p", limits=UsageLimits(requests=4))
    assert caught.value.partial.requests == 5  # type: ignore[union-attr]


async def test_only_calls_that_can_run_are_held_against_the_limit() -> None:
    """Not what is unknown, invalid, or waits for somebody: none of it executes."""

    @tool
    async def runs(value: int) -> str:
        return "ran"

    @tool(requires_approval=True)
    async def asks_first() -> str:
        return "unreached"

    batch = asks(
        ("1", "runs", '{"value": 1}'), ("2", "runs", "{}"), ("3", "no"), ("4", "asks_first")
    )
    agent = Agent(
        ScriptedModel([batch]), tools=[runs, asks_first], limits=UsageLimits(tool_calls=1)
    )
    result = await agent.run("p")
    assert (result.tool_calls, len(result.pending.approvals)) == (1, 1)


@pytest.mark.parametrize("price", [None, "2", float("nan"), float("inf")])
async def test_a_price_that_is_no_number_is_named(price: Any) -> None:
    agent = Agent(ScriptedModel(["x"], usage=EACH), price=lambda usage: price)
    with pytest.raises(RunError, match="price: expected a finite number") as caught:
        await agent.run("p")
    assert caught.value.stage == "usage"


async def test_a_counter_that_gives_no_number_fails_at_its_stage() -> None:
    class Counter:
        async def count_tokens(self, messages: Any, tools: Any = ()) -> Any:
            return None

    limits = UsageLimits(per_request_input_tokens=5)
    with pytest.raises(RunError, match="token count failed") as caught:
        await Agent(ScriptedModel(["x"]), counter=Counter(), limits=limits).run("p")
    assert caught.value.stage == "model"


async def test_a_model_that_cannot_say_its_name_runs() -> None:
    class Nameless(ScriptedModel):
        @property
        def model(self) -> str:
            raise RuntimeError("no name")

    assert (await Agent(Nameless(["x"])).run("p")).output == "x"


@pytest.mark.parametrize("given", [True, "x", [1]])
def test_a_timeout_is_a_number(given: Any) -> None:
    with pytest.raises(TypeError, match="timeout total must be a number"):
        Timeouts(total=given)


@pytest.mark.parametrize("name", UsageLimits.__struct_fields__)
def test_a_negative_limit_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        UsageLimits(**{name: -1})
    assert UsageLimits(**{name: 0}) == UsageLimits(**{name: 0})


# Before each request


class Counting:
    """A counter of messages that notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
        await anyio.lowlevel.checkpoint()
        self.asked.append((len(messages), len(tools)))
        return len(messages)


async def test_each_request_is_counted_before_it_is_sent() -> None:
    counter = Counting()
    recorder = Recorder()
    agent = looping(
        limits=UsageLimits(per_request_input_tokens=4), counter=counter, on_event=recorder
    )
    with pytest.raises(RunError) as caught:
        await agent.run("p")
    cause = caught.value.__cause__
    assert isinstance(cause, UsageLimitError)
    assert (
        caught.value.stage,
        cause.kind,
        cause.limit,
        cause.actual,
    ) == ("usage", "per-request input token", 4, 5)
    assert counter.asked == [(1, 1), (3, 1), (5, 1)]
    assert caught.value.partial.requests == 2  # type: ignore[union-attr]
    assert recorder.kinds.count("model_started") == 2
    well_formed(recorder.events)


async def test_a_counter_that_fails_fails_the_run() -> None:
    class Down:
        async def count_tokens(self, messages: Any, tools: Any = ()) -> int:
            raise OSError("down")

    agent = looping(limits=UsageLimits(per_request_input_tokens=4), counter=Down())
    with pytest.raises(RunError, match="token count failed before request: down") as caught:
        await agent.run("p")
    assert (caught.value.stage, caught.value.partial) == ("model", None)
    assert isinstance(caught.value.__cause__, OSError)


def test_a_limit_of_each_request_needs_a_counter() -> None:
    with pytest.raises(ValueError, match="counter"):
        looping(limits=UsageLimits(per_request_input_tokens=4))
    agent = looping()
    with pytest.raises(ValueError, match="counter"):
        agent.stream("p", limits=UsageLimits(per_request_input_tokens=4))
    looping(limits=UsageLimits(per_request_input_tokens=4), counter=EstimatedTokens())


# Cost


async def test_a_price_that_fails_fails_the_run_and_the_turn_is_kept() -> None:
    def price(usage: Usage) -> float:
        raise ZeroDivisionError

    always = tenacity.AsyncRetrying(wait=tenacity.wait_none(), stop=tenacity.stop_after_attempt(3))
    agent = Agent(ScriptedModel(["x"], usage=EACH), price=price, retry=always)
    with pytest.raises(RunError) as caught:
        await agent.run("p")
    partial = caught.value.partial
    assert partial is not None
    assert (caught.value.stage, partial.usage, partial.requests) == ("usage", EACH, 1)
    assert [message.content for message in partial.messages] == ["p", "x"]


async def test_without_a_price_there_is_no_cost() -> None:
    assert None is (await Agent(ScriptedModel(["x"])).run("p")).cost
    free = await Agent(ScriptedModel(["x"]), price=lambda usage: 0.0).run("p")
    assert free.cost == 0.0


# Turns


@pytest.mark.parametrize("turns", [1, 2, 5])
async def test_max_turns_bounds_the_model_turns(turns: int) -> None:
    model = FunctionModel(lambda request: asks(("1", "echo")))
    with pytest.raises(RunError, match=f"after {turns} turns") as caught:
        await Agent(model, tools=[echo], max_turns=turns).run("p")
    assert ("loop", turns) == (caught.value.stage, len(model.requests))
    assert isinstance(caught.value.partial.messages[-1], ToolMessage)  # type: ignore[union-attr]


# Timeouts


@tool
async def hang() -> str:
    """Wait for ever."""
    await anyio.sleep_forever()
    return ""


WAITS = asks(("1", "later"), ("2", "echo"))

STRIKES: dict[str, tuple[Timeouts, list[Any], str, str]] = {
    "total, model": (Timeouts(total=0.01), [hangs("x")], "model", "total"),
    "total, tool": (Timeouts(total=0.01), [asks(("1", "hang"))], "tool", "total"),
    "turn": (Timeouts(turn=0.01), [hangs("a longer answer", 1)], "model", "turn"),
    "first token": (Timeouts(first_token=0.01), [hangs("x")], "model", "first_token"),
    "between tokens": (
        Timeouts(between_tokens=0.01), [hangs("a longer answer", 1)], "model", "between_tokens",
    ),
    "tool": (Timeouts(tool=0.01), [asks(("1", "hang"))], "tool", "time"),
}  # fmt: skip


@pytest.mark.parametrize(("timeouts", "script", "stage", "said"), STRIKES.values(), ids=STRIKES)
async def test_each_timeout_strikes_where_golem_waits(
    timeouts: Timeouts, script: list[Any], stage: str, said: str
) -> None:
    recorder = Recorder()
    stream = Agent(ScriptedModel(script), tools=[hang], timeout=timeouts, on_event=recorder).stream(
        "p"
    )
    with pytest.raises(RunError, match=said) as caught:
        await read(stream)
    assert stage == caught.value.stage
    assert isinstance(caught.value.__cause__, TimeoutError)
    well_formed(recorder.events)
    assert recorder.kinds[-1] == "run_failed"


async def test_a_slow_consumer_trips_no_timeout_but_the_total() -> None:
    timeouts = Timeouts(turn=0.3, first_token=0.3, between_tokens=0.3, tool=0.3)
    script = [asks(("1", "echo")), "a longer answer"]
    agent = Agent(ScriptedModel(script), tools=[echo])
    stream = agent.stream("p", timeout=timeouts)
    await read(stream, "text_delta", "tool_started")
    assert stream.result is not None
    stream = agent.stream("p", model=ScriptedModel(script), timeout=0.3)
    with pytest.raises(RunError, match="total") as caught:
        await read(stream, "text_delta")
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert caught.value.partial.text == "a longer"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("script", "options", "stages"),
    [
        (["hi there friend"], {}, ["model"] * 5 + ["decode"] * 2),
        (["3"], {"output_type": int}, ["model"] * 4 + ["decode"] * 2),
        ([WAITS], {}, ["model"] * 7 + ["tool"] * 7),
    ],
    ids=["text", "structured", "pause"],
)
def test_the_total_strikes_at_every_pull_to_the_very_last(
    script: list[Any], options: dict[str, Any], stages: list[str], anyio_backend_name: str
) -> None:
    """Whatever is being read when it passes; what is complete by then is in the partial."""

    @tool
    async def later() -> str:
        raise ToolDeferred("external")

    async def read(at: int) -> tuple[RunStream[Any], RunError | None]:
        agent: Agent[Any, Any] = Agent(ScriptedModel(script), tools=[echo, later], **options)
        stream = agent.stream("p", timeout=1)
        try:
            async with stream:
                async for event in stream:
                    await anyio.sleep(1 if event.seq == at else 0)
        except RunError as error:
            return stream, error
        return stream, None

    for at, stage in enumerate(stages):
        stream, error = virtual_time.run(read, at, backend=anyio_backend_name)
        assert error is not None
        assert (stage, "the total timeout of 1 s is over") == (error.stage, str(error.__cause__))
        assert isinstance(stream.outcome, RunFailed)
        if stage != "model":
            assert stream.partial is not None
            assert isinstance(stream.partial.messages[1], AssistantMessage)
    stream, error = virtual_time.run(read, len(stages), backend=anyio_backend_name)
    assert (error, stream.result is not None) == (None, True)


async def test_nothing_is_begun_once_the_total_is_over() -> None:
    ran: list[str] = []

    @tool
    async def act() -> str:
        ran.append("act")
        return ""

    model = ScriptedModel([asks(("1", "act")), "x"])
    stream = Agent(model, tools=[act], timeout=0.3).stream("p")
    with pytest.raises(RunError):
        await read(stream, "tool_started")
    assert ran == []


async def test_a_turns_timeout_spans_its_retries() -> None:
    policy = tenacity.AsyncRetrying(wait=tenacity.wait_fixed(60))
    agent = Agent(
        FunctionModel(lambda request: TransportError("reset")),
        retry=policy,
        timeout=Timeouts(turn=0.01),
    )
    with pytest.raises(RunError, match="turn") as caught:
        await agent.run("p")
    cause = caught.value.__cause__
    assert isinstance(cause, TimeoutError)
    assert isinstance(cause.__context__, TransportError)


async def test_a_number_is_the_total_and_a_runs_timeout_replaces_the_agents() -> None:
    agent = Agent(FunctionModel(lambda request: hangs("x")), timeout=60)
    with pytest.raises(RunError, match=r"total timeout of 0.01 s"):
        await agent.run("p", timeout=0.01)


@pytest.mark.parametrize("name", Timeouts.__struct_fields__)
@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_timeout_has_to_be_positive(name: str, seconds: float) -> None:
    with pytest.raises(ValueError, match=name):
        Timeouts(**{name: seconds})


async def test_the_timeout_of_a_group_leaves_its_results_beside_the_batch() -> None:
    script = [asks(("1", "echo"), ("2", "hang"))]
    agent = Agent(ScriptedModel(script), tools=[echo, hang], parallel_tool_calls=True, timeout=0.3)
    with pytest.raises(RunError) as caught:
        await agent.run("p")
    partial = caught.value.partial
    assert partial is not None
    assert [result.content for result in partial.batch_results] == ["echoed"]
    assert NO_RESULT not in [message.content for message in partial.messages]
    await resumes(partial, synthesized=["1", "2"])


async def test_usage_and_response_are_counted_once() -> None:
    response = Response(asks(("1", "echo")), Usage(3, 2), "tool_call")
    result = await Agent(ScriptedModel([response, "x"], usage=Usage(1, 1)), tools=[echo]).run("p")
    assert (Usage(4, 3), 2, 1) == (result.usage, result.requests, result.tool_calls)


async def test_adding_up_prices_crosses_no_limit() -> None:
    """Three times 0.1 is not more than 0.3."""
    agent = looping(price=lambda usage: 0.1, limits=UsageLimits(cost=0.3))
    with pytest.raises(RunError, match=r"cost limit of 0.3 \(used 0.4\)"):
        await agent.run("p")


def test_a_limit_of_cost_needs_a_price() -> None:
    with pytest.raises(ValueError, match="needs a price"):
        Agent(ScriptedModel(["x"]), limits=UsageLimits(cost=1))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"timeout": -1}, ValueError),
        ({"timeout": "5"}, TypeError),
        ({"limits": 5}, TypeError),
        ({"max_turns": 1.5}, TypeError),
        ({"max_turns": True}, TypeError),
        ({"output_retries": "1"}, TypeError),
        ({"on_event": 5}, TypeError),
        ({"journal": "file"}, TypeError),
        ({"price": 0.1}, TypeError),
    ],
)
def test_an_option_out_of_range_is_refused_at_once(
    options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=next(iter(options))):
        Agent(ScriptedModel(["x"]), **options)


@pytest.mark.parametrize("when", ["next_turn", "idle"])
async def test_what_is_said_beyond_the_last_turn_stays_unsaid(when: Any) -> None:
    def late(event: Event) -> None:
        if event.kind == "tool_started":
            stream.enqueue("late", when=when)

    model = ScriptedModel([asks(("1", "echo"))])
    stream = Agent(model, tools=[echo], max_turns=1, on_event=late).stream("p")
    with pytest.raises(RunError, match="turn limit"):
        await read(stream)
    assert [message.content for message in stream.unsaid] == ["late"]
