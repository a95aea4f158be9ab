"""What comes in: plain and streamed answers are the same, and deltas tell all of them."""

from __future__ import annotations

import json
from typing import Final

import anyio

from golem.messages import AssistantMessage, Thinking, ToolCall, UserMessage
from golem.model import (
    FinishReason,
    Model,
    Request,
    Response,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolSpec,
)
from golem.testing.conformance.subject import (
    ASK,
    Check,
    Heard,
    Subject,
    asked,
    expect,
    expect_taken,
    streamed,
)
from golem.testing.judge import misbehave
from golem.usage import Usage

_WEATHER: Final = ToolSpec(
    "get weather",  # no provider takes the blank: it is mapped, and mapped back
    "The weather in a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
_ENDS: Final[tuple[FinishReason, ...]] = ("stop", "length", "content_filter")
_PATIENCE: Final = 5
"""Seconds after which a stream that gave nothing out is said to wait for its end."""

_TEXTS: Final = (
    "It is a golem.",
    "a",
    "two\n\nparagraphs, \r\n\ttabs\n",
    'data: [DONE]\n\n{"error": {"message": "no"}}',
    "\u00e9\u4e2d\U0001f600\u2028\u2029\ufeff\x00\x7f\\ud800",
    "a long one. " * 2000,
)


async def a_text_is_the_same_plain_and_streamed(subject: Subject) -> None:
    """Whatever characters stand in it."""
    for text in _TEXTS:
        response = await _both(subject, Response(AssistantMessage(text)))
        expect("the text", text, response.message.content)
        expect("the finish reason", "stop", response.finish_reason)


async def the_end_of_an_answer_is_told(subject: Subject) -> None:
    """Why it ended, and what it consumed."""
    for reason in _ENDS:
        said = Response(AssistantMessage("It is"), Usage(1234, 56), reason)
        response = await _both(subject, said)
        expect("the finish reason", reason, response.finish_reason)
        usage = (response.usage.input_tokens, response.usage.output_tokens)
        expect("input and output tokens", (1234, 56), usage)


async def calls_are_the_same_plain_and_streamed(subject: Subject) -> None:
    """Their order, names and arguments; one without arguments has ``{}``."""
    if "tools" in subject.lacks:
        return
    calls = (
        ToolCall.of("abcDEF123", "find", '{"b": [1, 2.5, null], "a": "x y\\n\\u00e9"}'),
        ToolCall.of("abcDEF124", "find", '{"deep": {"er": {"est": ""}}}'),
        ToolCall.of("abcDEF125", "now", "{}"),
    )
    for text in ("", "Let me look."):
        message = AssistantMessage(text, tool_calls=calls)
        response = await _both(subject, Response(message, finish_reason="tool_call"))
        expect("the text before the calls", text, response.message.content)
        expect("the finish reason", "tool_call", response.finish_reason)
        found = response.message.tool_calls
        expect("the names", [call.name for call in calls], [call.name for call in found])
        for call, wanted in zip(found, calls, strict=True):
            expect("the arguments", json.loads(wanted.args), json.loads(call.args))
        expect("how many ids the calls have", len(calls), len({c.id for c in found if c.id}))


async def thinking_is_the_same_plain_and_streamed(subject: Subject) -> None:
    """And stands apart from the answer."""
    if "thinking" in subject.lacks:
        return
    message = AssistantMessage("Paris.", thinking=(Thinking("Where was it? In the north."),))
    response = await _both(subject, Response(message))
    thought = "".join(block.text for block in response.message.thinking)
    expect("the thinking", "Where was it? In the north.", thought)
    expect("the text", "Paris.", response.message.content)


async def a_tool_is_called_by_its_own_name(subject: Subject) -> None:
    """Also where it has another one on the wire."""
    if "tools" in subject.lacks:
        return
    request = Request((UserMessage("Weather in Paris?"),), tools=(_WEATHER,))
    async with subject.saying() as judge:
        for stream in (False, True):
            response = await asked(subject.model(judge), request, stream=stream)
            called = [call.name for call in response.message.tool_calls]
            expect("the tool that was called", ["get weather"], called)
        expect_taken(judge)


async def deltas_are_given_out_as_they_come(subject: Subject) -> None:
    """And not once the answer is whole: here it never is."""
    text = "One two three four five six seven eight nine ten."
    async with subject.doing(misbehave.hangs(after=8), text) as judge:
        heard = ""
        with anyio.move_on_after(_PATIENCE):
            stream = subject.model(judge).stream(ASK)
            async for item in stream:
                heard += item.text if isinstance(item, TextDelta) else ""
                if heard:
                    break
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
    if not heard:
        raise AssertionError("no text came before the end of the answer")
    expect("the first delta", text[: len(heard)], heard)


async def requests_at_once_get_their_own_answers(subject: Subject) -> None:
    """One model is shared by any number of tasks."""
    numbers = range(10)
    heard: dict[int, str] = {}

    async def ask(model: Model, number: int) -> None:
        request = Request((UserMessage(f"number <{number}>"),))
        heard[number] = (await asked(model, request, stream=bool(number % 2))).message.content

    def answer(body: object) -> str:
        return "answer " + json.dumps(body).partition("<")[2].partition(">")[0]

    async with subject.judge(answer, None) as judge:
        model = subject.model(judge)
        async with anyio.create_task_group() as tasks:
            for number in numbers:
                tasks.start_soon(ask, model, number)
    expect("the answers", {number: f"answer {number}" for number in numbers}, heard)


CHECKS: Final[tuple[Check, ...]] = (
    a_text_is_the_same_plain_and_streamed,
    the_end_of_an_answer_is_told,
    calls_are_the_same_plain_and_streamed,
    thinking_is_the_same_plain_and_streamed,
    a_tool_is_called_by_its_own_name,
    deltas_are_given_out_as_they_come,
    requests_at_once_get_their_own_answers,
)


async def _both(subject: Subject, said: Response) -> Response:
    """The answer, which is the same plain and streamed, and told by its deltas."""
    async with subject.saying(said, said) as judge:
        model = subject.model(judge)
        plain = await model.generate(ASK)
        heard = await streamed(model)
        expect_taken(judge)
    _expect_told(heard)
    expect("the streamed message", _told(plain.message), _told(heard.response.message))
    for what in ("usage", "finish_reason"):
        expect(f"the streamed {what}", getattr(plain, what), getattr(heard.response, what))
    for what in ("model", "finish_reason", "finish_message"):  # ids are each answer's own
        told = getattr(plain.details, what), getattr(heard.response.details, what)
        expect(f"the streamed details' {what}", *told)
    return plain


def _told(message: AssistantMessage) -> object:
    """A message without the ids of its calls, which may be minted anew each time."""
    calls = [(call.name, call.args, call.signature) for call in message.tool_calls]
    return message.content, message.parts, message.thinking, message.native, calls


def _expect_told(heard: Heard) -> None:
    """The deltas put together are the message, and none is empty."""
    text, thought = "", ""
    calls: dict[int, list[str]] = {}
    for delta in heard.deltas:
        match delta:
            case TextDelta(piece):
                text += piece
            case ThinkingDelta(piece):
                thought += piece
            case ToolCallDelta(index, id, name, piece):
                call = calls.setdefault(index, ["", "", ""])
                calls[index] = [call[0] or id, call[1] or name, call[2] + piece]
        if not any((getattr(delta, "text", ""), isinstance(delta, ToolCallDelta))):
            raise AssertionError("a delta is empty")
    message = heard.response.message
    expect("the text of the deltas", message.content, text)
    expect("their thinking", "".join(block.text for block in message.thinking), thought)
    told = [[call.id, call.name, call.args] for call in message.tool_calls]
    expect("their calls", told, [calls[index] for index in sorted(calls)])
