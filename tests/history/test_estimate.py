"""The built-in estimate: on the high side for every kind of text, and nothing left out."""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from msgspec import Raw

from golem import (
    AssistantMessage,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.history import EstimatedTokens, budget_history
from golem.testing.strategies import ANY_HISTORY
from tests.history.checks import now


def estimate(*messages: Message, tools: Sequence[Any] = (), **options: Any) -> int:
    return now(EstimatedTokens(**options).count_tokens(messages, tools))


def of_text(text: str) -> int:
    return estimate(UserMessage(text), per_message=0)


# Against real tokenizers

chance = random.Random(1)

KINDS: dict[str, tuple[str, int, int]] = {
    "prose": ("The quick brown fox jumps over the lazy dog near the river bank. " * 10, 141, 161),
    "code": ("for (int i = 0; i < n; ++i) { a[i] += b[i]; }\n" * 10, 240, 280),
    "markup": (
        '<div class="row"><a href="https://example.com/a?b=c&d=e">Link</a><br/></div>\n' * 8,
        224,
        288,
    ),
    "digits": (",".join(str(chance.randint(0, 9)) for _ in range(300)), 599, 600),
    "uuids": (
        " ".join(str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(10)),
        230,
        344,
    ),
    "base64": (base64.b64encode(chance.randbytes(600)).decode(), 534, 638),
    "JSON": (json.dumps([{"id": n, "v": chance.random()} for n in range(20)]), 361, 593),
    "German": (
        "Die Bundesregierung hat gestern beschlossen, die Geschwindigkeitsbegrenzung auf den "
        "Autobahnen vor\u00fcbergehend einzuf\u00fchren. " * 3,
        76,
        133,
    ),
    "Russian": (
        "\u0421\u0435\u0433\u043e\u0434\u043d\u044f \u0445\u043e\u0440\u043e\u0448\u0430\u044f "
        "\u043f\u043e\u0433\u043e\u0434\u0430. " * 10,
        61,
        182,
    ),
    "Chinese": (
        "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u6563\u6b65"
        "\u5427\u3002" * 10,
        90,
        310,
    ),
    "Thai": (
        "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e04\u0e23\u0e31\u0e1a \u0e27\u0e31\u0e19\u0e19"
        "\u0e35\u0e49\u0e2d\u0e32\u0e01\u0e32\u0e28\u0e14\u0e35\u0e21\u0e32\u0e01" * 10,
        110,
        490,
    ),
    "Korean": (
        "\uc624\ub298\uc740 \ub0a0\uc528\uac00 \ub9e4\uc6b0 \uc88b\uc544\uc11c " * 6,
        49,
        193,
    ),
    "emoji": ("\U0001f9d1\u200d\U0001f680\U0001f389" * 30, 210, 330),
}
"""Text, and the fewest and the most tokens that six real tokenizers make of it."""


@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_is_on_the_high_side_for_every_kind_of_text(kind: str) -> None:
    """At least what the hungriest tokenizer makes of it, at most a small multiple of it."""
    text, _, most = KINDS[kind]
    assert most <= of_text(text) <= 2 * most


def test_random_letters_are_not_taken_for_words() -> None:
    """Of what is no prose a token holds less than two characters."""
    text = "".join(chance.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(1000))
    assert 600 <= of_text(text) <= 800


def test_no_character_is_free() -> None:
    for code in (*range(0x80), 0xA0, 0xFF, 0x7FF, 0x800, 0xD800, 0xFFFD, 0x10000, 0x10FFFF):
        assert of_text(chr(code) * 50) > 0


def test_an_emoji_and_any_other_character_weighs_at_most_its_bytes_and_a_bit() -> None:
    for code in range(0x80, 0x11000, 7):
        assert of_text(chr(code) * 10) <= 20 * len(chr(code).encode("utf-8", "surrogatepass"))


# What counts


@pytest.mark.parametrize(
    "message",
    [
        UserMessage("0123456789"),
        SystemMessage("0123456789"),
        ToolMessage("0123456789"),
        ToolMessage(tool_call_id="0123456789"),
        ToolMessage(tool_name="0123456789"),
        AssistantMessage("0123456789"),
        AssistantMessage(thinking=(Thinking("0123456789"),)),
        AssistantMessage(thinking=(Thinking(signature="0123456789"),)),
        AssistantMessage(thinking=(Thinking("01234", signature="56789"),)),
        AssistantMessage(thinking=(Thinking(redacted="0123456789"),)),
        AssistantMessage(native=Native("p", (Raw(b"01234"), Raw(b"56789")))),
    ],
)
def test_all_text_of_a_message_counts(message: Message) -> None:
    assert estimate(message) == 4 + 12


def test_a_call_counts_with_its_framing() -> None:
    for call in (
        ToolCall.of("0123456789", "", ""),
        ToolCall.of("", "0123456789", ""),
        ToolCall.of("", "", "0123456789"),
        ToolCall.of("", "", "", "0123456789"),
    ):
        assert estimate(AssistantMessage(tool_calls=(call,))) == 4 + 4 + 12


def test_of_native_and_the_rest_the_larger_counts() -> None:
    """Who made it gets the one, everybody else the other."""
    items = (Raw(b"0123456789"),)
    assert estimate(AssistantMessage("01234", native=Native("p", items))) == 4 + 12
    assert estimate(AssistantMessage("0123456789" * 2, native=Native("p", items))) == 4 + 24


def test_media_and_framing_count_by_the_piece() -> None:
    assert estimate() == 0
    assert estimate(UserMessage("", parts=(Part.image(b"x" * 10**6, "image/png"),))) == 4 + 1000
    assert estimate(UserMessage(), UserMessage()) == 8
    part = Part.image_url("https://a.example/")
    assert estimate(UserMessage(parts=(part, part)), per_message=3, per_part=7) == 17


def test_tools_count_by_their_repr() -> None:
    assert estimate(tools=["0123456789"]) == estimate(UserMessage("'0123456789'"), per_message=0)


def test_a_ratio_may_be_given_instead() -> None:
    """For a tokenizer and a kind of text that somebody has measured."""
    assert estimate(UserMessage("\u00e9\u00e9\u00e9"), bytes_per_token=3) == 4 + 2
    assert estimate(UserMessage("abcd"), bytes_per_token=0.5, per_message=0) == 8
    assert estimate(UserMessage("abcd"), bytes_per_token=3.0, per_message=0) == 2


def test_the_estimate_survives_text_that_utf8_cannot_carry() -> None:
    odd = "\ud800"
    message = AssistantMessage(
        odd, tool_calls=(ToolCall(odd, odd, Raw(b"{}")),), thinking=(Thinking(odd),)
    )
    assert estimate(message) == 4 + 4 + 4 * 3 + 3


@given(ANY_HISTORY, ANY_HISTORY)
def test_the_estimate_grows_with_the_history(one: list[Message], other: list[Message]) -> None:
    """What bisection relies on."""
    assert estimate(*one) <= estimate(*one, *other) <= estimate(*one) + estimate(*other)
    assert estimate(*other) <= estimate(*one, *other)


@pytest.mark.parametrize("ratio", [0, -1, float("nan"), float("inf"), True, "3"])
def test_an_estimate_needs_a_sensible_ratio(ratio: Any) -> None:
    with pytest.raises(ValueError, match="bytes_per_token must be positive"):
        EstimatedTokens(bytes_per_token=ratio)


@pytest.mark.parametrize("count", [-1, 2.5, float("nan"), True, None, "4"])
def test_an_estimate_needs_sensible_counts(count: Any) -> None:
    with pytest.raises(ValueError, match="per_message must be"):
        EstimatedTokens(per_message=count)
    with pytest.raises(ValueError, match="per_part must be"):
        EstimatedTokens(per_part=count)


def test_the_estimate_is_a_counter() -> None:
    fit = budget_history(EstimatedTokens(), 5)
    assert now(fit([UserMessage("u"), AssistantMessage("a")])) == [AssistantMessage("a")]  # type: ignore[arg-type]


# The table, so that a change of it is meant


@pytest.mark.parametrize(
    ("characters", "weight"),
    [
        ("adehilnorstu", 13),
        ("bcfgmpwy", 40),
        ("jkqvxz", 70),
        ("AZ", 45),
        ("09", 60),
        ("!~", 63),
        (" ", 3),
        ("\x00\x1f\x7f", 68),
        ("\u0080\u01ff", 100),  # first bytes C2 to C7
        ("\u0200\u07ff", 70),  # C8 to DF
        ("\u0800\uffff", 150),  # E0 to EF
        ("\U00010000\U0010ffff", 200),  # from F0 on
    ],
)
def test_each_kind_of_character_has_its_weight(characters: str, weight: int) -> None:
    for character in characters:
        assert of_text(character * 50) == weight


def test_media_may_count_for_nothing() -> None:
    assert estimate(UserMessage("", parts=(Part("image"),)), per_part=0, per_message=0) == 0
