"""Run and conversation identity over chained and forked runs. Needs no network."""

from __future__ import annotations

import asyncio

import golem
from golem import Agent
from golem.testing import ScriptedModel


async def main() -> None:
    """Chain two runs, store and load the conversation, fork it."""
    agent: Agent[None] = Agent(ScriptedModel(["Hello!", "It went on.", "It went another way."]))

    first = await agent.run("hi", run_id="trace-4711")
    print("first run:   ", first.run_id, "(given by the caller)")
    print("conversation:", first.conversation_id)

    stored = golem.dump_history(first.messages)
    continued = await agent.run("and then?", history=golem.load_history(stored))
    print("second run:  ", continued.run_id, "(new)")
    print("same conversation:", continued.conversation_id == first.conversation_id)

    fork = await agent.run("what if?", history=first.messages, conversation_id=golem.new_id())
    print("forked into: ", fork.conversation_id)
    print("what was supplied keeps its stamps:", fork.messages[0].run_id == first.run_id)
    print("what the run added has the new one:", fork.new_messages[0].run_id == fork.run_id)


if __name__ == "__main__":
    asyncio.run(main())
