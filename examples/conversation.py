"""Talk to a model: a line in, the answer streamed out, the history kept.

Every run is bounded to the newest 20 messages, so a conversation may go on for ever.

Commands: ``/save FILE``, ``/load FILE``, ``/history``, ``/new``, ``/quit``. Ctrl-C stops the
answer that is being given and keeps what was said of it; at the prompt it leaves the program.
The model is chosen like the demo's: ``--base-url``, ``OPENAI_API_KEY`` or the local one.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
from pathlib import Path

import golem
from choose_model import add_arguments, choose_model
from golem import Agent, AssistantMessage, Message, RunError

INSTRUCTIONS = "You are a helpful assistant. Answer in one short sentence."
NEWEST = 20
CONTROLS = dict.fromkeys({*range(32), *range(127, 160)} - {ord("\n"), ord("\t")})
"""What a model must not send to somebody's terminal."""
HELP = "/save FILE   /load FILE   /history   /new   /quit   (Ctrl-C stops an answer)"


class Chat:
    """A conversation with a person at a terminal.

    Lines are read between the runs, outside the event loop: while a person types there is
    nothing for the loop to do, and Ctrl-C belongs to whoever is at work.
    """

    def __init__(self, agent: Agent[None], loop: asyncio.Runner) -> None:
        self.agent = agent
        self.loop = loop
        self.history: list[Message] = []

    def serve(self) -> None:
        """Read lines until the person leaves."""
        while True:
            try:
                line = input("you: ").strip()
            except (EOFError, KeyboardInterrupt):
                print()
                return
            command, _, rest = line.partition(" ")
            if command == "/quit":
                return
            if command.startswith("/"):
                self.obey(command, rest.strip())
            elif line:
                self.ask(line)

    def ask(self, prompt: str) -> None:
        """One turn. A turn that fails or is stopped leaves a history that can go on."""
        before = len(self.history)
        try:
            self.loop.run(self.answer(prompt))
        except KeyboardInterrupt:
            said = len(self.history) > before
            kept = "what was said so far stays in the conversation" if said else "nothing was said"
            print(f"\n[stopped; {kept}]")
        except RunError as error:
            print(f"\n[{error}]")

    async def answer(self, prompt: str) -> None:
        """Stream the answer; whatever ends it, keep what there is."""
        print("model: ", end="", flush=True)
        async with self.agent.stream(prompt, history=self.history) as stream:
            try:
                async for text in stream.text():
                    print(text.translate(CONTROLS), end="", flush=True)
            except (RunError, asyncio.CancelledError):
                self.keep(stream.partial)
                raise
        print()
        if stream.result is not None:
            self.history = stream.result.messages

    def keep(self, partial: golem.Partial | None) -> None:
        """Go on from the evidence of a run that did not finish.

        Text that a stream had already said is evidence, but not a message: no model finished it.
        Here a person has read it, so it becomes one, and the next answer can refer to it.
        """
        if partial is None:
            return
        self.history = partial.messages
        if partial.text:
            said = AssistantMessage(
                partial.text, run_id=partial.run_id, conversation_id=partial.conversation_id
            )
            self.history.append(said)

    def obey(self, command: str, argument: str) -> None:
        """Carry out a line that begins with a slash."""
        try:
            if command == "/save" and argument:
                Path(argument).expanduser().write_bytes(golem.dump_history(self.history))
                print(f"[{len(self.history)} messages saved in {argument}]")
            elif command == "/load" and argument:
                self.load(Path(argument).expanduser())
            elif command == "/history":
                self.show()
            elif command == "/new":
                self.history = []
                print("[a new conversation]")
            else:
                print(HELP)
        except (OSError, golem.HistoryError) as error:
            print(f"[{error}]")

    def load(self, path: Path) -> None:
        """Take up a stored conversation, repairing it where a crash had damaged it."""
        self.history, report = golem.normalize_history(golem.load_history(path.read_bytes()))
        print(f"[{len(self.history)} messages loaded from {path}]")
        for change in report.changes:
            print(f"[{change.kind}: call {change.call_id or '(without id)'} {change.tool_name}]")

    def show(self) -> None:
        """Print the conversation as it will be sent with the next question."""
        for message in self.history:
            calls = " ".join(
                f"{call.name}({call.args})" for call in getattr(message, "tool_calls", ())
            )
            role = type(message).__name__.removesuffix("Message").lower()
            print(f"{role:>9}  {' '.join(filter(None, [message.content, calls]))}")


def main() -> None:
    """Choose the model and talk."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_arguments(parser)
    with choose_model(parser.parse_args()) as (model, description), asyncio.Runner() as loop:
        print(f"Talking to {description}.\n{HELP}")
        Chat(
            Agent(model, instructions=INSTRUCTIONS, history_processor=golem.trim_history(NEWEST)),
            loop,
        ).serve()


if __name__ == "__main__":
    with contextlib.suppress(ImportError):
        importlib.import_module("readline")  # line editing at the prompt, where there is one
    main()
