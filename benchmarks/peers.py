"""The others: the same conversation as each of them holds it. Missing ones are left out.

They are imported by name, for they are in an environment of their own (``nox -s bench``).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import warnings
from collections.abc import Sequence
from typing import Any

from golem import AssistantMessage, Message, ToolMessage, UserMessage

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it looks for prices on the web otherwise

PACKAGES = {
    "pydantic-ai": "pydantic_ai",
    "openai-agents": "agents",
    "langchain": "langchain_core",
    "langchain-openai": "langchain_openai",
    "litellm": "litellm",
    "strands": "strands",
    "orjson": "orjson",
    "openai SDK": "openai",
}


@functools.cache
def there(name: str) -> bool:
    """Whether a peer, as the table calls it, is installed."""
    return importlib.util.find_spec(PACKAGES[name]) is not None


@functools.cache
def module(name: str) -> Any:
    """A module of a peer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def pydantic_messages(history: Sequence[Message]) -> list[Any]:
    """The conversation as pydantic-ai's model messages, one for one, stamped alike."""
    m = module("pydantic_ai.messages")
    found: list[Any] = []
    for message in history:
        stamps = {"run_id": message.run_id, "conversation_id": message.conversation_id}
        match message:
            case UserMessage():
                found.append(m.ModelRequest([m.UserPromptPart(message.content)], **stamps))
            case AssistantMessage():
                parts = [m.TextPart(message.content)] if message.content else []
                parts += [m.ToolCallPart(c.name, c.args, c.id) for c in message.tool_calls]
                found.append(m.ModelResponse(parts, **stamps))
            case ToolMessage():
                part = m.ToolReturnPart(message.tool_name, message.content, message.tool_call_id)
                found.append(m.ModelRequest([part], **stamps))
            case _:
                found.append(m.ModelRequest([m.SystemPromptPart(message.content)], **stamps))
    return found


def langchain_messages(history: Sequence[Message]) -> list[Any]:
    """The conversation as langchain-core's messages, stamped where applications may."""
    m = module("langchain_core.messages")
    found: list[Any] = []
    for message in history:
        stamps = {"run_id": message.run_id, "conversation_id": message.conversation_id}
        match message:
            case UserMessage():
                found.append(m.HumanMessage(message.content, additional_kwargs=stamps))
            case AssistantMessage():
                calls = [
                    {"name": c.name, "args": {} if c.truncated else c.arguments(), "id": c.id}
                    for c in message.tool_calls
                ]
                said = m.AIMessage(message.content, tool_calls=calls, additional_kwargs=stamps)
                found.append(said)
            case ToolMessage():
                result = m.ToolMessage(
                    message.content, tool_call_id=message.tool_call_id, additional_kwargs=stamps
                )
                found.append(result)
            case _:
                found.append(m.SystemMessage(message.content, additional_kwargs=stamps))
    return found


def agents_items(history: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation as the input items of openai-agents, one for each call and result."""
    found: list[dict[str, Any]] = []
    for message in history:
        match message:
            case AssistantMessage():
                if message.content:
                    found.append({"role": "assistant", "content": message.content})
                found += [
                    {
                        "type": "function_call",
                        "call_id": c.id,
                        "name": c.name,
                        "arguments": c.args,
                    }
                    for c in message.tool_calls
                ]
            case ToolMessage():
                found.append(
                    {
                        "type": "function_call_output",
                        "call_id": message.tool_call_id,
                        "output": message.content,
                    }
                )
            case _:
                found.append({"role": "user", "content": message.content})
    return found


def chat_messages(history: Sequence[Message]) -> list[dict[str, Any]]:
    """The conversation in the format of Chat Completions, which litellm's pass takes."""
    found: list[dict[str, Any]] = []
    for message in history:
        match message:
            case AssistantMessage():
                said: dict[str, Any] = {"role": "assistant", "content": message.content or None}
                if message.tool_calls:
                    said["tool_calls"] = [
                        {
                            "id": c.id,
                            "type": "function",
                            "function": {"name": c.name, "arguments": c.args},
                        }
                        for c in message.tool_calls
                    ]
                found.append(said)
            case ToolMessage():
                found.append(
                    {
                        "role": "tool",
                        "tool_call_id": message.tool_call_id,
                        "content": message.content,
                    }
                )
            case _:
                found.append({"role": "user", "content": message.content})
    return found
