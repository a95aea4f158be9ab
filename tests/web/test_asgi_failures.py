"""What is the server's own fault is told to who runs it, and to a client without its words."""

from __future__ import annotations

from typing import Any

import pytest

from golem import Agent
from golem.testing import ScriptedModel
from golem.web.asgi import app
from golem.web.replay import MemoryReplay
from tests.web.agents import agent_for
from tests.web.asking import client, error, events

# The server's own failures


@pytest.mark.parametrize("failure", [RuntimeError, OSError, TimeoutError, ValueError])
async def test_a_failing_application_is_an_error_without_its_words(
    caplog: pytest.LogCaptureFixture, failure: type[Exception]
) -> None:
    def fails(identity: str) -> Any:
        raise failure("postgres://user:password@db/")

    async with client(app(fails)) as ask:
        response = await ask.post("/runs", json={"prompt": "hi"})
    error(response, 500, "internal")
    assert "password" not in response.text
    assert "password" in caplog.text


async def test_a_failing_tool_is_told_without_its_words() -> None:
    async with client(app(agent_for)) as ask:
        response = await ask.post("/runs", json={"prompt": "crash"})
        assert events(response)[-1]["kind"] == "run_failed"
        history = await ask.get(f"/runs/{events(response)[0]['runId']}/messages")
    assert "password" not in response.text
    assert [message["role"] for message in history.json()] == ["user", "assistant"]


async def test_a_failing_on_end_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fails(identity: str, outcome: Any) -> None:
        raise RuntimeError("no disk")

    async with client(app(agent_for, on_end=fails)) as ask:
        assert events(await ask.post("/runs", json={"prompt": "hi"}))[-1]["kind"] == "run_finished"
    assert "no disk" in caplog.text


async def test_at_the_bound_of_runs_nobody_begins_another() -> None:
    served = app(agent_for, replay=MemoryReplay(max_runs=1))
    async with client(served) as ask:
        told = events(await ask.post("/runs", json={"prompt": "delete"}))
        assert told[-1]["kind"] == "run_paused"
        response = await ask.post("/runs", json={"prompt": "hi"})
        error(response, 503, "busy")
        assert response.headers["retry-after"] == "1"
    async with client(app(agent_for, max_running=0)) as ask:
        error(await ask.post("/runs", json={"prompt": "hi"}), 503, "busy")


# Configuration


@pytest.mark.parametrize(
    "options",
    [
        {"on_disconnect": "ignore"},
        {"unsafe": "allow"},
        {"seal_key": b"short"},
        {"seal_key": []},
        {"ping": 0},
        {"ping": -1},
        {"max_bytes": 0},
        {"max_messages": 0},
        {"max_running": -1},
        {"body_timeout": 0},
        {"send_timeout": -1},
        {"shutdown_timeout": float("nan")},
        {"policies": {"max_bytes": -1}},
        {"policies": {"allowed_hosts": ["no host/"]}},
    ],
    ids=repr,
)
def test_an_option_out_of_range_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|key|host"):
        app(agent_for, **options)


def test_a_policy_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match="strip_everything"):
        app(agent_for, policies={"strip_everything": True})


def test_one_origin_is_not_several() -> None:
    with pytest.raises(TypeError, match="collection"):
        app(agent_for, allowed_origins="http://localhost")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"agent_for": Agent(ScriptedModel([]))}, "agent_for must be a function, not Agent"),
        ({"authenticate": "token"}, "authenticate must be a function, not str"),
        ({"on_end": []}, "on_end must be a function, not list"),
        ({"replay": "runs.db"}, "replay must be a Replay, not str"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_no_function_and_no_record_is_refused_when_the_app_is_made(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError, match=f"^{said}$"):
        app(**{"agent_for": agent_for, **options})
