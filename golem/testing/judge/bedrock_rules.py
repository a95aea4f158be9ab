"""The judge of Converse requests. Pure: a decoded body in, what is wrong with it out.

The rules are those of §1.0 (the column of Bedrock) and §1.5 of the wire formats: what the service
refuses, and what the family of the model does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from golem.testing.judge.anthropic_tools import nodes_of
from golem.testing.judge.bedrock_blocks import (
    CALL,
    RESULT,
    TOOL_NAME,
    judge_block,
    judge_mark,
    judge_word,
    kind_of,
)
from golem.testing.judge.bedrock_families import FamilyRules, rules_of
from golem.testing.judge.bedrock_turns import judge_turns, turns_of
from golem.testing.judge.bedrock_words import UNREADABLE, Findings
from golem.testing.judge.findings import (
    JSON,
    Violation,
    elements,
    endless_numbers,
    half_characters,
    is_array,
    is_object,
    members,
)

MOST_MARKS: Final = 4
_PROMPT: Final = frozenset(
    {"messages", "system", "toolConfig", "additionalModelRequestFields", "outputConfig"}
)
_BODY: Final = _PROMPT | {
    *("inferenceConfig", "guardrailConfig", "additionalModelResponseFieldPaths"),
    *("requestMetadata", "performanceConfig", "serviceTier", "promptVariables"),
}
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "temperature": (0, 1),
    "topP": (0, 1),
    "maxTokens": (1, 2**31),
}
_INFERENCE: Final = frozenset({*_RANGES, "stopSequences"})


def judge_bedrock(
    body: Any,
    *,
    model: str = "",
    counts: bool = False,
    made_with: Mapping[str, str] | None = None,
    own_thinking: bool = False,
) -> list[Violation]:
    """Everything in a request body that Converse refuses; empty: it takes it.

    Args:
        body: decoded JSON.
        model: whose request it is, as it stands in the path; it tells the family of models.
        counts: whether it asks for a count of tokens (``{"input": {"converse": …}}``).
        made_with: what earlier answers said of their thinking (`BedrockProvider.links`); such
            thinking has to come back as it was.
        own_thinking: whether thinking that is not among `made_with` is refused, as models refuse
            what others signed. No request alone shows who did.
    """
    findings = Findings()
    if counts:
        body = _counted(body, findings)
    if not is_object(body):
        findings.wrong_type("the body", "an object")
        return findings.found
    family = rules_of(model)
    _judge_text(body, findings)
    for name in body:
        if name not in (_PROMPT if counts else _BODY):
            findings.unknown(name)
    _judge_inference(body.get("inferenceConfig"), findings)
    _judge_system(body.get("system"), family, findings)
    _judge_tools(body, family, findings)
    _judge_output(body.get("outputConfig"), family, findings)
    _judge_messages(body.get("messages"), family, findings)
    _judge_marks(body, findings)
    judge_turns(
        turns_of(elements(body.get("messages"))),
        family,
        budget=_thinking(body) == "enabled",
        made_with=made_with or {},
        own_thinking=own_thinking,
        findings=findings,
    )
    return findings.found


def _counted(body: Any, findings: Findings) -> Any:
    """The request that tokens are to be counted of."""
    asked = members(body).get("input")
    if not is_object(asked) or set(asked) not in ({"converse"}, {"invokeModel"}):
        findings.add("required_member", "input", "The input must set converse or invokeModel.")
        return {"messages": [{"role": "user", "content": [{"text": "."}]}]}
    return asked.get("converse", {"messages": [{"role": "user", "content": [{"text": "."}]}]})


def _thinking(body: JSON) -> object:
    return members(members(body.get("additionalModelRequestFields")).get("thinking")).get("type")


# --- the request around the messages


def _judge_text(body: JSON, findings: Findings) -> None:
    """No half of a surrogate pair and no number past a double's range, which no server reads."""
    if half_characters(body):
        findings.add("valid_utf8", "", UNREADABLE)
    if endless_numbers(body):
        findings.add("number", "", UNREADABLE)


def _judge_inference(config: object, findings: Findings) -> None:
    if config is not None and not is_object(config):
        findings.wrong_type("inferenceConfig", "an object")
    for name, value in members(config).items():
        place = f"inferenceConfig.{name}"
        if name not in _INFERENCE:
            findings.unknown(place)
        elif name == "stopSequences":
            if not is_array(value) or not all(isinstance(s, str) and s for s in value):
                findings.wrong_type(place, "an array of strings that are not empty")
        elif value is not None:
            least, most = _RANGES[name]
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                findings.wrong_type(place, "a number")
            elif not least <= value <= most:
                low = value < least
                bound = f"{'greater' if low else 'less'} than or equal to {least if low else most}"
                findings.constraint("sampling", place, value, f"have value {bound}")


def _judge_system(system: object, family: FamilyRules, findings: Findings) -> None:
    if system is not None and not is_array(system):
        findings.wrong_type("system", "an array")
    if elements(system) and not family.system:
        text = (
            "This model doesn't support system messages. Try again without system messages or use"
            " a model that supports system messages."
        )
        findings.add("system", "system", text)
    for number, block in enumerate(elements(system)):
        words = members(block).get("text")
        if kind_of(block) == "text" and isinstance(words, str) and not words.strip():
            findings.blank("SystemContentBlock", f"system.{number}")
        else:
            judge_block("system", block, f"system.{number}", family, findings)


def _judge_tools(body: JSON, family: FamilyRules, findings: Findings) -> None:
    config = body.get("toolConfig")
    if config is None:
        if any(kind in (CALL, RESULT) for turn in _messages(body) for kind in turn):
            text = (
                "The toolConfig field must be defined when using toolUse and toolResult content"
                " blocks."
            )
            findings.add("tool_config", "toolConfig", text)
        return
    tools = members(config).get("tools")
    if not is_array(tools) or not tools:
        bound = "have length greater than or equal to 1"
        findings.constraint("tools", "toolConfig.tools", tools, bound)
    names: list[str] = []
    for index, tool in enumerate(elements(tools)):
        names += _judge_tool(tool, f"toolConfig.tools.{index}", family, findings)
    if len(set(names)) != len(names):
        findings.add("repeated_name", "toolConfig.tools", "The tool names must be unique.")
    _judge_choice(members(config).get("toolChoice"), names, _thinking(body), family, findings)


def _messages(body: JSON) -> Iterator[list[str]]:
    for message in elements(body.get("messages")):
        yield [kind_of(block) for block in elements(members(message).get("content"))]


def _judge_tool(tool: Any, place: str, family: FamilyRules, findings: Findings) -> list[str]:
    """The name of a tool, if it has one, after its judgment."""
    kind = kind_of(tool)
    if kind == "cachePoint":
        judge_mark(tool[kind], place, family, findings)
        return []
    if kind not in ("toolSpec", "systemTool"):
        text = f"The Tool object at {place} must set toolSpec, systemTool or cachePoint."
        findings.add("tool_type", place, text)
        return []
    spec = members(tool[kind])
    judge_word("name", spec.get("name"), TOOL_NAME, f"{place}.{kind}.name", findings)
    if kind == "systemTool":
        return [str(spec.get("name"))]
    if spec.get("description") == "":
        bound = "have length greater than or equal to 1"
        findings.constraint("description", f"{place}.toolSpec.description", "", bound)
    for name in spec:
        if name not in ("name", "description", "inputSchema", "strict"):
            findings.unknown(f"{place}.toolSpec.{name}")
    schema = members(spec.get("inputSchema")).get("json")
    if members(schema).get("type") != "object":
        where = f"{place}.toolSpec.inputSchema.json.type"
        text = f"The value at {where} must be one of the following: object."
        findings.add("schema", where, text)
    return [str(spec.get("name"))]


def _judge_choice(
    choice: Any, names: list[str], thinking: object, family: FamilyRules, findings: Findings
) -> None:
    if choice is None:
        return
    kind = kind_of(choice)
    place = f"toolConfig.toolChoice.{kind}"
    if kind not in ("auto", "any", "tool"):
        text = "The ToolChoice object at toolConfig.toolChoice must set auto, any or tool."
        findings.add("tool_choice", "toolConfig.toolChoice", text)
    elif kind not in family.choices:
        findings.no_field("tool_choice", place, place)
    elif kind == "tool" and members(choice["tool"]).get("name") not in names:
        text = f"The tool at {place} is not among the tools of toolConfig."
        findings.add("tool_choice", place, text)
    if kind in ("any", "tool") and thinking == "enabled":
        text = "Thinking may not be enabled when tool_choice forces tool use."
        findings.add("forced_thinking", place, text)


def _judge_output(config: object, family: FamilyRules, findings: Findings) -> None:
    wanted = members(members(config).get("textFormat"))
    if not wanted:
        return
    place = "outputConfig.textFormat"
    if not family.schema:
        findings.no_field("output_schema", place, place)
    schema = members(members(wanted.get("structure")).get("jsonSchema"))
    try:
        read = json.loads(str(schema.get("schema")))
    except (ValueError, RecursionError):
        read = None
    if wanted.get("type") != "json_schema" or not is_object(read):
        findings.wrong_type(f"{place}.structure.jsonSchema.schema", "the text of a JSON Schema")
        return
    for node in nodes_of(read):
        if node.get("type") == "object" and node.get("additionalProperties") is not False:
            text = "For 'object' type, 'additionalProperties' must be explicitly set to false"
            findings.add("schema", f"{place}.structure.jsonSchema.schema", text)


def _judge_marks(body: JSON, findings: Findings) -> None:
    system = [kind_of(block) for block in elements(body.get("system"))]
    tools = [kind_of(t) for t in elements(members(body.get("toolConfig")).get("tools"))]
    kinds = [*system, *tools, *(kind for turn in _messages(body) for kind in turn)]
    if kinds.count("cachePoint") > MOST_MARKS:
        text = f"A maximum of {MOST_MARKS} cachePoint blocks may be provided."
        findings.add("cache_marks", "", text)


# --- messages


def _judge_messages(messages: object, family: FamilyRules, findings: Findings) -> None:
    if not is_array(messages):
        findings.missing("messages")
    elif not messages:
        text = "A conversation must start with a user message. Try again with a conversation that"
        findings.add("empty_messages", "messages", f"{text} starts with a user message.")
    for index, message in enumerate(elements(messages)):
        place = f"messages.{index}"
        role, content = members(message).get("role"), members(message).get("content")
        if role not in ("user", "assistant", "system"):
            bound = "satisfy enum value set: [user, assistant, system]"
            findings.constraint("role", f"{place}.role", role, bound)
        elif not is_array(content) or not content:
            text = (
                f"The content field in the Message object at {place} is empty. Add a ContentBlock"
                " object to the content field and try again."
            )
            findings.add("empty_message", place, text)
        else:
            for number, block in enumerate(content):
                judge_block(role, block, f"{place}.content.{number}", family, findings)
        for name in members(message):
            if name not in ("role", "content"):
                findings.unknown(f"{place}.{name}")
