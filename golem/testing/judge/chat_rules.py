"""The judge of Chat Completions requests. Pure: a decoded body in, what is wrong with it out.

It holds a request to the provider's documented and reported rules, and in two places to more
than OpenAI itself asks, because servers behind the same API do: argument text is a JSON object,
and an id is used once in a turn. Error texts are the provider's where they are on record.
"""

from __future__ import annotations

from typing import Any, Final

from golem.testing.judge.chat_messages import judge_messages
from golem.testing.judge.chat_servers import ChatRules, rules_named
from golem.testing.judge.common_rules import (
    judge_function,
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
from golem.testing.judge.word_rules import judge_metadata, judge_mode, judge_words

_JSON_WORD: Final = (
    "'messages' must contain the word 'json' in some form, to use 'response_format' of type"
    " 'json_object'."
)


def judge_chat(body: Any, *, dialect: str | ChatRules = "openai") -> list[Violation]:
    """Everything in a request body that the server of `dialect` refuses; empty: it takes it.

    `body` is decoded JSON. Raises ValueError for a dialect that there are no rules for.
    """
    rules = rules_named(dialect)
    findings = Findings(rules.shape)
    if not is_object(body):
        findings.wrong_type("", "an object", body)
        return findings.found
    carriable(body, findings)
    judge_model(body, findings)
    _judge_body_members(body, rules, findings)
    judge_sampling(body, findings)
    judge_words(body, rules.words, findings)
    if rules.openai_words:
        judge_metadata(body.get("metadata"), findings)
    _judge_stream(body, findings)
    _judge_stop(body, findings)
    _judge_tools(body, rules, findings)
    _judge_format(body, rules, findings)
    messages = body.get("messages")
    if messages is None:
        findings.missing("messages")
    elif not is_array(messages):
        findings.wrong_type("messages", "an array of objects", messages)
    elif not messages:
        findings.empty_array("messages")
    else:
        judge_messages(messages, rules, findings)
    return findings.found


# --- the request around the messages


def _judge_body_members(body: JSON, rules: ChatRules, findings: Findings) -> None:
    for name in body:
        if name in rules.body:
            continue
        if rules.shape == "mistral":
            text = "Extra inputs are not permitted"
            findings.add("unknown_member", name, text, kind="extra_forbidden", status=422)
        else:
            text = f"Unrecognized request argument supplied: {name}"
            findings.add("unknown_member", name, text, param="")


def _judge_stream(body: JSON, findings: Findings) -> None:
    if "stream_options" in body and body.get("stream") is not True:
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        findings.add("stream_options", "stream_options", text)


def _judge_stop(body: JSON, findings: Findings) -> None:
    stop = elements(body.get("stop"))
    if len(stop) > 4:
        text = (
            "Invalid 'stop': array too long. Expected an array with maximum length 4,"
            f" but got an array with length {len(stop)} instead."
        )
        findings.add("stop", "stop", text, code="array_above_max_length")


def _judge_tools(body: JSON, rules: ChatRules, findings: Findings) -> None:
    judge_tool_switches(body, findings, idle=("none",))
    if body.get("tools") == []:
        findings.empty_array("tools")
    names: list[str] = []
    for index, tool in enumerate(elements(body.get("tools"))):
        place = f"tools[{index}]"
        kind = members(tool).get("type", rules.tool_type)
        if kind == "custom":
            custom = members(members(tool).get("custom"))
            judge_name(custom.get("name"), f"{place}.custom.name", findings)
            names.append(str(custom.get("name")))
        elif kind == "function":
            function = members(members(tool).get("function"))
            names.append(judge_function(function, f"{place}.function", findings))
        elif not (rules.hosted_tools and str(kind).startswith(rules.hosted_tools)):
            findings.wrong_value("tool_type", f"{place}.type", kind, ("function", "custom"))
    _judge_choice(body.get("tool_choice"), names, rules, findings)


def _judge_choice(choice: Any, names: list[str], rules: ChatRules, findings: Findings) -> None:
    if choice is None or not names:
        return
    if isinstance(choice, str):
        if choice not in rules.tool_choices:
            supported = tuple(sorted(rules.tool_choices))
            findings.wrong_value("tool_choice", "tool_choice", choice, supported)
        return
    kind = str(members(choice).get("type"))
    if kind == "allowed_tools":
        if rules.openai_words:
            mode, place = members(choice).get(kind), f"tool_choice.{kind}.mode"
            judge_mode(members(mode).get("mode"), place, findings)
        return
    named = members(members(choice).get(kind)).get("name")
    if named not in names:
        text = "Tool choice 'function' not found in 'tools' parameter."
        findings.add("tool_choice", "tool_choice", text)


def _judge_format(body: JSON, rules: ChatRules, findings: Findings) -> None:
    wanted = body.get("response_format")
    if wanted is None:
        return
    kind = members(wanted).get("type")
    if not one_of(kind, rules.response_formats):
        text = "This response_format type is unavailable now"
        findings.add("response_format", "response_format", text, param="")
    elif kind == "json_object" and not says_json(body.get("messages")):
        findings.add("json_word", "messages", _JSON_WORD)
    elif kind == "json_schema":
        place = "response_format.json_schema"
        schema = members(members(wanted).get("json_schema"))
        judge_name(schema.get("name"), f"{place}.name", findings)
        if not is_object(schema.get("schema")):
            findings.missing(f"{place}.schema")
        elif schema.get("strict"):
            owner = f"response_format '{schema.get('name')}'"
            judge_strict(
                schema["schema"], "response_format", owner, "invalid_json_schema", findings
            )
