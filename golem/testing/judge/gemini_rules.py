"""The judge of Gemini requests. Pure: a decoded body in, what is wrong with it out.

As the server does: first the parser reads the body, and where it finds something wrong nothing
else is looked at; then the rules. Error texts are the provider's where they are on record.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from golem.testing.judge.findings import JSON, Violation, elements, is_object, members
from golem.testing.judge.gemini_contents import judge_contents
from golem.testing.judge.gemini_proto import Parser, judge_characters
from golem.testing.judge.gemini_schemas import judge_json_schema, judge_schema
from golem.testing.judge.gemini_servers import (
    MOST_FUNCTIONS,
    NAME,
    NAME_TEXT,
    GeminiRules,
    gemini_rules,
)
from golem.testing.judge.gemini_words import Findings

NOTHING_MADE: Final[Mapping[str, str]] = MappingProxyType({})
MODES: Final = ("AUTO", "ANY", "NONE", "VALIDATED", "MODE_UNSPECIFIED")
LEVELS: Final = ("MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH", "THINKING_LEVEL_UNSPECIFIED")
_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "temperature": (0, 2),
    "topP": (0, 1),
    "presencePenalty": (-2, 2),
    "frequencyPenalty": (-2, 2),
    "candidateCount": (1, 8),
}


def judge_gemini(
    body: Any,
    *,
    model: str = "gemini-3",
    dialect: str = "gemini",
    method: str = "generateContent",
    made_with: Mapping[str, str] = NOTHING_MADE,
) -> list[Violation]:
    """Everything in a request body that Gemini refuses; empty: it takes it.

    `body` is decoded JSON. `model` and `method` stand in the address: ``generateContent``,
    ``streamGenerateContent`` or ``countTokens``. `made_with`: which part each signature of the
    server's own answers was made for. Raises ValueError for a dialect that there are no rules for.
    """
    rules, findings = gemini_rules(model, dialect), Findings()
    judge_characters(body, findings)
    counts = method == "countTokens"
    message = "CountTokensRequest" if counts else "GenerateContentRequest"
    request = Parser(rules.messages, findings).read(body, message)
    if findings.found:
        return findings.found
    if counts and "generateContentRequest" in request:
        if "contents" in request:
            text = "Only one of contents and generate_content_request can be set."
            findings.add("count_twice", "contents", text)
        request = request["generateContentRequest"]
        if not request.get("model"):
            findings.request("required_member", "model", "model is not specified")
    judge_contents(elements(request.get("contents")), rules, findings, made_with)
    _judge_instruction(request, findings)
    declared = _judge_tools(elements(request.get("tools")), rules, findings)
    _judge_choice(members(request.get("toolConfig")), declared, findings)
    _judge_generation(members(request.get("generationConfig")), bool(declared), rules, findings)
    return findings.found


def _judge_instruction(request: JSON, findings: Findings) -> None:
    instruction = request.get("systemInstruction")
    if instruction is None:
        return
    place = "systemInstruction.parts"
    parts = elements(instruction.get("parts"))
    if not parts:
        findings.request("empty_parts", place, "system_instruction.parts must not be empty.")
    for number, part in enumerate(parts):
        if "text" not in part:
            text = "system_instruction takes nothing but texts."
            findings.request("instruction_part", f"{place}[{number}]", text)


# --- tools


def _judge_tools(tools: list[JSON], rules: GeminiRules, findings: Findings) -> list[str]:
    """The names of the functions that are declared."""
    names: list[str] = []
    for index, tool in enumerate(tools):
        if not tool:
            text = "required oneof field 'tool_type' must have one initialized field"
            findings.request("empty_tool", f"tools[{index}].tool_type", text)
        for number, function in enumerate(elements(tool.get("functionDeclarations"))):
            place = f"tools[{index}].functionDeclarations[{number}]"
            names.append(_judge_function(function, place, rules, findings))
    for name in sorted({name for name in names if names.count(name) > 1}):
        text = f"Duplicate function declaration found: {name}"
        findings.add("repeated_function", "tools", text)
    if len(names) > MOST_FUNCTIONS:
        text = f"At most {MOST_FUNCTIONS} function declarations are allowed, not {len(names)}."
        findings.add("function_count", "tools", text)
    return names


def _judge_function(function: JSON, place: str, rules: GeminiRules, findings: Findings) -> str:
    name = str(function.get("name", ""))
    if not NAME.fullmatch(name):
        findings.request("name", f"{place}.name", NAME_TEXT)
    if "parameters" in function and "parametersJsonSchema" in function:
        text = "only one of parameters and parameters_json_schema can be set."
        findings.request("schema", place, text)
    if "parameters" in function:
        judge_schema(function["parameters"], f"{place}.parameters", rules, findings)
    if "parametersJsonSchema" in function:
        schema, where = function["parametersJsonSchema"], f"{place}.parametersJsonSchema"
        judge_json_schema(schema, where, findings)
        if not is_object(schema) or schema.get("type") != "object":
            findings.request("schema", where, "schema must be of type object.")
    return name


def _judge_choice(config: JSON, declared: list[str], findings: Findings) -> None:
    calling = config.get("functionCallingConfig")
    if calling is None:
        return
    place = "toolConfig.functionCallingConfig"
    if not declared:
        text = "Function calling config is set without function_declarations."
        findings.add("tool_choice", place, text)
    mode, allowed = calling.get("mode", "AUTO"), elements(calling.get("allowedFunctionNames"))
    if mode not in MODES:
        findings.wrong_type(f"{place}.mode", "TYPE_ENUM", mode)
    if allowed and mode not in ("ANY", "VALIDATED"):
        text = "Allowed function names should only be set when function calling mode is ANY."
        findings.add("tool_choice", f"{place}.allowedFunctionNames", text)
    for name in allowed:
        if name not in declared:
            text = f"Allowed function name '{name}' is not declared."
            findings.add("tool_choice", f"{place}.allowedFunctionNames", text)


# --- how to answer


def _judge_generation(
    config: JSON, functions: bool, rules: GeminiRules, findings: Findings
) -> None:
    place = "generationConfig"
    for name, (least, most) in _RANGES.items():
        if not least <= config.get(name, least) <= most:
            text = f"{name} must be in the range [{least}, {most}]."
            findings.request("sampling", f"{place}.{name}", text)
    if config.get("maxOutputTokens", 1) < 1:
        text = "max_output_tokens must be positive."
        findings.request("sampling", f"{place}.maxOutputTokens", text)
    stops = elements(config.get("stopSequences"))
    if len(stops) > 5 or "" in stops:
        text = "at most 5 stop sequences are allowed, none of them empty."
        findings.request("stop", f"{place}.stopSequences", text)
    _judge_output(config, place, functions, rules, findings)
    _judge_thinking(members(config.get("thinkingConfig")), place, rules, findings)


def _judge_output(
    config: JSON, place: str, functions: bool, rules: GeminiRules, findings: Findings
) -> None:
    kind = config.get("responseMimeType", "")
    schemas = [name for name in ("responseSchema", "responseJsonSchema") if name in config]
    if len(schemas) > 1:
        text = "only one of response_schema and response_json_schema can be set."
        findings.request("schema", place, text)
    if kind not in ("", "text/plain", "application/json", "text/x.enum"):
        text = f"allowed mimetypes are `text/plain`, `application/json`, not `{kind}`"
        findings.request("response_type", f"{place}.responseMimeType", text)
    if schemas and kind not in ("application/json", "text/x.enum"):
        text = "Response schema is only supported with response_mime_type application/json."
        findings.request("response_type", f"{place}.responseMimeType", text)
    if kind == "application/json" and functions and not rules.schema_beside_tools:
        text = "Function calling with a response mime type: 'application/json' is unsupported"
        findings.add("response_type", f"{place}.responseMimeType", text)
    if "responseSchema" in config:
        judge_schema(config["responseSchema"], f"{place}.responseSchema", rules, findings)
    if "responseJsonSchema" in config:
        judge_json_schema(config["responseJsonSchema"], f"{place}.responseJsonSchema", findings)


def _judge_thinking(thinking: JSON, place: str, rules: GeminiRules, findings: Findings) -> None:
    where = f"{place}.thinkingConfig"
    level = thinking.get("thinkingLevel")
    if level is not None and "thinkingBudget" in thinking:
        text = "You can only set only one of thinking budget and thinking level."
        findings.add("thinking", where, text)
    if level is not None and not rules.thinking_levels:
        text = "Thinking level is not supported for this model."
        findings.add("thinking", f"{where}.thinkingLevel", text)
    elif level is not None and level.upper() not in LEVELS:
        findings.wrong_type(f"{where}.thinkingLevel", "TYPE_ENUM", level)
    if thinking.get("thinkingBudget", 0) < -1:
        text = "thinking_budget must be -1 or more."
        findings.request("thinking", f"{where}.thinkingBudget", text)
