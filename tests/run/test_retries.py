"""Sending a request again: when, how often, after how long; never once something was given out."""

from __future__ import annotations

import logging
import time
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import tenacity

from golem import (
    Agent,
    APIError,
    AssistantMessage,
    ProtocolError,
    RunError,
    TransportError,
    Usage,
    UsageLimits,
    partial_from,
)
from golem._run import model_turn
from golem._run.retry import DEFAULT_RETRY, Attempts, wait_as_told
from golem.events import ModelFinished, ModelStarted
from golem.model import TextDelta
from golem.testing import Fragments, FunctionModel, ScriptedModel, dies
from tests.run.support import Recorder, asks, echo, well_formed

pytestmark = pytest.mark.virtual_time

DOWN = TransportError("reset")
FATAL = APIError("no", status=400)


def policy(**options: Any) -> tenacity.AsyncRetrying:
    """The default, without its waits."""
    return DEFAULT_RETRY.copy(**({"wait": tenacity.wait_none()} | options))


async def consume(agent: Agent[Any, Any], streamed: bool, **given: Any) -> Any:
    if not streamed:
        return await agent.run("p", **given)
    async with agent.stream("p", **given) as stream:
        async for _ in stream:
            pass
    return stream.result


both_forms = pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])


@both_forms
@pytest.mark.parametrize(
    ("script", "requests", "ended"),
    [
        ([DOWN, "ok"], 2, None),
        ([DOWN, DOWN, "ok"], 3, None),
        ([DOWN, DOWN, DOWN, "ok"], 3, DOWN),
        ([FATAL, "ok"], 1, FATAL),
        ([DOWN, FATAL, "ok"], 2, FATAL),
        ([OSError("mine"), "ok"], 1, OSError),
        ([ProtocolError("odd"), "ok"], 1, ProtocolError),
    ],
)
async def test_what_the_adapter_calls_retryable_is_sent_three_times(
    script: list[Any], requests: int, ended: Any, streamed: bool
) -> None:
    recorder = Recorder()
    model = ScriptedModel(script, usage=Usage(1, 1))
    agent = Agent(model, retry=policy(), on_event=recorder)
    if ended is None:
        result = await consume(agent, streamed)
        assert ("ok", requests, Usage(1, 1)) == (result.output, result.requests, result.usage)
    else:
        with pytest.raises(RunError) as caught:
            await consume(agent, streamed)
        cause = caught.value.__cause__
        assert cause is ended or isinstance(cause, ended)
        assert (caught.value.stage, caught.value.partial) == ("model", None)
    assert requests == len(model.requests)
    well_formed(recorder.events)
    started = [(e.turn, e.attempt) for e in recorder.events if isinstance(e, ModelStarted)]
    finished = [
        (e.turn, e.attempt, bool(e.error)) for e in recorder.events if isinstance(e, ModelFinished)
    ]
    assert [(0, n) for n in range(1, requests + 1)] == started
    failed = requests if ended is not None else requests - 1
    assert [(0, n, n <= failed) for n in range(1, requests + 1)] == finished


async def test_nothing_is_retried_after_the_first_fragment() -> None:
    for error in (DOWN, APIError("overloaded", status=529, retryable=True)):
        model = ScriptedModel([dies("a longer answer", 1, error), "ok"])
        with pytest.raises(RunError) as caught:
            await consume(Agent(model, retry=policy()), True)
        assert (1, error) == (len(model.requests), caught.value.__cause__)
        assert caught.value.partial.text == "a longer"  # type: ignore[union-attr]


async def test_a_stream_that_dies_before_its_first_fragment_is_retried() -> None:
    model = ScriptedModel([Fragments([DOWN]), "ok"])
    assert (await consume(Agent(model, retry=policy()), True)).output == "ok"


@pytest.mark.parametrize("hangs", [False, True])
async def test_what_comes_behind_a_response_changes_nothing(
    hangs: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The turn is complete, in a stream as in a plain request."""
    monkeypatch.setattr(model_turn, "GRACE_SECONDS", 0.01)

    class Dies:
        def __init__(self) -> None:
            self.requests = 0

        async def generate(self, request: Any) -> Any:
            raise NotImplementedError

        async def stream(self, request: Any) -> Any:
            self.requests += 1
            answer = await ScriptedModel(["x"]).generate(request)
            yield answer
            if hangs:
                await anyio.sleep_forever()
            raise DOWN

    model: Any = Dies()
    assert (await consume(Agent(model, retry=policy()), True)).output == "x"
    assert model.requests == 1
    assert ("failed behind its response" in caplog.text) is not hangs


@both_forms
async def test_without_a_policy_nothing_is_retried(streamed: bool) -> None:
    model = ScriptedModel([DOWN, "ok"])
    with pytest.raises(RunError):
        await consume(Agent(model, retry=None), streamed)
    assert len(model.requests) == 1


# How long


@pytest.mark.parametrize(
    ("told", "seconds"),
    [(None, 7.0), (3.5, 3.5), (120.0, 120.0), (121.0, 7.0), (0.0, 7.0), (-1.0, 7.0)],
)
async def test_retry_after_is_honoured_up_to_two_minutes(
    told: float | None, seconds: float
) -> None:
    error = APIError("slow down", status=429, retryable=True, retry_after=told)
    attempts = Attempts(policy(wait=wait_as_told(tenacity.wait_fixed(7))), time.monotonic())
    assert seconds == await attempts.delay_after(error)


async def test_the_default_waits_longer_each_time_and_gives_up_after_the_third() -> None:
    attempts = Attempts(DEFAULT_RETRY, time.monotonic())
    delays = [await attempts.delay_after(DOWN) for _ in range(3)]
    assert None is delays[2]
    assert all(delay is not None and 0 <= delay <= 8 for delay in delays[:2])


async def test_one_policy_serves_many_runs_at_once() -> None:
    shared = policy()
    agent = Agent(ScriptedModel([]), retry=shared)
    outputs: list[str] = []

    async def run() -> None:
        outputs.append((await agent.run("p", model=ScriptedModel([DOWN, DOWN, "ok"]))).output)

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(run)
    assert outputs == ["ok"] * 20
    assert shared.statistics == {}


# Policies of one's own


async def test_a_policy_may_be_made_of_asynchronous_parts() -> None:
    seen: list[BaseException] = []

    async def retry(state: tenacity.RetryCallState) -> bool:
        await anyio.lowlevel.checkpoint()
        assert state.outcome is not None
        return isinstance(state.outcome.exception(), OSError)

    async def before_sleep(state: tenacity.RetryCallState) -> None:
        await anyio.lowlevel.checkpoint()
        assert state.outcome is not None
        seen.append(state.outcome.exception())  # type: ignore[arg-type]

    made = tenacity.AsyncRetrying(
        retry=retry,
        wait=tenacity.wait_none(),
        stop=tenacity.stop_after_attempt(5),
        before_sleep=before_sleep,
    )
    trouble = [OSError("a"), OSError("b")]
    result = await Agent(ScriptedModel([*trouble, "ok"]), retry=made).run("p")
    assert ("ok", trouble) == (result.output, seen)


@pytest.mark.parametrize("kind", [tenacity.AsyncRetrying, tenacity.Retrying])
async def test_a_permissive_policy_never_sees_a_cancellation(kind: Any) -> None:
    seen: list[BaseException | None] = []

    def everything(state: tenacity.RetryCallState) -> bool:
        seen.append(state.outcome.exception() if state.outcome else None)
        return True

    model = FunctionModel(lambda request: anyio.sleep_forever())  # type: ignore[arg-type,return-value]
    agent = Agent(model, retry=kind(retry=everything, wait=tenacity.wait_none()))
    with anyio.move_on_after(0.01) as scope:
        await agent.run("p")
    assert scope.cancelled_caught
    assert (seen, len(model.requests)) == ([], 1)


async def test_a_run_that_is_cancelled_while_it_waits_to_retry_is_cancelled() -> None:
    caught: list[BaseException] = []
    agent = Agent(ScriptedModel([DOWN, "ok"]), retry=policy(wait=tenacity.wait_fixed(60)))

    async def run() -> None:
        try:
            await agent.run("p")
        except BaseException as error:
            caught.append(error)
            raise

    with anyio.move_on_after(0.01) as scope:
        await run()
    assert scope.cancelled_caught
    assert [anyio.get_cancelled_exc_class()] == [type(error) for error in caught]
    assert None is partial_from(caught[0])


@pytest.mark.parametrize("part", ["retry", "stop", "wait", "before_sleep"])
async def test_a_policy_that_breaks_fails_the_run(part: str) -> None:
    def broken(state: tenacity.RetryCallState) -> Any:
        raise LookupError("policy")

    recorder = Recorder()
    agent = Agent(ScriptedModel([DOWN, "ok"]), retry=policy(**{part: broken}), on_event=recorder)
    with pytest.raises(RunError, match="policy") as caught:
        await agent.run("p")
    cause = caught.value.__cause__
    assert isinstance(cause, LookupError)
    assert (caught.value.stage, cause.__context__) == ("model", DOWN)
    well_formed(recorder.events)
    assert recorder.kinds[-1] == "run_failed"


async def test_each_turn_has_its_attempts_anew() -> None:
    script = [DOWN, DOWN, asks(("1", "echo")), DOWN, DOWN, "ok"]
    result = await Agent(ScriptedModel(script), tools=[echo], retry=policy()).run("p")
    assert (result.output, result.requests) == ("ok", 6)


async def test_fragments_of_what_is_retried_are_no_part_of_the_answer() -> None:
    model = ScriptedModel([DOWN, Fragments([TextDelta("a"), TextDelta("b")])])
    result = await consume(Agent(model, retry=policy()), True)
    assert AssistantMessage("ab").content == result.output


async def test_a_policys_parts_are_asked_as_tenacity_asks_them() -> None:
    """Waits first, so that ``stop`` knows of it; the clock runs from the first attempt."""
    late = policy(stop=tenacity.stop_after_delay(30), wait=tenacity.wait_none())
    assert await Attempts(late, time.monotonic() - 60).delay_after(DOWN) is None
    too_long = policy(stop=tenacity.stop_before_delay(30), wait=tenacity.wait_fixed(60))
    assert await Attempts(too_long, time.monotonic()).delay_after(DOWN) is None


async def test_tenacitys_own_callbacks_work(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("tests.retries")
    told = policy(
        wait=tenacity.wait_none(),
        before_sleep=tenacity.before_sleep_log(log, logging.WARNING),
        after=tenacity.after_log(log, logging.WARNING),
    )
    assert (await Agent(ScriptedModel([DOWN, "ok"]), retry=told).run("p")).output == "ok"
    assert "Retrying" in caplog.text


async def test_no_retry_crosses_the_limit_of_requests() -> None:
    model = ScriptedModel([DOWN] * 10)
    many = policy(wait=tenacity.wait_none(), stop=tenacity.stop_after_attempt(10))
    with pytest.raises(RunError, match=r"request limit of 2 \(would use 3\)") as caught:
        await Agent(model, retry=many, limits=UsageLimits(requests=2)).run("p")
    assert (caught.value.stage, len(model.requests)) == ("usage", 2)
