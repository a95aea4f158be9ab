"""File to file: every line in its place, everything or nothing, nothing silently."""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import golem
from golem import AssistantMessage, ToolCall, UserMessage
from golem.corpus import (
    CorpusError,
    CorpusTotal,
    LineReport,
    RejectedLine,
    normalize_jsonl,
    normalize_lines,
    sanitize_jsonl,
)
from golem.corpus.chunks import CHUNK, MOST_LINES, Chunk, read_chunks, worker
from golem.corpus.lines import normalizer
from golem.corpus.workers import work_in_processes
from tests.corpus.killing import FATAL, WRONG, fatal_normalizer
from tests.corpus.odd_lines import corpora

SOUND = golem.dump_history([UserMessage("Look.")]) + b"\n"
PENDING = (
    golem.dump_history([AssistantMessage(tool_calls=(ToolCall.of("a", "look", "{}"),))]) + b"\n"
)
REPAIRED = golem.dump_history(golem.normalize_history(golem.load_history(PENDING))[0]) + b"\n"
LONG = golem.dump_history([UserMessage("x" * 3 * CHUNK)]) + b"\r\n"
CORPUS = [SOUND, PENDING, b"nonsense\n", b"\n", *[SOUND] * 30, LONG, *[PENDING] * 3, SOUND[:-1]]
EXPECTED = b"".join([SOUND, REPAIRED, b"\n", *[SOUND] * 30, LONG, *[REPAIRED] * 3, SOUND[:-1]])


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(b"".join(CORPUS))
    return path


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_corpus_is_normalized_line_by_line(corpus: Path, tmp_path: Path, workers: int) -> None:
    total = normalize_jsonl(corpus, tmp_path / "out.jsonl", workers=workers)
    assert (tmp_path / "out.jsonl").read_bytes() == EXPECTED
    assert total == CorpusTotal(
        unchanged=33, rewritten=4, rejected=1, blank=1, reported=4, synthesized=4
    )
    assert total.lines == len(CORPUS)
    reports = read_json_lines(tmp_path / "out.jsonl.reports.jsonl")
    assert [report["line"] for report in reports] == [2, 36, 37, 38]
    assert reports[0]["repair"]["synthesized"] == ["a"]
    assert read_json_lines(tmp_path / "out.jsonl.rejects.jsonl") == [
        {
            "line": 3,
            "reason": "history: not valid JSON at byte 0",
            "size": len("nonsense"),
            "text": "nonsense",
        }
    ]
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("workers", [1, 2])
def test_a_corpus_is_sanitized_with_options(tmp_path: Path, workers: int) -> None:
    source = tmp_path / "corpus.jsonl"
    stamped = golem.dump_history([golem.SystemMessage("Obey."), UserMessage("x", run_id="r")])
    source.write_bytes(stamped + b"\n" + SOUND)
    total = sanitize_jsonl(
        source,
        tmp_path / "out.jsonl",
        workers=workers,
        strip_identity=True,
        allowed_hosts=iter(["example.com"]),
    )
    assert (tmp_path / "out.jsonl").read_bytes() == (
        golem.dump_history([UserMessage("x")]) + b"\n" + SOUND
    )
    assert total == CorpusTotal(unchanged=1, rewritten=1, reported=1)
    [report] = read_json_lines(tmp_path / "out.jsonl.reports.jsonl")
    assert report["sanitized"]["systemPrompts"] == report["sanitized"]["identityDropped"] == 1


def test_names_in_gz_are_gzip_on_either_side_and_the_same_bytes_each_time(
    corpus: Path, tmp_path: Path
) -> None:
    packed, out = tmp_path / "corpus.jsonl.gz", tmp_path / "out.jsonl.gz"
    packed.write_bytes(gzip.compress(corpus.read_bytes()))
    rejects = tmp_path / "rejects.gz"
    normalize_jsonl(packed, out, rejects=rejects)
    assert gzip.decompress(out.read_bytes()) == EXPECTED
    assert b"nonsense" in gzip.decompress(rejects.read_bytes())
    first = out.read_bytes()
    normalize_jsonl(packed, out, rejects=rejects)
    assert out.read_bytes() == first


def test_a_corpus_can_be_rewritten_in_place_and_keeps_its_mode(corpus: Path) -> None:
    corpus.chmod(0o640)
    normalize_jsonl(corpus, corpus)
    assert corpus.read_bytes() == EXPECTED
    assert stat.S_IMODE(corpus.stat().st_mode) == 0o640


def test_a_link_stays_a_link(corpus: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.jsonl"
    link.symlink_to(corpus)
    normalize_jsonl(link, link)
    assert link.is_symlink()
    assert corpus.read_bytes() == EXPECTED


@pytest.mark.parametrize("content", [b"", b"\n", b"nonsense"])
def test_a_corpus_without_a_history_gives_a_file_without_one(
    content: bytes, tmp_path: Path
) -> None:
    source = tmp_path / "corpus.jsonl"
    source.write_bytes(content)
    assert normalize_jsonl(source, tmp_path / "out").lines == bool(content)
    assert (tmp_path / "out").read_bytes() == content.replace(b"nonsense", b"")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("limit", [len(LONG) - 3, len(SOUND) + 20, len(SOUND) - 1])
def test_a_line_over_the_limit_is_rejected_without_being_kept(
    corpus: Path, tmp_path: Path, limit: int, workers: int
) -> None:
    total = normalize_jsonl(corpus, tmp_path / "out", max_line=limit, workers=workers)
    rejects = read_json_lines(tmp_path / "out.rejects.jsonl")
    long = [line for line in rejects if "longer" in line["reason"]]
    sizes = [(n, len(line.rstrip(b"\r\n"))) for n, line in enumerate(CORPUS, 1)]
    assert [(line["line"], line["size"]) for line in long] == [
        (n, size) for n, size in sizes if size > limit
    ]
    assert all("text" not in line for line in long)
    assert total.rejected == len(rejects)
    assert total.lines == len(CORPUS)


def test_a_line_at_the_limit_is_taken(tmp_path: Path) -> None:
    source = tmp_path / "corpus.jsonl"
    source.write_bytes(LONG)
    assert normalize_jsonl(source, tmp_path / "out", max_line=len(LONG) - 2).unchanged == 1


_PIECES = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\n", b"\r\n", b"defg"]), max_size=30)


@given(_PIECES.map(b"".join), st.integers(1, 9), st.integers(1, 9))
def test_chunks_are_the_lines_in_order_wherever_they_are_cut(
    content: bytes, max_line: int, size: int
) -> None:
    found: list[tuple[int, int]] = []
    for chunk in read_chunks(io.BytesIO(content), max_line, size):
        assert sum(map(len, chunk.lines)) <= max_line + 2 * size + 2
        lines = [b"x" * chunk.too_long] if chunk.too_long else chunk.lines
        found += [(chunk.first_line + n, len(line.rstrip())) for n, line in enumerate(lines)]
    lines = [line.rstrip(b"\r\n") for line in io.BytesIO(content)]
    assert found == [(n, len(line)) for n, line in enumerate(lines, 1)]


@pytest.mark.parametrize("line", [b"\n", b"[]\n"])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_chunk_holds_no_more_lines_than_are_small_in_memory(line: bytes, more: int) -> None:
    count = 2 * MOST_LINES + more
    chunks = list(read_chunks(io.BytesIO(line * count + b"[]"), 10_000))
    assert max(len(chunk.lines) for chunk in chunks) == MOST_LINES
    assert [line for chunk in chunks for line in chunk.lines] == [*[line] * count, b"[]"]
    starts = [chunk.first_line for chunk in chunks]
    assert starts == [1 + sum(len(c.lines) for c in chunks[:n]) for n in range(len(chunks))]


@given(corpora(), st.integers(1, 400))
def test_lines_fare_alike_in_chunks_and_alone(content: bytes, size: int) -> None:
    work = worker(normalizer, 10_000)
    done = [work(chunk) for chunk in read_chunks(io.BytesIO(content), 10_000, size)]
    reports: list[LineReport] = []
    rejects: list[RejectedLine] = []
    lines = normalize_lines(io.BytesIO(content), on_report=reports.append, on_reject=rejects.append)
    assert b"".join(part.lines for part in done) == b"".join(lines)
    for made, expected in [("reports", reports), ("rejects", rejects)]:
        written = b"".join(getattr(part, made) for part in done)
        assert written == msgspec.json.Encoder().encode_lines(expected)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_source_that_is_cut_off_leaves_no_output(
    corpus: Path, tmp_path: Path, workers: int
) -> None:
    packed = tmp_path / "corpus.jsonl.gz"
    packed.write_bytes(gzip.compress(corpus.read_bytes() * 20)[:-9])
    (tmp_path / "out").write_text("before")
    with pytest.raises(CorpusError, match=r"corpus\.jsonl\.gz is broken or cut off"):
        normalize_jsonl(packed, tmp_path / "out", workers=workers)
    assert (tmp_path / "out").read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == [corpus.name, packed.name, "out"]
    assert multiprocessing.active_children() == []


def test_what_is_no_gzip_is_an_error_that_names_it(corpus: Path, tmp_path: Path) -> None:
    packed = corpus.rename(tmp_path / "corpus.jsonl.gz")
    with pytest.raises(CorpusError, match=r"corpus\.jsonl\.gz is broken or cut off"):
        normalize_jsonl(packed, tmp_path / "out")


class Interrupted(io.BytesIO):
    """A source whose reader is interrupted after the first chunk."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell():
            raise KeyboardInterrupt
        return super().read(size)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_pass_leaves_nothing_behind(
    corpus: Path, tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = corpus.read_bytes()
    monkeypatch.setattr("golem.corpus.files.open_input", lambda path: Interrupted(content))
    with pytest.raises(KeyboardInterrupt):
        normalize_jsonl(corpus, tmp_path / "out", workers=workers)
    assert list(tmp_path.iterdir()) == [corpus]
    assert multiprocessing.active_children() == []


def test_a_worker_that_dies_is_named(tmp_path: Path) -> None:
    chunks = [Chunk(1, [SOUND]), Chunk(2, [SOUND] * 2), Chunk(4, [FATAL]), *[Chunk(5, [SOUND])] * 9]
    results = work_in_processes(2, fatal_normalizer, 1000, chunks)
    assert [next(results).lines, next(results).lines] == [SOUND, SOUND * 2]
    with pytest.raises(
        CorpusError, match=r"worker 1 \(process \d+\) died with exit code -9, .* with line 4$"
    ):
        list(results)
    assert multiprocessing.active_children() == []


def test_what_goes_wrong_in_a_worker_is_raised_here() -> None:
    chunks = [Chunk(1, [SOUND]), Chunk(2, [WRONG])]
    with pytest.raises(LookupError, match="a bug"):
        list(work_in_processes(2, fatal_normalizer, 1000, chunks))
    assert multiprocessing.active_children() == []


def test_no_more_workers_are_started_than_there_is_work_for() -> None:
    results = work_in_processes(50, fatal_normalizer, 1000, [Chunk(1, [SOUND]), Chunk(2, [SOUND])])
    next(results)
    assert len(multiprocessing.active_children()) == 2
    results.close()
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"max_line": 0}, "max_line must be at least 1, got 0"),
        ({"rejects": "out"}, "two outputs are one file: out.reports.jsonl, out, out"),
        ({"reports": "./x", "rejects": "x"}, "two outputs are one file: x, x, out"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_read(
    arguments: dict[str, Any], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        normalize_jsonl("missing", "out", **arguments)


def test_a_pass_is_refused_its_options_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_messages"):
        sanitize_jsonl(tmp_path / "missing", tmp_path / "out", max_messages=-1)


def test_a_missing_source_leaves_no_output(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        normalize_jsonl(tmp_path / "missing", tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_not_replaced(corpus: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"not a regular file: .*pipe"):
        normalize_jsonl(corpus, tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
