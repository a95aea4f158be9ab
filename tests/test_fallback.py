"""A model that is several: the next answers where one cannot, and only then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from golem import Agent, APIError, FallbackModel, Model, RunError, TransportError, UserMessage
from golem.model import Delta, Request, Response, TextDelta
from golem.testing import Fragments, ScriptedModel, dies, hangs
from tests.run.support import asks, echo
from tests.run.test_retries import consume, policy

pytestmark = pytest.mark.virtual_time

DOWN = TransportError("reset")
BUSY = APIError("busy", status=529, retryable=True)
FATAL = APIError("no", status=400)
LATER = APIError("in an hour", status=429, retry_after=3600.0)
SPENT = APIError("no quota", status=429, code="insufficient_quota")
UNPAID = APIError("pay first", status=402)

both_forms = pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])


def fallback(*scripts: list[Any]) -> tuple[FallbackModel, list[ScriptedModel]]:
    members = [ScriptedModel(script) for script in scripts]
    return FallbackModel(members), members


@pytest.mark.parametrize("member", ["openai:gpt-5-mini", None])
def test_a_member_that_is_no_model_is_named(member: Any) -> None:
    with pytest.raises(TypeError, match="member 1 of a FallbackModel is no model but "):
        FallbackModel([ScriptedModel([]), member])


def test_a_fallback_model_is_a_model() -> None:
    assert isinstance(fallback(["x"])[0], Model)
    with pytest.raises(ValueError, match="at least one"):
        FallbackModel([])


@both_forms
async def test_the_first_member_answers_while_it_can(streamed: bool) -> None:
    model, members = fallback(["a"], ["b"])
    assert (await consume(Agent(model), streamed)).output == "a"
    assert [len(member.requests) for member in members] == [1, 0]


@both_forms
@pytest.mark.parametrize("error", [DOWN, BUSY, Fragments([DOWN])])
async def test_the_next_member_answers_where_one_fails_for_the_moment(
    error: Any, streamed: bool
) -> None:
    model, members = fallback([error], [error], ["c"])
    assert (await consume(Agent(model, retry=None), streamed)).output == "c"
    assert [len(member.requests) for member in members] == [1, 1, 1]
    first, *others = (member.requests[0] for member in members)
    assert [first, first] == others


@both_forms
@pytest.mark.parametrize("error", [LATER, SPENT, UNPAID])
async def test_the_next_member_answers_where_an_account_has_nothing_left(
    error: APIError, streamed: bool
) -> None:
    model, members = fallback([error], ["b"])
    assert (await consume(Agent(model), streamed)).output == "b"
    assert [len(member.requests) for member in members] == [1, 1]


@both_forms
async def test_an_account_with_nothing_left_is_final_where_there_is_no_other(
    streamed: bool,
) -> None:
    model, members = fallback([BUSY], [SPENT])
    with pytest.raises(RunError) as caught:
        await consume(Agent(model), streamed)
    assert caught.value.__cause__ is SPENT
    assert [len(member.requests) for member in members] == [1, 1]


@both_forms
@pytest.mark.parametrize("error", [FATAL, ValueError("mine")])
async def test_what_asking_again_cannot_mend_is_raised(error: Exception, streamed: bool) -> None:
    model, members = fallback([error], ["b"])
    with pytest.raises(RunError) as caught:
        await consume(Agent(model), streamed)
    assert error is caught.value.__cause__
    assert len(members[1].requests) == 0


@both_forms
async def test_the_last_error_knows_the_others(streamed: bool) -> None:
    errors = [TransportError("one"), TransportError("two"), TransportError("three")]
    model, _ = fallback(*[[error] for error in errors])
    with pytest.raises(RunError, match="three") as caught:
        await consume(Agent(model, retry=None), streamed)
    chain: list[BaseException | None] = [caught.value.__cause__]
    while chain[-1] is not None:
        chain.append(chain[-1].__context__)
    assert [*reversed(errors), None] == chain


async def test_nobody_takes_over_once_something_was_given_out() -> None:
    model, members = fallback([dies("a longer answer", 1, DOWN)], ["b"])
    with pytest.raises(RunError) as caught:
        await consume(Agent(model, retry=policy()), True)
    assert caught.value.partial.text == "a longer"  # type: ignore[union-attr]
    assert [len(member.requests) for member in members] == [1, 0]


async def test_one_model_may_be_asked_twice() -> None:
    once = ScriptedModel([DOWN, "b"])
    assert (await Agent(FallbackModel([once, once]), retry=None).run("p")).output == "b"


async def test_a_history_goes_from_member_to_member() -> None:
    model, members = fallback([asks(("1", "echo")), BUSY], ["done"])
    result = await Agent(model, tools=[echo], retry=None).run("p")
    assert result.output == "done"
    assert [m.content for m in members[1].requests[0].messages] == ["p", "", "echoed"]


async def test_retries_begin_again_with_the_first_member() -> None:
    model, members = fallback([DOWN, "a"], [DOWN])
    assert (await Agent(model, retry=policy()).run("p")).output == "a"
    assert [len(member.requests) for member in members] == [2, 1]


async def test_cancelling_goes_to_no_other_member() -> None:
    model, members = fallback([hangs("x")], ["b"])
    with anyio.move_on_after(0.01) as scope:
        await consume(Agent(model, retry=policy()), True)
    assert scope.cancelled_caught
    assert [len(member.requests) for member in members] == [1, 0]


def test_output_is_native_where_every_member_has_it() -> None:
    native, plain = ScriptedModel([]), ScriptedModel([])
    native.native_output = True  # type: ignore[attr-defined]
    assert [
        FallbackModel(members).native_output
        for members in ([native, native], [native, plain], [plain])
    ] == [True, False, False]


async def test_deltas_of_the_member_that_answers_are_given_out() -> None:
    model, _ = fallback([Fragments([DOWN])], ["b"])
    async with Agent(model).stream("p") as stream:
        texts = [event.text async for event in stream if event.kind == "text_delta"]  # type: ignore[union-attr]
    assert texts == ["b"]
    assert TextDelta("b").text == texts[0]


class Batched(ScriptedModel):
    """Gives its fragments two at once, the first time after none at all."""

    async def batches(self, request: Request) -> AsyncIterator[Sequence[Delta] | Response]:
        yield []
        pair: list[Delta] = []
        async with aclosing(self.stream(request)) as items:
            async for item in items:
                if isinstance(item, Response):
                    yield pair
                    yield item
                    return
                pair.append(item)
                if len(pair) == 2:
                    yield pair
                    pair = []


async def test_batches_of_the_member_that_answers_stay_together() -> None:
    model = FallbackModel([Batched([Fragments([DOWN])]), Batched(["a longer answer with an end"])])
    request = Request([UserMessage("p")])
    async with aclosing(model.batches(request)) as answer:
        sizes = [0 if isinstance(item, Response) else len(item) async for item in answer]
    assert sizes == [2, 2, 0]
    again = FallbackModel([Batched([Fragments([DOWN])]), Batched(["a longer answer with an end"])])
    async with aclosing(again.stream(request)) as items:
        *deltas, response = [item async for item in items]
    assert isinstance(response, Response)
    assert response.message.content == "".join(d.text for d in deltas if isinstance(d, TextDelta))


async def test_nobody_takes_over_once_a_batch_was_given_out() -> None:
    model = FallbackModel([Batched([dies("a longer answer", 2, DOWN)]), Batched(["b"])])
    with pytest.raises(RunError) as caught:
        await consume(Agent(model, retry=policy()), True)
    assert caught.value.partial.text == "a longer answer"  # type: ignore[union-attr]
