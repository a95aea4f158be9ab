"""Every Python block of the README and the guides runs, in order, as one program a file.

A block may await at its top level, as in ``python -m asyncio``. `OpenAI` is played by a scripted
model here; the end-to-end lane runs the README against a real one.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import sys
import tomllib
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

import golem_adapters
from golem.testing import ScriptedModel

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("providers/*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
TOML = re.compile(r"^```toml\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([^)#:]*)#([^)]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def blocks(page: Path) -> list[CodeType]:
    """The page's Python blocks, compiled with their place in the page."""
    text = page.read_text(encoding="utf-8")
    return [
        compile(
            "\n" * text.count("\n", 0, match.start(1)) + match[1],
            str(page),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,  # this module's own future imports
        )
        for match in BLOCK.finditer(text)
    ]


class Page(ModuleType):
    """A module that has what the page's blocks have defined so far."""

    def __init__(self, name: str, namespace: dict[str, Any]) -> None:
        super().__init__(name)
        self._namespace = namespace

    def __getattr__(self, name: str) -> Any:
        return self._namespace[name]


def play_installation(
    page: Path, place: Path, namespace: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Do what installing the package of a page's ``pyproject.toml`` would do.

    Its entry points are found, and lead to what the page defines.
    """
    for text in TOML.findall(page.read_text(encoding="utf-8")):
        project = tomllib.loads(text)["project"]
        metadata = ["Metadata-Version: 2.1", *(f"{k}: {project[k]}" for k in ("name", "version"))]
        entries: list[str] = []
        for group, names in project["entry-points"].items():
            entries += [f"[{group}]", *(f"{name} = {value}" for name, value in names.items())]
            for module in (value.partition(":")[0] for value in names.values()):
                monkeypatch.setitem(sys.modules, module, Page(module, namespace))
        info = place / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("\n".join([*metadata, ""]))
        (info / "entry_points.txt").write_text("\n".join([*entries, ""]))
        monkeypatch.syspath_prepend(place)


async def run(codes: list[CodeType], namespace: dict[str, Any]) -> None:
    for code in codes:
        pending = eval(code, namespace)
        if inspect.isawaitable(pending):
            await pending


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scripted(name: str, **settings: Any) -> ScriptedModel:
        return ScriptedModel([f"answer {number}" for number in range(1, 20)])

    monkeypatch.setitem(vars(golem_adapters), "OpenAI", scripted)
    monkeypatch.chdir(tmp_path)
    codes = blocks(page)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    play_installation(page, tmp_path, namespace, monkeypatch)
    if any(code.co_flags & inspect.CO_COROUTINE for code in codes):
        asyncio.run(run(codes, namespace))
    else:  # a complete program, which brings its own event loop
        for code in codes:
            exec(code, namespace)


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted((ROOT / "docs" / "adr").glob("*.md"))], ids=lambda page: page.name
)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def anchors(page: Path) -> set[str]:
    """The places of a page that a link can lead to, as GitHub names them."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_anchors_of_a_page_exist(page: Path) -> None:
    links = ANCHOR.findall(page.read_text(encoding="utf-8"))
    missing = [
        f"{name}#{anchor}"
        for name, anchor in links
        if anchor not in anchors(page.parent / name if name else page)
    ]
    assert missing == []
