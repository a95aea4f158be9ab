"""What happens to a sealed history: storage, other libraries, runs, repair and trimming."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace

from golem import (
    Agent,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UnknownMembers,
    UserMessage,
    dump_history,
    dump_message,
    load_history,
    normalize_history,
)
from golem.history import seal, trim_history, verify
from golem.rawjson import canonical
from golem.testing import ScriptedModel
from tests.history.checks import same
from tests.history.sealing import KEY, sealed
from tests.strategies import MESSAGES, json_text

# Storage and other libraries


def as_go_writes(history: list[Message]) -> bytes:
    """The same messages as the Go sibling stores them: HTML escapes, compacted arguments."""
    text = json.dumps(json.loads(dump_history(history)), ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode()


@given(MESSAGES)
def test_what_is_sealed_is_the_canonical_json_of_a_message(message: Message) -> None:
    """Whichever way it is come by: every version and language has to make the same seal."""
    bare = replace(message, seal="")
    before = b"aside" if isinstance(message, SystemMessage) else b"first"
    body = b"golem-seal-1\0" + before + b"\0" + canonical(dump_message(bare))
    code = base64.urlsafe_b64encode(hmac.new(KEY, body, hashlib.sha256).digest()).rstrip(b"=")
    (made,) = seal([bare], KEY)
    assert made.seal == f"{before.decode()}.{code.decode()}"


@pytest.mark.parametrize(
    "args",
    ['{"amount": 1.50}', '{"amount": 1e2}', '{"b": 1, "b": 2}', '{"n": 12345678901234567890.0}'],
)
def test_seals_do_not_survive_a_library_that_respells_what_was_said(args: str) -> None:
    """Clients have to carry the text, as the guide says; the model's own words are evidence."""
    call = AssistantMessage(tool_calls=(ToolCall.of("c", "pay", args),))
    made = seal([UserMessage("q"), call, ToolMessage("r", tool_call_id="c")], KEY)
    assert verify(load_history(as_go_writes(made)), KEY).altered == (1,)
    assert not verify(load_history(dump_history(made)), KEY)


def test_seals_survive_the_contracts_members_in_another_order() -> None:
    call = AssistantMessage("a", tool_calls=(ToolCall.of("c", "f", '{"x":1}'),), run_id="r")
    made = seal([UserMessage("q", run_id="r"), call, ToolMessage("r", tool_call_id="c")], KEY)
    turned = [dict(reversed(message.items())) for message in json.loads(dump_history(made))]
    assert not verify(load_history(json.dumps(turned)), KEY)


def test_seals_survive_being_written_by_another_json_library() -> None:
    history: list[Message] = [
        UserMessage("a <b> & 'c' \u2028 \u00e9 \U0001f600 \x7f \x00"),
        AssistantMessage(
            tool_calls=(
                ToolCall.of("c", "f", '{ "a" : "<\\u00e9\\/" ,\n "b":[1, 2] }'),
                ToolCall.of("d", "f", "{ cut <off"),
            ),
            unknown=UnknownMembers({"newer <x>": b'{ "y": "&" }'}),
        ),
        ToolMessage("r & s", tool_call_id="c", tool_name="f"),
        ToolMessage("t", tool_call_id="d", tool_name="f"),
    ]
    made = seal(history, KEY)
    rewritten = load_history(as_go_writes(made))
    assert b"\\u003c" in as_go_writes(made)
    assert not verify(rewritten, KEY)
    escaped = json.dumps(json.loads(dump_history(made)), indent=2).encode()
    assert not verify(load_history(escaped), KEY)


def test_numbers_and_the_order_of_members_are_covered() -> None:
    """They are the model's own text: 2.50 is not 2.5."""
    [made] = seal([AssistantMessage(tool_calls=(ToolCall.of("c", "f", '{"a":2.50}'),))], KEY)
    stored = dump_history([made])
    assert verify(load_history(stored.replace(b"2.50", b"2.5")), KEY).altered == (0,)


def test_a_sealed_lone_surrogate_cannot_be_exchanged_for_what_it_reads_as() -> None:
    def asking(text: str) -> AssistantMessage:
        return AssistantMessage(tool_calls=(ToolCall.of("c", "f", text),))

    sealed = seal([UserMessage("u"), asking(r'{"x":"\ud800"}')], KEY)
    stored = load_history(dump_history(sealed))
    assert not verify(stored, KEY)
    other = replace(stored[1], tool_calls=asking('{"x":"\ufffd"}').tool_calls)
    assert verify([stored[0], other], KEY).altered == (1,)


# Canonical JSON


def respelled(text: str) -> str:
    """The same JSON with white space everywhere and every character of a string escaped."""
    pieces = re.findall(r'"(?:[^"\\]|\\.)*"|[^"]+', text)
    return " \n".join(
        "".join(f" {char}\t" if char in "{}[],:" else char for char in piece)
        if not piece.startswith('"')
        else '"' + "".join(map(_escaped, json.loads(piece))) + '"'
        for piece in pieces
    )


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


@given(json_text())
def test_canonical_json_is_one_spelling_of_the_same_value(text: str) -> None:
    made = canonical(text.encode())
    assert made == canonical(made)
    assert made == canonical(respelled(text).encode())
    assert json.loads(text) == json.loads(made)


@given(json_text(), json_text())
def test_different_values_have_different_canonical_texts(one: str, other: str) -> None:
    if json.loads(one) != json.loads(other):
        assert canonical(one.encode()) != canonical(other.encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\ud800", "\ufffd"),
        (r"\ud800", r"\ud801"),
        (r"\ud83d\ude00\ude00", "\U0001f600\ufffd"),
        (r"\\\ud800", "\\\\\ufffd"),
        (r"\\ud800", r"\ud800"),
    ],
)
def test_a_lone_surrogate_is_not_the_character_that_it_reads_as(one: str, other: str) -> None:
    """A model wrote the one or the other, and `call.args` has it."""
    made = {canonical(f'{{"a{text}":"x{text}y"}}'.encode()) for text in (one, other)}
    assert len(made) == 2
    assert made == set(map(canonical, made))
    assert canonical(rb'"\uD800"') == canonical(rb'"\ud800"')


@pytest.mark.parametrize("text", ["{} x", "nope", '{"a":1}\x00', "1 2 \x1f", "{\u00a0}", '"open'])
def test_what_is_no_json_has_no_canonical_text(text: str) -> None:
    with pytest.raises(ValueError, match="not valid JSON at byte"):
        canonical(text.encode())


# Runs, repair and trimming


def run(history: list[Message], prompt: str | None, **options: Any) -> list[Message]:
    agent = Agent(ScriptedModel([options.pop("answer", "fine")]), **options)
    return agent.run_sync(prompt, history=history).messages


def test_sealing_after_each_of_several_runs_verifies_as_one_chain() -> None:
    history: list[Message] = []
    for number in range(4):
        history = seal(run(history, f"question {number}", instructions=f"be {number}"), KEY)
        stored = load_history(dump_history(history))
        report = verify(stored, KEY)
        assert not report
        assert not report.trimmed
        assert tuple(range(len(stored))) == report.verified
        history = stored
    assert len(history) == 9


def test_results_that_repair_puts_in_are_sealed_with_what_follows() -> None:
    """The run's transcript is the server's own; what stood behind the gap is sealed anew."""
    asked = AssistantMessage(tool_calls=(ToolCall.of("c", "f", "{}"),))
    history = seal([UserMessage("q"), asked, UserMessage("never mind")], KEY)
    repaired = run(history, "go on")
    assert len(repaired) == 6
    assert verify(repaired, KEY).added[:1] == (2,)
    made = seal(repaired, KEY)
    assert same(repaired[:2], made[:2])
    assert not verify(made, KEY)


def test_a_trimmed_history_verifies_from_its_cut_on_and_says_so() -> None:
    trimmed = trim_history(2)(sealed())
    report = verify(trimmed, KEY)
    assert not report
    assert report.trimmed
    assert report.verified == (0, 1)
    longer = seal(run(trimmed, "and now?"), KEY)
    assert same(trimmed, longer[:2])
    report = verify(longer, KEY)
    assert not report
    assert report.trimmed


def test_a_trimmed_history_with_instructions_verifies() -> None:
    trimmed = seal(run(trim_history(2)(sealed()), "and now?", instructions="be brief"), KEY)
    assert not verify(trimmed, KEY)
    assert verify(trimmed, KEY).trimmed


def test_a_reported_repair_is_not_blamed_on_the_seal() -> None:
    """Normalizing a sealed history that is sound changes nothing."""
    assert not verify(normalize_history(sealed())[0], KEY)
