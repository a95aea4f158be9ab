"""What all the recipes serve: one agent, one form of question, and the boundary it passes.

With ``GOLEM_MODEL=openai:gpt-5-mini`` (and its key) the agent is a real one; without, it answers
from a script: "wait" for ever, and anything else with what it was told.
"""

from __future__ import annotations

import os
import sys

import msgspec
import uvicorn

from golem import Agent, Message, UserMessage, load_history, sanitize_history
from golem.events import TERMINAL, Event
from golem.model import Request, TextDelta
from golem.testing import HANG, Fragments, FunctionModel, Scripted


class Question(msgspec.Struct):
    """What a client posts: ``{"prompt": "…", "history": […]}``."""

    prompt: str
    history: msgspec.Raw = msgspec.Raw(b"[]")


def read(body: bytes) -> tuple[str, list[Message]]:
    """The prompt, and a history that a client may not use to speak for anybody else.

    Raises ValueError (msgspec's and golem's errors are some) that says what is wrong with it.
    """
    question = msgspec.json.decode(body, type=Question)
    history, report = sanitize_history(load_history(bytes(question.history)), max_messages=500)
    if report:
        print("sanitized:", msgspec.json.encode(report).decode(), flush=True)
    return question.prompt, history


def tell(event: Event) -> None:
    """The server's log: how each run ended."""
    if isinstance(event, TERMINAL):
        print(event.kind, flush=True)


def answer(request: Request) -> Scripted:
    """The model without a key."""
    said = [message.content for message in request.messages if isinstance(message, UserMessage)]
    if said[-1] == "wait":
        return Fragments([TextDelta("One moment"), HANG])
    return f"You said {said[-1]!r}, and {len(said) - 1} things before."


agent = Agent(os.environ.get("GOLEM_MODEL") or FunctionModel(answer), on_event=tell)


def port() -> int:
    """The port to serve at: the program's argument, or 8000."""
    return int(sys.argv[1]) if len(sys.argv) > 1 else 8000


def serve(app: object) -> None:
    """Serve an ASGI application to this machine alone."""
    uvicorn.run(app, host="127.0.0.1", port=port(), log_level="warning")  # type: ignore[arg-type]
