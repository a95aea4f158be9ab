"""What a failed run leaves, and the two ways to go on from it. Needs no network."""

from __future__ import annotations

import asyncio

from golem import (
    Agent,
    AssistantMessage,
    Message,
    RunError,
    ToolCall,
    TransportError,
    Usage,
)
from golem.model import Delta, TextDelta
from golem.testing import Fragments, ScriptedModel

SENT: list[str] = []


async def send_mail(to: str) -> str:
    """Send a mail: nothing one wants to do twice."""
    SENT.append(to)
    return f"sent to {to}"


async def book() -> str:
    """Book a table."""
    raise ConnectionError("the restaurant does not answer")


ASKING = AssistantMessage(
    tool_calls=(
        ToolCall.of("c1", "send_mail", '{"to": "ada@example.com"}'),
        ToolCall.of("c2", "book", "{}"),
    )
)


async def a_tool_fails() -> RunError:
    """The mail is out when the booking fails; the evidence says so."""
    model = ScriptedModel([ASKING], usage=Usage(120, 30))
    agent: Agent = Agent(model, tools=[send_mail, book])
    try:
        await agent.run("Invite Ada and book a table.")
    except RunError as error:
        return error
    raise AssertionError("it fails")


async def go_on(history: list[Message]) -> None:
    """One more run over what is left."""
    model = ScriptedModel(["Ada is invited; there is no table."])
    agent: Agent = Agent(model, tools=[send_mail, book])
    result = await agent.run("Please go on.", history=history)
    sent = [message.content or "(asks for tools)" for message in model.requests[0].messages]
    print("  the model reads:", *sent, sep="\n    ")
    print("  repaired:", *result.repair.synthesized)


async def a_stream_dies() -> None:
    """What a dying stream had said is evidence, not a message."""
    pieces: list[Delta | Exception] = [
        TextDelta("The answer "),
        TextDelta("is "),
        TransportError("connection reset"),
    ]
    agent: Agent = Agent(ScriptedModel([Fragments(pieces)]))
    async with agent.stream("What is it?") as stream:
        try:
            async for _ in stream:
                pass
        except RunError as error:
            print(error)
    assert stream.partial is not None
    print("  it had said:", repr(stream.partial.text))
    print("  messages:", [message.content for message in stream.partial.messages])


async def main() -> None:
    """Fail, look, go on."""
    error = await a_tool_fails()
    partial = error.partial
    assert partial is not None
    print(error)
    print("  usage:", partial.usage.total_tokens, "tokens in", partial.requests, "request")
    print("  finished before it:", [result.content for result in partial.batch_results])

    print("resumed from `messages`: the batch is asked again, for all the model knows")
    await go_on(partial.messages)
    print("resumed from `resume_messages`: what has happened is told")
    await go_on(partial.resume_messages)
    print("mails sent:", SENT)

    await a_stream_dies()


if __name__ == "__main__":
    asyncio.run(main())
