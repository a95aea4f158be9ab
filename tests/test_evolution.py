"""The contract only grows: older and newer versions of golem carry each other's messages.

The newer version is simulated here by structs that extend today's in every place that can grow.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct
from msgspec.structs import replace

from golem import (
    AssistantMessage,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UnknownMembers,
    UserMessage,
    dump_history,
    dump_message,
    load_history,
    load_message,
    normalize_history,
)
from golem.messages import MESSAGE_TYPES
from tests.strategies import json_text

# What a later version may look like


class Citation(Struct, frozen=True, rename="camel"):
    source_url: str
    spans: tuple[tuple[int, int], ...] = ()


class NewerPart(Part, frozen=True, kw_only=True):
    alt_text: str = ""


class NewerCall(ToolCall, frozen=True, kw_only=True, eq=False):
    started_by: str = ""


class NewerThinking(Thinking, frozen=True, kw_only=True):
    summary: tuple[str, ...] = ()


class NewerNative(Native, frozen=True, kw_only=True, eq=False):
    model: str = ""


class NewerUser(UserMessage, frozen=True, kw_only=True, tag="user"):
    parts: tuple[NewerPart, ...] = ()  # type: ignore[assignment]
    language: str = ""


class NewerAssistant(AssistantMessage, frozen=True, kw_only=True, tag="assistant"):
    parts: tuple[NewerPart, ...] = ()  # type: ignore[assignment]
    tool_calls: tuple[NewerCall, ...] = ()  # type: ignore[assignment]
    thinking: tuple[NewerThinking, ...] = ()  # type: ignore[assignment]
    native: NewerNative | None = None
    citations: tuple[Citation, ...] = ()
    temperature: float | None = None


class NewerTool(ToolMessage, frozen=True, kw_only=True, tag="tool"):
    parts: tuple[NewerPart, ...] = ()  # type: ignore[assignment]
    took_ms: int = 0


class NewerSystem(SystemMessage, frozen=True, kw_only=True, tag="system"):
    scope: str = ""


newer = msgspec.json.Decoder(list[NewerSystem | NewerUser | NewerAssistant | NewerTool])

NEW: list[Any] = [
    NewerSystem("rules", scope="team"),
    NewerUser("look", parts=(NewerPart("hologram", url="u", alt_text="a cat"),), language="fr"),
    NewerAssistant(
        "I'll look",
        tool_calls=(NewerCall("c1", "look", Raw(b'{"b":1, "a":1.0}'), "sig", started_by="me"),),
        thinking=(NewerThinking("hm", "sig", provider="p", summary=("short",)),),
        native=NewerNative("p", (Raw(b'{"type":"x"}'),), model="m-2"),
        citations=(Citation("https://e.example", ((0, 4),)),),
        temperature=0.5,
        run_id="r",
    ),
    NewerTool("a cat", tool_call_id="c1", tool_name="look", took_ms=12),
]
STORED = msgspec.json.encode(NEW)


# A newer writer, this reader


def test_this_version_carries_a_newer_ones_members_unread() -> None:
    history = load_history(STORED)
    assert [message.content for message in history] == ["rules", "look", "I'll look", "a cat"]
    assert newer.decode(dump_history(history)) == NEW


def test_members_of_every_depth_survive_an_edit() -> None:
    edited: list[Message] = []
    for message in load_history(STORED):
        changed: dict[str, Any] = {"content": message.content.upper(), "conversation_id": "conv"}
        if isinstance(message, AssistantMessage):
            assert message.native is not None
            changed["tool_calls"] = tuple(replace(c, signature="new") for c in message.tool_calls)
            changed["thinking"] = tuple(replace(t, text="changed") for t in message.thinking)
            changed["native"] = replace(message.native, provider="q")
        if isinstance(message, UserMessage):
            changed["parts"] = tuple(replace(part, url="v") for part in message.parts)
        edited.append(replace(message, **changed))
    system, user, assistant, tool = newer.decode(dump_history(edited))
    assert (system.content, system.scope) == ("RULES", "team")
    assert (user.content, user.language) == ("LOOK", "fr")
    assert (user.parts[0].url, user.parts[0].alt_text) == ("v", "a cat")
    assert (assistant.tool_calls[0].signature, assistant.tool_calls[0].started_by) == ("new", "me")
    assert (assistant.thinking[0].text, assistant.thinking[0].summary) == ("changed", ("short",))
    assert (assistant.native.provider, assistant.native.model) == ("q", "m-2")
    assert (NEW[2].citations, 0.5) == (assistant.citations, assistant.temperature)
    assert (tool.content, tool.took_ms, tool.conversation_id) == ("A CAT", 12, "conv")


def test_members_survive_repair() -> None:
    late = [*load_history(STORED)[:3], UserMessage("well?"), load_history(STORED)[3]]
    messages, report = normalize_history(late)
    assert report.moved == ("c1",)
    assert newer.decode(dump_history(messages))[:4] == NEW


DEPTHS = {
    "message": '{"role":"user","content":"x"%s}',
    "part": '{"role":"user","parts":[{"kind":"image","url":"u"%s}]}',
    "call": '{"role":"assistant","toolCalls":[{"id":"c","name":"n","args":{}%s}]}',
    "thinking": '{"role":"assistant","thinking":[{"text":"t"%s}]}',
    "native": '{"role":"assistant","native":{"provider":"p","items":[1]%s}}',
}


@pytest.mark.parametrize("template", DEPTHS.values(), ids=DEPTHS)
@given(values=st.lists(json_text() | json_text(lone_surrogates=True), min_size=1, max_size=3))
def test_a_value_is_written_back_to_the_byte_behind_the_known_members(
    template: str, values: list[str]
) -> None:
    """Line breaks between tokens excepted: a message is one line."""
    members = "".join(f',"later{n}":{text}' for n, text in enumerate(values))
    document = template % members
    one_line = document.replace("\n", " ").replace("\r", " ")
    message = load_message(document)
    assert one_line.encode() == dump_message(message)
    assert one_line.encode() == dump_message(replace(message, seal=""))
    front = template.replace("{", "{%s", 1) if template is DEPTHS["message"] else None
    if front:  # a newer writer may put its members anywhere
        scattered = front % (members[1:] + ",", "")
        assert message == load_message(scattered)


def test_unknown_members_keep_their_order() -> None:
    names = ["z", "a", "", "ä", "later", "unknown"]
    document = json.dumps({"role": "user", **dict.fromkeys(names, 1)})
    assert names == list(load_message(document).unknown)
    assert ["role", *names] == list(json.loads(dump_message(load_message(document))))


@pytest.mark.parametrize(
    ("role", "member"),
    [
        ("system", '"parts":[{"kind":"image"}]'),
        ("user", '"toolCalls":[{"id":"c","name":"n","args":{}}]'),
        ("user", '"toolCallId":"c"'),
        ("assistant", '"failed":true'),
        ("tool", '"thinking":[{"text":"t"}]'),
        ("tool", '"native":{"provider":"p"}'),
    ],
)
def test_a_member_of_another_role_is_carried_and_means_nothing(role: str, member: str) -> None:
    document = f'{{"role":"{role}",{member}}}'
    message = load_message(document)
    assert MESSAGE_TYPES[role]() == replace(message, unknown=UnknownMembers())
    assert document.encode() == dump_message(message)


def test_a_part_of_an_unknown_kind_loads_and_is_written_back_but_may_not_be_sent() -> None:
    document = b'{"role":"user","parts":[{"kind":"hologram","url":"u"}]}'
    message = load_message(document)
    assert isinstance(message, UserMessage)
    assert document == dump_message(message)
    with pytest.raises(ValueError, match="hologram"):
        message.parts[0].validate()


# This writer, a newer reader


def test_a_newer_version_reads_what_this_one_wrote() -> None:
    history: list[Message] = [
        SystemMessage("rules"),
        UserMessage("look", parts=(Part.image_url("u"),)),
        AssistantMessage(
            tool_calls=(ToolCall.of("c1", "look", "{}"), ToolCall.of("c2", "look", "{")),
            thinking=(Thinking("hm"),),
            native=Native("p", (Raw(b"1"),)),
        ),
        ToolMessage("a cat", tool_call_id="c1", failed=True),
    ]
    data = dump_history(history)
    read = newer.decode(data)
    assert (
        read[0].scope,
        read[1].language,
        read[1].parts[0].alt_text,
        read[2].citations,
    ) == ("", "", "", ())
    assert [call.args for call in read[2].tool_calls] == ["{}", "{"]
    assert data == msgspec.json.encode(read)


def test_histories_stored_by_the_first_version_read_as_they_did() -> None:
    """A document as it was written on the first day; it stays here unchanged for ever."""
    stored = (
        b'[{"role":"system","content":"Be concise."},{"role":"user","content":"Roll.","parts":'
        b'[{"kind":"image","data":"AQID","mediaType":"image/png"}],"runId":"r","conversationId":'
        b'"c"},{"role":"assistant","toolCalls":[{"id":"c1","name":"roll","args":{"sides":6},'
        b'"signature":"s"},{"id":"c2","name":"roll","args":"{\\"sides\\":"}],"thinking":[{"text":'
        b'"hm","signature":"s","provider":"p","id":"i"},{"redacted":"x"}],"native":{"provider":'
        b'"p","items":[{"type":"text"}]}},{"role":"tool","content":"4","toolCallId":"c1",'
        b'"toolName":"roll","failed":true,"seal":"z"}]'
    )
    assert stored == dump_history(load_history(stored))
    assert [
        SystemMessage("Be concise."),
        UserMessage(
            "Roll.",
            parts=(Part.image(b"\1\2\3", "image/png"),),
            run_id="r",
            conversation_id="c",
        ),
        AssistantMessage(
            tool_calls=(
                ToolCall.of("c1", "roll", '{"sides":6}', "s"),
                ToolCall.of("c2", "roll", '{"sides":'),
            ),
            thinking=(Thinking("hm", "s", provider="p", id="i"), Thinking(redacted="x")),
            native=Native("p", (Raw(b'{"type":"text"}'),)),
        ),
        ToolMessage("4", tool_call_id="c1", tool_name="roll", failed=True, seal="z"),
    ] == load_history(stored)
