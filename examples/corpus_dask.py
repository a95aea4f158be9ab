"""A corpus of conversations, normalized by a Dask cluster that loses a worker on the way.

The function that goes to the cluster is `normalize_lines`: bytes in, bytes out, nothing else. A
partition whose worker dies is worked on again by another one, and since the same bytes give the
same bytes, and only the client writes, nothing is lost and nothing is there twice. Ray, Spark or
a queue of your own carry it in the same way.

Needs ``pip install distributed`` and no network.
"""

from __future__ import annotations

import io
import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from distributed import Client, LocalCluster

import golem
from golem import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from golem.corpus import RejectedLine, normalize_lines

CONVERSATIONS = 2_000
PARTITION = 64 * 1024  # bytes; take 64 MiB where there is a corpus to work on


def conversation(number: int) -> list[Message]:
    """One conversation; in every tenth the tool's result has been lost."""
    call = ToolCall.of(f"call_{number}", "look", '{"at": "the weather"}')
    seen = ToolMessage("sunny", tool_call_id=call.id, tool_name=call.name)
    asked: list[Message] = [
        UserMessage(f"Question {number}."),
        AssistantMessage(tool_calls=(call,)),
    ]
    return asked if number % 10 == 0 else [*asked, seen, AssistantMessage("It is sunny.")]


def partitions(corpus: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """The corpus in pieces of about `size` bytes of whole lines, with the number of the first."""
    number = 1
    with corpus.open("rb") as file:
        while lines := file.readlines(size):
            yield number, b"".join(lines)
            number += len(lines)


def normalize(part: tuple[int, bytes]) -> tuple[bytes, list[RejectedLine]]:
    """What the cluster does to a partition."""
    first_line, lines = part
    rejects: list[RejectedLine] = []
    done = normalize_lines(io.BytesIO(lines), on_reject=rejects.append, first_line=first_line)
    return b"".join(done), rejects


def normalize_on_a_cluster(corpus: Path, target: Path) -> None:
    """Normalize `corpus` on two workers, one of which is killed after the first result."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        target.open("wb") as out,
    ):
        workers: dict[str, int] = client.run(os.getpid)
        pending = client.map(normalize, list(partitions(corpus, PARTITION)))
        for number, future in enumerate(pending):  # in the order of the corpus
            lines, rejects = future.result()
            out.write(lines)
            for rejected in rejects:
                print(f"line {rejected.line} left out: {rejected.reason}")
            if number == 0:
                os.kill(min(workers.values()), signal.SIGKILL)
                print("one of two workers was killed")


def main() -> None:
    """Normalize a made-up corpus, and compare with what a single pass in this process gives."""
    logging.disable()  # Dask tells at length what was lost and is done again
    with tempfile.TemporaryDirectory() as place:
        corpus, target = Path(place, "corpus.jsonl"), Path(place, "normalized.jsonl")
        lines = [golem.dump_history(conversation(n)) + b"\n" for n in range(CONVERSATIONS)]
        lines[CONVERSATIONS // 2] = b"not a history\n"
        corpus.write_bytes(b"".join(lines))
        normalize_on_a_cluster(corpus, target)
        written = target.read_bytes()
    alone = list(normalize_lines(lines, on_reject=lambda rejected: None))
    print(f"{len(alone)} conversations, nothing lost, nothing twice: {written == b''.join(alone)}")


if __name__ == "__main__":
    main()
