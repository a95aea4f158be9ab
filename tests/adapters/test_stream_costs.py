"""What a stream costs: each piece its own, however many came before it; and never the memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem import rawjson
from golem.errors import ProtocolError
from golem.model import Request, ToolSpec
from golem_adapters._toolkit import bounds
from golem_adapters._toolkit.pieces import ArgumentText
from tests.adapters import conversing, generating, messaging
from tests.adapters.driving import Outcome, cut, delta, drive, drive_responses, events
from tests.strategies import ARGS

Make = Callable[[int], list[bytes]]
TOOLS = Request((), tools=(ToolSpec("f", "", {"type": "object"}),))


def chat(one: Callable[[int], dict[str, Any]]) -> Make:
    return lambda count: [*(events(one(n), done=False) for n in range(count)), events()]


def call(**members: Any) -> dict[str, Any]:
    return delta(tool_calls=[members])


def named(name: str | None, arguments: str = "", **members: Any) -> dict[str, Any]:
    return call(function={"name": name, "arguments": arguments}, **members)


def reasoned(**detail: Any) -> dict[str, Any]:
    return delta(reasoning_details=[detail])


CHAT: dict[str, Make] = {
    "starts of calls": chat(lambda n: named("f", index=n, id=f"c{n}")),
    "starts without an index": chat(lambda n: named("f", id=f"c{n}")),
    "pieces in turn": chat(lambda n: named("f", "1", index=n % 50)),
    "the name in every piece": chat(lambda n: named("f", '{"a":"' if not n else "}", index=0)),
    "a name without an end": chat(lambda n: named("fff", index=0)),
    "another unknown name": chat(lambda n: named(f"g{n}", index=0)),
    "blanks": chat(lambda n: call(index=0, function={"arguments": " " if n else "{"})),
    "a null beside reasoning": chat(
        lambda n: delta(reasoning="a") if n % 2 else {"choices": [{"delta": None}]}
    ),
    "one detail in pieces": chat(lambda n: reasoned(type="reasoning.text", text="a", index=0)),
    "details in turn": chat(lambda n: reasoned(type="reasoning.text", text="a", index=n % 50)),
    "late signatures": chat(lambda n: reasoned(type="reasoning.text", signature="s", index=n)),
}


def responses(one: Callable[[int], list[dict[str, Any]]]) -> Make:
    end = {"type": "response.completed", "response": {"status": "completed"}}

    def make(count: int) -> list[bytes]:
        return [*(events(*one(n), done=False) for n in range(count)), events(end, done=False)]

    return make


def added(n: int | None, kind: str, **members: Any) -> dict[str, Any]:
    item = {"type": kind, **members}
    return {"type": "response.output_item.added", "output_index": n, "item": item}


def done(n: int | None, kind: str, **members: Any) -> dict[str, Any]:
    return {**added(n, kind, **members), "type": "response.output_item.done"}


def said(n: int | None, words: str, place: int = 0, of: str = "output_text") -> dict[str, Any]:
    place_of = {"output_index": n, "content_index": place}
    return {"type": f"response.{of}.delta", **place_of, "delta": words}


def whole(n: int, words: str, place: int = 0) -> dict[str, Any]:
    text = {"output_index": n, "content_index": place, "text": words}
    return {"type": "response.output_text.done", **text}


RESPONSES: dict[str, Make] = {
    "starts of calls": responses(lambda n: [added(n, "function_call", name="f", call_id=f"c{n}")]),
    "starts without a name": responses(lambda n: [added(n, "function_call", call_id=f"c{n}")]),
    "starts of messages": responses(lambda n: [added(n, "message", id=f"m{n}")]),
    "kinds nobody knows": responses(lambda n: [added(n, f"k{n}", id=f"m{n}")]),
    "texts that wait": responses(lambda n: [added(n, "message"), said(n, "a")]),
    "whole items without places": responses(
        lambda n: [added(None, "message"), said(None, "a"), done(None, "message")]
    ),
    "parts of one item": responses(lambda n: [said(0, "a", n), whole(0, "a", n)]),
    "a part that ends again": responses(lambda n: [said(0, "a"), whole(0, "")]),
    "arguments in turn": responses(
        lambda n: [
            added(n, "function_call", name="f", call_id=f"c{n}"),
            said(n // 2, "1", of="function_call_arguments"),
        ]
    ),
}


def messages(one: Callable[[int], list[dict[str, Any]]]) -> Make:
    def make(count: int) -> list[bytes]:
        middle = (messaging.sse(one(n)) for n in range(count))
        return [messaging.sse([messaging.started()]), *middle, messaging.sse(messaging.ended())]

    return make


def use(n: int | None, id: str = "c") -> dict[str, Any]:
    return messaging.start(n, {"type": "tool_use", "id": id, "name": "f", "input": {}})


LONG = json.dumps({"a": "b" * 200})
MESSAGES: dict[str, Make] = {
    "starts of calls": messages(lambda n: [use(n, f"c{n}")]),
    "the same call again": messages(
        lambda n: [use(n), messaging.delta(n, "input_json_delta", partial_json="{}")]
    ),
    "whole blocks without places": messages(lambda n: [use(None, f"c{n}"), messaging.stop(None)]),
    "blocks that stay open": messages(
        lambda n: [
            messaging.start(n, {"type": "text", "text": ""}),
            messaging.delta(None, "text_delta", text="a"),
        ]
    ),
    "a signature in pieces": messages(
        lambda n: [messaging.delta(0, "signature_delta", signature="s")]
    ),
    "counts nobody knows": messages(
        lambda n: [{"type": "message_delta", "delta": {}, "usage": {f"n{n}": 1}}]
    ),
}


def converse(one: Callable[[int], list[Any]]) -> Make:
    def make(count: int) -> list[bytes]:
        middle = (conversing.framed(one(n)) for n in range(count))
        return [*middle, conversing.framed(conversing.ended())]

    return make


def opened(n: int, id: str) -> Any:
    return conversing.start(n, toolUse={"toolUseId": id, "name": "f"})


CONVERSE: dict[str, Make] = {
    "starts of calls": converse(lambda n: [opened(n, f"c{n}")]),
    "starts under one id": converse(lambda n: [opened(n, "c")]),
    "a signature in pieces": converse(
        lambda n: [conversing.delta(0, reasoningContent={"signature": "s"})]
    ),
    "pieces nobody knows": converse(lambda n: [conversing.delta(0, future={f"m{n}": "a"})]),
    "pieces of a result": converse(lambda n: [conversing.delta(0, toolResult=[{"text": "a"}])]),
}


def generate(one: Callable[[int], list[dict[str, Any]]]) -> Make:
    def make(count: int) -> list[bytes]:
        middle = [generating.sse([generating.answer(one(n), None)]) for n in range(count)]
        return [*middle, generating.sse([generating.answer([], "STOP")])]

    return make


def placed(path: str, value: str) -> dict[str, Any]:
    piece = {"jsonPath": path, "stringValue": value, "willContinue": True}
    return {"functionCall": {"partialArgs": [piece], "willContinue": True}}


GENERATE: dict[str, Make] = {
    "calls": generate(lambda n: [generating.call("f", id=f"c{n}", n=n)]),
    "calls without ids": generate(lambda n: [generating.call("f", n=n)]),
    "the same call again": generate(lambda n: [generating.call("f", id="c")]),
    "texts and thoughts": generate(lambda n: [generating.text("a"), generating.thought("b")]),
    "an argument in pieces": generate(
        lambda n: [placed("$.a", "b") if n else {"functionCall": {"name": "f", **_OPEN}}]
    ),
    "arguments in places": generate(
        lambda n: [placed(f"$.a[{n - 1}]", "b") if n else {"functionCall": {"name": "f", **_OPEN}}]
    ),
}
_OPEN = {"willContinue": True}

Drive = Callable[[Iterable[bytes]], Outcome]
DRIVES: dict[str, tuple[Drive, dict[str, Make]]] = {
    "chat": (lambda pieces: drive(pieces, request=TOOLS, dialect="openrouter"), CHAT),
    "responses": (drive_responses, RESPONSES),
    "messages": (messaging.drive, MESSAGES),
    "converse": (conversing.drive, CONVERSE),
    "generate": (generating.drive, GENERATE),
}
CASES = [
    pytest.param(drive, make, id=f"{api}: {name}")
    for api, (drive, makes) in DRIVES.items()
    for name, make in makes.items()
]


def steps(run: Callable[[], object]) -> int:
    """How many lines of golem's own code `run` goes through."""
    count = 0

    def line(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += 1
        return line

    def entered(frame: FrameType, event: str, _: object) -> Any:
        return line if "golem" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(("drive", "make"), CASES)
def test_twice_the_pieces_cost_twice_as_much(drive: Drive, make: Make) -> None:
    few, many = make(300), make(600)
    once = steps(lambda: drive(few))
    assert once > 300
    assert steps(lambda: drive(many)) < 2.1 * once


# --- memory


STARTS: dict[str, tuple[Drive, Make]] = {
    "chat calls": (drive, CHAT["starts of calls"]),
    "chat reasoning": (drive, CHAT["late signatures"]),
    "responses items": (drive_responses, RESPONSES["starts of messages"]),
    "responses parts": (drive_responses, RESPONSES["parts of one item"]),
    "messages blocks": (messaging.drive, MESSAGES["starts of calls"]),
    "converse blocks": (conversing.drive, CONVERSE["starts of calls"]),
    "generate parts": (generating.drive, GENERATE["texts and thoughts"]),
}


@pytest.mark.parametrize("name", STARTS)
def test_an_answer_of_too_many_items_is_ended_with_what_had_come(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_ITEMS", 20)
    drive, make = STARTS[name]
    outcome = drive(make(30))
    assert isinstance(outcome.error, ProtocolError)
    assert not outcome.error.retryable
    assert "the answer has more than 20 " in str(outcome.error)
    assert name in ("responses items", "chat reasoning") or outcome.error.partial is not None


NESTED = b"{}," * 1_100_000 + b"{}"
PLAIN: dict[str, tuple[Drive, bytes]] = {
    "chat": (drive, b'{"choices":[%s]}'),
    "responses": (drive_responses, b'{"output":[%s]}'),
    "messages": (messaging.drive, b'{"content":[%s]}'),
    "converse": (conversing.drive, b'{"output":{"message":{"content":[%s]}}}'),
    "generate": (generating.drive, b'{"candidates":[%s]}'),
}


@pytest.mark.parametrize("api", PLAIN)
def test_a_body_that_unfolds_to_a_hundred_times_its_size_is_refused(api: str) -> None:
    drive, body = PLAIN[api]
    outcome = drive([body % NESTED])
    assert isinstance(outcome.error, ProtocolError)
    assert str(outcome.error) == "the answer has more than 2000000 JSON values"


@pytest.mark.parametrize("api", ["chat", "responses", "messages", "generate"])
def test_an_event_that_unfolds_to_a_hundred_times_its_size_is_refused(api: str) -> None:
    drive, body = PLAIN[api]
    outcome = drive([b"data: " + body % NESTED + b"\n\n"])
    assert isinstance(outcome.error, ProtocolError)
    assert str(outcome.error) == "the answer has more than 2000000 JSON values"


FULL = {"a": [{}, {}, {}]}
KEPT: dict[str, tuple[Drive, Make]] = {
    "chat": (drive, chat(lambda n: reasoned(type="reasoning.text", index=n, **FULL))),
    "responses": (drive_responses, responses(lambda n: [added(n, f"k{n}", **FULL)])),
    "messages": (
        messaging.drive,
        messages(lambda n: [messaging.start(n, {"type": "k", **FULL})]),
    ),
    "converse": (conversing.drive, converse(lambda n: [conversing.start(n, k=FULL)])),
    "generate": (generating.drive, generate(lambda n: [{"k": FULL}])),
}


@pytest.mark.parametrize("api", KEPT)
def test_what_is_kept_of_many_events_is_bounded_in_all(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MAX_VALUES", 100)
    drive, make = KEPT[api]
    assert drive(make(5)).error is None or api == "chat"
    outcome = drive(make(50))
    assert isinstance(outcome.error, ProtocolError)
    assert str(outcome.error) == "the answer has more than 100 JSON values"


def test_texts_full_of_brackets_are_texts() -> None:
    words = '{"a": [1, 2, \\"}\n' * 500_000
    assert drive([events(delta(content=words), delta("stop"))]).message.content == words


def test_a_few_bytes_do_not_make_an_array_of_thousands() -> None:
    """Vertex names the place of each argument: one far behind the others is nobody's."""
    far = [{"functionCall": {"name": "f", **_OPEN}}, placed("$.a[9999][9999]", "b")]
    end = {"functionCall": {}}
    chunks = [generating.answer([part], None) for part in (*far, end)]
    outcome = generating.drive([generating.sse([*chunks, generating.answer([], "STOP")])])
    assert [made.args for made in outcome.message.tool_calls] == ['{"a":[]}']


# --- argument text


@pytest.mark.parametrize(
    ("pieces", "whole"),
    [
        (["{", "}"], True),
        (['{"a', '":"}', '"}'], True),
        (['{"a":"\\', '"}"}'], True),
        (['{"a":"\\\\', '"}'], True),
        (['{"a":[{}', "]}"], True),
        (["{}", "{}"], False),
        (["{}}"], False),
        (["[]"], False),
        (["{", " ", '"a":1', " }  "], True),
        (['{"a":1', "]"], False),
        (["{a}"], False),
        ([], False),
    ],
)
def test_arguments_in_pieces_are_known_to_be_whole(pieces: list[str], whole: bool) -> None:
    text = ArgumentText()
    for piece in pieces:
        text.taken(piece)
        assert text.whole == rawjson.is_object(text.text.encode())
    assert text.whole == whole


@given(ARGS, st.lists(st.integers(0, 60)))
def test_arguments_are_whole_exactly_where_their_text_is_an_object(
    args: str, places: list[int]
) -> None:
    text = ArgumentText()
    for piece in cut(args.encode("utf-8", "replace"), places):
        text.taken(piece.decode("utf-8", "replace"))
        assert text.whole == rawjson.is_object(text.text.encode("utf-8", "replace"))
