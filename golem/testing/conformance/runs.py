"""All of it together, under an agent: tools, answers that go back, runs that die and go on."""

from __future__ import annotations

from typing import Any, Final

from golem.agent import Agent
from golem.errors import RunError
from golem.messages import AssistantMessage, Message, Thinking, ToolCall, ToolMessage
from golem.result import Result
from golem.testing.conformance.subject import Check, Subject, expect, taken
from golem.testing.judge import misbehave
from golem.tools import tool

_TEXT: Final = "One two three four five six seven eight nine ten eleven twelve."


@tool
def find(city: str) -> str:
    """What there is in a city."""
    return f"nothing in {city}"


async def a_run_is_the_same_plain_and_streamed(subject: Subject) -> None:
    """A tool is called, and its result answered."""
    told: list[list[tuple[str, str]]] = []
    for stream in (False, True):
        async with subject.saying() as judge:
            with taken(judge):
                result = await _run(_agent(subject, judge), stream=stream)
            told.append([(type(m).__name__, m.content) for m in result.new_messages])
    expect("the messages of the streamed run", *told)
    if "tools" not in subject.lacks:
        expect("the tool's result", ("ToolMessage", "nothing in Paris"), told[0][2])


async def what_the_provider_said_goes_back(subject: Subject) -> None:
    """Thinking, text and calls, whole and after edits of the history."""
    thinking = () if "thinking" in subject.lacks else (Thinking("Let me see."),)
    calls = () if "tools" in subject.lacks else (ToolCall.of("", "find", '{"city": "Rome"}'),)
    asks = AssistantMessage("Well.", thinking=thinking, tool_calls=calls)
    ends = AssistantMessage("So it is.", thinking=thinking)
    for stream in (False, True):
        async with subject.saying(*([asks] if calls else []), ends, ends, ends, ends) as judge:
            agent = _agent(subject, judge)
            with taken(judge, "a history that the provider made itself"):
                first = await _run(agent, stream=stream)
                second = await _run(agent, stream=stream, history=first.messages)
                for history in _edited(second.messages):
                    await _run(agent, stream=stream, history=history)


async def a_run_goes_on_from_what_was_left_of_one(subject: Subject) -> None:
    """Its stream died; what it had said is evidence, and what was complete resumes."""
    for events in (0, 4):
        async with subject.judge(_TEXT, [misbehave.cut_after(events), None]) as judge:
            agent = _agent(subject, judge)
            try:
                await _run(agent, stream=True)
            except RunError as error:
                partial = error.partial
                expect("the stage", "model", error.stage)
            else:
                raise AssertionError("a stream that was cut is no error")
            if partial is not None and not _TEXT.startswith(partial.text):
                raise AssertionError(f"{partial.text!r} is not how {_TEXT!r} begins")
            history = partial.messages if partial is not None else []
            with taken(judge):
                result = await _run(agent, stream=True, history=history)
            expect("the answer", _TEXT, result.output)


CHECKS: Final[tuple[Check, ...]] = (
    a_run_is_the_same_plain_and_streamed,
    what_the_provider_said_goes_back,
    a_run_goes_on_from_what_was_left_of_one,
)


def _agent(subject: Subject, judge: Any) -> Agent[None, str]:
    tools = () if "tools" in subject.lacks else (find,)
    return Agent(subject.model(judge), instructions="Be brief.", tools=tools, retry=None)


async def _run(agent: Agent[None, str], *, stream: bool, **options: Any) -> Result[str]:
    if not stream:
        return await agent.run("Go on.", **options)
    running = agent.stream("Go on.", **options)
    async with running:
        async for _ in running:
            pass
    if running.result is None:
        raise AssertionError("the run ended without a result")
    return running.result


def _edited(history: list[Message]) -> list[list[Message]]:
    """The history without its results, and without its first answer."""
    without: list[Message] = [m for m in history if not isinstance(m, ToolMessage)]
    answers = [i for i, m in enumerate(history) if isinstance(m, AssistantMessage)]
    return [without, history[: answers[0]] + history[answers[0] + 1 :]]
