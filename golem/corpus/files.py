"""File to file: JSONL in, JSONL out, in bounded memory, all of it or nothing.

The input is read in chunks of whole lines; a chunk is one piece of work, here or in a process of
its own. What becomes of a line is in ``golem.corpus.lines``, and how an output comes to stand
where it belongs in ``golem.corpus.outputs``.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Unpack

from golem.corpus.chunks import Chunk, Done, MakePass, read_chunks, worker
from golem.corpus.lines import SanitizeOptions, normalizer, sanitizer, settled
from golem.corpus.outputs import complete_or_absent, open_input
from golem.corpus.report import CorpusTotal
from golem.corpus.workers import work_in_processes
from golem.errors import CorpusError
from golem.history.limits import at_least

MAX_LINE: Final = 256 * 2**20
"""The longest line a file pass takes, in bytes: as much as golem takes from a provider at once."""

FilePath = str | os.PathLike[str]


def normalize_jsonl(
    src: FilePath,
    dst: FilePath,
    *,
    workers: int = 1,
    rejects: FilePath | None = None,
    reports: FilePath | None = None,
    max_line: int = MAX_LINE,
) -> CorpusTotal:
    """The JSONL corpus `src` with every history normalized, as `dst`; what was done in total.

    What becomes of a line is said at `normalize_lines`; the lines keep their order. Files whose
    names end in ``.gz`` are gzip. The outputs appear when they are complete, in place of what was
    there, and not at all when the pass fails or is interrupted; `dst` may be `src`.

    Memory is a few chunks of 1 MiB for each worker, or of one line where that is longer. With
    more than one worker the chunks are worked on by processes, started by spawning: a program
    that calls this has its own work under ``if __name__ == "__main__":``.

    Args:
        src: The corpus, one history a line.
        dst: Where the result goes.
        workers: Processes that work on it; 1 is this one.
        rejects: Where the lines go that are no history or too long, each as a `RejectedLine` in
            JSON; `dst` with ``.rejects.jsonl`` added by default. Written in any case.
        reports: Where a `LineReport` goes for each line in which something was found; `dst` with
            ``.reports.jsonl`` added by default. Written in any case.
        max_line: The longest line that is taken, in bytes; 256 MiB by default.

    Raises:
        CorpusError: A worker died, or `src` is gzip that is broken or cut off.
        OSError: A file cannot be read or written.
        ValueError: `workers` or `max_line` is less than 1, or two outputs are one file.
    """
    return _run(_Plan.of(src, dst, workers, rejects, reports, max_line), normalizer)


def sanitize_jsonl(
    src: FilePath,
    dst: FilePath,
    *,
    workers: int = 1,
    rejects: FilePath | None = None,
    reports: FilePath | None = None,
    max_line: int = MAX_LINE,
    **options: Unpack[SanitizeOptions],
) -> CorpusTotal:
    """The JSONL corpus `src` with every history sanitized, as `dst`; what was done in total.

    As `normalize_jsonl`; what becomes of a line is said at `sanitize_lines`. A history that
    exceeds ``max_messages`` or ``max_bytes`` is a rejected line.

    Raises:
        CorpusError: As `normalize_jsonl`.
        OSError: A file cannot be read or written.
        TypeError: Something in `allowed_hosts` is no text.
        ValueError: As `normalize_jsonl`, or an option is one that `sanitize_history` refuses.
    """
    options = settled(options)
    sanitizer(options)
    return _run(
        _Plan.of(src, dst, workers, rejects, reports, max_line), partial(sanitizer, options)
    )


class _Plan(NamedTuple):
    source: Path
    outputs: tuple[Path, Path, Path]  # reports, rejects and, put in its place last, the corpus
    workers: int
    max_line: int

    @classmethod
    def of(
        cls,
        src: FilePath,
        dst: FilePath,
        workers: int,
        rejects: FilePath | None,
        reports: FilePath | None,
        max_line: int,
    ) -> _Plan:
        at_least("workers", workers, 1)
        at_least("max_line", max_line, 1)
        corpus = Path(dst)
        outputs = (
            Path(reports or f"{corpus}.reports.jsonl"),
            Path(rejects or f"{corpus}.rejects.jsonl"),
            corpus,
        )
        if len({os.path.realpath(path) for path in outputs}) < len(outputs):
            raise ValueError(f"two outputs are one file: {', '.join(map(str, outputs))}")
        return cls(Path(src), outputs, workers, max_line)


def _run(plan: _Plan, make: MakePass) -> CorpusTotal:
    total = CorpusTotal()
    with (
        open_input(plan.source) as source,
        complete_or_absent(plan.outputs) as (reports, rejects, corpus),
        closing(_work(plan, make, read_chunks(source, plan.max_line))) as results,
    ):
        try:
            for done in results:
                corpus.write(done.lines)
                reports.write(done.reports)
                rejects.write(done.rejects)
                total += done.total
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CorpusError(f"{plan.source} is broken or cut off: {error}") from error
    return total


def _work(plan: _Plan, make: MakePass, chunks: Iterator[Chunk]) -> Generator[Done]:
    if plan.workers > 1:
        yield from work_in_processes(plan.workers, make, plan.max_line, chunks)
    else:
        yield from map(worker(make, plan.max_line), chunks)
