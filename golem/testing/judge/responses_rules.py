"""The judge of Responses requests. Pure: a decoded body in, what is wrong with it out.

A request without state at the server is meant (``store: false``): the whole conversation is in
`input`, reasoning with its encrypted content. Error texts are the provider's where they are on
record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from golem.testing.judge.common_rules import (
    judge_function,
    judge_members,
    judge_model,
    judge_name,
    judge_sampling,
    judge_strict,
    judge_tool_switches,
)
from golem.testing.judge.findings import (
    JSON,
    Violation,
    elements,
    is_array,
    is_object,
    members,
    one_of,
    says_json,
)
from golem.testing.judge.openai_words import Findings, carriable
from golem.testing.judge.responses_items import judge_items
from golem.testing.judge.responses_servers import ResponsesRules, responses_rules_named
from golem.testing.judge.word_rules import judge_metadata, judge_mode, judge_words

_BODY: Final = frozenset(
    {
        "model", "input", "instructions", "stream", "store", "include", "tools", "tool_choice",
        "parallel_tool_calls", "max_tool_calls", "text", "reasoning", "max_output_tokens",
        "temperature", "top_p", "truncation", "context_management", "background", "conversation",
        "previous_response_id", "service_tier", "prompt_cache_key", "prompt_cache_options",
        "stream_options", "metadata", "safety_identifier", "user", "top_logprobs", "prompt",
        "moderation", "prompt_cache_retention", "background_options", "image", "access_programs",
    }
)  # fmt: skip
_COUNTED: Final = frozenset(
    {
        "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text",
        "reasoning", "truncation", "conversation", "previous_response_id",
    }
)  # fmt: skip
"""What makes a prompt: a request to count its tokens has nothing else."""

_INCLUDABLE: Final = frozenset(
    {
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
        "file_search_call.results",
        "web_search_call.action.sources",
        "web_search_call.results",
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
        "message.input_image.image_url",
    }
)
_JSON_WORD: Final = (
    "Response input messages must contain the word 'json' in some form to use 'text.format' of"
    " type 'json_object'."
)


def judge_responses(
    body: Any,
    *,
    dialect: str | ResponsesRules = "openai",
    made_with: Mapping[str, str] | None = None,
    counts: bool = False,
) -> list[Violation]:
    """Everything in a request body that the server of `dialect` refuses; empty: it takes it.

    `body` is decoded JSON. `made_with` names, for the ids of items that the server made after
    reasoning, the id of that reasoning item: the one may not come back without the other.
    `counts`: the request asks how many tokens its prompt has.
    Raises ValueError for a dialect that there are no rules for.
    """
    rules = responses_rules_named(dialect)
    findings = Findings()
    if not is_object(body):
        findings.wrong_type("", "an object", body)
        return findings.found
    carriable(body, findings)
    judge_model(body, findings)
    judge_members(body, _COUNTED if counts else _BODY, findings)
    judge_sampling(body, findings)
    judge_words(body, rules.words, findings)
    if rules.words:
        judge_metadata(body.get("metadata"), findings)
    for index, name in enumerate(elements(body.get("include"))):
        if not one_of(name, _INCLUDABLE):
            findings.wrong_value("include", f"include[{index}]", name, tuple(sorted(_INCLUDABLE)))
    _judge_tools(body, findings)
    _judge_format(body, findings)
    if body.get("instructions") is not None and not isinstance(body["instructions"], str):
        findings.wrong_type("instructions", "a string", body["instructions"])
    _judge_input(body, rules, made_with or {}, findings)
    return findings.found


def _judge_input(
    body: JSON, rules: ResponsesRules, made_with: Mapping[str, str], findings: Findings
) -> None:
    given = body.get("input")
    if given is None and not body.get("previous_response_id") and not body.get("prompt"):
        text = (
            "Missing required parameter: one of 'input' or 'previous_response_id' or 'prompt' or"
            " 'conversation_id' must be provided."
        )
        findings.add("required_member", "input", text, code="missing_required_parameter")
    elif given is not None and not isinstance(given, str):
        if is_array(given):
            stored = body.get("store") is not False
            continued = bool(body.get("previous_response_id") or body.get("conversation"))
            judge_items(given, rules, findings, made_with, stored=stored, continued=continued)
        else:
            findings.wrong_type("input", "one of a string or array of objects", given)


def _judge_tools(body: JSON, findings: Findings) -> None:
    judge_tool_switches(body, findings, idle=("none", "auto"))
    names: list[str] = []
    hosted: list[str] = []
    for index, tool in enumerate(elements(body.get("tools"))):
        kind = members(tool).get("type")
        if kind == "function":
            names.append(judge_function(tool, f"tools[{index}]", findings))
        elif kind == "custom":
            judge_name(tool.get("name"), f"tools[{index}].name", findings)
            names.append(str(tool.get("name")))
        elif isinstance(kind, str):
            hosted.append(kind)
        else:
            findings.missing(f"tools[{index}].type")
    choice = body.get("tool_choice")
    if choice is None or not (names or hosted):
        return
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            findings.wrong_value("tool_choice", "tool_choice", choice, ("none", "auto", "required"))
        return
    kind = members(choice).get("type")
    if kind == "allowed_tools":
        judge_mode(members(choice).get("mode"), "tool_choice.mode", findings)
    if kind == "allowed_tools" or kind in hosted:
        return
    if members(choice).get("name") not in names:
        text = f"Tool choice '{kind}' not found in 'tools' parameter."
        findings.add("tool_choice", "tool_choice", text)


def _judge_format(body: JSON, findings: Findings) -> None:
    wanted = members(members(body.get("text")).get("format"))
    if wanted.get("type") == "json_object":
        said = [item for item in elements(body.get("input")) if "role" in members(item)]
        if not says_json(said if is_array(body.get("input")) else body.get("input")):
            findings.add("json_word", "input", _JSON_WORD)
    elif wanted.get("type") == "json_schema":
        judge_name(wanted.get("name"), "text.format.name", findings)
        if not is_object(wanted.get("schema")):
            findings.missing("text.format.schema")
        elif wanted.get("strict"):
            owner = f"response_format '{wanted.get('name')}'"
            judge_strict(
                wanted["schema"], "text.format.schema", owner, "invalid_json_schema", findings
            )
