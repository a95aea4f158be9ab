"""A judge as a server: what it keeps, what it answers, and how it ends."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import anyio
import httpx
import pytest

from golem.errors import APIError
from golem.messages import AssistantMessage, UserMessage
from golem.model import OutputSchema, Request, Response, ToolChoice, ToolSpec
from golem.testing.judge import (
    ChatJudge,
    ChatProvider,
    Judge,
    Provider,
    ResponsesJudge,
    judge_chat,
    judge_responses,
    misbehave,
)
from golem.usage import Usage
from tests.judge.support import ANSWER, API, ASK, OPENAI, TEXT, both_ways, over, read

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TOOL = ToolSpec("f", "", {"type": "object", "properties": {"n": {"type": "integer"}}})


async def posted(judge: Judge, **options: Any) -> httpx.Response:
    options.setdefault("headers", {"authorization": f"Bearer {judge.key}"})
    path = options.pop("path", judge.provider.path)
    async with httpx.AsyncClient() as client:
        return await client.post(judge.base_url + path, **options)


def rules(judge: Judge) -> list[str]:
    return [violation.rule for violation in judge.violations]


async def test_a_request_is_kept_as_it_came() -> None:
    async with ChatJudge("Hi.") as judge:
        response = await posted(judge, json=BODY)
        assert response.json()["choices"][0]["message"]["content"] == "Hi."
        (asked,) = judge.requests
    assert (asked.path, asked.json, asked.violations) == ("/v1/chat/completions", BODY, ())
    assert json.loads(asked.body) == BODY
    assert asked.headers["content-type"] == "application/json"


async def test_a_body_in_chunks_is_read() -> None:
    async def chunks() -> Any:
        for byte in json.dumps(BODY).encode():
            yield bytes([byte])

    async with ChatJudge("Hi.") as judge:
        assert (await posted(judge, content=chunks())).status_code == 200
        assert judge.requests[0].json == BODY


JUNK = (
    b"\x16\x03\x01\x02\x00",
    b"GET\r\n\r\n",
    b"POST / HTTP/1.1\r\ncontent-length: -5\r\n\r\nhello",
    b"POST / HTTP/1.1\r\ncontent-length: many\r\n\r\n",
    b"POST / HTTP/1.1\r\ncontent-length: 999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffffffffff\r\n",
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n" + b"1" * 100_000,
    b"A" * 100_000,
    b"\x00\xff\xfe" * 30_000 + b"\r\n\r\n",
)


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
@pytest.mark.parametrize("there", [False, True], ids=["here", "elsewhere"])
async def test_junk_ends_its_connection_and_nothing_else(junk: bytes, there: bool) -> None:
    async with ChatJudge("Hi.", misbehave=[misbehave.redirects()]) as judge:
        moved = await posted(judge, json=BODY)
        port = httpx.URL(moved.headers["location"] if there else judge.origin).port
        assert port is not None
        with anyio.fail_after(5):
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                    await stream.send(junk)
                    await stream.send_eof()
                    while True:
                        await stream.receive()
        assert (await posted(judge, json=BODY)).status_code == 200
    assert judge.elsewhere == []


@pytest.mark.parametrize(
    ("content", "status", "rule"),
    [
        (b"{", 400, "json"),
        (b"\xff", 400, "json"),
        (b'{"a": NaN}', 400, "json"),
        (b"[" * 100_000, 400, "json"),
        (b'{"a":' * 600 + b"1" + b"}" * 600, 400, "json"),
        (b"[]", 400, "member_type"),
        (b'{"model": "m"}', 400, "required_member"),
    ],
)
async def test_a_body_that_is_no_request_is_a_violation(
    content: bytes, status: int, rule: str
) -> None:
    async with ChatJudge() as judge:
        response = await posted(judge, content=content)
        assert response.status_code == status
        assert response.json()["error"]["message"] == judge.violations[0].text
        assert rules(judge) == [rule]


async def test_a_wrong_address_or_key_is_a_violation() -> None:
    async with ChatJudge() as judge:
        assert (await posted(judge, json=BODY, path="/completions")).status_code == 404
        assert (await posted(judge, json=BODY, headers={})).status_code == 401
        assert rules(judge) == ["address", "key"]


async def test_no_key_is_asked_for_where_there_is_none() -> None:
    async with ChatJudge("Hi.", key="") as judge:
        assert (await posted(judge, json=BODY, headers={})).status_code == 200


@both_ways
@over(*OPENAI)
async def test_answers_are_one_for_each_request_and_then_a_helpful_models(
    api: API, stream: bool
) -> None:
    usage = Usage(30, 4, cache_read_tokens=10, reasoning_tokens=1)
    async with api.judge_type(["a", ANSWER, Response(AssistantMessage("b"), usage)]) as judge:
        model = api.model(judge)
        heard = [await (read(model) if stream else model.generate(ASK)) for _ in range(4)]
    assert [answer.message.content for answer in heard] == [
        *("a", TEXT, "b", "The capital of France is Paris.")
    ]
    assert heard[2].usage == usage
    assert heard[0].usage.output_tokens > 0


@over(*OPENAI)
async def test_an_answer_may_be_always_the_same_or_a_function_of_the_body(api: API) -> None:
    async with api.judge_type("same") as judge:
        model = api.model(judge)
        assert {(await model.generate(ASK)).message.content for _ in range(3)} == {"same"}
    async with api.judge_type(lambda body: body["model"] * 3) as judge:
        assert (await api.model(judge).generate(ASK)).message.content == "mmm"


@pytest.mark.parametrize("choice", [None, ToolChoice("required"), ToolChoice("tool", "f")])
async def test_a_helpful_model_calls_the_tool_it_has_to(
    api: API, choice: ToolChoice | None
) -> None:
    async with api.judge_type() as judge:
        request = Request(ASK.messages, (TOOL,), tool_choice=choice)
        (call,) = (await api.model(judge).generate(request)).message.tool_calls
        none = Request(ASK.messages, (TOOL,), tool_choice=ToolChoice("none"))
        assert not (await api.model(judge).generate(none)).message.tool_calls
    assert (call.name, call.args) == ("f", "{}")


@over("gemini", *OPENAI)
async def test_a_helpful_model_follows_the_schema(api: API) -> None:
    properties = {
        "a": {"type": "string"},
        "b": {"enum": ["x", "y"]},
        "c": {"type": "array", "items": {"type": "integer", "minimum": 5}, "minItems": 1},
        "d": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*"abcd"],
        "additionalProperties": False,
    }
    async with api.judge_type() as judge:
        request = Request((UserMessage("q"),), output_schema=OutputSchema("o", schema))
        answer = await api.model(judge).generate(request)
    assert json.loads(answer.message.content) == {"a": "Paris", "b": "x", "c": [5], "d": True}


@over(*OPENAI)
async def test_the_same_request_gets_the_same_answer_plain_and_streamed(api: API) -> None:
    async with api.judge_type(ANSWER) as judge:
        plain, streamed = await api.model(judge).generate(ASK), await read(api.model(judge))
    assert plain.details.response_id == streamed.details.response_id != ""
    assert plain.message == streamed.message


@over(*OPENAI)
async def test_a_violation_is_answered_and_the_connection_is_kept(api: API) -> None:
    async with api.judge_type() as judge:
        orphan = {"role": "tool", "tool_call_id": "x", "content": "y"}
        item = {"type": "function_call_output", "call_id": "x", "output": "y"}
        body = (
            {"model": "m", "messages": [orphan]}
            if api.name == "chat"
            else {"model": "m", "input": [item]}
        )
        refused = await posted(judge, json=body)
        assert (refused.status_code, rules(judge)) == (400, ["orphan_result"])


async def test_a_judge_ends_with_its_block_whatever_is_open(api: API) -> None:
    arrived = anyio.Event()

    def answer(body: Any) -> str:
        arrived.set()
        return TEXT

    judge = api.judge_type(answer, misbehave.hangs())
    async with anyio.create_task_group() as tasks, judge:
        tasks.start_soon(api.model(judge).generate, ASK)
        await arrived.wait()
        tasks.cancel_scope.cancel()
    assert len(judge.requests) == 1
    assert judge.open_connections == 0


async def test_an_error_in_the_block_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with ChatJudge():
            raise ZeroDivisionError


def test_a_judge_that_does_not_run_has_no_address() -> None:
    judge = ChatJudge()
    with pytest.raises(RuntimeError, match="async with"):
        _ = judge.base_url
    assert repr(judge) == "ChatJudge(0 requests)"


@pytest.mark.parametrize(
    "make",
    [
        lambda: ChatJudge(dialect="nobody"),
        lambda: ResponsesJudge(dialect="nobody"),
        lambda: judge_chat({}, dialect="nobody"),
        lambda: judge_responses({}, dialect="nobody"),
    ],
)
def test_a_dialect_without_rules_is_refused_by_name(make: Any) -> None:
    with pytest.raises(ValueError, match="no rules for 'nobody'; known are "):
        make()


def test_endless_what_has_to_be_known() -> None:
    with pytest.raises(ValueError, match="endless 'words'"):
        misbehave.endless("words")


def test_a_provider_has_to_say_what_none_shares() -> None:
    class Half(Provider):
        path = "/half"

    with pytest.raises(TypeError, match="abstract"):
        Half()  # type: ignore[abstract]


@over(*OPENAI)
async def test_a_judge_over_a_provider_is_the_judge_of_its_api(api: API) -> None:
    async with Judge(ChatProvider("mistral"), "Hi.") as judge:
        assert (await posted(judge, json=BODY)).status_code == 200
        refused = await posted(judge, json={**BODY, "seed": 1})
        assert (refused.status_code, refused.json()["object"]) == (422, "error")


@over(*OPENAI)
async def test_what_is_done_wrong_is_one_for_each_request_and_then_nothing(api: API) -> None:
    async with api.judge([None, misbehave.status(500), None]) as judge:
        model = api.model(judge)
        await model.generate(ASK)
        with pytest.raises(APIError):
            await model.generate(ASK)
        for _ in range(2):
            await model.generate(ASK)
