"""Sealing: what the server wrote verifies, with the keys it has, and the report says so."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import traceback
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from golem import (
    AssistantMessage,
    HistoryError,
    Message,
    Native,
    SystemMessage,
    ToolCall,
    UnknownMembers,
    UserMessage,
    dump_history,
    load_history,
)
from golem.history import SealReport, seal, verify
from tests.history.checks import same
from tests.history.sealing import FULL, KEY, OTHER, PLACES, sealed
from tests.strategies import HISTORIES

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


@pytest.mark.parametrize("key", [5, None, object, "k" * 32], ids=repr)
def test_what_is_no_key_at_all_is_named(key: Any) -> None:
    for function in (seal, verify):
        with pytest.raises(ValueError, match=f"^a key is bytes, not {type(key).__name__}$"):
            function([], key)


# What is not sealed


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


def test_a_seal_that_is_not_the_messages_own_is_refused_in_so_many_words() -> None:
    altered = replace(seal([UserMessage("u")], KEY)[0], content="v")
    with pytest.raises(HistoryError) as caught:
        seal([altered], KEY)
    assert str(caught.value) == "history[0].seal: its seal was made for something else"


# The report


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
