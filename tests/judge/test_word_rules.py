"""Members that hold one of a few words, and metadata: what OpenAI itself refuses."""

from __future__ import annotations

from typing import Any

import pytest

from golem.testing.judge import Violation, judge_chat, judge_responses

IMAGE = {"url": "https://a.b/c"}


def chat(**members: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}], **members}


def pictured(**image: Any) -> dict[str, Any]:
    part = {"type": "image_url", "image_url": {**IMAGE, **image}}
    return chat(messages=[{"role": "user", "content": [part]}])


def choosing(**allowed: Any) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": "f"}}]
    return chat(tools=tools, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})


def responses(**members: Any) -> dict[str, Any]:
    return {"model": "m", "input": "hi", "store": False, **members}


def said(*parts: Any, role: str = "user", **members: Any) -> dict[str, Any]:
    return responses(input=[{"role": role, "content": list(parts), **members}])


def allowing(**members: Any) -> dict[str, Any]:
    tools = [{"type": "function", "name": "f"}]
    return responses(tools=tools, tool_choice={"type": "allowed_tools", **members})


def found(violations: list[Violation]) -> list[tuple[str, str]]:
    return [(violation.rule, violation.place) for violation in violations]


CHAT: list[tuple[dict[str, Any], str, str]] = [
    (chat(reasoning_effort="huge"), "word", "reasoning_effort"),
    (chat(reasoning_effort=1), "word", "reasoning_effort"),
    (chat(verbosity="loud"), "word", "verbosity"),
    (chat(service_tier="on_demand"), "word", "service_tier"),
    (chat(prompt_cache_retention="1h"), "word", "prompt_cache_retention"),
    (pictured(detail="tiny"), "word", "messages[0].content[0].image_url.detail"),
    (choosing(mode="none", tools=[]), "word", "tool_choice.allowed_tools.mode"),
    (choosing(tools=[]), "required_member", "tool_choice.allowed_tools.mode"),
]
RESPONSES: list[tuple[dict[str, Any], str, str]] = [
    (responses(reasoning={"effort": "huge"}), "word", "reasoning.effort"),
    (responses(reasoning={"summary": "long"}), "word", "reasoning.summary"),
    (responses(reasoning={"context": "none"}), "word", "reasoning.context"),
    (responses(text={"verbosity": "loud"}), "word", "text.verbosity"),
    (responses(truncation="middle"), "word", "truncation"),
    (responses(service_tier="on_demand"), "word", "service_tier"),
    (said(role="assistant", phase="preamble"), "word", "input[0].phase"),
    (
        said({"type": "input_image", "image_url": IMAGE["url"], "detail": "tiny"}),
        "word",
        "input[0].content[0].detail",
    ),
    (
        said({"type": "input_file", "file_url": "https://a.b/c", "detail": "original"}),
        "word",
        "input[0].content[0].detail",
    ),
    (allowing(mode="none", tools=[]), "word", "tool_choice.mode"),
    (allowing(tools=[]), "required_member", "tool_choice.mode"),
    (
        responses(input=[{"type": "item_reference", "id": "msg_1"}]),
        "reference_not_stored",
        "input[0]",
    ),
    (responses(input=[{"type": "item_reference"}], store=True), "required_member", "input[0].id"),
]


@pytest.mark.parametrize(("body", "rule", "place"), CHAT)
def test_chat_knows_its_words(body: dict[str, Any], rule: str, place: str) -> None:
    assert found(judge_chat(body)) == [(rule, place)]
    assert found(judge_chat(body, dialect="azure")) == [(rule, place)]


@pytest.mark.parametrize(("body", "rule", "place"), RESPONSES)
def test_responses_know_their_words(body: dict[str, Any], rule: str, place: str) -> None:
    assert found(judge_responses(body)) == [(rule, place)]


@pytest.mark.parametrize(
    "body",
    [
        *(chat(reasoning_effort=word) for word in (None, "none", "minimal", "xhigh", "max")),
        chat(verbosity="low", service_tier="priority", prompt_cache_retention="24h"),
        pictured(detail="original"),
        choosing(mode="required", tools=[]),
        chat(metadata={f"{n:064}": "v" * 512 for n in range(16)}),
    ],
)
def test_chat_takes_the_words_that_there_are(body: dict[str, Any]) -> None:
    assert judge_chat(body) == []


@pytest.mark.parametrize(
    "body",
    [
        responses(reasoning={"effort": "max", "summary": "concise", "context": "all_turns"}),
        responses(text={"verbosity": "high"}, truncation="disabled", service_tier="flex"),
        said(role="assistant", phase="final_answer"),
        allowing(mode="auto", tools=[]),
        responses(input=[{"type": "item_reference", "id": "msg_1"}], store=True),
        responses(input=[{"type": "item_reference", "id": "msg_1"}], previous_response_id="r"),
        responses(metadata=None),
    ],
)
def test_responses_take_the_words_that_there_are(body: dict[str, Any]) -> None:
    assert judge_responses(body) == []


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        (
            {str(n): "" for n in range(17)},
            "Invalid 'metadata': too many properties. Expected an object with at most 16"
            " properties, but got an object with 17 properties instead.",
        ),
        (
            {"k" * 65: ""},
            f"Invalid 'metadata.{'k' * 65}': string too long. Expected a string with maximum length"
            " 64, but got a string with length 65 instead.",
        ),
        (
            {"k": "v" * 513},
            "Invalid 'metadata.k': string too long. Expected a string with maximum length 512, but"
            " got a string with length 513 instead.",
        ),
        (
            {"k": 1},
            "Invalid type for 'metadata.k': expected a string, but got an integer instead.",
        ),
        ([], "Invalid type for 'metadata': expected an object, but got an array instead."),
    ],
)
def test_metadata_is_bounded(metadata: Any, text: str) -> None:
    for violations in (
        judge_chat(chat(metadata=metadata)),
        judge_responses(responses(metadata=metadata)),
    ):
        assert [violation.text for violation in violations] == [text]


@pytest.mark.parametrize("dialect", ["groq", "mistral", "zai", "vllm"])
def test_other_servers_have_words_of_their_own(dialect: str) -> None:
    assert judge_chat(chat(reasoning_effort="default"), dialect=dialect) == []


def test_deepseek_knows_three_efforts() -> None:
    assert judge_chat(chat(reasoning_effort="max"), dialect="deepseek") == []
    (violation,) = judge_chat(chat(reasoning_effort="medium"), dialect="deepseek")
    assert violation.text == (
        "Invalid value: 'medium'. Supported values are: 'low', 'high', and 'max'."
    )
