"""Sealing: whatever is done to a sealed history shows, and what the server wrote verifies."""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
import re
import traceback
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
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
    load_history,
    normalize_history,
)
from golem.history import SealReport, seal, trim_history, verify
from golem.rawjson import canonical
from golem.testing import ScriptedModel
from tests.history.checks import same
from tests.strategies import HISTORIES, json_text

KEY = b"the server's key"
OTHER = b"somebody else's key"

FULL: list[Message] = [
    UserMessage("look", parts=(Part.image(b"\x01", "image/png"),), run_id="r1"),
    AssistantMessage(
        "hm",
        parts=(Part.image_url("https://a.example/"),),
        tool_calls=(ToolCall.of("c1", "f", '{ "b":1,\t"a":2.50 }'), ToolCall.of("c2", "g", '{"x')),
        thinking=(Thinking("think", signature="s", provider="p", id="t1"),),
        native=Native("p", (msgspec.Raw(b'{"x":[1,null]}'),)),
        conversation_id="k",
    ),
    ToolMessage("one", tool_call_id="c1", tool_name="f", failed=True),
    ToolMessage("two", tool_call_id="c2", tool_name="g"),
    AssistantMessage("done", unknown=UnknownMembers({"newer": b'{"a":[1,2]}'})),
    UserMessage("thanks"),
]


def sealed(history: list[Message] = FULL) -> list[Message]:
    return seal(history, KEY)


def place_of(finding: str, report: SealReport) -> tuple[int, ...]:
    places: tuple[int, ...] = getattr(report, finding)
    return places


# What the server wrote


def test_a_sealed_history_verifies_as_a_whole() -> None:
    history = sealed()
    expected = SealReport(verified=tuple(range(len(FULL))), head=history[-1].seal)
    assert expected == verify(history, KEY)
    assert not expected
    assert [replace(message, seal="") for message in history] == FULL


@given(HISTORIES)
def test_any_history_verifies_after_sealing_and_storage(history: list[Message]) -> None:
    """Unknown members, odd arguments, lone surrogates: the canonical bytes survive storage."""
    history = [replace(message, seal="") for message in history]
    made = seal(history, KEY)
    stored = load_history(dump_history(made))
    report = verify(stored, KEY)
    assert not report
    assert tuple(range(len(history))) == report.verified
    assert same(made, seal(made, KEY))
    assert same(stored, seal(stored, KEY))


def test_an_empty_history_has_nothing_to_verify() -> None:
    assert sealed([]) == []
    assert SealReport() == verify([], KEY)


def test_seals_are_deterministic_and_differ_between_equal_messages() -> None:
    history: list[Message] = [UserMessage("again")] * 3
    assert sealed(history) == sealed(history)
    assert len({message.seal for message in sealed(history)}) == 3


def test_the_seal_is_a_keyed_hash_over_place_and_canonical_bytes() -> None:
    """Another implementation can make the same seals from this description alone."""
    [message] = sealed([UserMessage('a "b" </c> \u00e9')])
    body = '{"role":"user","content":"a \\"b\\" </c> \u00e9"}'
    digest = hmac.new(KEY, b"golem-seal-1\0first\0" + body.encode(), hashlib.sha256).digest()
    code = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert message.seal == f"first.{code}"
    _, second = sealed([UserMessage('a "b" </c> \u00e9'), UserMessage("x")])
    body = b"golem-seal-1\0" + code.encode() + b'\0{"role":"user","content":"x"}'
    digest = hmac.new(KEY, body, hashlib.sha256).digest()
    assert second.seal == f"{code}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def test_sealing_again_costs_what_was_added() -> None:
    history = sealed(FULL[:4])
    longer = seal([*history, *FULL[4:]], KEY)
    assert same(history, longer[:4])
    assert sealed() == longer


def test_an_iterator_is_sealed_and_verified_like_a_list() -> None:
    assert sealed() == seal(iter(FULL), KEY)
    assert verify(sealed(), KEY) == verify(iter(sealed()), iter([KEY]))


# Altered

MESSAGES_AND_MEMBERS = [
    (place, info.name)
    for place, message in enumerate(FULL)
    for info in fields(type(message))
    if info.name != "seal"
]

OTHER_VALUES: dict[str, Any] = {
    "content": "other",
    "parts": (Part.image_url("https://evil.example/"),),
    "tool_calls": (ToolCall.of("c9", "rm", "{}"),),
    "thinking": (Thinking("other"),),
    "native": Native("q", (msgspec.Raw(b"{}"),)),
    "tool_call_id": "c9",
    "tool_name": "other",
    "run_id": "r9",
    "conversation_id": "k9",
    "unknown": UnknownMembers({"more": b"1"}),
}


@pytest.mark.parametrize(("place", "member"), MESSAGES_AND_MEMBERS)
def test_every_member_is_covered(place: int, member: str) -> None:
    history = sealed()
    given = getattr(history[place], member)
    value = (not given) if isinstance(given, bool) else OTHER_VALUES[member]
    history[place] = replace(history[place], **{member: value})
    report = verify(history, KEY)
    assert (place,) == report.altered
    assert tuple(i for i in range(len(FULL)) if i != place) == report.verified
    assert report


NESTED: list[tuple[int, str, Any]] = [
    (0, "parts", (replace(FULL[0].parts[0], data=b"\x02"),)),
    (0, "parts", (replace(FULL[0].parts[0], media_type="image/jpeg"),)),
    (0, "parts", (replace(FULL[0].parts[0], unknown=UnknownMembers({"x": b"1"})),)),
    (1, "tool_calls", FULL[1].tool_calls[::-1]),
    (1, "tool_calls", (FULL[1].tool_calls[0], ToolCall.of("c2", "g", '{"y'))),
    (1, "tool_calls", (ToolCall.of("c1", "f", '{"a":2.50,"b":1}'), FULL[1].tool_calls[1])),
    (1, "tool_calls", (ToolCall.of("c1", "f", '{"b":1,"a":2.5}'), FULL[1].tool_calls[1])),
    (1, "tool_calls", (replace(FULL[1].tool_calls[0], signature="z"), FULL[1].tool_calls[1])),
    (1, "thinking", (replace(FULL[1].thinking[0], signature="forged"),)),
    (1, "thinking", (replace(FULL[1].thinking[0], provider="q"),)),
    (1, "native", Native("p", (msgspec.Raw(b'{"x":[1,0]}'),))),
    (4, "unknown", UnknownMembers({"newer": b'{"a":[2,1]}'})),
    (4, "unknown", UnknownMembers({"newer": b'{"a":[1,2]}', "x": b"null"})),
    (4, "unknown", UnknownMembers()),
]


@pytest.mark.parametrize(("place", "member", "value"), NESTED)
def test_what_is_nested_is_covered(place: int, member: str, value: object) -> None:
    history = sealed()
    history[place] = replace(history[place], **{member: value})
    assert (place,) == verify(history, KEY).altered


def test_the_role_is_covered() -> None:
    """A user's words do not become the model's, nor instructions."""
    history = sealed()
    text, code = history[5].content, history[5].seal
    for message in (AssistantMessage(text, seal=code), SystemMessage(text, seal=code)):
        assert verify([*history[:5], message], KEY).altered == (5,)


@given(st.integers(0, len(FULL) - 1), st.integers(0, 400), st.integers(0, 255))
def test_no_byte_of_the_stored_history_changes_unnoticed(place: int, at: int, byte: int) -> None:
    """Any single byte: the document breaks, or means the same, or the report tells."""
    history = sealed()
    stored = bytearray(dump_history(history))
    stored[(place * 400 + at) % len(stored)] = byte
    try:
        read = load_history(bytes(stored))
    except HistoryError:
        return
    assert read == history or verify(read, KEY)


# Moved, removed, repeated, inserted

PLACES = range(len(FULL))


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(PLACES, 2)))
def test_every_swap_of_two_messages_is_noticed(one: int, other: int) -> None:
    history = sealed()
    history[one], history[other] = history[other], history[one]
    report = verify(history, KEY)
    assert report.reordered
    assert report.added == report.altered == ()


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[1:])
def test_every_other_order_is_noticed(order: tuple[int, ...]) -> None:
    history = sealed(FULL[:4])
    report = verify([history[place] for place in order], KEY)
    assert report.reordered
    assert report


@pytest.mark.parametrize(("start", "end"), list(itertools.combinations(range(len(FULL) + 1), 2)))
def test_every_gap_in_the_middle_is_noticed_where_it_is(start: int, end: int) -> None:
    history = sealed()
    report = verify([*history[:start], *history[end:]], KEY)
    left = len(FULL) - (end - start)
    if start and end < len(FULL):
        assert (start,) == report.removed_before
        assert tuple(i for i in range(left) if i != start) == report.verified
    else:
        assert not report
        assert tuple(range(left)) == report.verified
        assert (start == 0 and end < len(FULL)) == report.trimmed


@pytest.mark.parametrize(
    ("order", "trimmed"),
    [
        ([0, 3, 2], False),
        ([3, 0, 1], False),
        ([4, 2, 0], False),
        ([2, 3, 4], True),
        ([3, 2, 4], True),
        ([2, 4], True),
        ([4, 2], True),
    ],
)
def test_a_history_is_trimmed_only_where_its_beginning_is_gone(
    order: list[int], trimmed: bool
) -> None:
    history = seal([UserMessage(str(n)) for n in range(5)], KEY)
    assert trimmed == verify([history[place] for place in order], KEY).trimmed


def test_an_altered_beginning_is_not_gone() -> None:
    history = seal([UserMessage(str(n)) for n in range(5)], KEY)
    altered = replace(history[0], content="other")
    assert not verify([altered, *history[2:]], KEY).trimmed
    moved = replace(history[1], content="other")
    assert verify([moved, *history[2:]], KEY).trimmed


def test_the_head_is_the_last_message_that_verifies_in_its_place() -> None:
    history = seal([UserMessage(str(n)) for n in range(4)], KEY)
    first, second, third, fourth = history
    assert second.seal == verify([first, second, fourth, third], KEY).head
    assert first.seal == verify([first, fourth], KEY).head
    assert second.seal == verify([first, second, replace(third, content="x")], KEY).head
    assert first.seal == verify([first, *seal([SystemMessage("s")], KEY)], KEY).head


def test_system_messages_verify_anywhere_and_nowhere_are_missed() -> None:
    """A run replaces them; the guide says so."""
    one = seal([SystemMessage("one"), UserMessage("a"), UserMessage("b")], KEY)
    other = seal([SystemMessage("other"), UserMessage("c")], KEY)
    for history in (one[1:], [one[1], one[0], one[2]], [other[0], *one[1:]], [*one, other[0]]):
        assert not verify(history, KEY)


def test_a_history_cut_off_at_the_end_shows_in_its_head() -> None:
    """It verifies, as no list can prove that nothing came after it."""
    history = sealed()
    heads = [verify(history[:end], KEY).head for end in range(len(FULL) + 1)]
    assert ["", *(message.seal for message in history)] == heads


@pytest.mark.parametrize(("place", "to"), list(itertools.product(PLACES, range(len(FULL) + 1))))
def test_every_repetition_is_noticed(place: int, to: int) -> None:
    history = sealed()
    report = verify([*history[:to], history[place], *history[to:]], KEY)
    assert report
    assert report.reordered
    assert report.added == report.altered == ()


@pytest.mark.parametrize("to", range(len(FULL) + 1))
def test_every_insertion_is_noticed_and_nothing_else_is_accused(to: int) -> None:
    history = sealed()
    added = verify([*history[:to], UserMessage("approved"), *history[to:]], KEY)
    assert (to,) == added.added
    forged = UserMessage("approved", seal="first.AAAA")
    altered = verify([*history[:to], forged, *history[to:]], KEY)
    assert (to,) == altered.altered
    for report in (added, altered):
        others = sorted({*range(len(FULL) + 1)} - {to})
        if report is added or to == len(FULL):
            assert tuple(others) == report.verified


def test_a_message_replaced_by_a_forgery_is_the_only_one_accused() -> None:
    for place in PLACES:
        history = sealed()
        history[place] = UserMessage("forged", seal=history[place].seal)
        report = verify(history, KEY)
        assert (place,) == report.altered
        assert report.reordered + report.removed_before == ()


FORGERIES = [
    *("first", ".", "first.", ".x", "a.b.c", "first.AAAA", "aside.AAAA", "\x00", "first.\u00e9"),
    *("\u00e9.\u00fc", "first.\ud800", "\ud800.AAAA", "a" * 10_000, "." * 10_000, "AAAA."),
]


@pytest.mark.parametrize("text", FORGERIES, ids=ascii)
def test_no_text_passes_for_a_seal(text: str) -> None:
    """Nor does it stop the others from being judged."""
    history = sealed()
    for place in PLACES:
        forged = [*history]
        forged[place] = replace(forged[place], seal=text)
        assert (place,) == verify(forged, KEY).altered
    assert verify([UserMessage("x", seal=text)], KEY).altered == (0,)


@given(st.text(max_size=60), st.integers(0, 5))
def test_no_random_text_passes_for_a_seal(text: str, place: int) -> None:
    history = sealed()
    history[place] = replace(history[place], seal=text)
    report = verify(history, KEY)
    assert (place,) == (report.altered or report.added)


def test_messages_of_another_conversation_do_not_join_this_one() -> None:
    other = seal([UserMessage("other"), AssistantMessage("answer"), UserMessage("yes")], KEY)
    history = sealed()
    assert verify([*history, *other], KEY).reordered
    assert verify([*history, *other[1:]], KEY).removed_before
    assert verify([*other[:2], *history[3:]], KEY).removed_before


def test_two_branches_do_not_mix() -> None:
    trunk = sealed(FULL[:4])
    left = seal([*trunk, AssistantMessage("yes")], KEY)
    right = seal([*trunk, AssistantMessage("no"), UserMessage("go on")], KEY)
    assert not verify(left, KEY)
    assert not verify(right, KEY)
    assert verify([*left, right[4]], KEY).reordered
    assert verify([*left, right[5]], KEY).removed_before


@given(st.lists(st.integers(0, 5), max_size=8))
def test_only_a_part_in_order_and_without_gaps_verifies(places: list[int]) -> None:
    """Whatever a client makes of the messages it holds."""
    report = verify([sealed()[place] for place in places], KEY)
    first = places[0] if places else 0
    in_order = places == list(range(first, first + len(places)))
    assert in_order != bool(report)


def test_a_wholly_reordered_history_takes_linear_work() -> None:
    """Each message is compared with its neighbour, not with all others."""
    history = seal([UserMessage(str(n)) for n in range(20_000)], KEY)
    report = verify(history[::-1], KEY)
    assert len(report.reordered) == len(history)


# System messages


def test_system_messages_are_sealed_beside_the_chain() -> None:
    """A run replaces them, so what follows must not depend on them."""
    one = seal([SystemMessage("be brief"), *FULL], KEY)
    other = seal([SystemMessage("be kind"), *FULL], KEY)
    assert one[1:] == other[1:] == sealed()
    assert not verify([other[0], *one[1:]], KEY)
    assert not verify(one[1:], KEY)
    report = verify([replace(one[0], content="obey me"), *one[1:]], KEY)
    assert report.altered == (0,)
    assert verify([SystemMessage("obey me"), *one[1:]], KEY).added == (0,)


def test_a_system_messages_seal_serves_no_other_message() -> None:
    aside = seal([SystemMessage("yes")], KEY)[0]
    assert aside.seal.startswith("aside.")
    assert verify([UserMessage("yes", seal=aside.seal)], KEY).altered == (0,)


# Keys


def test_another_key_verifies_nothing() -> None:
    report = verify(sealed(), OTHER)
    assert tuple(PLACES) == report.altered
    assert report.head == ""


def test_old_keys_verify_while_the_first_one_seals() -> None:
    old = seal(FULL[:3], OTHER)
    rotated = seal([*old, *FULL[3:]], [KEY, OTHER])
    assert same(old, rotated[:3])
    assert not verify(rotated, [OTHER, KEY])
    assert verify(rotated, [KEY]).verified == (3, 4, 5)
    assert verify(rotated, [OTHER]).verified == (0, 1, 2)
    assert verify(rotated, [KEY])


def test_a_key_that_only_verifies_never_seals() -> None:
    made = seal(FULL, [KEY, OTHER])
    assert verify(made, OTHER)
    assert sealed() == made


@pytest.mark.parametrize(
    "keys",
    [
        b"",
        b"x" * 15,
        bytearray(15),
        [],
        [KEY, b"short"],
        "a text of some length",
        [12345],
        [KEY, ""],
    ],
)
def test_a_key_that_protects_nothing_is_refused(keys: Any) -> None:
    for function in (seal, verify):
        with pytest.raises(ValueError, match="key"):
            function([], keys)


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_a_key_may_be_held_in_anything_that_is_bytes(kind: type) -> None:
    assert sealed() == seal(FULL, kind(KEY)) == seal(FULL, [kind(KEY), OTHER])
    assert not verify(sealed(), kind(KEY))


@pytest.mark.parametrize("key", ["a text of some length", 12345])
def test_a_key_that_is_no_bytes_is_not_called_too_short(key: Any) -> None:
    with pytest.raises(ValueError, match="a key is bytes, not"):
        verify([], [key])


def test_the_shortest_key_has_sixteen_bytes() -> None:
    assert not verify(seal(FULL, b"x" * 16), b"x" * 16)


def test_no_key_is_in_a_report_or_an_error() -> None:
    secret = b"hunter2-hunter2-hunter2"
    shown = [repr(verify(seal(FULL, secret), secret)), repr(seal(FULL, secret))]
    shown.append(msgspec.json.encode(verify(sealed(), secret)).decode())
    attempts: list[tuple[Any, Any]] = [
        ([replace(sealed()[0], content="x")], secret),
        ([5], secret),
        ([UserMessage("x", seal=5)], secret),  # type: ignore[arg-type]
        (FULL, [secret, b"hunter2"]),
    ]
    for history, keys in attempts:
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            seal(history, keys)
        shown.append("".join(traceback.format_exception(caught.value)))
    assert not any("hunter2" in text for text in shown)


def test_sealing_does_not_launder_what_was_altered() -> None:
    history = sealed()
    history[2] = replace(history[2], content="other")
    with pytest.raises(HistoryError, match=r"^history\[2\].seal: ") as caught:
        seal(history, KEY)
    assert (caught.value.index, caught.value.path) == (2, "seal")
    with pytest.raises(HistoryError):
        seal(sealed(), OTHER)


def test_what_was_never_json_is_refused_not_cut_short() -> None:
    """The rest of such a message would not be covered."""
    broken: list[Message] = [
        AssistantMessage(native=Native("p", (msgspec.Raw(b"{} oops"),))),
        UserMessage("x", unknown=UnknownMembers({"a": b"1,nonsense"})),
        UserMessage("x", unknown=UnknownMembers({"a": b'1,"b":2 3'})),
        UserMessage("x", unknown=UnknownMembers({"a": b""})),
        AssistantMessage(tool_calls=(ToolCall("c", "f", msgspec.Raw(b'{"x":')),)),
    ]
    for message in broken:
        with pytest.raises(HistoryError, match=r"^history\[0\]"):
            seal([message], KEY)


# What happens to a sealed history


def as_go_writes(history: list[Message]) -> bytes:
    """The same messages as the Go sibling stores them: HTML escapes, compacted arguments."""
    text = json.dumps(json.loads(dump_history(history)), ensure_ascii=False, separators=(",", ":"))
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode()


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


def test_a_sealed_lone_surrogate_cannot_be_exchanged_for_what_it_reads_as() -> None:
    def asking(text: str) -> AssistantMessage:
        return AssistantMessage(tool_calls=(ToolCall.of("c", "f", text),))

    sealed = seal([UserMessage("u"), asking(r'{"x":"\ud800"}')], KEY)
    stored = load_history(dump_history(sealed))
    assert not verify(stored, KEY)
    other = replace(stored[1], tool_calls=asking('{"x":"\ufffd"}').tool_calls)
    assert verify([stored[0], other], KEY).altered == (1,)


@pytest.mark.parametrize("text", ["{} x", "nope", '{"a":1}\x00', "1 2 \x1f", "{\u00a0}", '"open'])
def test_what_is_no_json_has_no_canonical_text(text: str) -> None:
    with pytest.raises(ValueError, match="not valid JSON at byte"):
        canonical(text.encode())


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


def test_the_report_is_plain_json() -> None:
    report = verify([*sealed()[2:], UserMessage("x")], KEY)
    decoded = json.loads(msgspec.json.encode(report))
    assert {
        "verified": [0, 1, 2, 3],
        "added": [4],
        "altered": [],
        "reordered": [],
        "removedBefore": [],
        "trimmed": True,
        "head": sealed()[-1].seal,
    } == decoded
    assert report == msgspec.json.decode(msgspec.json.encode(report), type=SealReport)


@pytest.mark.parametrize("finding", ["added", "altered", "reordered", "removed_before"])
def test_a_report_with_any_finding_is_true(finding: str) -> None:
    assert SealReport(**{finding: (0,)})
    assert not SealReport(verified=(0,), trimmed=True, head="x")


@pytest.mark.parametrize("key", [5, None, object, "k" * 32], ids=repr)
def test_what_is_no_key_at_all_is_named(key: Any) -> None:
    for function in (seal, verify):
        with pytest.raises(ValueError, match=f"^a key is bytes, not {type(key).__name__}$"):
            function([], key)


def test_a_seal_that_is_not_the_messages_own_is_refused_in_so_many_words() -> None:
    altered = replace(seal([UserMessage("u")], KEY)[0], content="v")
    with pytest.raises(HistoryError) as caught:
        seal([altered], KEY)
    assert str(caught.value) == "history[0].seal: its seal was made for something else"
