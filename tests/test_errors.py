"""The exceptions: what they say, and that they cross process boundaries whole."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

from golem import AssistantMessage, Pending, PendingCall, ToolCall, errors
from golem.errors import (
    APIError,
    GolemError,
    HistoryError,
    ModelRetry,
    ProtocolError,
    ProviderError,
    ReplayError,
    ReplayFullError,
    ReplayGapError,
    RunError,
    SubAgentPausedError,
    ToolCanceled,
    ToolDeferred,
    ToolFailed,
    ToolSignal,
    TransportError,
    UnknownRunError,
    UnsupportedContentError,
)

PARTIAL = AssistantMessage("so f", tool_calls=(ToolCall.of("c", "n", '{"a":'),))

EXAMPLES: list[Exception] = [
    GolemError("reason"),
    HistoryError("reason"),
    HistoryError("reason", index=3, path="parts[0].data"),
    UnsupportedContentError("reason"),
    ProviderError("reason"),
    APIError("reason"),
    APIError(
        "reason",
        status=429,
        code="rate_limit",
        retryable=True,
        retry_after=1.5,
        request_id="req",
        partial=PARTIAL,
    ),
    TransportError("reason"),
    TransportError("reason", retryable=False, partial=PARTIAL),
    ProtocolError("reason", retryable=True, partial=PARTIAL),
    RunError("reason", stage="model", run_id="r", conversation_id="c"),
    ToolSignal("reason"),
    ModelRetry("reason"),
    ToolFailed("reason"),
    ToolCanceled(),
    ToolDeferred(),
    ToolDeferred("external", "job 7"),
    SubAgentPausedError("helper", Pending((PendingCall("approval", "1", "t", "{}"),))),
    ReplayError("reason"),
    UnknownRunError("reason"),
    ReplayGapError(7),
    ReplayFullError("reason"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=repr)
def test_an_error_survives_pickling_and_copying(error: Exception) -> None:
    error.add_note("while testing")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert_equal(error, pickle.loads(pickle.dumps(error, protocol)))
    assert_equal(error, copy.copy(error))
    assert_equal(error, copy.deepcopy(error))


def assert_equal(one: Exception, two: Any) -> None:
    assert type(one) is type(two)
    assert (str(one), one.args, one.__dict__) == (str(two), two.args, two.__dict__)


def test_every_exception_has_an_example() -> None:
    classes = {
        value
        for _, value in inspect.getmembers(errors, inspect.isclass)
        if issubclass(value, Exception)
    }
    assert classes == set(map(type, EXAMPLES))


def test_the_docstring_draws_the_tree() -> None:
    for error in EXAMPLES:
        assert type(error).__name__ in str(errors.__doc__)


def test_a_history_error_says_where() -> None:
    assert str(HistoryError("reason")) == "history: reason"
    assert str(HistoryError("reason", index=0)) == "history[0]: reason"
    assert str(HistoryError("reason", index=3, path="content")) == "history[3].content: reason"
    assert str(HistoryError("reason", path="content")) == "history.content: reason"
    assert isinstance(HistoryError("reason"), ValueError)


def test_an_api_error_leads_with_status_and_code() -> None:
    assert str(APIError("slow down", status=429, code="rate_limit")) == "429 rate_limit: slow down"
    assert str(APIError("slow down", status=429)) == "429: slow down"
    assert str(APIError("slow down")) == "slow down"


def test_a_run_error_says_the_stage_and_keeps_the_cause() -> None:
    with pytest.raises(RunError, match="tool stage: reason") as caught:
        raise RunError("reason", stage="tool", run_id="r", conversation_id="c") from KeyError("x")
    assert isinstance(caught.value.__cause__, KeyError)
    assert (
        caught.value.stage,
        caught.value.run_id,
        caught.value.conversation_id,
        caught.value.partial,
    ) == ("tool", "r", "c", None)


def test_what_a_tool_raises_is_no_fault_of_golem() -> None:
    for signal in (ModelRetry, ToolFailed, ToolCanceled, ToolDeferred):
        assert not issubclass(signal, GolemError)
        assert signal().reason == ""
