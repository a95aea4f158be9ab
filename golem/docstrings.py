"""What a docstring says of a function and of each parameter, in the three styles in use.

Google (``Args:``), NumPy (``Parameters`` over a rule) and reST (``:param name: …``). Pure, and
tolerant: what is no such section stays in the description.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_GOOGLE: Final = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_HEADING: Final = re.compile(r"[A-Z][A-Za-z ]*:\s*")
_ITEM: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?:(?!:)\s*(.*)")
_NUMPY: Final = re.compile(r"(?:Other )?Parameters\s*")
_NUMPY_ITEM: Final = re.compile(r"\*{0,2}(\w+)\s*(?::.*)?")
_RULE: Final = re.compile(r"-{3,}\s*")
_FIELD: Final = re.compile(r":(\w+)(?:\s+([^:]*))?:\s*(.*)")
_PARAMETER_FIELDS: Final = frozenset({"param", "parameter", "arg", "argument", "key", "keyword"})
_OTHER_FIELDS: Final = frozenset(
    {"type", "return", "returns", "rtype", "raise", "raises", "yield", "yields"}
)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description, and what is said of each parameter, by name.

    `text` is as `inspect.getdoc` gives it, without the indentation of the source. Sections behind
    the parameters (``Returns:`` …) are for readers of the source and are left out.
    """
    lines = text.splitlines()
    kept: list[str] = []
    explained: dict[str, str] = {}
    place = 0
    while place < len(lines):
        line = lines[place]
        ruled = place + 1 < len(lines) and _RULE.fullmatch(lines[place + 1])
        if _GOOGLE.fullmatch(line):
            place = _google(lines, place + 1, explained)
        elif ruled and _NUMPY.fullmatch(line):
            place = _numpy(lines, place + 2, explained)
        elif field := _known_field(line):
            place = _field(lines, place, field, explained)
        elif explained and ruled:
            place = _to_next_rule(lines, place + 2)
        elif explained and _HEADING.fullmatch(line):
            _, place = _deeper(lines, place + 1)
        else:
            kept.append(line)
            place += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), explained


def _google(lines: Sequence[str], place: int, explained: dict[str, str]) -> int:
    """Read the items of an indented section; where it ends."""
    indent, name = 0, ""
    while place < len(lines) and (not lines[place].strip() or _indent(lines[place])):
        line = lines[place]
        match = _ITEM.fullmatch(line.strip())
        if match and (not name or _indent(line) == indent):
            indent, name = _indent(line), match[1]
            explained[name] = match[2].strip()
        elif name:  # it goes on
            explained[name] = f"{explained[name]} {line.strip()}".strip()
        place += 1
    return place


def _numpy(lines: Sequence[str], place: int, explained: dict[str, str]) -> int:
    """Read the items under a rule, up to the next one's heading; where they end."""
    end = _to_next_rule(lines, place)
    while place < end:
        match = _NUMPY_ITEM.fullmatch(lines[place])
        place += 1
        if match:
            explained[match[1]], place = _deeper(lines, place)
    return end


def _to_next_rule(lines: Sequence[str], place: int) -> int:
    """Where the next heading with a rule stands, else the end."""
    rules = (n for n in range(place + 1, len(lines)) if _RULE.fullmatch(lines[n]))
    return next(rules, len(lines) + 1) - 1


def _known_field(line: str) -> re.Match[str] | None:
    field = _FIELD.fullmatch(line)
    return field if field and field[1] in _PARAMETER_FIELDS | _OTHER_FIELDS else None


def _field(
    lines: Sequence[str], place: int, field: re.Match[str], explained: dict[str, str]
) -> int:
    """Read a reST field and the deeper lines that go on with it; where it ends."""
    more, end = _deeper(lines, place + 1)
    if field[1] in _PARAMETER_FIELDS and field[2]:
        name = field[2].split()[-1].lstrip("*")  # a type may stand before it
        explained[name] = f"{field[3].strip()} {more}".strip()
    return end


def _deeper(lines: Sequence[str], place: int) -> tuple[str, int]:
    """The lines from there on that are blank or indented, as one; and where they end."""
    end = place
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end])):
        end += 1
    return " ".join(filter(None, map(str.strip, lines[place:end]))), end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
