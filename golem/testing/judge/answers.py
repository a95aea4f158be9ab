"""What answers are made from: ids, pieces of text, counts, values that fit a schema. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

from msgspec.structs import replace

from golem.messages import AssistantMessage, ToolCall
from golem.model import Response
from golem.testing.judge.findings import JSON, elements, is_json_object, is_object, members
from golem.testing.judge.provider import Said
from golem.usage import Usage

_WORD: Final = re.compile(r"\s*\S{1,12}|\s+")
_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_IGNORED: Final = ("stream", "stream_options")
_CHARACTERS_OF_A_TOKEN: Final = 4


def response_of(said: Said) -> Response:
    """`said` as a whole response."""
    if isinstance(said, Response):
        return said
    message = AssistantMessage(said) if isinstance(said, str) else said
    return Response(message, finish_reason="tool_call" if message.tool_calls else "stop")


def minted(body: JSON, salt: str, length: int = 24) -> str:
    """An id that looks like a provider's, made from the request.

    The same for the plain and the streamed request of one body, so that their answers can be
    compared; another one for another request.
    """
    seed = json.dumps([salt, _asked(body)], sort_keys=True).encode()
    number = int.from_bytes(blake2b(seed).digest())
    letters: list[str] = []
    for _ in range(length):
        number, digit = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return "".join(letters)


def _asked(body: JSON) -> JSON:
    return {name: value for name, value in body.items() if name not in _IGNORED}


def pieces_of(text: str) -> list[str]:
    """A text in pieces about as large as tokens; joined they are the text."""
    return _WORD.findall(text)


def counted(body: JSON, said: Response) -> Usage:
    """The usage of an answer: its own, else an estimate."""
    if said.usage:
        return said.usage
    message = said.message
    thought = _tokens("".join(block.text for block in message.thinking))
    spoken = _tokens(
        message.content + "".join(call.name + call.args for call in message.tool_calls)
    )
    return Usage(_tokens(json.dumps(_asked(body))), thought + spoken + 1, reasoning_tokens=thought)


def _tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_OF_A_TOKEN)


def default_said(
    tools: Sequence[Any], choice: object, schema: object, *, asked: bool, wants_json: bool
) -> Said:
    """What a helpful model says: a call of the first tool when it was just asked, else a text.

    `asked`: the last message is the user's, not a result. `schema`: of the answer, if one is
    enforced.
    """
    offered = [members(members(tool).get("function", tool)) for tool in tools]
    wanted = _wanted(choice)
    if offered and choice != "none" and (asked or wanted):
        function = next((f for f in offered if f.get("name") == wanted), offered[0])
        args = json.dumps(example(function.get("parameters")))
        return AssistantMessage(tool_calls=(ToolCall.of("", str(function.get("name")), args),))
    if schema is not None or wants_json:
        return json.dumps(example(schema))
    return "The capital of France is Paris."


def _wanted(choice: object) -> str:
    """The name of the tool that has to be called; a word where any will do."""
    if is_object(choice):
        return str(members(choice.get("function", choice)).get("name"))
    return "any" if choice in ("required", "any") else ""


def example(schema: object) -> Any:
    """A value that fits a simple JSON Schema: every required property, the first choice."""
    node = members(schema)
    if "const" in node:
        return node["const"]
    if elements(node.get("enum")):
        return node["enum"][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if elements(node.get(name)):
            return example(node[name][0])
    match node.get("type", "object"):
        case "string":
            return "Paris"
        case "integer" | "number":
            least = node.get("minimum")
            return max(1, least) if isinstance(least, int | float) else 1
        case "boolean":
            return True
        case "array":
            return [example(node.get("items"))] if node.get("minItems") else []
        case "null":
            return None
        case _:
            properties = members(node.get("properties"))
            required = elements(node.get("required"))
            return {name: example(properties.get(name)) for name in required}


def with_ids(said: Response, mint: Sequence[str]) -> Response:
    """`said` with an id for every call that has none."""
    calls = tuple(
        call if call.id else replace(call, id=mint[index])
        for index, call in enumerate(said.message.tool_calls)
    )
    return replace(said, message=replace(said.message, tool_calls=calls))


def arguments(call: ToolCall) -> JSON:
    """The arguments of a call to answer with, as an object, which is all that this wire has."""
    return json.loads(call.args) if is_json_object(call.args) else {"text": call.args}


def spelled(value: object) -> str:
    """JSON as plain and streamed answers both spell it, so that arguments are the same text."""
    return json.dumps(value, ensure_ascii=False)
