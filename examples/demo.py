"""A real conversation that survives a crash: ``nox -s demo``.

Three runs are chained, each seeing the earlier ones only through ``history=``. Every message is
stored as it becomes final. Then the stored conversation is damaged the way a killed process
damages one, loaded, normalized, and continued. Kill this program at any time and start it again:
it goes on from what is stored.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

import golem
from choose_model import add_arguments, choose_model
from golem import Agent, AssistantMessage, Message, RunError, ToolCall, UserMessage
from golem.events import MessageAdded, ModelFinished, ModelStarted, TextDelta

INSTRUCTIONS = "You are a helpful assistant. Answer in one short sentence."
QUESTIONS = ("What is the capital of Japan?", "And of China?", "Repeat both cities.")
LAST_QUESTION = "Name the capitals we talked about."
STORE = Path("conversations/demo.json")

COLOR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


class Store:
    """A conversation in a JSON file that is whole at every moment, whatever kills the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.messages: list[Message] = []

    def load(self) -> None:
        """Read what is stored."""
        self.messages = golem.load_history(self.path.read_bytes())

    def add(self, *messages: Message) -> None:
        """Keep `messages`, on the disk too."""
        self.replace([*self.messages, *messages])

    def replace(self, messages: list[Message]) -> None:
        """Write a new file beside the old one, then put it in its place."""
        self.messages = messages
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new")
        with beside.open("wb") as file:
            file.write(golem.dump_history(messages))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)


async def converse(agent: Agent[None], store: Store) -> None:
    """The whole demo, from an empty store or from one that an earlier process left."""
    if store.path.exists():
        heading(f"Found {store.path}: loading, normalizing and continuing it")
        recover(store)
        if store.messages and isinstance(store.messages[-1], UserMessage):
            note("the last question was never answered")
            await ask(agent, store, "")
        await ask_all(agent, store)
    else:
        heading("Three chained runs")
        await ask_all(agent, store)
        heading("A crash: the process is killed between a tool call and its result")
        damage(store)
        heading("Loading and normalizing what it left")
        recover(store)
    heading("Going on")
    await ask(agent, store, LAST_QUESTION)
    print()
    note(f"{len(store.messages)} messages in {store.path}; run this again to continue them,")
    note("or delete the file to see the crash and its repair once more")


async def ask_all(agent: Agent[None], store: Store) -> None:
    """Ask the questions that the conversation does not have yet."""
    asked = {message.content for message in store.messages}
    for question in QUESTIONS:
        if question not in asked:
            await ask(agent, store, question)


async def ask(agent: Agent[None], store: Store, question: str) -> None:
    """One run: stream the answer, storing each message as soon as it is final.

    An empty question adds no message: the model answers what the history ends with.
    """
    print()
    if question:
        say("you", question)
    async with agent.stream(question, history=store.messages) as stream:
        async for event in stream:
            match event:
                case MessageAdded():
                    store.add(event.message)
                case ModelStarted():
                    say("model", "", end="")
                case TextDelta():
                    print(event.text, end="", flush=True)
                case ModelFinished():
                    print()
                case _:
                    pass
    note(f"run {stream.run_id}")
    note(f"conversation {stream.conversation_id}")


def damage(store: Store) -> None:
    """What a process that is killed while its tool works leaves: a call without a result."""
    call = ToolCall.of("call_1", "get_weather", '{"city": "Tokyo"}')
    store.add(
        UserMessage("What is the weather there?"),
        AssistantMessage(tool_calls=(call,)),
    )
    note(f"{store.path} now ends with the call {call.id}: {call.name} {call.args}")


def recover(store: Store) -> None:
    """Load, normalize, and show what the pass found."""
    store.load()
    messages, report = golem.normalize_history(store.messages)
    store.replace(messages)
    note(f"{len(messages)} messages; the record {'needed repair' if report else 'is whole'}")
    for title, ids in (
        ("got a neutral result", report.synthesized),
        ("dropped, a result without a call", report.dropped),
        ("moved up to its call", report.moved),
        ("has cut-off arguments", report.truncated),
    ):
        for call_id in ids:
            note(f"  {call_id}: {title}")


def heading(text: str) -> None:
    """A section of the demo."""
    print(f"\n\033[1m{text}\033[0m" if COLOR else f"\n== {text}")


def say(who: str, text: str, end: str = "\n") -> None:
    """A line of the conversation."""
    name = f"{who:>5}"
    print(f"\033[36m{name}\033[0m  {text}" if COLOR else f"{name}: {text}", end=end, flush=True)


def note(text: str) -> None:
    """A remark about the record."""
    print(f"\033[2m       {text}\033[0m" if COLOR else f"       {text}")


def main() -> None:
    """Choose the model, hold the conversation."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_arguments(parser)
    parser.add_argument("--store", type=Path, default=STORE, help="where the conversation is kept")
    arguments = parser.parse_args()
    store = Store(arguments.store)
    try:
        with choose_model(arguments) as (model, description):
            note(f"talking to {description}")
            agent: Agent[None] = Agent(model, instructions=INSTRUCTIONS)
            asyncio.run(converse(agent, store))
    except KeyboardInterrupt:
        print(f"\nInterrupted. {store.path} keeps what was said; run this again to continue.")
        raise SystemExit(130) from None
    except golem.HistoryError as error:
        raise SystemExit(f"\n{store.path} holds no conversation: {error}") from error
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError as error:
        raise SystemExit(f"\nThe conversation cannot be kept: {error}") from error
    except RunError as error:
        raise SystemExit(f"\n{error}\n{store.path} keeps what was said.") from error


if __name__ == "__main__":
    main()
