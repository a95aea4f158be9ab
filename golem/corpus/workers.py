"""Chunks of a corpus worked on by processes, and the results in the order of the chunks.

Each process has at most one chunk, so neither side can wait for a pipe that the other is waiting
to fill, and no more than one chunk and one result for each are in memory. Spawned, not forked: a
copy of a program with threads or an event loop in it is not one that runs.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection

from golem.corpus.chunks import Chunk, Done, MakePass, worker
from golem.errors import CorpusError


def work_in_processes(
    count: int, make: MakePass, max_line: int, chunks: Iterable[Chunk]
) -> Iterator[Done]:
    """What becomes of each of `chunks`, in order, worked on by up to `count` processes.

    Close the iterator where it is not read to its end. Raises CorpusError, naming the process,
    when one dies.
    """
    started: list[_Worker] = []
    busy: deque[_Worker] = deque()
    try:
        for chunk in chunks:
            if len(started) < count:
                started.append(_Worker(len(started) + 1, make, max_line))
                started[-1].send(chunk)
                busy.append(started[-1])
                continue
            first = busy.popleft()
            done = first.receive()
            first.send(chunk)
            busy.append(first)
            yield done
        while busy:
            yield busy.popleft().receive()
    except BaseException:
        for process in started:
            process.kill()
        raise
    finally:
        for process in started:
            process.stop()


class _Worker:
    """A process and the chunk it is at."""

    def __init__(self, number: int, make: MakePass, max_line: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._number = number
        self._chunk = Chunk(1, [])
        self._here, there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(there, make, max_line), name=f"golem corpus worker {number}"
        )
        self._process.start()
        there.close()  # so that its end is seen here

    def send(self, chunk: Chunk) -> None:
        self._chunk = chunk
        try:
            self._here.send(chunk)
        except OSError as error:
            raise self._death() from error

    def receive(self) -> Done:
        try:
            done: Done | BaseException = self._here.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        if isinstance(done, BaseException):
            raise done
        return done

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        """Let it end: nothing more will come."""
        self._here.close()
        self._process.join()
        self._process.close()

    def _death(self) -> CorpusError:
        self._process.join()
        return CorpusError(
            f"worker {self._number} (process {self._process.pid}) died with exit code "
            f"{self._process.exitcode}, at the chunk that begins with line {self._chunk.first_line}"
        )


def _serve(chunks: Connection, make: MakePass, max_line: int) -> None:
    """What a worker does, to the end of its chunks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends this one
    work = worker(make, max_line)
    while True:
        try:
            chunk = chunks.recv()
        except EOFError:
            return
        try:
            chunks.send(work(chunk))
        except Exception as error:  # noqa: BLE001  # it is raised where the pass was called
            chunks.send(error)
