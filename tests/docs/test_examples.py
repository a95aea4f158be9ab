"""The offline examples run as they stand; those with a model run in the end-to-end lane."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
OFFLINE = {
    "approvals.py": "call_2: 500 refunded under key ll_2",
    "check_history.py": "of Gemini and Anthropic, these could not take over: Anthropic",
    "cancellation.py": "cancelled: CancelledError with 2 messages",
    "corpus_dask.py": "1999 conversations, nothing lost, nothing twice: True",
    "delegation.py": "tool: SubAgentPausedError, 121 tokens together",
    "events.py": "22 run_finished",
    "forking.py": "3 turns; bounded: 4",
    "history_repair.py": "dropped:     call_oslo",
    "history_sanitization.py": "message 3: image dropped, host 0xa9fea9fe",
    "journal.py": "repaired: call_2",
    "limits.py": "usage: run exceeded the cost limit of 0.001 (used 0.001275); tools run: 2",
    "partial_evidence.py": "finished before it: ['sent to ada@example.com']",
    "retries_and_fallback.py": "failed: model stage: connection reset | It is",
    "run_ids.py": "same conversation: True",
    "steering.py": "5 said:     And how do I get there?",
    "stream_sse.py": "a reader of 17 frames lost its connection after run:15",
    "structured_output.py": "offered: final_result_Recipe final_result_Refusal",
    "testing_without_a_provider.py": "passed: streamed_as_you_like",
    "tools.py": "c4 order   FAILED only 2 left of 'cup'",
}
WITHOUT_A_KEY = {
    "anthropic_messages.py": "ANTHROPIC_API_KEY=sk-ant-",
    "bedrock_converse.py": "AWS_REGION=us-east-1 AWS_BEARER_TOKEN_BEDROCK=...",
    "gemini_generate.py": "GEMINI_API_KEY=AIza",
}
WITH_A_MODEL = {"conversation.py", "demo.py"}
HELPERS = {"choose_model.py"}


@pytest.mark.parametrize("name", sorted(OFFLINE))
def test_an_offline_example_runs(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert OFFLINE[name] in done.stdout


@pytest.mark.parametrize("name", sorted(WITHOUT_A_KEY))
def test_a_providers_example_says_what_it_needs(name: str) -> None:
    own = ("AWS_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "OPENAI_")
    keyless = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        check=False,
        env=keyless,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert WITHOUT_A_KEY[name] in done.stdout


def test_no_example_is_forgotten() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    assert programs == OFFLINE.keys() | WITHOUT_A_KEY.keys() | WITH_A_MODEL | HELPERS
