"""Writes docs/providers/matrix.md: what became of conversations that changed their provider.

Run it from the project's root, ``python -m docs.generate_matrix``, after a change to the adapters,
to the judges or to ``tests/portability``. Every number is counted: each conversation is begun at
one provider's judge, damaged, repaired and continued at another's.
"""

from __future__ import annotations

from pathlib import Path

import anyio

from tests.portability.damage import DAMAGES
from tests.portability.matrix import cell
from tests.portability.providers import PROVIDERS

TARGET = Path(__file__).parent / "providers/matrix.md"

HEAD = """\
# Any history, any provider

A conversation may change its provider between any two runs. To hold golem to that, its tests begin
conversations with each adapter (thinking, calls in parallel and one after another, pictures in the
prompt and in results, streamed and plain), damage them, and go on with each other adapter, every
request under the eyes of the provider's [judge](../testing.md). In every cell:

- the provider's rules refuse nothing (the judge's rules: agreement with the table on record, not
  acceptance by the provider);
- every visible text, every call and every result that repair keeps is in the request;
- no signature, no encrypted or redacted thinking and no item id of another provider is.

What happens to a conversation on its way, one, two or three of these:

"""

TABLE = """
How many conversations of a row's provider went on with a column's, and how many of them without
fault. The table is made by `docs/generate_matrix.py`.

"""


def page() -> str:
    """The whole page. Takes a minute: 36 pairs of providers."""
    damages = "".join(f"- {_named(damage.__name__)}: {damage.__doc__}\n" for damage in DAMAGES)
    names = list(PROVIDERS)
    lines = [f"| begun with | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    lines += [f"| {begin} | {' | '.join(anyio.run(_row, begin))} |" for begin in names]
    return HEAD + damages + TABLE + "\n".join(lines) + "\n"


async def _row(begin: str) -> list[str]:
    cells: list[str] = []
    for go_on in PROVIDERS:
        count, faults = await cell(begin, go_on)
        faulty = {fault.partition(": ")[0] for fault in faults}
        cells.append(f"{count - len(faulty)} of {count}")
    return cells


def _named(name: str) -> str:
    return f"it {name.replace('_', ' ')}"


if __name__ == "__main__":
    TARGET.write_text(page())
