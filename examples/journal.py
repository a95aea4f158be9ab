"""A journal: a killed process loses at most the token in flight. Needs no network.

The first process is killed while a tool runs; the second one resumes from the file.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from golem import (
    Agent,
    AssistantMessage,
    Message,
    RunContext,
    ToolCall,
    dump_message,
    iter_history,
)
from golem.testing import ScriptedModel

ASKS = AssistantMessage(
    tool_calls=(
        ToolCall.of("call_1", "charge", '{"amount": 20}'),
        ToolCall.of("call_2", "crash", "{}"),
    )
)


async def charge(ctx: RunContext, amount: int) -> str:
    """Charge the customer."""
    return f"charged {amount} under key {ctx.idempotency_key.rpartition(':')[2]}"


async def crash() -> str:
    """Kill the process: no cleanup, no exception, nothing."""
    os._exit(9)


class Journal:
    """Each message as it becomes final, as a line of JSON that is on the disk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def __call__(self, message: Message) -> None:
        """Store it before the run goes on."""
        with self._path.open("ab") as file:
            file.write(dump_message(message) + b"\n")
            file.flush()
            os.fsync(file.fileno())


async def run(path: Path) -> None:
    """Run until killed."""
    agent: Agent = Agent(ScriptedModel([ASKS]), tools=[charge, crash], journal=Journal(path))
    await agent.run("Charge 20 and go on.")


async def resume(path: Path) -> None:
    """Go on from what is in the file."""
    with path.open("rb") as file:
        history = list(iter_history(file))
    for message in history:
        asked = [call.name for call in getattr(message, "tool_calls", ())]
        print(f"  {type(message).__name__:16} {message.content or asked}")
    agent: Agent = Agent(ScriptedModel(["It was charged once."]), tools=[charge, crash])
    result = await agent.run("Did it work?", history=history)
    print("repaired:", *result.repair.synthesized)
    print("answer:", result.output)


def main() -> None:
    """Kill one process, then go on in this one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        done = subprocess.run([sys.executable, __file__, str(path)], check=False)
        print("the process died with exit code", done.returncode)
        asyncio.run(resume(path))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        asyncio.run(run(Path(sys.argv[1])))
    else:
        main()
