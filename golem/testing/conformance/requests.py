"""What goes out: any repaired history, always the same bytes, nothing that cannot be carried."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Raw
from msgspec.structs import replace

from golem.errors import UnsupportedContentError
from golem.history import repair
from golem.messages import (
    AssistantMessage,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolMessage,
    UserMessage,
)
from golem.model import OutputSchema, Request, Response, Settings, ToolChoice, ToolSpec
from golem.testing.conformance.histories import histories, turn
from golem.testing.conformance.subject import ASK, Check, Subject, expect, taken
from golem.testing.judge import Asked, Judge
from golem.testing.judge.findings import is_array, is_object

_SCHEMA: Final = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_TOOLS: Final = (ToolSpec("f", "", _SCHEMA), ToolSpec("get weather", "Weather.", _SCHEMA))
_MEDIA: Final = (
    Part.image(b"\x89PNG\r\n\x1a\n", "image/png"),
    Part.image_url("https://example.com/a.png"),
    Part.document(b"%PDF-1.7", "application/pdf"),
    Part.document_url("https://example.com/a.pdf"),
    Part.audio(b"RIFF", "audio/wav"),
    Part.audio_url("https://example.com/a.mp3"),
    Part.video(b"\x00\x00", "video/mp4"),
    Part.video_url("https://example.com/a.mp4"),
)


async def any_repaired_history_is_taken(subject: Subject) -> None:
    """Hostile ids, names, texts and arguments; turns in any order; other providers' thinking."""
    for name, history in histories(subject):
        await takes(subject, history, name)


async def takes(subject: Subject, history: Sequence[Message], name: str = "a history") -> None:
    """Repair `history` and send it: the judge may find nothing wrong. For histories of your own."""
    async with subject.saying() as judge:
        await _taken(subject, judge, Request([*repair(history)]), name)


async def every_text_is_sent(subject: Subject) -> None:
    """Whoever said it, also the text of a failed result."""
    said = ["be brief", "where is it", "let me look", "gone away", "sunny there", "so it is"]
    history = turn(said[2], ("c1", "c2"), subject)
    if len(history) > 1:
        history[1:] = [
            ToolMessage(said[3], tool_call_id="c1", tool_name="f", failed=True),
            ToolMessage(said[4], tool_call_id="c2", tool_name="f"),
        ]
    else:
        del said[3:5]
    begin: list[Message] = [SystemMessage(said[0]), UserMessage(said[1])]
    end: list[Message] = [AssistantMessage(said[-1]), UserMessage("and now?")]
    body = (await _sent(subject, [*begin, *history, *end])).body.decode()
    expect("the texts that are not sent", [], [text for text in said if text not in body])


async def what_is_golems_own_stays_here(subject: Subject) -> None:
    """Ids of runs and conversations, seals, and what only another provider understands."""
    thought = Thinking("", signature="signature-secret", provider="another provider")
    history: list[Message] = [
        UserMessage("q", run_id="run-secret", conversation_id="conversation-secret"),
        AssistantMessage(
            "a",
            thinking=(thought,),
            native=Native("another provider", (Raw(b'{"native":"secret"}'),)),
            run_id="run-secret",
            conversation_id="conversation-secret",
        ),
        UserMessage("and?", seal="seal-secret"),
    ]
    body = (await _sent(subject, history)).body
    if b"secret" in body:
        raise AssertionError(f"what is golem's own is sent: {body!r}")


async def equal_requests_are_equal_bytes(subject: Subject) -> None:
    """So that caches hold and failures can be told again."""
    for _, history in histories(subject):
        first, second = [await _sent(subject, [*repair(history)]) for _ in range(2)]
        expect("the bytes of the same request", first.body, second.body)


async def a_longer_conversation_begins_the_same(subject: Subject) -> None:
    """What was sent before stands unchanged at the front: prompt caches need it (contract §5).

    The tools are the same all along: without any, some providers need those that a history calls.
    """
    history = list(repair([m for _, found in histories(subject) for m in found]))
    tools = () if "tools" in subject.lacks else _TOOLS
    whole = (await _sent(subject, [*history, UserMessage("now")], tools)).json or {}
    for end, message in enumerate(history):
        if isinstance(message, UserMessage):
            part = (await _sent(subject, history[: end + 1], tools)).json or {}
            expect("the members of the body", list(part), list(whole))
            for name, value in part.items():
                _expect_front(name, value, whole[name])


async def settings_are_sent_or_refused(subject: Subject) -> None:
    """Refused by name, before anything is sent."""
    for settings, value in (
        (Settings(max_tokens=4321), 4321),
        (Settings(temperature=0.125), 0.125),
        (Settings(top_p=0.375), 0.375),
    ):
        body = await _sent_or_refused(subject, replace(ASK, settings=settings), "a setting")
        if body is not None and value not in list(_scalars(json.loads(body))):
            raise AssertionError(f"{settings!r} is neither sent nor refused")


async def tools_and_choices_are_taken_or_refused(subject: Subject) -> None:
    """Every way to offer tools and to ask for a call; refused where there are none."""
    choices = [None, *(ToolChoice(mode) for mode in ("auto", "none", "required"))]
    for choice in (*choices, ToolChoice("tool", "get weather")):
        for parallel in (None, False):
            settings = Settings(parallel_tool_calls=parallel)
            request = Request(ASK.messages, _TOOLS, tool_choice=choice, settings=settings)
            await _sent_or_refused(subject, request, "tools")


async def an_output_schema_is_taken_or_refused(subject: Subject) -> None:
    """With a name that the provider may not take; the answer follows it where it is enforced."""
    schema = OutputSchema("an answer", _SCHEMA)
    request = Request((UserMessage("Answer in JSON."),), output_schema=schema)
    async with subject.saying() as judge:
        model = subject.model(judge)
        try:
            response = await _taken(subject, judge, request, "an output schema")
        except UnsupportedContentError:
            return
    if getattr(model, "native_output", False):
        expect("the answer", {"city": "Paris"}, json.loads(response.message.content))


async def media_is_taken_or_refused(subject: Subject) -> None:
    """In a prompt, in an answer and in a result; refused by place."""
    for part in _MEDIA:
        holders: list[list[Message]] = [
            [UserMessage("see", parts=(part,))],
            [UserMessage("", parts=(part,))],
            [UserMessage("q"), AssistantMessage("a", parts=(part,)), UserMessage("and?")],
        ]
        if "tools" not in subject.lacks:
            asks, _ = turn("", ("c",), subject)
            seen = ToolMessage("seen", parts=(part,), tool_call_id="c", tool_name="f")
            holders.append([UserMessage("q"), asks, seen])
        for history in holders:
            await _sent_or_refused(subject, Request(history), f"{part.kind} in a message")


CHECKS: Final[tuple[Check, ...]] = (
    any_repaired_history_is_taken,
    every_text_is_sent,
    what_is_golems_own_stays_here,
    equal_requests_are_equal_bytes,
    a_longer_conversation_begins_the_same,
    settings_are_sent_or_refused,
    tools_and_choices_are_taken_or_refused,
    an_output_schema_is_taken_or_refused,
    media_is_taken_or_refused,
)


# --- sending


async def _sent(
    subject: Subject, history: Sequence[Message], tools: Sequence[ToolSpec] = ()
) -> Asked:
    """What the judge got for a history; it has to be in order."""
    async with subject.saying() as judge:
        await _taken(subject, judge, Request(history, tools), "a history")
        return judge.requests[0]


async def _sent_or_refused(subject: Subject, request: Request, what: str) -> bytes | None:
    """The body, or None where the adapter refused the request, naming it, and sent nothing."""
    async with subject.saying() as judge:
        try:
            await _taken(subject, judge, request, what)
        except UnsupportedContentError as error:
            expect(f"requests sent although {what} is refused ({error})", 0, len(judge.requests))
            return None
        return judge.requests[0].body


async def _taken(subject: Subject, judge: Judge, request: Request, what: str) -> Response:
    """The answer to a request that the judge has nothing against."""
    with taken(judge, what):
        return await subject.model(judge).generate(request)


def _expect_front(name: str, part: Any, whole: Any) -> None:
    """A shorter body's member stands in the longer one; the last of an array may have grown."""
    if is_array(part):
        end = len(part) - 1
        expect(f"what {name!r} begins with", part[:end], whole[:end])
    else:
        expect(f"the member {name!r}", part, whole)


def _scalars(value: Any) -> Iterator[Any]:
    if is_object(value) or is_array(value):
        for item in value.values() if is_object(value) else value:
            yield from _scalars(item)
    else:
        yield value
