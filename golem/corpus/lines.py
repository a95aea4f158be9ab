"""The passes over lines: one history a line, bytes in, bytes out.

A line that a pass does not change comes back as the same bytes object. Any other is exactly what
loading, passing and dumping its history give: there is no second set of rules here. Files,
processes and engines are elsewhere; everything here is pure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypedDict, Unpack, cast

from golem.codec import encode_json, load_history
from golem.corpus.mend import is_same, mended
from golem.corpus.report import CorpusTotal, LineReport, RejectedLine
from golem.corpus.spelling import is_plain
from golem.errors import HistoryError
from golem.glance import odd_places
from golem.history import HistoryRepair, sanitize_history
from golem.history.engine import is_sound
from golem.messages import Message

OnReport = Callable[[LineReport], object]
OnReject = Callable[[RejectedLine], object]


class SanitizeOptions(TypedDict, total=False):
    """The keywords of `golem.sanitize_history`."""

    allowed_hosts: Iterable[str] | None
    block_private_hosts: bool
    max_messages: int | None
    max_bytes: int | None
    strip_identity: bool
    strip_thinking: bool
    strip_seals: bool
    drop_invalid_parts: bool


class Outcome(NamedTuple):
    """What a pass makes of a line: its bytes, and what there is to say about it."""

    line: bytes
    repair: HistoryRepair
    report: LineReport | None


Pass = Callable[[bytes, int], Outcome | None]
"""Takes a line and its number; None where nothing changes and there is nothing to say.

Raises HistoryError where the line is no history.
"""


def normalize_lines(
    lines: Iterable[bytes],
    *,
    on_report: OnReport | None = None,
    on_reject: OnReject | None = None,
    first_line: int = 1,
) -> Iterator[bytes]:
    """Each line of a JSONL corpus with its history normalized, as `golem.normalize_history` does.

    A line holds one history, a JSON array of messages, with or without its line break. A line in
    which nothing changes, a blank one too, is given back as it is: the same object. Any other is
    ``dump_history(normalize_history(load_history(line))[0])`` with the line's own line break.

    Args:
        lines: Bytes, as a file opened in binary mode gives them.
        on_report: Called with what was found in a line, cut-off arguments included.
        on_reject: Called with a line that is no history, which is then left out.
        first_line: The number of the first line, where `lines` are a part of something longer.

    Raises:
        HistoryError: A line is no history, and there is no `on_reject`; names the line.
        TypeError: `lines` is one text, or holds something else than bytes.
    """
    return _run(normalize_line, lines, on_report, on_reject, first_line)


def sanitize_lines(
    lines: Iterable[bytes],
    *,
    on_report: OnReport | None = None,
    on_reject: OnReject | None = None,
    first_line: int = 1,
    **options: Unpack[SanitizeOptions],
) -> Iterator[bytes]:
    """Each line of a JSONL corpus with its history sanitized, as `golem.sanitize_history` does.

    As `normalize_lines`, with a stricter idea of a line that comes back as it is: where readers
    may disagree about bytes (a repeated member, a lone surrogate, text that is not UTF-8) the
    history is written anew, and its report says `respelled`. `on_report` gets every line in
    which something was dropped, repaired, noticed or respelled.

    Raises:
        HistoryError: A line is no history or exceeds a limit, and there is no `on_reject`.
        TypeError: As `normalize_lines`; something in `allowed_hosts` is no text.
        ValueError: An option is one that `golem.sanitize_history` refuses.
    """
    return _run(sanitizer(options), lines, on_report, on_reject, first_line)


def normalize_line(line: bytes, number: int) -> Outcome | None:
    """Normalize the history of one line."""
    made, repair = mended(line)
    if made is None and not repair:
        return None
    made = line if made is None else made + _line_break(line)
    return Outcome(made, repair, LineReport(number, repair=repair) if repair else None)


def normalizer() -> Pass:
    """The pass that normalizes the history of one line."""
    return normalize_line


def sanitizer(options: SanitizeOptions) -> Pass:
    """The pass that sanitizes the history of one line.

    Raises ValueError or TypeError for options that are refused, before there is a line.
    """
    options = settled(options)
    sanitize_history([], **options)
    looks = not any(_is_asked(options, name) for name in _OF_EVERY_MESSAGE)

    def sanitize_line(line: bytes, number: int) -> Outcome | None:
        history = load_history(line)
        if looks and _is_settled(history, line):
            return None
        messages, found = sanitize_history(history, **options)
        # It has found all members sound, and left none that `dump_history` would have to judge.
        written = encode_json(messages)
        changed = not is_same(history, messages)
        respelled = not changed and written != line.rstrip(b"\r\n") and not is_plain(line)
        if changed or respelled:
            line = written + _line_break(line)
        if not found and not respelled:
            return None
        report = LineReport(number, sanitized=found, respelled=respelled)
        return Outcome(line, found.repair, report)

    return sanitize_line


_OF_EVERY_MESSAGE: Final = ("max_messages", "max_bytes", "strip_identity")
"""Options that concern also messages which have nothing that sanitizing looks at otherwise."""


def _is_asked(options: SanitizeOptions, name: str) -> bool:
    value = cast("Mapping[str, object]", options).get(name)
    return value is not None and value is not False


def _is_settled(history: list[Message], line: bytes) -> bool:
    """Whether sanitizing would find nothing in `history`, and `line` is how golem writes it."""
    return (
        is_sound(history)
        and not odd_places(history, seal=None)
        and encode_json(history) == line.rstrip(b"\r\n")
    )


def settled(options: SanitizeOptions) -> SanitizeOptions:
    """The options as values that can be read again, and by another process."""
    hosts = options.get("allowed_hosts")
    if hosts is None or isinstance(hosts, str):
        return options
    return {**options, "allowed_hosts": tuple(hosts)}


class Tally:
    """Counts the lines of a run, and hands out what is said about them."""

    def __init__(
        self,
        on_report: OnReport | None,
        on_reject: OnReject | None,
        max_line: int = sys.maxsize,
    ) -> None:
        self._on_report = on_report
        self._on_reject = on_reject
        self._max_line = max_line
        self._counts = dict.fromkeys(CorpusTotal.__struct_fields__, 0)

    @property
    def total(self) -> CorpusTotal:
        """What was counted so far."""
        return CorpusTotal(**self._counts)

    def run(self, one: Pass, lines: Iterable[bytes], first_line: int) -> Iterator[bytes]:
        """The lines as `one` gives them back, without those it refuses."""
        counts, max_line = self._counts, self._max_line
        for number, line in enumerate(lines, first_line):
            if len(line) > max_line and len(content := line.rstrip(b"\r\n")) > max_line:
                self.reject_long(number, len(content))
                continue
            try:
                outcome = one(line, number)
            except HistoryError as error:
                if line.strip():
                    content = line.rstrip(b"\r\n")
                    self._reject(RejectedLine.of(number, str(error), content), error)
                else:
                    counts["blank"] += 1
                    yield line
                continue
            if outcome is None:
                counts["unchanged"] += 1
                yield line
            else:
                self._take(outcome, line)
                yield outcome.line

    def reject_long(self, number: int, size: int) -> None:
        """Hand out that a line of `size` bytes is too long."""
        error = HistoryError(f"longer than {self._max_line} bytes")
        self._reject(RejectedLine(number, str(error), size), error)

    def _reject(self, rejected: RejectedLine, cause: HistoryError) -> None:
        """Hand out a line that is no history, or raise where nobody takes it."""
        if self._on_reject is None:
            reason = f"{cause.reason} (line {rejected.line})"
            raise HistoryError(reason, index=cause.index, path=cause.path) from cause
        self._counts["rejected"] += 1
        self._on_reject(rejected)

    def _take(self, outcome: Outcome, line: bytes) -> None:
        """Count what became of `line`, and hand out what there is to say."""
        self._counts["unchanged" if outcome.line is line else "rewritten"] += 1
        for change in outcome.repair.changes:
            self._counts[change.kind] += 1
        if outcome.report is not None:
            self._counts["reported"] += 1
            if self._on_report is not None:
                self._on_report(outcome.report)


def _run(
    one: Pass,
    lines: Iterable[bytes],
    on_report: OnReport | None,
    on_reject: OnReject | None,
    first_line: int,
) -> Iterator[bytes]:
    _refuse_text(lines)
    return Tally(on_report, on_reject).run(one, map(_as_line, lines), first_line)


def _refuse_text(lines: object) -> None:
    if isinstance(lines, (bytes, bytearray, str)):  # whose items are no lines
        raise TypeError(f"lines are wanted, as an open file gives them, not {type(lines).__name__}")


def _as_line(line: bytes) -> bytes:
    if type(line) is not bytes:
        raise TypeError(f"a line is bytes, not {type(line).__name__}")
    return line


def _line_break(line: bytes) -> bytes:
    if line.endswith(b"\r\n"):
        return b"\r\n"
    return b"\n" if line.endswith(b"\n") else b""
