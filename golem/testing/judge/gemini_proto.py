"""What a Gemini request may hold, as Google's parser of JSON sees it: messages and their fields.

The parser goes before every rule: it refuses names that it does not know and values of another
type, and takes what the JSON form of protocol buffers takes: names in both spellings, null for
what is not there, one value where there are several. What comes out is in one spelling and of
the right types, so the rules have nothing to fear. Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from golem.testing.judge.findings import JSON, is_array, is_object, strings
from golem.testing.judge.gemini_words import Findings, camel, spelled

DEEPEST: Final = 100
"""How deep messages may stand in each other; the parser gives up there."""

DEEPEST_VALUE: Final = 512
"""How deep anything may be nested. Google's own bound for free values is not on record."""

Fields = Mapping[str, str]
"""The fields of a message by name, each with its type.

A message's name, a plain type, or ``Value`` and ``Struct`` for whatever JSON holds and for any
object; ``[]`` behind it says that there are several, ``{}`` that they have names.
"""

_SERVER_TOOLS: Final = dict.fromkeys(
    (
        *("googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "fileSearch"),
        *("googleMaps", "computerUse", "enterpriseWebSearch", "retrieval"),
    ),
    "Struct",
)

_COMMON: Final[Mapping[str, Fields]] = {
    "GenerateContentRequest": {
        "model": "string",
        "contents": "Content[]",
        "systemInstruction": "Content",
        "tools": "Tool[]",
        "toolConfig": "ToolConfig",
        "safetySettings": "SafetySetting[]",
        "generationConfig": "GenerationConfig",
        "cachedContent": "string",
        "labels": "string{}",
        "serviceTier": "string",
        "store": "bool",
        "continuationToken": "string",
    },
    "Content": {"role": "string", "parts": "Part[]"},
    "Part": {
        "text": "string",
        "inlineData": "Blob",
        "fileData": "FileData",
        "functionCall": "FunctionCall",
        "functionResponse": "FunctionResponse",
        "executableCode": "Struct",
        "codeExecutionResult": "Struct",
        "thought": "bool",
        "thoughtSignature": "bytes",
        "videoMetadata": "Struct",
        "mediaResolution": "Struct",
        "partMetadata": "Struct",
    },
    "Blob": {"mimeType": "string", "data": "bytes", "displayName": "string"},
    "FileData": {"mimeType": "string", "fileUri": "string", "displayName": "string"},
    "FunctionCall": {"id": "string", "name": "string", "args": "Struct"},
    "FunctionResponse": {
        "id": "string",
        "name": "string",
        "response": "Struct",
        "parts": "FunctionResponsePart[]",
        "scheduling": "string",
        "willContinue": "bool",
    },
    "FunctionResponsePart": {"inlineData": "Blob", "fileData": "FileData"},
    "Tool": {"functionDeclarations": "FunctionDeclaration[]", **_SERVER_TOOLS},
    "FunctionDeclaration": {
        "name": "string",
        "description": "string",
        "behavior": "string",
        "parameters": "Schema",
        "parametersJsonSchema": "Value",
        "response": "Schema",
        "responseJsonSchema": "Value",
    },
    "Schema": {
        **dict.fromkeys(("type", "format", "title", "description", "pattern"), "string"),
        **dict.fromkeys(("minItems", "maxItems", "minProperties", "maxProperties"), "int"),
        **dict.fromkeys(("minLength", "maxLength"), "int"),
        **dict.fromkeys(("minimum", "maximum"), "number"),
        **dict.fromkeys(("enum", "required", "propertyOrdering"), "string[]"),
        **dict.fromkeys(("default", "example"), "Value"),
        "nullable": "bool",
        "properties": "Schema{}",
        "items": "Schema",
        "anyOf": "Schema[]",
    },
    "ToolConfig": {
        "functionCallingConfig": "FunctionCallingConfig",
        "retrievalConfig": "Struct",
    },
    "FunctionCallingConfig": {
        "mode": "string",
        "allowedFunctionNames": "string[]",
        "streamFunctionCallArguments": "bool",
    },
    "SafetySetting": {"category": "string", "threshold": "string", "method": "string"},
    "GenerationConfig": {
        **dict.fromkeys(("temperature", "topP", "topK"), "number"),
        **dict.fromkeys(("presencePenalty", "frequencyPenalty"), "number"),
        **dict.fromkeys(("maxOutputTokens", "seed", "candidateCount", "logprobs"), "int"),
        **dict.fromkeys(("stopSequences", "responseModalities"), "string[]"),
        **dict.fromkeys(("responseLogprobs", "enableEnhancedCivicAnswers"), "bool"),
        **dict.fromkeys(("audioTimestamp", "enableAffectiveDialog"), "bool"),
        **dict.fromkeys(("speechConfig", "imageConfig", "routingConfig"), "Struct"),
        **dict.fromkeys(("responseMimeType", "mediaResolution"), "string"),
        "responseSchema": "Schema",
        "responseJsonSchema": "Value",
        "thinkingConfig": "ThinkingConfig",
    },
    "ThinkingConfig": {
        "includeThoughts": "bool",
        "thinkingBudget": "int",
        "thinkingLevel": "string",
    },
}

AI_STUDIO: Final[Mapping[str, Fields]] = {
    **_COMMON,
    "Part": {**_COMMON["Part"], "toolCall": "Struct", "toolResponse": "Struct"},
    "ToolConfig": {**_COMMON["ToolConfig"], "includeServerSideToolInvocations": "bool"},
    "CountTokensRequest": {
        "model": "string",
        "contents": "Content[]",
        "generateContentRequest": "GenerateContentRequest",
    },
}
"""The messages of the Gemini API at AI Studio."""

VERTEX: Final[Mapping[str, Fields]] = {
    **_COMMON,
    "Schema": {
        **_COMMON["Schema"],
        "additionalProperties": "Value",
        "ref": "string",
        "defs": "Schema{}",
    },
    "CountTokensRequest": {
        name: _COMMON["GenerateContentRequest"][name]
        for name in ("model", "contents", "systemInstruction", "tools", "generationConfig")
    },
}
"""The messages of the Gemini API at Vertex AI: what its own tools did is no part there."""

_PLAIN: Final[Mapping[str, tuple[str, type | tuple[type, ...]]]] = {
    "string": ("TYPE_STRING", str),
    "bool": ("TYPE_BOOL", bool),
    "int": ("TYPE_INT32", int),
    "number": ("TYPE_FLOAT", (int, float)),
    "bytes": ("TYPE_BYTES", str),
    "Struct": ("type.googleapis.com/google.protobuf.Struct", dict),
}
"""Plain types: what the parser calls them, and what they are in Python."""


class Parser:
    """Reads one message of a request; what is wrong with it goes to `findings`."""

    def __init__(self, messages: Mapping[str, Fields], findings: Findings) -> None:
        self._messages = messages
        self._findings = findings

    def read(self, body: Any, message: str) -> JSON:
        """The fields of `body` that are in order, in JSON's spelling."""
        if _depth_beyond(body, DEEPEST_VALUE):
            text = "Message too deep. Max recursion depth reached."
            self._findings.field("depth", "", f"Invalid JSON payload received. {text}")
            return {}
        if not is_object(body):
            text = "Invalid JSON payload received. Root element must be a message."
            self._findings.field("member_type", "", text)
            return {}
        return self._message(body, message, "", 0)

    def _message(self, given: JSON, message: str, place: str, depth: int) -> JSON:
        if depth > DEEPEST:
            text = "Message too deep. Max recursion depth reached."
            self._findings.field("depth", place, f"Invalid JSON payload received. {text}")
            return {}
        fields = self._messages[message]
        found: JSON = {}
        for name, value in given.items():
            known = camel(name)
            where = f"{place}.{known}" if place else known
            if known not in fields:
                self._findings.unknown(place, name)
            elif known in found:
                text = f"Invalid value at '{spelled(place)}' (oneof), '{name}' is already set."
                self._findings.field("repeated_member", where, text)
            elif value is not None:
                read = self._field(value, fields[known], where, depth + 1)
                if read is not None:
                    found[known] = read
        return found

    def _field(self, value: Any, kind: str, place: str, depth: int) -> Any:
        if kind.endswith("[]"):
            items = value if is_array(value) else [value]
            one = kind.removesuffix("[]")
            places = [f"{place}[{index}]" for index in range(len(items))]
            read = [self._one(item, one, at, depth) for item, at in zip(items, places, strict=True)]
            return [item for item in read if item is not None]
        if kind.endswith("{}"):
            if not is_object(value):
                self._findings.wrong_type(place, "Map", value)
                return None
            one = kind.removesuffix("{}")
            named = {n: self._one(v, one, f"{place}.{n}", depth) for n, v in value.items()}
            return {name: item for name, item in named.items() if item is not None}
        return self._one(value, kind, place, depth)

    def _one(self, value: Any, kind: str, place: str, depth: int) -> Any:
        if kind == "Value":
            return value
        if is_array(value):
            self._findings.not_repeating(place)
            return None
        if kind in self._messages:
            if is_object(value):
                return self._message(value, kind, place, depth)
            package = "type.googleapis.com/google.ai.generativelanguage.v1beta"
            self._findings.wrong_type(place, f"{package}.{kind}", value)
            return None
        return self._plain(value, kind, place)

    def _plain(self, value: Any, kind: str, place: str) -> Any:
        wanted, types = _PLAIN[kind]
        value = _number(value) if kind in ("int", "number") else value
        if not isinstance(value, types) or (isinstance(value, bool) and kind != "bool"):
            self._findings.wrong_type(place, wanted, value)
            return None
        if kind == "bytes" and not is_bytes(str(value)):
            text = f"Invalid value at '{spelled(place)}' ({wanted}), Base64 decoding failed for"
            self._findings.field("base64", place, f'{text} "{str(value)[:80]}"')
            return None
        return value


def _number(value: Any) -> Any:
    """A number, which may be spelled as a text."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return value


def is_bytes(text: str) -> bool:
    """Whether `text` is base64, of either alphabet; padding may be left out."""
    text = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _depth_beyond(value: object, most: int) -> bool:
    """Whether `value` is nested deeper than `most`, without recursion."""
    waiting: list[tuple[object, int]] = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if depth > most:
            return True
        if is_object(item):
            waiting.extend((inner, depth + 1) for inner in item.values())
        elif is_array(item):
            waiting.extend((inner, depth + 1) for inner in item)
    return False


def judge_characters(body: object, findings: Findings) -> None:
    """No half of a surrogate pair anywhere: no UTF-8 holds it, and the parser refuses it."""
    for text in strings(body):
        try:
            text.encode()
        except UnicodeEncodeError:
            said = "Invalid JSON payload received. Unexpected token. Invalid UTF-8."
            findings.field("valid_utf8", "", said)
            return
