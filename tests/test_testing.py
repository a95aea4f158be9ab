"""The public test double: a model that answers from a script."""

from __future__ import annotations

import contextlib
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem import (
    Agent,
    AssistantMessage,
    Model,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    TransportError,
    Usage,
    UserMessage,
    normalize_history,
)
from golem.model import Request, Response, TextDelta, ThinkingDelta, ToolCallDelta
from golem.testing import (
    Death,
    Fragments,
    FunctionModel,
    ScriptedModel,
    Strict,
    Watch,
    assemble,
    complaints,
    cut_args,
    dies,
    fragments,
    hangs,
    read,
    sweep_cancellation,
    sweep_leaving,
    sweep_stops,
)
from golem.testing.strategies import ANY_HISTORY

pytestmark = pytest.mark.virtual_time

WHOLE = Response(AssistantMessage("whole"))
REQUEST = Request([UserMessage("q")])
CALLS = AssistantMessage("t", tool_calls=(ToolCall.of("1", "echo", "{}"),))


async def streamed(model: ScriptedModel) -> list[Any]:
    return [item async for item in model.stream(REQUEST)]


def test_a_scripted_model_is_a_model() -> None:
    assert isinstance(ScriptedModel([]), Model)


@pytest.mark.parametrize(
    ("item", "response"),
    [
        ("hi", Response(AssistantMessage("hi"), Usage(1, 1))),
        ("", Response(AssistantMessage(), Usage(1, 1))),
        (CALLS, Response(CALLS, Usage(1, 1), "tool_call")),
        (Response(CALLS, Usage(7, 7), "length"),) * 2,
        (
            Fragments([TextDelta("a"), ThinkingDelta("h"), TextDelta("b")]),
            Response(AssistantMessage("ab", thinking=(Thinking("h"),)), Usage(1, 1)),
        ),
        (Fragments([TextDelta("a")], WHOLE), WHOLE),
    ],
    ids=["text", "empty", "message", "response", "fragments", "fragments-and-response"],
)
async def test_both_forms_give_the_same_response(item: Any, response: Response) -> None:
    model = ScriptedModel([item, item], usage=Usage(1, 1))
    assert response == await model.generate(REQUEST)
    *deltas, last = await streamed(model)
    assert response == last
    assert not any(isinstance(delta, Response) for delta in deltas)
    assert model.requests == [REQUEST, REQUEST]


async def test_an_exception_of_the_script_is_raised_where_it_stands() -> None:
    dies = Fragments([TextDelta("a"), TransportError("cut"), TextDelta("b")])
    model = ScriptedModel([OSError("down"), dies, dies])
    with pytest.raises(OSError, match="down"):
        await model.generate(REQUEST)
    with pytest.raises(TransportError, match="cut"):
        await model.generate(REQUEST)
    seen: list[Any] = []
    with pytest.raises(TransportError, match="cut"):
        await _collect(model, seen)
    assert [TextDelta("a")] == seen


async def _collect(model: ScriptedModel, seen: list[Any]) -> None:
    async for item in model.stream(REQUEST):
        seen.append(item)


async def test_a_request_beyond_the_script_is_the_tests_mistake() -> None:
    model = ScriptedModel(["only"])
    await model.generate(REQUEST)
    with pytest.raises(AssertionError, match="no answer for request 2"):
        await model.generate(REQUEST)


@pytest.mark.parametrize("one", ["Hello.", Fragments([TextDelta("Hello.")])])
def test_one_answer_is_no_script(one: Any) -> None:
    with pytest.raises(TypeError, match=r"a script is a list of answers, not (str|Fragments)"):
        ScriptedModel(one)


async def test_a_script_may_be_any_iterable_and_its_requests_are_recorded() -> None:
    model = ScriptedModel(iter(["a", "b"]))
    agent = Agent(model, instructions="i")
    first = await agent.run("p")
    await agent.run("q", history=first.messages)
    assert [len(request.messages) for request in model.requests] == [2, 4]
    assert repr(model) == "ScriptedModel(2 answers, 2 requests)"


TEXT = st.text(max_size=40)
MESSAGES = st.builds(
    lambda text, thinking, calls: AssistantMessage(
        text,
        thinking=(Thinking(thinking),) if thinking else (),
        tool_calls=tuple(ToolCall.of(*call) for call in calls),
    ),
    TEXT,
    TEXT,
    st.lists(st.tuples(TEXT, TEXT, st.sampled_from(["{}", '{"a": [1, 2, "three"]}', '{"cut', ""]))),
)


@given(MESSAGES, st.integers(1, 9))
def test_the_fragments_of_a_message_amount_to_it(message: AssistantMessage, size: int) -> None:
    pieces = fragments(message, size)
    assert message == assemble(pieces)
    assert all(piece.text for piece in pieces if not isinstance(piece, ToolCallDelta))


# Models of functions, and failures


async def test_a_function_model_gives_whatever_a_script_may_hold() -> None:
    async def later(request: Request) -> Any:
        return CALLS if len(request.messages) == 1 else OSError("down")

    model = FunctionModel(later, usage=Usage(1, 1))
    assert Response(CALLS, Usage(1, 1), "tool_call") == await model.generate(REQUEST)
    with pytest.raises(OSError, match="down"):
        await model.generate(Request([*REQUEST.messages, CALLS]))
    assert len(model.requests) == 2
    assert isinstance(model, Model)
    assert repr(model) == "FunctionModel(2 requests)"


@pytest.mark.parametrize("after", [0, 1, 2, 9])
async def test_an_answer_dies_after_so_many_fragments(after: int) -> None:
    model = ScriptedModel([dies("a longer answer", after)] * 2)
    seen: list[Any] = []
    with pytest.raises(TransportError, match="injected"):
        await _collect(model, seen)
    assert fragments(AssistantMessage("a longer answer"))[:after] == seen
    with pytest.raises(TransportError, match="injected"):
        await model.generate(REQUEST)


async def test_an_answer_hangs_after_so_many_fragments() -> None:
    for form in ("stream", "generate"):
        model = ScriptedModel([hangs("a longer answer", 1)])
        seen: list[Any] = []
        with anyio.move_on_after(0.01) as scope:
            await (_collect(model, seen) if form == "stream" else model.generate(REQUEST))
        assert scope.cancelled_caught
        assert ([TextDelta("a longer")] if form == "stream" else []) == seen


async def test_arguments_that_are_cut_off_are_no_object_and_the_turn_says_why() -> None:
    whole = AssistantMessage("t", tool_calls=(ToolCall.of("1", "echo", '{"text": "long"}'),))
    cut = cut_args(whole, 9)
    (call,) = cut.message.tool_calls
    assert (call.args, call.truncated, cut.finish_reason) == ('{"text": ', True, "length")


# The judge


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([UserMessage("q"), CALLS, ToolMessage("r", tool_call_id="1")], []),
        ([UserMessage("q"), CALLS], ["no result"]),
        ([UserMessage("q"), CALLS, UserMessage("p")], ["no result before"]),
        ([ToolMessage("r", tool_call_id="1")], ["nobody waits"]),
        ([CALLS, *[ToolMessage("r", tool_call_id="1")] * 2], ["nobody waits"]),
        ([CALLS, UserMessage("p"), ToolMessage("r", tool_call_id="1")], ["no result", "nobody"]),
        ([UserMessage("q"), SystemMessage("s")], ["system message"]),
        ([SystemMessage("s"), UserMessage("q")], []),
    ],
)
async def test_a_judge_says_what_providers_refuse(messages: list[Any], said: list[str]) -> None:
    found = complaints(messages)
    assert len(said) == len(found)
    assert all(part in complaint for part, complaint in zip(said, found, strict=True))
    strict = Strict(ScriptedModel(["ok", "ok"]))
    if said:
        with pytest.raises(AssertionError, match="would refuse"):
            await strict.generate(Request(messages))
        with pytest.raises(AssertionError, match="would refuse"):
            await anext(strict.stream(Request(messages)))
    else:
        assert (await strict.generate(Request(messages))).message.content == "ok"


async def test_a_judge_refuses_a_request_without_messages() -> None:
    with pytest.raises(AssertionError, match="without messages"):
        await Strict(ScriptedModel(["ok"])).generate(Request([]))


@given(ANY_HISTORY)
def test_a_judge_finds_nothing_in_repaired_histories(history: list[Any]) -> None:
    repaired = [m for m in normalize_history(history)[0] if not isinstance(m, SystemMessage)]
    named = all(call.id for m in repaired for call in getattr(m, "tool_calls", ()))
    assert not (named and complaints(repaired))


# The sweep finds what it is for


def agent() -> Agent[Any, Any]:
    return Agent(ScriptedModel(["a longer answer"], usage=Usage(1, 1)))


async def test_a_sweep_counts_its_points_and_shows_each_death() -> None:
    deaths: list[Death] = []
    stories = [
        await sweep_cancellation(lambda w: agent().run("p", on_event=w), deaths.append),
        await sweep_cancellation(lambda w: read(agent().stream("p", on_event=w)), deaths.append),
        await sweep_stops(lambda w: agent().stream("p", on_event=w), deaths.append),
        await sweep_leaving(lambda w: agent().stream("p", on_event=w), deaths.append),
    ]
    assert len(deaths) == sum(story.points for story in stories)
    assert sum(death.partial is not None for death in deaths) == sum(
        story.with_evidence for story in stories
    )
    assert all(story.points >= 5 for story in stories)
    assert deaths[0].point == 0


async def swallows(watch: Watch) -> None:
    with contextlib.suppress(BaseException):
        await agent().run("p", on_event=watch)


async def converts(watch: Watch) -> None:
    try:
        await agent().run("p", on_event=watch)
    except BaseException as error:
        raise KeyError("mine") from error


async def goes_on(watch: Watch) -> None:
    with anyio.CancelScope(shield=True):
        await agent().run("p", on_event=watch)
    await anyio.lowlevel.checkpoint()


async def tells_twice(watch: Watch) -> None:
    async def twice(event: Any) -> None:
        await watch(event)
        await watch(event)

    await agent().run("p", on_event=twice)


async def forgets(watch: Watch) -> None:
    async def write(message: Any) -> None:
        if isinstance(message, UserMessage):
            await watch.write(message)

    await agent().run("p", on_event=watch, journal=write)


@pytest.mark.parametrize(
    ("faulty", "said"),
    [
        (swallows, "lost"),
        (converts, "mine"),
        (goes_on, "the run got|after the cancellation|exception has"),
        (tells_twice, "gaps"),
        (forgets, "not in the journal"),
    ],
)
async def test_a_sweep_finds_the_fault_and_says_at_which_point(faulty: Any, said: str) -> None:
    with pytest.raises((AssertionError, KeyError), match=said) as caught:
        await sweep_cancellation(faulty)
    assert any("of the sweep" in note for note in caught.value.__notes__)
