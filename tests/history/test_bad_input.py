"""What is no history, or holds what is no message, ends in a HistoryError that names the place."""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from golem import (
    AssistantMessage,
    HistoryError,
    Message,
    Part,
    ToolCall,
    ToolMessage,
    UserMessage,
    arepair,
    dump_history,
    load_history,
    normalize_history,
)
from golem.history import edit_user, sanitize_history
from tests.history.checks import now
from tests.history.passes import (
    CALL,
    DIRECTLY,
    PASSES,
    RESULT,
    USER,
    Pass,
    collected,
    error_of,
    every_pass,
)

# Not a message


@every_pass
@pytest.mark.parametrize(
    "odd", [None, 5, "user", b"{}", {"role": "user"}, [], (), Part("image"), object], ids=repr
)
def test_something_that_is_no_message_is_named_with_its_place(function: Pass, odd: Any) -> None:
    with pytest.raises(HistoryError) as caught:
        function([USER, CALL, RESULT, odd, UserMessage("later")])
    assert f"history[3]: not a message but {type(odd).__name__}" == str(caught.value)
    assert caught.value.index == 3


@every_pass
def test_a_subclass_of_a_message_is_none(function: Pass) -> None:
    """It may have members that nobody stores."""

    class Special(UserMessage, frozen=True):
        more: str = ""

    with pytest.raises(HistoryError, match=r"^history\[1\]: not a message but Special$"):
        function([USER, Special("x"), CALL, RESULT])


@every_pass
def test_a_class_is_no_message(function: Pass) -> None:
    with pytest.raises(HistoryError, match=r"^history\[2\]: not a message but StructMeta$"):
        function([USER, CALL, ToolMessage])


@every_pass
def test_an_iterable_that_fails_midway_fails_the_pass_with_its_own_error(function: Pass) -> None:
    class Broken(Exception):
        pass

    def broken() -> Iterator[Message]:
        yield USER
        yield CALL
        raise Broken

    with pytest.raises(Broken):
        function(broken())


@every_pass
@pytest.mark.parametrize("error", [AttributeError("mine"), TypeError("mine")], ids=repr)
def test_the_applications_own_error_is_not_taken_for_a_malformed_message(
    function: Pass, error: Exception
) -> None:
    def broken() -> Iterator[Message]:
        yield USER
        raise error

    with pytest.raises(type(error), match="mine"):
        function(broken())


# No iterable


@every_pass
@pytest.mark.parametrize("given", [None, 5, USER, object()], ids=["None", "5", "message", "object"])
def test_what_is_no_iterable_is_no_history(function: Pass, given: Any) -> None:
    with pytest.raises(HistoryError) as caught:
        DIRECTLY.get(function, function)(given)
    assert re.fullmatch(
        rf"history: expected an (asynchronous )?iterable of messages, not {type(given).__name__}",
        str(caught.value),
    )


def test_what_is_read_asynchronously_is_no_history_for_a_pass_that_is_not() -> None:
    async def arriving() -> AsyncIterator[Message]:
        yield USER

    with pytest.raises(HistoryError, match=r"iterable of messages, not async_generator$"):
        normalize_history(arriving())  # type: ignore[arg-type]
    with pytest.raises(HistoryError, match=r"asynchronous iterable of messages, not list$"):
        now(collected(arepair([USER])))  # type: ignore[arg-type]


def test_an_iterable_by_the_old_protocol_is_one() -> None:
    class Old:
        def __getitem__(self, place: int) -> Message:
            return [USER, CALL, RESULT][place]

    assert normalize_history(Old())[0] == [USER, CALL, RESULT]  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [5, None, USER])
def test_parts_and_hosts_that_are_no_iterables_are_named(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^allowed_hosts holds host names, not "):
        sanitize_history([USER], allowed_hosts=given or 7)
    with pytest.raises(TypeError, match=r"^parts must be a sequence of Part, not "):
        edit_user([USER], 0, "x", parts=given or 7)


# Odd but sound


@every_pass
@pytest.mark.parametrize(
    "text", ["x" * 10_000, "\ud800", "\udfff" * 100, "\x00", "\u2028\r\n", "."], ids=range(6)
)
def test_any_text_is_an_id(function: Pass, text: str) -> None:
    """Its length is not the error's: that goes to a log."""
    history: list[Message] = [
        UserMessage(text, run_id=text, conversation_id=text),
        AssistantMessage(text, tool_calls=(ToolCall.of(text, text, text),)),
        ToolMessage(text, tool_call_id=text, tool_name=text),
        ToolMessage(text, tool_call_id=text + "lost", tool_name=text),
        UserMessage(text, parts=(Part.image_url(text),)),
    ]
    assert len(str(error_of(function, history))) < 200


@functools.cache
def _deep() -> list[Message]:
    deep = "[" * 100_000 + "]" * 100_000
    stored = f'[{{"role":"user","content":"u","runId":"r","newer":{deep}}},'
    stored += f'{{"role":"assistant","toolCalls":[{{"id":"c","name":"f","args":{{"x":{deep}}}}}]}}]'
    return load_history(stored)


@every_pass
def test_deep_nesting_is_as_good_as_any(function: Pass) -> None:
    assert len(str(error_of(function, _deep()))) < 200


def test_arguments_nested_too_deep_are_truncated_ones() -> None:
    deep = '{"x":' + "[" * 100_000 + "]" * 100_000 + "}"
    stored = f'[{{"role":"assistant","toolCalls":[{{"id":"c","name":"f","args":{deep}}}]}}]'
    history = load_history(stored)
    assert normalize_history(history)[1].truncated == ("c",)
    assert history == load_history(dump_history(history))


@every_pass
def test_an_empty_history_is_one(function: Pass) -> None:
    refused = {"fork", "rewind", "rewind to run", "edit", "drop turn"}
    if function in [PASSES[name] for name in refused]:
        with pytest.raises(HistoryError):
            function([])
    else:
        function([])
