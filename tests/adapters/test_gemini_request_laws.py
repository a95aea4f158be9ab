"""Laws of the Gemini request encoder, over histories as hostile as they can be stored."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from golem.codec import dump_message, load_message
from golem.history import repair
from golem.messages import (
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
from golem_adapters.gemini.conversation import UNSIGNED
from tests.adapters.encoding import check
from tests.adapters.generating import answered, body_of, encode, wire
from tests.adapters.requesting import check_beginnings, check_sent_or_refused, edited
from tests.strategies import ARGS, HISTORIES, ODD_TEXT

LONG = "call_" + "a" * 90
IDS = st.sampled_from(
    ["", "", "a", "a", "b", "call_1", LONG + "1", LONG + "2", "f.g:0", "é", "a\n"]
)
NAMES = st.sampled_from(["", "f", "9f", "get weather", "a.b", "x" * 80, "\ud800", "f\n", "naïve"])
MEDIA = st.lists(
    st.sampled_from(
        [
            Part.image(b"x", "image/png"),
            Part.image_url("https://e/x.png"),
            Part.document(b"x", "application/pdf"),
            Part.document(b"x", "text/csv"),
            Part.audio(b"x", "audio/L16;rate=24000"),
            Part.video_url("gs://e/x"),
        ]
    ),
    max_size=2,
).map(tuple)
PROVIDERS = st.sampled_from(["gemini", "gemini", "openai-responses", ""])
SIGNATURES = st.sampled_from(["", "c2ln", "enc|x", "\ud800"])
THOUGHTS = st.lists(
    st.builds(Thinking, text=ODD_TEXT, signature=SIGNATURES, provider=PROVIDERS)
    | st.builds(Thinking, redacted=st.just("sealed"), provider=PROVIDERS),
    max_size=2,
).map(tuple)
CALLS = st.lists(st.builds(ToolCall.of, IDS, NAMES, ARGS, SIGNATURES), max_size=3).map(tuple)
MODELS = st.sampled_from(["gemini-2.5-flash", "gemini-3-pro-preview"])


# --- what the provider itself may have answered


INPUTS = st.sampled_from([{}, {"a": 1}, {"a": "\ud800"}, {"b": [1.50, None]}])
SIGNED = {"thoughtSignature": st.sampled_from(["c2ln", "", "odd|one"])}
PARTS = st.one_of(
    st.fixed_dictionaries({"text": ODD_TEXT}, optional=SIGNED),
    st.fixed_dictionaries({"text": ODD_TEXT, "thought": st.booleans()}, optional=SIGNED),
    st.fixed_dictionaries(
        {
            "functionCall": st.fixed_dictionaries(
                {"name": NAMES, "args": INPUTS}, optional={"id": IDS}
            )
        },
        optional=SIGNED,
    ),
    st.just({"inlineData": {"mimeType": "image/png", "data": "eA=="}}),
    st.fixed_dictionaries({"executableCode": st.just({"code": "1"})}, optional=SIGNED),
    st.just({"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB"}}),
    st.just({"toolResponse": {"id": "t", "toolType": "GOOGLE_SEARCH_WEB"}}),
    st.just({"thoughtSignature": "c2ln"}),
)
OWN = st.lists(PARTS, min_size=1, max_size=5).map(answered)


MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, ODD_TEXT),
    st.builds(UserMessage, ODD_TEXT, parts=MEDIA),
    st.builds(AssistantMessage, ODD_TEXT, tool_calls=CALLS, thinking=THOUGHTS, parts=MEDIA),
    OWN,
    OWN.map(edited),
    st.builds(
        ToolMessage, ODD_TEXT, tool_call_id=IDS, tool_name=NAMES, parts=MEDIA, failed=st.booleans()
    ),
    st.builds(ToolMessage, ODD_TEXT, tool_call_id=IDS),
)
HOSTILE = st.lists(MESSAGES, max_size=8)


def refusals(body: dict[str, Any], model: str = "gemini-3") -> list[str]:
    """What Gemini would refuse, beside the rules that came with the field reports."""
    found = check("gemini", body)
    if "no_blank_text" in found:
        # A signed part without a text goes back as it came.
        found.remove("no_blank_text")
    contents = body["contents"]
    if contents[-1]["role"] != "user":
        found.append("ends with the model")
    for place, content in enumerate(contents):
        parts = content["parts"]
        for part in parts:
            if not part.get("thoughtSignature") and not part.get("text", "x").strip():
                # What the model said between other things may be blank; nobody else may.
                found += [] if content["role"] == "model" and len(parts) > 1 else ["a blank text"]
            name = part.get("functionCall", part.get("functionResponse", {})).get("name", "f")
            if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", name):
                found.append("a name that does not begin with a letter")
        calls = [part for part in parts if "functionCall" in part]
        if calls and model >= "gemini-3" and not calls[0].get("thoughtSignature"):
            found.append("the first call has no signature")
        if any(part.get("thoughtSignature") == UNSIGNED for part in calls[1:]):
            found.append("a later call has the signature of a first one")
        results = [p["functionResponse"] for p in parts if "functionResponse" in p]
        asked = [p["functionCall"] for p in contents[place - 1]["parts"] if "functionCall" in p]
        named = [(r["name"], r.get("id")) for r in results]
        if results and named != [(c["name"], c.get("id")) for c in asked]:
            found.append("results in another order than calls, or of other names")
        if any(list(result["response"]) not in (["output"], ["error"]) for result in results):
            found.append("a result that is neither")
        if model < "gemini-3" and any("parts" in result for result in results):
            found.append("media in a result")
    return found


@given(HOSTILE, MODELS)
def test_any_repaired_history_makes_a_request_the_provider_takes(
    history: list[Message], model: str
) -> None:
    assert not refusals(body_of(history, model=model), model)


@given(HOSTILE)
def test_vertex_is_never_sent_what_only_ai_studio_knows(history: list[Message]) -> None:
    body = body_of(history, dialect="vertex")
    assert not refusals(body)
    kinds = {name for content in body["contents"] for part in content["parts"] for name in part}
    assert not kinds & {"toolCall", "toolResponse"}


@given(HISTORIES)
def test_any_stored_history_is_sent_or_refused_by_name(history: list[Message]) -> None:
    check_sent_or_refused(lambda told: refusals(body_of(told)), history)


@given(HOSTILE)
def test_a_history_that_was_not_repaired_is_answered_too(history: list[Message]) -> None:
    assert "pairing" not in check("gemini", body_of(history, repaired=False))


@given(HOSTILE)
def test_a_longer_conversation_begins_with_the_same_bytes(history: list[Message]) -> None:
    told = [m for m in history if not isinstance(m, SystemMessage) or m.content.strip()]
    repaired = [UserMessage("q"), *repair(told)]
    check_beginnings(encode, repaired, b"]}]}", asking=True)


@given(HOSTILE)
def test_equal_requests_are_equal_bytes(history: list[Message]) -> None:
    assert encode(history) == encode(history)
    assert list(body_of(history))[-1] == "contents"


@given(HOSTILE)
def test_call_and_result_have_the_same_id_and_every_id_is_used_once(history: list[Message]) -> None:
    sent = [part for content in wire(history) for part in content["parts"]]
    asked = [p["functionCall"].get("id") for p in sent if "functionCall" in p]
    answers = [p["functionResponse"].get("id") for p in sent if "functionResponse" in p]
    assert asked == answers
    named = [name for name in asked if name is not None]
    assert len(set(named)) == len(named)
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in named)


def clean(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@given(HOSTILE)
def test_every_text_is_sent(history: list[Message]) -> None:
    body = body_of(history)
    sent = json.dumps([body.get("systemInstruction", {}), body["contents"]])
    parts = [part for content in body["contents"] for part in content["parts"]]
    told = "".join(part.get("text", "") for part in parts if not part.get("thought"))
    for message in repair(history):
        words = clean(message.content)
        if isinstance(message, AssistantMessage):  # whose text may stand in several parts
            assert not words.strip() or "".join(words.split()) in "".join(told.split())
        else:
            assert not words.strip() or json.dumps(words)[1:-1] in sent


@given(OWN)
def test_what_the_provider_answered_can_be_stored(message: AssistantMessage) -> None:
    assert message == load_message(dump_message(message))


@given(st.lists(PARTS, min_size=1, max_size=5))
def test_every_signature_goes_back_in_its_own_part(parts: list[dict[str, Any]]) -> None:
    signed = [part for part in parts if part.get("thoughtSignature")]
    contents = wire([UserMessage("q"), answered(parts)], model="gemini-2.5-flash")
    sent = [part for c in contents if c["role"] == "model" for part in c["parts"]]
    back = [part for part in sent if part.get("thoughtSignature")]
    assert [essence(part) for part in signed if not repeats(part, parts)] == [
        essence(part) for part in back
    ]


def essence(part: dict[str, Any]) -> Any:
    """A part without what may differ on its way back: a call's id and the name it goes by."""
    if "functionCall" in part:
        return "call", json.dumps(part["functionCall"]["args"]).replace("\\ud800", "\\ufffd")
    rest = {k: v for k, v in part.items() if v or k == "text"}
    return {k: clean(v) if isinstance(v, str) else v for k, v in rest.items()}


def repeats(part: dict[str, Any], parts: list[dict[str, Any]]) -> bool:
    """Whether a call came before under the same id, so that it counts once."""
    call = part.get("functionCall")
    if not call or not call.get("id"):
        return False
    at = next(i for i, p in enumerate(parts) if p is part)
    return any(p.get("functionCall") == call for p in parts[:at])


@pytest.mark.parametrize(
    "raw", [b"1", b'{"text"', b"[" * 2000, b'"x', b"{}", b'{"functionCall":1}']
)
def test_native_parts_that_are_no_parts_are_left_alone(raw: bytes) -> None:
    message = AssistantMessage("a", native=Native("gemini", (Raw(raw),)))
    assert wire([UserMessage("q"), message])[1]["parts"] == [{"text": "a"}]
