"""`golem.check_history`: what a report says is what becomes of the history, at every adapter.

The laws compare the report with the request itself: what is said to be left out can be taken out
of the history without changing a byte, and nothing else can.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from golem import (
    AssistantMessage,
    FallbackModel,
    Finding,
    HistoryCheck,
    HistoryError,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UnsupportedContentError,
    UserMessage,
    check_history,
    repair,
)
from golem.model import Request
from golem.testing import ScriptedModel
from golem.testing.strategies import ANY_HISTORY, HOSTILE_HISTORY
from golem.wire.http import HTTPModel
from golem_adapters import Anthropic, AzureOpenAI, Bedrock, Gemini, OpenAI, OpenAIResponses
from tests.adapters import conversing, generating, messaging
from tests.adapters.responding import response as responses_answer

AT = {"api_key": "k", "base_url": "http://localhost:1"}
MODELS: dict[str, Any] = {
    "openai": OpenAI("m", **AT),
    "azure": AzureOpenAI("m", **AT),
    "responses": OpenAIResponses("m", **AT),
    "anthropic": Anthropic("m", **AT),
    "gemini": Gemini("gemini-3-flash", **AT),
    "gemini-2.5": Gemini("gemini-2.5-flash", **AT),
    "vertex": Gemini("gemini-3", dialect="vertex", project="p", **AT),
    "bedrock-claude": Bedrock("anthropic.claude-3", region="us-east-1", **AT),
    "bedrock-writer": Bedrock("writer.palmyra", region="us-east-1", **AT),
    "bedrock-nova": Bedrock("amazon.nova-pro", region="us-east-1", **AT),
    **{
        name: OpenAI("m", dialect=name, **AT)
        for name in ("mistral", "deepseek", "groq", "openrouter", "vllm", "gemini-compat")
    },
}
every = pytest.mark.parametrize("name", MODELS)
PNG = Part.image(b"x", "image/png")


def request_of(model: Any, history: Sequence[Message]) -> bytes:
    """What `model` would send for a history."""
    body: bytes = model._wire.encode(Request(list(repair(history))), stream=False).body
    return body


def told(model: Any, history: Sequence[Message]) -> list[tuple[str, int, str]]:
    """What the report finds, as kind, place and member."""
    report = check_history(history, model)
    return [(found.kind, found.message_index, found.member) for found in report.findings]


# --- laws

PROVIDERS = st.sampled_from(
    [
        *("openai", "openai-responses", "anthropic", "gemini", "bedrock-claude", "mistral"),
        *("deepseek", "openrouter", "gemini-compat", "x", ""),
    ]
)
THOUGHTS = st.lists(
    st.builds(
        Thinking,
        text=st.sampled_from(["", "hm", " "]),
        signature=st.sampled_from(["", "c2ln", "sig!"]),
        provider=PROVIDERS,
        id=st.sampled_from(["", "rs_1"]),
    ).filter(lambda block: bool(block.text or block.signature))
    | st.builds(Thinking, redacted=st.just("c2ln"), provider=PROVIDERS),
    max_size=2,
).map(tuple)
CALLS = st.lists(
    st.builds(
        ToolCall.of,
        st.sampled_from(["", "a", "a", "call_1", "a b", "x" * 80]),
        st.sampled_from(["f", "get weather", "9"]),
        st.sampled_from(["{}", '{"a":1e999}', '{"a":"\\ud800"}', '{"a":', "", "5"]),
        st.sampled_from(["", "c2ln", "sig!"]),
    ),
    max_size=2,
).map(tuple)
MEDIA = st.lists(
    st.sampled_from(
        [
            PNG,
            Part.image_url("https://e/x.png"),
            Part.document(b"x", "application/pdf"),
            Part.document(b"x", "application/x-odd"),
            Part.audio(b"x", "audio/wav"),
            Part.video(b"x", "video/mp4"),
            Part("hologram", data=b"x", media_type="x/y"),
        ]
    ),
    max_size=2,
).map(tuple)
RESPONSES_REASONING = {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "e"}


def responses_message(*output: dict[str, Any]) -> AssistantMessage:
    model = MODELS["responses"]
    body = json.dumps(responses_answer(output)).encode()
    message: AssistantMessage = model._wire.decode(Request(()), {}, body).message
    return message


def chat_message(dialect: str, **members: Any) -> AssistantMessage:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **members}}
    body = json.dumps({"choices": [choice]}).encode()
    message: AssistantMessage = MODELS[dialect]._wire.decode(Request(()), {}, body).message
    return message


CLAUDE_THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
BEDROCK_THOUGHT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}
DETAIL = {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "format": "x", "index": 0}
OWN = [
    generating.answered([generating.text("so", "c2ln"), generating.call("f", "c2ln")]),
    generating.answered([generating.thought("hm", "c2ln"), generating.text("so")]),
    generating.answered([{"toolCall": {"x": 1}}, {"toolResponse": {}}, generating.text("so")]),
    messaging.answered([CLAUDE_THOUGHT, {"type": "text", "text": "so"}]),
    messaging.answered([{"type": "text", "text": "so"}, CLAUDE_THOUGHT]),
    messaging.answered([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
    messaging.answered(
        [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
         {"type": "text", "text": "b"}]
    ),
    conversing.answered([{"text": "so"}, BEDROCK_THOUGHT]),
    conversing.answered([BEDROCK_THOUGHT, {"text": "a"}, {"text": "b"}]),
    responses_message(RESPONSES_REASONING, {"type": "message", "id": "msg_1", "role": "assistant",
                                            "content": [{"type": "output_text", "text": "so"}]}),
    responses_message(RESPONSES_REASONING),
    chat_message("openrouter", content="so", reasoning="hm", reasoning_details=[DETAIL]),
    chat_message("deepseek", content="so", reasoning_content="hm"),
    chat_message("mistral", content=[{"type": "thinking", "thinking": [{"type": "text",
                                                                        "text": "hm"}]}]),
]  # fmt: skip
"""Answers as each provider gives them, with what has to go back in its place."""

FOREIGN = st.builds(Native, PROVIDERS, st.sampled_from([(), (Raw(b'{"type":"x"}'),), (Raw(b"5"),)]))
TURNS: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        AssistantMessage,
        st.sampled_from(["", " ", "so"]),
        thinking=THOUGHTS,
        tool_calls=CALLS,
        parts=MEDIA,
        native=st.none() | FOREIGN,
    ),
    st.sampled_from(OWN),
    st.sampled_from(OWN).map(lambda message: replace(message, content=message.content + "!")),
    st.builds(
        ToolMessage,
        st.sampled_from(["", "ok"]),
        tool_call_id=st.sampled_from(["", "a", "call_1"]),
        parts=MEDIA,
        failed=st.booleans(),
    ),
    st.builds(UserMessage, st.sampled_from(["", "q"]), parts=MEDIA),
    st.builds(SystemMessage, st.sampled_from(["", "s"])),
)
ODD_HISTORY = st.lists(TURNS, max_size=5)


@every
@given(history=ODD_HISTORY | ANY_HISTORY | HOSTILE_HISTORY)
@settings(max_examples=30)
def test_what_is_refused_and_nothing_else_raises(name: str, history: list[Message]) -> None:
    refused = check_history(history, MODELS[name]).of("refused")
    if not refused:
        request_of(MODELS[name], history)
        return
    with pytest.raises(UnsupportedContentError) as caught:
        request_of(MODELS[name], history)
    repaired = list(repair(history))
    places = {
        f"messages[{repaired.index(history[found.message_index])}].{found.member}: {found.why}"
        for found in refused
    }
    assert str(caught.value) in places


def without(message: AssistantMessage, member: str) -> AssistantMessage:
    """The message without what a report names."""
    if member == "native":
        return replace(message, native=None)
    kind, _, rest = member.partition("[")
    number = int(rest.partition("]")[0])
    if kind == "thinking":
        blocks = message.thinking
        return replace(message, thinking=blocks[:number] + blocks[number + 1 :])
    calls = list(message.tool_calls)
    calls[number] = replace(calls[number], signature="")
    return replace(message, tool_calls=tuple(calls))


def goes_native(message: Message, at: int, dropped: set[tuple[int, str]]) -> bool:
    """Whether native items of a message go out."""
    has = isinstance(message, AssistantMessage) and message.native is not None
    return has and (at, "native") not in dropped


def less(history: list[Message], places: set[tuple[int, str]]) -> list[Message]:
    """The history without what reports name; of each message the last first."""
    found = list(history)
    for at, member in sorted(places, reverse=True):
        message = found[at]
        assert isinstance(message, AssistantMessage)
        found[at] = without(message, member)
    return found


def droppable(message: Message) -> list[str]:
    """What of a message may be left out by somebody."""
    if not isinstance(message, AssistantMessage):
        return []
    found = [f"thinking[{number}]" for number in range(len(message.thinking))]
    found += ["native"] if message.native else []
    calls = enumerate(message.tool_calls)
    return found + [f"toolCalls[{number}].signature" for number, call in calls if call.signature]


@every
@given(history=ODD_HISTORY, data=st.data())
@settings(max_examples=60)
def test_what_is_dropped_can_be_taken_out_and_nothing_else(
    name: str, history: list[Message], data: st.DataObject
) -> None:
    """Of thinking, native items and signatures; the request says whether a byte changes.

    Instructions stand at the beginning, as in a run's requests: whether others lead depends on what
    stands before them, dropped or not.
    """
    model = MODELS[name]
    begins = next((at for at, m in enumerate(history) if not isinstance(m, SystemMessage)), 0)
    later = [message for message in history[begins:] if not isinstance(message, SystemMessage)]
    history = history[:begins] + later
    pieces = [(at, member) for at, message in enumerate(history) for member in droppable(message)]
    assume(pieces)
    report = check_history(history, model)
    assume(not report.of("refused"))
    dropped = {(found.message_index, found.member) for found in report.of("dropped")}
    sent = request_of(model, history)
    # What stands beside native items that go out is what they are known to fit by.
    loose = {(i, m) for i, m in dropped & set(pieces) if not goes_native(history[i], i, dropped)}
    assert request_of(model, less(history, loose)) == sent
    at, member = data.draw(st.sampled_from(pieces))
    message = history[at]
    assert isinstance(message, AssistantMessage)
    if (at, member) not in dropped and message.native is None:  # which may say it once more
        assert request_of(model, less(history, {(at, member)})) != sent


@every
@given(history=ODD_HISTORY | HOSTILE_HISTORY)
@settings(max_examples=30)
def test_ids_and_names_are_as_the_report_says(name: str, history: list[Message]) -> None:
    model = MODELS[name]
    report = check_history(history, model)
    assume(not report.of("refused"))
    renamed = {(found.message_index, found.member): found.why for found in report.of("renamed")}
    body = msgspec.json.decode(request_of(model, history))
    words = set(strings(body))
    for at, message in enumerate(history):
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        for number, call in enumerate(calls):
            for member, stored in (("id", call.id), ("name", call.name)):
                why = renamed.get((at, f"toolCalls[{number}].{member}"))
                now = why.split("'")[1] if why else stored
                assert now in words or (member == "id" and not why)  # Gemini's own go without


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for item in value.values() for word in strings(item)]
    if isinstance(value, list):
        return [word for item in value for word in strings(item)]
    return [value] if isinstance(value, str) else []


@every
@given(history=ODD_HISTORY)
@settings(max_examples=20)
def test_looking_changes_nothing_and_a_report_is_json(name: str, history: list[Message]) -> None:
    model = MODELS[name]
    report = check_history(history, model)
    assert check_history(history, model) == report
    assert msgspec.json.decode(msgspec.json.encode(report), type=HistoryCheck) == report
    assert [found.message_index for found in report.findings] == sorted(
        found.message_index for found in report.findings
    )
    assert all(found.why and found.what and str(found) for found in report.findings)


# --- a foreign history at each of them

GEMINI_TURN = AssistantMessage(
    "Let me see.",
    thinking=(Thinking("hm", signature="c2ln", provider="gemini"),),
    tool_calls=(ToolCall.of("id with blanks", "get weather", "{", "c2ln"),),
    native=Native("gemini", (Raw(b'{"text":"x"}'),)),
)
FOREIGN_HISTORY: list[Message] = [
    UserMessage("Weather?"),
    GEMINI_TURN,
    ToolMessage("gone", tool_call_id="id with blanks", parts=(PNG,), failed=True),
    SystemMessage("Be brief."),
    UserMessage("So?", parts=(Part.video(b"x", "video/mp4"),)),
]
EVERYWHERE = [
    ("renamed", 1, "toolCalls[0].name"),
    ("flattened", 1, "toolCalls[0].args"),
    ("dropped", 1, "native"),
]
LEFT = [("dropped", 1, "thinking[0]"), ("dropped", 1, "toolCalls[0].signature")]
ELSEWHERE = [*EVERYWHERE, *LEFT, ("renamed", 1, "toolCalls[0].id")]
IN_TEXT = [("flattened", 2, "failed")]
BEHIND = [("flattened", 2, "parts[0]")]
AS_USER = [("flattened", 3, "content")]
NO_VIDEO = [("refused", 4, "parts[0]")]
FOUND = {
    "openai": [*ELSEWHERE, *IN_TEXT, *BEHIND, *NO_VIDEO],
    "azure": [*ELSEWHERE, *IN_TEXT, *BEHIND, *NO_VIDEO],
    "responses": [*ELSEWHERE, *IN_TEXT, *NO_VIDEO],
    "anthropic": [*ELSEWHERE, *BEHIND, *AS_USER, *NO_VIDEO],
    "gemini": [*EVERYWHERE, ("renamed", 1, "toolCalls[0].id"), *AS_USER],
    "bedrock-nova": [*ELSEWHERE, *AS_USER],
}


@pytest.mark.parametrize("name", FOUND)
def test_a_foreign_history_at_every_adapter(name: str) -> None:
    assert sorted(told(MODELS[name], FOREIGN_HISTORY)) == sorted(FOUND[name])


def test_a_history_that_goes_out_as_it_is_has_an_empty_report() -> None:
    call = ToolCall.of("call_1", "look", '{"at":"Rome"}')
    history = [
        SystemMessage("Be brief."),
        UserMessage("Look.", parts=(PNG,)),
        AssistantMessage("So.", tool_calls=(call,)),
        ToolMessage("nothing", tool_call_id="call_1", tool_name="look"),
        AssistantMessage("Nothing there."),
    ]
    reports = {name: check_history(history, model) for name, model in MODELS.items()}
    mistral = reports.pop("mistral")
    assert [found.member for found in mistral.findings] == ["toolCalls[0].id"]
    assert set(reports.values()) == {HistoryCheck()}
    assert not any(reports.values())


# --- the report


def test_places_are_those_of_the_history_as_it_was_given() -> None:
    """Repair drops and moves: the report points at what its reader has."""
    lost = ToolMessage("late", tool_call_id="nobody's")
    call = ToolCall.of("c 1", "f", "{}")
    history = [lost, UserMessage("q"), AssistantMessage(tool_calls=(call,)), UserMessage("n"),
               ToolMessage("found", tool_call_id="c 1", failed=True)]  # fmt: skip
    report = check_history(history, MODELS["openrouter"])
    assert [(found.message_index, found.member) for found in report.findings] == [
        (2, "toolCalls[0].id"),
        (4, "failed"),
    ]


def test_a_finding_says_what_and_why_and_nothing_of_the_content() -> None:
    secret = Part.video_url("https://e/x?token=secret")
    report = check_history([UserMessage("secret", parts=(secret,))], MODELS["openai"])
    (found,) = report.findings
    assert found == Finding(
        "refused", 0, "parts[0]", "video part",
        "video part cannot be sent in Chat Completions (openai)",
    )  # fmt: skip
    assert str(found) == (
        "messages[0].parts[0]: refused: video part: video part cannot be sent in Chat"
        " Completions (openai)"
    )
    encoded = msgspec.json.encode(report)
    assert b'"messageIndex":0' in encoded
    assert b"secret" not in encoded


@pytest.mark.parametrize("name", ["gemini", "anthropic", "bedrock-nova", "openai", "responses"])
def test_a_message_of_nothing_but_what_is_refused_is_refused_and_nothing_else(name: str) -> None:
    odd = (Part("hologram", data=b"x", media_type="x/y"),)
    history = [UserMessage("", parts=odd), AssistantMessage("", parts=odd)]
    found = told(MODELS[name], history)
    assert found == [("refused", 0, "parts[0]"), ("refused", 1, "parts[0]")]


def test_every_member_of_a_fallback_is_asked_by_name() -> None:
    model = FallbackModel([MODELS["openai"], MODELS["gemini"]])
    history = [UserMessage("q", parts=(Part.video(b"x", "video/mp4"),))]
    report = check_history(history, model)
    assert [(found.kind, found.model) for found in report.findings] == [("refused", "OpenAI('m')")]
    assert not check_history([UserMessage("q")], model)
    nested = FallbackModel([ScriptedModel(["x"]), model])
    report = check_history(history, nested)
    assert (report.unknown, len(report.findings)) == (("ScriptedModel",), 1)


def test_a_model_whose_adapter_does_not_say_is_unknown() -> None:
    report = check_history([UserMessage("q")], ScriptedModel(["x"]))
    assert report == HistoryCheck(unknown=("ScriptedModel",))
    assert report
    assert report.findings == ()


class Silent(ScriptedModel):
    def check(self, messages: Sequence[Message]) -> Any:
        return None  # somebody else's method of this name


class Telling(ScriptedModel):
    def check(self, messages: Sequence[Message]) -> HistoryCheck:
        return HistoryCheck((Finding("dropped", len(messages) - 1, "", "all", "why not"),))


def test_any_model_may_say_what_it_does() -> None:
    lost = ToolMessage("late", tool_call_id="nobody's")
    report = check_history([lost, UserMessage("q")], Telling([]))
    assert [found.message_index for found in report.findings] == [1]
    assert check_history([UserMessage("q")], Silent([])).unknown == ("Silent",)


def test_a_dialect_that_takes_no_notes_is_unknown() -> None:
    class Mute(HTTPModel):
        pass

    class Dialect:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(name)

    model = Mute(Dialect())  # type: ignore[arg-type]
    assert check_history([UserMessage("q")], model) == HistoryCheck(unknown=("Mute",))


def test_a_setting_that_the_api_refuses_is_no_finding() -> None:
    model = Gemini("gemini-3", parallel_tool_calls=False, **AT)
    with pytest.raises(UnsupportedContentError, match="parallel_tool_calls"):
        check_history([UserMessage("q")], model)


def test_a_string_names_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    history = [UserMessage("q", parts=(Part.video(b"x", "video/mp4"),))]
    assert check_history(history, "openai:gpt-5").of("refused")
    with pytest.raises(ValueError, match="no model 'nobody:x'"):
        check_history(history, "nobody:x")
    with pytest.raises(TypeError, match="is no model"):
        check_history(history, 5)  # type: ignore[arg-type]


def test_what_is_no_history_is_refused() -> None:
    with pytest.raises(HistoryError, match=r"history\[0\]"):
        check_history(["q"], MODELS["openai"])  # type: ignore[list-item]
