"""A corpus file in pieces: whole lines, as many as fit, and what a pass makes of such a piece.

Pure: reads from any binary stream, opens nothing. A chunk and what became of it are plain bytes
and counts, which is what goes to a worker and comes back.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from itertools import islice
from typing import BinaryIO, Final, NamedTuple

import msgspec

from golem.corpus.lines import Pass, Tally
from golem.corpus.report import CorpusTotal, LineReport, RejectedLine

CHUNK: Final = 2**20
"""Bytes read at a time. A chunk is as many whole lines as these hold, or one longer line."""

MOST_LINES: Final = 2**14
"""Most lines of a chunk. Lines of a few bytes, and what is said of each, are many times as large
in memory as in the file; conversations are longer than the 64 bytes at which this matters."""

_encode_lines = msgspec.json.Encoder().encode_lines


class Chunk(NamedTuple):
    """Whole lines and the number of the first; or the size of the one line that is too long."""

    first_line: int
    lines: list[bytes]
    too_long: int = 0


class Done(NamedTuple):
    """What became of a chunk: bytes for each of the three files, and the count."""

    lines: bytes
    reports: bytes
    rejects: bytes
    total: CorpusTotal


MakePass = Callable[[], Pass]
"""What goes to a worker: makes the pass there. Has to survive pickling."""

Work = Callable[[Chunk], Done]


def worker(make: MakePass, max_line: int) -> Work:
    """The function that takes chunks through the pass."""
    one = make()

    def work(chunk: Chunk) -> Done:
        reports: list[LineReport] = []
        rejects: list[RejectedLine] = []
        tally = Tally(reports.append, rejects.append, max_line)
        if chunk.too_long:
            tally.reject_long(chunk.first_line, chunk.too_long)
        made = b"".join(tally.run(one, chunk.lines, chunk.first_line))
        return Done(made, _encode_lines(reports), _encode_lines(rejects), tally.total)

    return work


def read_chunks(source: BinaryIO, max_line: int, size: int = CHUNK) -> Iterator[Chunk]:
    """The lines of `source` in chunks, in order; `max_line` + 2 * `size` bytes are held at most.

    A line too long to be held is a chunk of its own, without its content.
    """
    number = 1
    unfinished: list[bytes] = []  # the pieces of the line that has no end yet
    length = 0  # of that line; more than there is in the pieces once it is too long
    for lines in _cut(source, size):
        rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
        if lines and unfinished:
            end = lines[0]
            if length > max_line + 1:
                yield _too_long(number, length, unfinished, end)
                del lines[0]
                number += 1
            else:
                lines[0] = b"".join([*unfinished, end])
            unfinished, length = [], 0
        if lines:
            yield Chunk(number, lines)
            number += len(lines)
        if rest:
            length += len(rest)
            # Of a line that is too long only what its break may begin with is of interest.
            unfinished = [*unfinished, rest] if length <= max_line + 1 else [rest[-1:]]
    if length > max_line + 1:
        yield _too_long(number, length, unfinished, b"")
    elif length:
        yield Chunk(number, [b"".join(unfinished)])


def _cut(source: BinaryIO, size: int) -> Iterator[list[bytes]]:
    """The lines of `source`, some at a time; the last of some may end where the next ones begin."""
    while block := source.read(size):
        ahead = io.BytesIO(block)
        while lines := list(islice(ahead, MOST_LINES)):
            yield lines


def _too_long(number: int, length: int, unfinished: list[bytes], end: bytes) -> Chunk:
    """A line of `length` bytes so far, of which `unfinished` was kept, up to its `end`."""
    tail = b"".join([*unfinished, end])
    return Chunk(number, [], length + len(end) - len(tail) + len(tail.rstrip(b"\r\n")))
