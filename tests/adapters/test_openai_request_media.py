"""What else a message holds on its way to Chat Completions: media, and reasoning that goes back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from golem.errors import UnsupportedContentError
from golem.messages import (
    AssistantMessage,
    Native,
    Part,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tests.adapters.encoding import wire


def turn(*ids: str, name: str = "f", **members: Any) -> AssistantMessage:
    calls = tuple(ToolCall.of(stored, name, "{}") for stored in ids)
    return AssistantMessage(tool_calls=calls, **members)


def result(id: str, content: str = "r", **members: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id=id, tool_name="f", **members)


# --- media

PNG = Part.image(b"\x01\x02", "image/png")
PNG_WIRE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQI="}}


def test_media_of_a_user_stand_after_the_text() -> None:
    parts = (
        PNG,
        Part.image_url("https://e/x.png"),
        Part.audio(b"\x01", "audio/mpeg"),
        Part.audio(b"\x01", "audio/x-wav; rate=1"),
    )
    assert wire([UserMessage("look", parts=parts)])[0]["content"] == [
        {"type": "text", "text": "look"},
        PNG_WIRE,
        {"type": "image_url", "image_url": {"url": "https://e/x.png"}},
        {"type": "input_audio", "input_audio": {"data": "AQ==", "format": "mp3"}},
        {"type": "input_audio", "input_audio": {"data": "AQ==", "format": "wav"}},
    ]
    assert wire([UserMessage("", parts=(PNG,))])[0]["content"] == [PNG_WIRE]


def test_a_document_is_a_file_with_a_name_that_never_changes() -> None:
    part = Part.document(b"%PDF", "application/pdf")
    (file,) = wire([UserMessage("", parts=(part,))])[0]["content"]
    assert file["type"] == "file"
    assert file["file"]["file_data"] == "data:application/pdf;base64,JVBERg=="
    assert file["file"]["filename"].endswith(".pdf")
    assert [file] == wire([UserMessage("", parts=(part,))])[0]["content"]


def test_mistral_gets_documents_as_addresses() -> None:
    linked, inline = Part.document_url("https://h/a.pdf"), Part.document(b"%PDF", "application/pdf")
    (message,) = wire([UserMessage("read", parts=(linked, inline))], dialect="mistral")
    assert message["content"][1:] == [
        {"type": "document_url", "document_url": "https://h/a.pdf"},
        {"type": "document_url", "document_url": "data:application/pdf;base64,JVBERg=="},
    ]


def test_media_in_results_follow_the_whole_batch_as_a_user_message() -> None:
    history = [
        turn("a", "b"),
        result("a", "", parts=(PNG,)),
        result("b", "text"),
        AssistantMessage("ok"),
    ]
    sent = wire(history)
    assert [m["role"] for m in sent] == ["assistant", "tool", "tool", "user", "assistant"]
    assert [m["content"] for m in sent[1:3]] == ["", "text"]
    assert sent[3]["content"] == [
        {"type": "text", "text": "Attached to the result of f (a):"},
        PNG_WIRE,
    ]


def test_media_that_a_model_made_follow_its_turn() -> None:
    sent = wire([UserMessage("draw"), AssistantMessage("here", parts=(PNG,)), UserMessage("nice")])
    assert [m["role"] for m in sent] == ["user", "assistant", "user", "user"]
    assert PNG_WIRE in sent[2]["content"]


def test_a_spoken_answer_goes_back_as_its_transcript() -> None:
    spoken = AssistantMessage("hello", parts=(Part.audio(b"\0", "audio/pcm"),))
    assert wire([spoken]) == [{"role": "assistant", "content": "hello"}]


@pytest.mark.parametrize(
    ("part", "dialect"),
    [
        (Part.audio_url("https://e/x.mp3"), "openai"),
        (Part.audio(b"x", "audio/ogg"), "openai"),
        (Part.document_url("https://e/x.pdf"), "openai"),
        (Part.document(b"x", "application/pdf"), "groq"),
        (Part.video(b"x", "video/mp4"), "openai"),
        (Part("hologram", url="https://e/x"), "openai"),
        (Part("image"), "openai"),
    ],
)
def test_what_cannot_be_carried_is_refused_by_place(part: Part, dialect: str) -> None:
    history = [UserMessage("a"), UserMessage("b", parts=(PNG, part))]
    with pytest.raises(UnsupportedContentError, match=r"messages\[1\]\.parts\[1\]: "):
        wire(history, dialect=dialect)


@pytest.mark.parametrize(
    "part", [Part.document_url("https://e/x.pdf"), Part.video_url("https://e/x.mp4")]
)
def test_a_server_that_takes_more_gets_more(part: Part) -> None:
    assert part.url in json.dumps(wire([UserMessage("", parts=(part,))], dialect="openrouter"))


# --- reasoning goes back to who made it


def reasoned(provider: str, **members: Any) -> AssistantMessage:
    return AssistantMessage("a", thinking=(Thinking("hm", provider=provider),), **members)


@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        ("deepseek", "reasoning_content"),
        ("zai", "reasoning_content"),
        ("moonshot", "reasoning_content"),
        ("groq", "reasoning"),
        ("openrouter", "reasoning"),
    ],
)
def test_reasoning_of_a_turn_with_calls_goes_back(dialect: str, name: str) -> None:
    call = ToolCall.of("c", "f", "{}")
    sent = wire([reasoned(dialect, tool_calls=(call,)), result("c")], dialect=dialect)
    assert sent[0][name] == "hm"
    foreign = wire([reasoned("other", tool_calls=(call,)), result("c")], dialect=dialect)
    assert not foreign[0].get(name)


def test_deepseek_gets_the_member_on_every_turn_with_calls_and_on_no_other() -> None:
    sent = wire([turn("c"), result("c"), reasoned("deepseek")], dialect="deepseek")
    assert sent[0]["reasoning_content"] == ""
    assert "reasoning_content" not in sent[2]


def test_openai_takes_no_reasoning_back() -> None:
    assert wire([reasoned("openai")]) == [{"role": "assistant", "content": "a"}]


def test_mistral_gets_its_thinking_as_chunks() -> None:
    assert wire([reasoned("mistral")], dialect="mistral")[0]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "a"},
    ]


def test_google_gets_its_signatures_back_and_nobody_else_does() -> None:
    message = AssistantMessage(
        tool_calls=(ToolCall.of("c", "f", "{}", "sig"),),
        thinking=(Thinking(signature="proof", provider="gemini-compat"),),
    )
    sent = wire([message, result("c")], dialect="gemini-compat")[0]
    assert sent["extra_content"]["google"]["thought_signature"] == "proof"
    assert sent["tool_calls"][0]["extra_content"]["google"]["thought_signature"] == "sig"
    assert "extra_content" not in json.dumps(wire([message, result("c")]))


DETAILS = (
    Raw(b'{"index":0,"signature":"s","text":"hm","type":"reasoning.text"}'),
    Raw(b'{"data":"AA","index":1,"type":"reasoning.encrypted"}'),
)


def test_reasoning_details_go_back_unmodified_while_the_thinking_is_theirs() -> None:
    message = AssistantMessage(
        "a",
        thinking=(
            Thinking("hm", signature="s", provider="openrouter"),
            Thinking(redacted="AA", provider="openrouter"),
        ),
        native=Native("openrouter", DETAILS),
    )
    sent = wire([message], dialect="openrouter")[0]
    assert sent["reasoning_details"] == [json.loads(bytes(item)) for item in DETAILS]
    assert "reasoning" not in sent
    edited = msgspec.structs.replace(message, thinking=(Thinking("else", provider="openrouter"),))
    assert wire([edited], dialect="openrouter")[0] == {
        "role": "assistant",
        "content": "a",
        "reasoning": "else",
    }
    assert "reasoning_details" not in wire([message])[0]


@pytest.mark.parametrize(
    ("signature", "thought", "goes"),
    [
        ("c2ln", Thinking("hm", provider="gemini-compat"), True),
        ("c2ln", Thinking("hm", provider="gemini"), True),
        ("c2ln", Thinking("hm", provider="anthropic"), False),
        ("enc|not-base64", Thinking("hm", provider="gemini-compat"), False),
    ],
)
def test_google_gets_no_signature_that_is_not_its_own(
    signature: str, thought: Thinking, goes: bool
) -> None:
    call = ToolCall.of("c", "f", "{}", signature)
    message = AssistantMessage(thinking=(thought,), tool_calls=(call,))
    assert goes == (signature in json.dumps(wire([message, result("c")], dialect="gemini-compat")))
