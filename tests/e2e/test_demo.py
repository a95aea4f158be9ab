"""The demo as a person sees it: from an empty store, and after a SIGKILL in mid-answer."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

import golem
from golem import ToolMessage, UserMessage
from local_model import MODEL, missing

from .programs import PATIENCE, run, started
from .proxy import Proxy, texts

pytestmark = pytest.mark.e2e

DEMO = "examples/demo.py"
QUESTIONS = ("What is the capital of Japan?", "And of China?", "Repeat both cities.")
LAST_QUESTION = "Name the capitals we talked about."


def test_the_demo_starts_its_own_model_chains_damages_repairs_and_goes_on(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    store = tmp_path / "demo.json"
    output = run(DEMO, "--store", str(store))
    assert "135 million" in output
    for question in (*QUESTIONS, LAST_QUESTION):
        assert question in output
    assert "call_1: got a neutral result" in output
    assert len(set(re.findall(r"run ([0-9a-f-]{36})", output))) == 4
    assert len(set(re.findall(r"conversation ([0-9a-f-]{36})", output))) == 1
    messages = golem.load_history(store.read_bytes())
    assert not golem.normalize_history(messages)[1]
    assert [m.content for m in messages if isinstance(m, UserMessage)][-1] == LAST_QUESTION
    assert sum(isinstance(m, ToolMessage) for m in messages) == 1


def test_a_demo_killed_in_mid_answer_goes_on_from_what_it_stored(
    proxy: Proxy, tmp_path: Path
) -> None:
    store = tmp_path / "demo.json"
    flags = (DEMO, "--base-url", proxy.base_url, "--model", MODEL, "--store", str(store))
    proxy.hold = 2
    with started(*flags) as demo:
        demo.read_until(QUESTIONS[1], "model: The")
        assert proxy.holding.wait(PATIENCE)
        demo.process.send_signal(signal.SIGKILL)
        assert demo.wait() == -signal.SIGKILL
    proxy.release()
    stored = json.loads(store.read_bytes())
    assert [message["role"] for message in stored] == ["user", "assistant", "user"]

    before = len(proxy.bodies)
    output = run(*flags)
    assert "loading, normalizing and continuing" in output
    assert "the last question was never answered" in output
    first = texts(proxy.bodies[before])
    earlier = [(message["role"], message["content"]) for message in stored]
    assert [text for text in first if text[0] != "system"] == earlier
    asked = [m.content for m in golem.load_history(store.read_bytes()) if m.content]
    assert [text for text in asked if text in QUESTIONS] == list(QUESTIONS)


def test_a_finished_demo_run_again_continues_its_conversation(proxy: Proxy, tmp_path: Path) -> None:
    store = tmp_path / "demo.json"
    flags = (DEMO, "--base-url", proxy.base_url, "--model", MODEL, "--store", str(store))
    first = run(*flags)
    messages = golem.load_history(store.read_bytes())
    again = run(*flags)
    ids = re.findall(r"conversation ([0-9a-f-]{36})", first + again)
    assert len(set(ids)) == 1
    assert golem.load_history(store.read_bytes())[: len(messages)] == messages
