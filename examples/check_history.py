"""One conversation, and what six providers would make of it. Needs no key and no network.

A history is portable: what means nothing to a provider is left out, what it refuses under one
name goes out under another. `check_history` says so before the call, and what would stop a run.
"""

from __future__ import annotations

from typing import Any

from golem import (
    AssistantMessage,
    FallbackModel,
    Message,
    Part,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
    check_history,
)
from golem.model import Model
from golem_adapters import Anthropic, AzureOpenAI, Bedrock, Gemini, OpenAI, OpenAIResponses

NOBODY = "http://localhost:1"  # nothing is sent
HISTORY: list[Message] = [
    UserMessage("What does the camera at the door see?"),
    AssistantMessage(
        thinking=(Thinking("A picture first.", signature="c2ln", provider="gemini"),),
        tool_calls=(ToolCall.of("call 1", "take picture", '{"at": "door"}', "c2ln"),),
    ),
    ToolMessage(
        "taken",
        tool_call_id="call 1",
        tool_name="take picture",
        parts=(Part.image(b"\x89PNG", "image/png"),),
    ),
    AssistantMessage("A cat."),
    UserMessage("And in this film?", parts=(Part.video(b"\x00", "video/mp4"),)),
]


def models() -> dict[str, Model]:
    """A model of every provider."""
    at: dict[str, Any] = {"api_key": "nobody's", "base_url": NOBODY}
    return {
        "Chat Completions": OpenAI("gpt-5-mini", **at),
        "Responses": OpenAIResponses("gpt-5-mini", **at),
        "Azure": AzureOpenAI("my-deployment", **at),
        "Anthropic": Anthropic("claude-sonnet", **at),
        "Gemini": Gemini("gemini-3-flash-preview", **at),
        "Bedrock": Bedrock("amazon.nova-pro-v1:0", region="eu-central-1", **at),
    }


def main() -> None:
    """Print every report, and who could take over from whom."""
    known = models()
    for name, model in known.items():
        report = check_history(HISTORY, model)
        print(f"{name}: {'can' if not report.of('refused') else 'cannot'} go on with it")
        for finding in report.findings:
            print(f"  {finding}")

    pair = FallbackModel([known["Gemini"], known["Anthropic"]])
    stuck = {finding.model for finding in check_history(HISTORY, pair).of("refused")}
    print("of Gemini and Anthropic, these could not take over:", *sorted(stuck))


if __name__ == "__main__":
    main()
