"""The chat loop for people: lines in, answers out, Ctrl-C in between."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import golem
from golem import AssistantMessage
from local_model import MODEL

from .programs import PATIENCE, started
from .proxy import Proxy, texts

pytestmark = pytest.mark.e2e

CHAT = "examples/conversation.py"


def test_answers_are_kept_saved_and_loaded(proxy: Proxy, tmp_path: Path) -> None:
    saved = tmp_path / "chat.json"
    with started(CHAT, "--base-url", proxy.base_url, "--model", MODEL) as chat:
        chat.read_until("you: ")
        chat.send("What is the capital of Japan?")
        chat.read_until("model: ", "you: ")
        chat.send("And of China?")
        chat.read_until("model: ", "you: ")
        chat.send(f"/save {saved}")
        assert "messages saved" in chat.read_until("you: ")
        chat.send("/new")
        chat.read_until("you: ")
        chat.send(f"/load {saved}")
        assert "messages loaded" in chat.read_until("you: ")
        chat.send("/history")
        assert "What is the capital of Japan?" in chat.read_until("you: ")
        chat.send("Repeat both cities.")
        chat.read_until("model: ", "you: ")
        chat.send("/quit")
        assert chat.wait() == 0
    asked = [text for role, text in texts(proxy.bodies[-1]) if role == "user"]
    assert asked == ["What is the capital of Japan?", "And of China?", "Repeat both cities."]


def test_ctrl_c_stops_the_answer_and_keeps_what_was_said(proxy: Proxy, tmp_path: Path) -> None:
    saved = tmp_path / "chat.json"
    proxy.hold = 1
    with started(CHAT, "--base-url", proxy.base_url, "--model", MODEL) as chat:
        chat.read_until("you: ")
        chat.send("What is the capital of Japan?")
        chat.read_until("model: The")
        assert proxy.holding.wait(PATIENCE)
        chat.process.send_signal(signal.SIGINT)
        chat.read_until("[stopped", "you: ")
        proxy.release()
        chat.send(f"/save {saved}")
        chat.read_until("you: ")
        chat.send("Go on.")
        chat.read_until("model: ", "you: ")
        chat.send("/quit")
        assert chat.wait() == 0
    stopped = golem.load_history(saved.read_bytes())[-1]
    assert isinstance(stopped, AssistantMessage)
    assert stopped.content.startswith("The")
    assert ("assistant", stopped.content) in texts(proxy.bodies[-1])
    assert texts(proxy.bodies[-1])[-1] == ("user", "Go on.")


def test_a_mistyped_command_or_file_does_not_end_the_chat(proxy: Proxy, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text('[{"role":"developer"}]')
    with started(CHAT, "--base-url", proxy.base_url, "--model", MODEL) as chat:
        chat.read_until("you: ")
        for line, answer in (
            ("/lod x", "/load FILE"),
            ("/load nowhere.json", "No such file"),
            (f"/load {broken}", "unknown role"),
        ):
            chat.send(line)
            assert answer in chat.read_until("you: ")
        chat.send("/quit")
        assert chat.wait() == 0
