"""Forks, rewinds, corrections and merges of a conversation. Offline."""

from __future__ import annotations

import asyncio

from golem import (
    Agent,
    Message,
    drop_turn,
    edit_user,
    fork_at,
    merge,
    new_id,
    rewind_to,
    trim_history,
    turns,
)
from golem.testing import ScriptedModel

ANSWERS = ["Lisbon.", "Three days.", "Porto, then.", "Two days.", "Both, then."]


async def main() -> None:
    """Take one conversation through every edit."""
    agent: Agent[None] = Agent(ScriptedModel(ANSWERS))
    first = await agent.run("Where shall we go?")
    second = await agent.run("For how long?", history=first.messages)
    show("the conversation", second.messages)

    branch = await agent.run(
        "Somewhere smaller?", history=fork_at(second.messages, 2), conversation_id=new_id()
    )
    show("a fork", branch.messages)
    print(f"same conversation: {branch.conversation_id == second.conversation_id}")

    show("rewound to the first run", rewind_to(second.messages, first.run_id))

    corrected = edit_user(second.messages, 2, "For how long, with little time?")
    redone = await agent.run(None, history=corrected)
    show("a corrected question, answered again", redone.messages)

    show("without the first answer", drop_turn(second.messages, 1))
    together = merge(second.messages, branch.messages)
    show("both branches, the common beginning once", together)
    print(f"{sum(1 for _ in turns(together))} turns; bounded: {len(trim_history(4)(together))}")


def show(title: str, messages: list[Message]) -> None:
    """One line a message."""
    print(f"\n{title}:")
    for message in messages:
        print(f"  {type(message).__name__:16} {message.content}")


asyncio.run(main())
