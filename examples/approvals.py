"""A run that pauses in one process and is resumed in another. Needs no network.

Between the two there is only JSON: the conversation and what waits for an answer.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from golem import (
    Agent,
    Approval,
    AssistantMessage,
    DeferredResults,
    Pending,
    RunContext,
    ToolCall,
    ToolDeferred,
    ToolMessage,
    dump_history,
    load_history,
    tool,
)
from golem.events import ToolStarted
from golem.testing import Scripted, ScriptedModel


@tool(requires_approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


@tool
async def refund(ctx: RunContext, amount: int) -> str:
    """Refund the customer; large amounts need somebody's word."""
    if amount > 100 and not ctx.approved:
        raise ToolDeferred(reason=f"{amount} is above the limit")
    return f"{amount} refunded under key {ctx.idempotency_key[-4:]}"


@tool
async def signature(document: str) -> str:
    """Have a document signed, elsewhere."""
    raise ToolDeferred("external", f"sent {document} to the notary")


ASKING = AssistantMessage(
    tool_calls=(
        ToolCall.of("call_1", "delete", '{"path": "report.txt"}'),
        ToolCall.of("call_2", "refund", '{"amount": 500}'),
        ToolCall.of("call_3", "refund", '{"amount": 20}'),
        ToolCall.of("call_4", "signature", '{"document": "contract"}'),
    )
)


def make_agent(script: list[Scripted]) -> Agent:
    """The same agent in both processes."""
    return Agent(ScriptedModel(script), tools=[delete, refund, signature])


async def pause(folder: Path) -> None:
    """The first process: the run pauses, everything goes into files, the process ends."""
    result = await make_agent([ASKING]).run("Clean up, refund, and get the contract signed.")
    (folder / "history.json").write_bytes(dump_history(result.messages))
    (folder / "pending.json").write_bytes(msgspec.json.encode(result.pending))
    print("paused; answered already:")
    for message in result.messages:
        if isinstance(message, ToolMessage):
            print(f"  {message.tool_call_id}: {message.content}")


async def resume(folder: Path) -> None:
    """The second process: ask somebody, and go on."""
    history = load_history((folder / "history.json").read_bytes())
    pending = msgspec.json.decode((folder / "pending.json").read_bytes(), type=Pending)
    for call in (*pending.approvals, *pending.external):
        print(f"  waits for {call.kind}: {call.tool_name} {call.args} {call.reason}")
    answers = DeferredResults(
        approvals={"call_1": Approval(False, "the report is still needed"), "call_2": True},
        external={"call_4": "signed on Monday"},
    )
    agent = make_agent(["Refunded and signed; the report stays."])
    async with agent.stream(None, history=history, deferred=answers) as stream:
        async for event in stream:
            if isinstance(event, ToolStarted):
                print("running what was approved:", event.call_id)
    assert stream.result is not None
    for message in stream.result.new_messages:
        if isinstance(message, ToolMessage):
            print(f"  {message.tool_call_id}: {message.content}")
    print(stream.result.output)


def main() -> None:
    """Run both halves, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for half in ("pause", "resume"):
            print(f"{half}:", flush=True)
            subprocess.run([sys.executable, __file__, half, folder], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        halves = {"pause": pause, "resume": resume}
        asyncio.run(halves[sys.argv[1]](Path(sys.argv[2])))
    else:
        main()
