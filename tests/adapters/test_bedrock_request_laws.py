"""Laws of the Converse request encoder, over histories as hostile as they can be stored."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw, structs

from golem.errors import UnsupportedContentError
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
from golem.model import Settings, ToolSpec
from golem_adapters.bedrock.dialect import ConverseDialect
from tests.adapters.conversing import CLAUDE, MODELS, NOVA, answered, body_of, encode, family, wire
from tests.adapters.encoding import check
from tests.adapters.requesting import edited
from tests.strategies import ARGS, HISTORIES, ODD_TEXT

LONG = "tooluse_" + "a" * 90
IDS = st.sampled_from(["", "", "a", "a", "b", "s_1", LONG + "1", LONG + "2", "f.g:0", "é", "a\n"])
NAMES = st.sampled_from(["", "f", "get weather", "a.b", "x" * 80, "\ud800", "f\n", "naïve"])
MEDIA = st.lists(
    st.sampled_from(
        [
            Part.image(b"x", "image/png"),
            Part.document(b"x", "application/pdf"),
            Part.document(b"x", "text/plain"),
        ]
    ),
    max_size=2,
).map(tuple)
PROVIDERS = st.sampled_from(["bedrock-claude", "bedrock-nova", "bedrock", "anthropic", ""])
THOUGHTS = st.lists(
    st.builds(
        Thinking,
        text=ODD_TEXT,
        signature=st.sampled_from(["", "foreign-sig", "\ud800"]),
        provider=PROVIDERS,
    )
    | st.builds(Thinking, redacted=st.just("sealed"), provider=PROVIDERS),
    max_size=2,
).map(tuple)
CALLS = st.lists(st.builds(ToolCall.of, IDS, NAMES, ARGS, ODD_TEXT), max_size=3).map(tuple)

INPUTS = st.sampled_from([{}, {"a": 1}, {"a": "\ud800"}, {"b": [1.50, None]}])
SERVER = {"name": "n", "input": {}, "type": "server_tool_use"}
BLOCKS = st.one_of(
    ODD_TEXT.map(lambda text: {"text": text}),
    ODD_TEXT.map(lambda t: {"citationsContent": {"content": [{"text": t}], "citations": []}}),
    ODD_TEXT.map(lambda t: {"reasoningContent": {"reasoningText": {"text": t, "signature": "s"}}}),
    ODD_TEXT.map(lambda t: {"reasoningContent": {"reasoningText": {"text": t}}}),
    st.just({"reasoningContent": {"redactedContent": "c2VhbGVk"}}),
    st.builds(
        lambda given, name, args: {"toolUse": {"toolUseId": given, "name": name, "input": args}},
        IDS,
        NAMES,
        INPUTS,
    ),
    st.sampled_from(["s_1", "s_2"]).map(lambda given: {"toolUse": {**SERVER, "toolUseId": given}}),
    st.sampled_from(["s_1", "s_2"]).map(
        lambda given: {"toolResult": {"toolUseId": given, "content": [{"json": {"a": 1}}]}}
    ),
)
OWN = st.builds(answered, st.lists(BLOCKS, max_size=5), st.sampled_from([CLAUDE, NOVA]))


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
WORD = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def paired(body: dict[str, Any]) -> dict[str, Any]:
    """`body` without what the service's own tools did, of which the given rules know nothing.

    A turn that was nothing else keeps its place: without it, the users beside it would meet.
    """
    messages: list[dict[str, Any]] = []
    for message in body["messages"]:
        content = message["content"]
        if message["role"] == "assistant":
            content = [block for block in content if not own(block)] or [{"text": "(searched)"}]
        messages.append({**message, "content": content})
    return {**body, "messages": messages}


def own(block: dict[str, Any]) -> bool:
    return "toolResult" in block or block.get("toolUse", {}).get("type") == "server_tool_use"


def refusals(body: dict[str, Any], model: str | ConverseDialect) -> list[str]:
    """What Bedrock would refuse, beside the rules that came with the field reports."""
    record = family(model)
    found: list[str] = []
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    if roles[0] != "user" or roles[-1] != "user":
        found.append("does not begin and end with the user")
    if any(one == two for one, two in pairwise(roles)):
        found.append("does not alternate")
    asked: list[str] = []
    names: list[str] = []
    seen: set[str] = set()
    for message in messages:
        content = message["content"]
        kinds = [next(iter(block)) for block in content]
        if not content or any(len(block) != 1 for block in content):
            found.append("an empty turn, or a block of two kinds")
        if "document" in kinds and "text" not in kinds:
            found.append("a document without a text")
        names += [block["document"]["name"] for block in content if "document" in block]
        if message["role"] == "assistant":
            if kinds[-1] == "reasoningContent":
                found.append("ends with thinking")
            if {"image", "document", "video"} & set(kinds):
                found.append("media of the assistant")
            asked = []
            for block in content:
                use = block.get("toolUse", {})
                if use.get("type") == "server_tool_use" or not use:
                    found += ["blank"] if not block.get("text", "x").strip() else []
                    continue
                asked.append(use["toolUseId"])
                if not WORD.fullmatch(use["toolUseId"]) or use["toolUseId"] in seen:
                    found.append("a call id that does not fit, or repeats")
                seen.add(use["toolUseId"])
                if not WORD.fullmatch(use["name"]) or not isinstance(use["input"], dict):
                    found.append("a call's name or input")
            continue
        results = [block["toolResult"] for block in content if "toolResult" in block]
        if kinds[: len(results)] != ["toolResult"] * len(results):
            found.append("results do not stand first")
        if sorted(asked) != sorted(result["toolUseId"] for result in results):
            found.append("calls and results do not fit")
        asked = []
        if results and not set(kinds[len(results) :]) <= record.beside_results:
            found.append("beside results")
        for result in results:
            inside = [next(iter(block)) for block in result["content"]]
            if not inside or not set(inside) <= {"text", *record.result_media}:
                found.append("content of a result")
            found += (
                ["blank"] if any(not b.get("text", "x").strip() for b in result["content"]) else []
            )
            found += ["status"] if "status" in result and not record.status else []
    if asked:
        found.append("calls without results")
    if len(set(names)) != len(names):
        found.append("document names repeat")
    used = any(not own(b) and "toolUse" in b for m in messages for b in m["content"])
    if used and not body.get("toolConfig", {}).get("tools"):
        found.append("no tools for a history with calls")
    if "system" in body and not record.system:
        found.append("system")
    return found


SEARCHED: list[Message] = [
    answered(
        [
            {"toolUse": {**SERVER, "toolUseId": "s_1"}},
            {"toolResult": {"toolUseId": "s_1", "content": [{"json": {"a": 1}}]}},
        ],
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    )
]
"""A turn in which the service's own tool did everything."""


@pytest.mark.parametrize("model", MODELS)
@example(history=SEARCHED, tools=())
@given(history=HOSTILE, tools=st.sampled_from([(), (ToolSpec("f", "", {}),)]))
def test_any_repaired_history_makes_a_request_the_provider_takes(
    model: str, history: list[Message], tools: tuple[ToolSpec, ...]
) -> None:
    body = body_of(history, model=model, tools=tools)
    assert not refusals(body, model)
    assert not check("bedrock", paired(body))


@pytest.mark.parametrize("model", MODELS)
@given(history=HISTORIES)
def test_any_stored_history_is_sent_or_refused_by_name(model: str, history: list[Message]) -> None:
    refused = ""
    try:
        body = body_of(history, model=model)
    except UnsupportedContentError as error:
        refused = str(error)
        assert re.match(r"messages\[\d+\]\.parts\[\d+\]: ", refused)
    else:
        assert not refusals(body, model)


@given(HOSTILE)
def test_what_others_made_is_never_sent(history: list[Message]) -> None:
    foreign = [
        structs.replace(
            message,
            thinking=tuple(structs.replace(t, provider="anthropic") for t in message.thinking),
            native=Native("anthropic", (Raw(b'{"text":"foreign-sig"}'),)),
        )
        if isinstance(message, AssistantMessage)
        else message
        for message in history
    ]
    for model in MODELS:
        data = encode(foreign, model=model)
        assert b"foreign-sig" not in data
        assert b"reasoningContent" not in data


def words(history: list[Message]) -> list[str]:
    return [m.content.strip() for m in history if m.content.strip()]


@pytest.mark.parametrize("model", MODELS)
@given(history=HOSTILE)
def test_everything_visible_is_there_in_order(model: str, history: list[Message]) -> None:
    repaired = [m for m in repair(history) if not isinstance(m, (ToolMessage, SystemMessage))]
    said = [
        block.get("text")
        or "".join(p["text"] for p in block.get("citationsContent", {}).get("content", ()))
        for message in wire(history, model=model)
        for block in message["content"]
    ]
    told = "\n".join(filter(None, said))
    for text in words(repaired):
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        flat = re.sub(r"\s|\ufffd", "", told)
        assert re.sub(r"\s|\ufffd", "", clean) in flat


@pytest.mark.parametrize("model", MODELS)
@given(history=HOSTILE, more=HOSTILE)
def test_a_longer_history_begins_with_the_same_bytes(
    model: str, history: list[Message], more: list[Message]
) -> None:
    start: list[Message] = [*repair(history), UserMessage("now")]
    longer: list[Message] = [*start, AssistantMessage("a"), *more]
    short, long = (json.dumps(wire(h, model=model)) for h in (start, longer))
    assert long.startswith(short.removesuffix("}]}]"))


@given(HOSTILE)
def test_equal_histories_are_equal_bytes_and_stay_as_they_are(history: list[Message]) -> None:
    before = list(history)
    budget = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    settings = Settings(extra_body={"additionalModelRequestFields": budget})
    data = encode(history, settings=settings, cache="5m")
    assert data == encode(list(before), settings=settings, cache="5m")
    assert before == history
    body = json.loads(data)
    *_, asking, last = [{"role": "user", "content": [{"text": ""}]}, *body["messages"]]
    thinking = body["additionalModelRequestFields"]["thinking"]["type"]
    if thinking == "enabled" and "toolResult" in last["content"][0]:
        assert "reasoningContent" in asking["content"][0]
