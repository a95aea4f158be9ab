"""The model that answers without a key: by a few rules, and about as fast as a real one."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

import anyio

from golem import AssistantMessage, Message, Thinking, ToolCall, ToolMessage, UserMessage
from golem.model import Delta, Request, Response
from golem.testing import fragments

SECONDS_A_PIECE: Final = 0.04
STORY: Final = (
    "In Prague, they say, Rabbi Loew formed a man of clay from the bank of the Vltava. He wrote "
    "one word on its brow, and it rose and did what it was told: it carried water, it swept the "
    "synagogue, it kept watch at night, and it never forgot what had been said to it.\n\n"
    "One evening the rabbi forgot to let it rest. It went on carrying water until the house was "
    "full, for nobody had said when to stop. So the rabbi took one letter from the word, and the "
    "golem was clay again, with everything it had carried still in its place.\n\n"
    "They laid it in the attic. It is there today, and if somebody finds the right word it will "
    "go on exactly where it was interrupted."
)

ABILITIES: Final = """Without a key, these few things:

- the **weather** in any city, asked of a tool
- the *story* of the golem, told slowly enough to press Stop
- your old **drafts**, deleted if you approve

With one, whatever the model can do:

```sh
GOLEM_MODEL=openai:gpt-5-mini python examples/chat_web/server.py
```"""


class RuleModel:
    """Weather is asked of a tool, drafts are deleted by one that needs approval; else, a story."""

    model = "a few rules"

    async def generate(self, request: Request) -> Response:
        """The answer, whole."""
        return respond(request.messages)

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        """The answer, a few letters at a time."""
        response = respond(request.messages)
        for piece in fragments(response.message):
            await anyio.sleep(SECONDS_A_PIECE)
            yield piece
        yield response


def respond(messages: Sequence[Message]) -> Response:
    """What the rules make of the last message, or of the results of the last calls."""
    last = messages[-1]
    if isinstance(last, ToolMessage):
        return Response(AssistantMessage(_about_results(messages)))
    said = last.content.lower() if isinstance(last, UserMessage) else ""
    calls = _calls(said, len(messages))
    if calls:
        thought = Thinking("There is a tool for that.")
        return Response(
            AssistantMessage(thinking=(thought,), tool_calls=calls), finish_reason="tool_call"
        )
    if "story" in said:
        return Response(AssistantMessage(STORY))
    if "can you" in said:
        return Response(AssistantMessage(ABILITIES))
    turns = sum(isinstance(message, UserMessage) for message in messages)
    return Response(AssistantMessage(f"That makes {turns} things you have said. Ask on!"))


def _calls(said: str, place: int) -> tuple[ToolCall, ...]:
    if "weather" in said:
        cities = re.findall(r"\bin ([a-z]+)", said) or ["prague"]
        return tuple(
            ToolCall.of(f"call_{place}_{k}", "weather", json.dumps({"city": city.title()}))
            for k, city in enumerate(cities)
        )
    if "draft" in said:
        return (ToolCall.of(f"call_{place}_0", "delete_drafts", '{"older_than_days": 30}'),)
    return ()


def _about_results(messages: Sequence[Message]) -> str:
    results: list[str] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        results.insert(0, message.content)
    if any("denied" in result for result in results):
        return "Then I leave everything as it is."
    return "Done: " + "; ".join(results) + "."
