"""The table, for a terminal and for the page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rows import Goal, Row

BEGIN = "<!-- made by `nox -s bench`: begin -->"
END = "<!-- made by `nox -s bench`: end -->"
VERDICTS = {True: "met", False: "**not met**", None: "not measured"}


def plain(rows: Iterable[Row]) -> str:
    """Every figure and every goal, a line each."""
    lines: list[str] = []
    for row in rows:
        lines += ["", f"{row.title} ({row.unit})"]
        width = max(map(len, row.figures))
        for name, (first, wall) in row.figures.items():
            beside = "" if wall is None else f"{_number(wall):>10} wall"
            lines.append(f"  {name:{width}} {_number(first):>10}{beside}")
        for goal in row.goals:
            verdict = VERDICTS[goal.met].strip("*")
            lines.append(f"    {goal} {verdict}")
        if row.note:
            lines.append(f"    {row.note}")
    return "\n".join(lines)


def markdown(rows: Iterable[Row]) -> str:
    """The goals and what became of them, then the figures."""
    rows = list(rows)
    lines = ["| work | ratio | measured | goal | |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        lines += [
            f"| {row.title} | {goal.what} | {_goal(goal)} | {VERDICTS[goal.met]} |"
            for goal in row.goals
        ]
    lines += ["", "| work | who | CPU | wall |", "| --- | --- | --- | --- |"]
    for row in rows:
        for name, (first, wall) in row.figures.items():
            beside = "" if wall is None else _number(wall)
            lines.append(f"| {row.title} | {name} | {_number(first)} {row.unit} | {beside} |")
    notes = [f"- {row.title}: {row.note}." for row in rows if row.note]
    return "\n".join([*lines, "", *notes])


def write_page(page: Path, rows: Iterable[Row], about: str) -> None:
    """Put the table between the page's two marks."""
    text = page.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{page} has no place for the table")
    page.write_text(f"{before}{BEGIN}\n\n{about}\n\n{markdown(rows)}\n\n{END}{after}", "utf-8")


def _goal(goal: Goal) -> str:
    sign = {"at least": "≥", "at most": "≤"}[goal.kind]
    value = "-" if goal.value is None else f"{goal.value:.3g}"
    return f"{value} | {sign} {goal.bound:.3g}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
