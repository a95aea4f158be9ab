"""The judges of Messages and Converse as servers: keys, versions, signatures, counts, answers.

The tests that ask nothing of one API alone are those of `tests.judge.test_server`, over these two.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from msgspec import Raw

from golem import Agent, RunError, tool
from golem.errors import APIError
from golem.messages import AssistantMessage, Native, Thinking, ToolCall, UserMessage
from golem.model import OutputSchema, Request, Response, ToolSpec
from golem.testing.judge import AnthropicJudge, BedrockJudge, BedrockProvider, Judge, misbehave
from golem.testing.judge.bedrock_frames import frame
from golem.usage import Usage
from golem_adapters import Anthropic, AWSCredentials, Bedrock
from tests.judge.support import ANSWER, API, APIS, ASK, CLAUDES, both_ways, over, read

USER = {"role": "user", "content": "hi"}
MESSAGES = {"model": "m", "max_tokens": 5, "messages": [USER]}
CONVERSE = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
WEATHER = ToolSpec("f", "", {"type": "object", "properties": {}})


async def posted(judge: Judge, path: str, body: Any, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient() as client:
        return await client.post(judge.base_url + path, json=body, headers=named)


def rules(judge: Judge) -> list[str]:
    return [violation.rule for violation in judge.violations]


# --- what stands around a body


async def test_a_key_is_taken_in_either_header_and_the_version_has_to_be_known() -> None:
    async with AnthropicJudge("Hi.") as judge:
        version = {"anthropic_version": "2023-06-01"}
        keyed = await posted(judge, "/messages", MESSAGES, x_api_key=judge.key, **version)
        bearer = f"Bearer {judge.key}"
        token = await posted(judge, "/messages", MESSAGES, authorization=bearer, **version)
        assert [keyed.status_code, token.status_code] == [200, 200]
        assert keyed.headers["request-id"].startswith("req_")
        refused = await posted(judge, "/messages", MESSAGES, x_api_key=judge.key)
        assert refused.json()["error"]["message"] == "anthropic-version: header is required"
        await posted(judge, "/messages", MESSAGES, x_api_key=judge.key, anthropic_version="1")
        await posted(judge, "/messages", MESSAGES, x_api_key="x", **version)
        await posted(judge, "/complete", MESSAGES, x_api_key=judge.key, **version)
        assert rules(judge) == ["version", "version", "key", "address"]


async def test_a_setting_that_the_version_has_not_is_refused() -> None:
    async with AnthropicJudge("Hi.") as judge:
        given = {"base_url": judge.base_url, "api_key": judge.key}
        await Anthropic("m", **given, temperature=0.5).generate(ASK)
        sampled = {**MESSAGES, "temperature": 0.5}
        headers = {"x_api_key": judge.key, "anthropic_version": "2026-10-21"}
        assert (await posted(judge, "/messages", sampled, **headers)).status_code == 400
        assert rules(judge) == ["unknown_member"]


async def test_a_request_that_is_too_large_is_not_looked_into() -> None:
    async with AnthropicJudge("Hi.") as judge:
        model = Anthropic("m", base_url=judge.base_url, api_key=judge.key)
        with pytest.raises(APIError) as caught:
            await model.generate(Request([UserMessage("x" * 34_000_000)]))
        assert (caught.value.status, caught.value.code) == (413, "request_too_large")
        assert not caught.value.retryable
        assert rules(judge) == ["size"]


@both_ways
async def test_a_signature_is_taken_where_the_key_is_its_access_key_id(stream: bool) -> None:
    async with BedrockJudge(ANSWER) as judge:
        credentials = AWSCredentials(judge.key, "secret", "session token")
        at = {"base_url": judge.base_url, "region": "us-east-1"}
        model = Bedrock(CLAUDE, **at, credentials=credentials)
        answer = await (read(model) if stream else model.generate(ASK))
        assert answer.message == ANSWER
        other = Bedrock(CLAUDE, **at, credentials=AWSCredentials("AKIA", "secret"))
        with pytest.raises(APIError) as caught:
            await other.generate(ASK)
        assert (caught.value.status, rules(judge)) == (403, ["key"])


SCOPE = "20261130/us-east-1/bedrock/aws4_request"
SIGNED = f"AWS4-HMAC-SHA256 Credential=KEY/{SCOPE}, SignedHeaders=host;x-amz-date, Signature="


@pytest.mark.parametrize(
    ("authorization", "date", "said"),
    [
        (SIGNED + "a" * 64, "20261201T000000Z", "Date in Credential scope"),
        (SIGNED + "a" * 64, "", "Date in Credential scope"),
        (SIGNED.replace("host;", "") + "a" * 64, "20261130T000000Z", "'host' must be a signed"),
        (SIGNED + "a" * 64, "20261130T000000Z", ""),
    ],
)
async def test_the_form_of_a_signature_is_judged(authorization: str, date: str, said: str) -> None:
    async with BedrockJudge("Hi.", key="KEY") as judge:
        headers = {"authorization": authorization, "x_amz_date": date}
        answer = await posted(judge, "/model/m/converse", CONVERSE, **headers)
        assert answer.status_code == (403 if said else 200)
        assert answer.json().get("message", "").startswith(said)


async def test_what_is_no_signature_is_no_key() -> None:
    async with BedrockJudge("Hi.") as judge:
        broken = await posted(judge, "/model/m/converse", CONVERSE, authorization=SIGNED + "x")
        missing = await posted(judge, "/model/m/converse", CONVERSE)
        assert [broken.status_code, missing.status_code] == [403, 403]
        assert missing.headers["x-amzn-errortype"].startswith("AccessDeniedException")
        assert rules(judge) == ["key", "key"]


async def test_a_model_that_can_be_none_is_refused_as_it_was() -> None:
    async with BedrockJudge("Hi.") as judge:
        bearer = {"authorization": f"Bearer {judge.key}"}
        path = "/model/us.amazon.nova-micro-v1%3AO/converse"
        refused = await posted(judge, path, CONVERSE, **bearer)
        assert refused.json() == {"message": "The provided model identifier is invalid."}
        assert refused.headers["x-amzn-errortype"].startswith("ValidationException")


@over(*CLAUDES)
async def test_tokens_are_counted_and_no_answer_is_spent_on_it(api: API) -> None:
    async with api.judge_type(["Hi."]) as judge:
        model = api.model(judge)
        few = await model.count_tokens([UserMessage("hi")])
        many = await model.count_tokens([UserMessage("hi " * 100)], [WEATHER])
        assert 0 < few < many
        assert (await model.generate(ASK)).message.content == "Hi."
    assert judge.violations == []


@over(*CLAUDES)
async def test_a_violation_is_answered_and_the_connection_is_kept(api: API) -> None:
    """A request by hand, of which an adapter would make no such thing."""
    orphan: Any = {"type": "tool_result", "tool_use_id": "x", "content": "y"}
    path, body = "/messages", {**MESSAGES, "messages": [{"role": "user", "content": [orphan]}]}
    if api.name == "bedrock":
        orphan = {"toolResult": {"toolUseId": "x", "content": [{"text": "y"}]}}
        path = "/model/m/converse"
        config = {
            "tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]
        }
        body = {"messages": [{"role": "user", "content": [orphan]}], "toolConfig": config}
    async with api.judge_type() as judge:
        bearer = {"authorization": f"Bearer {judge.key}", "anthropic_version": "2023-06-01"}
        refused = await posted(judge, path, body, **bearer)
        assert (refused.status_code, rules(judge)) == (400, ["orphan_result"])


# --- answers


@both_ways
@over(*CLAUDES)
async def test_answers_are_one_for_each_request_and_then_a_helpful_models(
    api: API, stream: bool
) -> None:
    usage = Usage(30, 4, cache_read_tokens=10)
    async with api.judge_type(["a", ANSWER, Response(AssistantMessage("b"), usage)]) as judge:
        model = api.model(judge)
        heard = [await (read(model) if stream else model.generate(ASK)) for _ in range(4)]
    said = [answer.message.content for answer in heard]
    assert said == ["a", ANSWER.content, "b", "The capital of France is Paris."]
    assert (heard[1].message, heard[2].usage) == (ANSWER, usage)
    assert heard[0].usage.output_tokens > 0


@over(*CLAUDES)
async def test_plain_and_streamed_answers_are_the_same(api: API) -> None:
    said = Response(
        AssistantMessage(
            "Well.",
            thinking=(Thinking("Let me see."), Thinking(redacted="aGlkZGVu")),
            tool_calls=(ToolCall.of("", "f", '{"a": [1, "\u00e9"]}'), ToolCall.of("x", "g", "{}")),
        ),
        Usage(30, 9, cache_read_tokens=10, cache_write_tokens=5),
        "tool_call",
    )
    async with api.judge_type(said) as judge:
        plain, streamed = await api.model(judge).generate(ASK), await read(api.model(judge))
    assert plain.message == streamed.message
    assert (plain.usage, plain.finish_reason) == (said.usage, "tool_call")
    assert (streamed.usage, streamed.finish_reason) == (said.usage, "tool_call")
    assert [block.text or block.redacted for block in plain.message.thinking] == [
        *("Let me see.", "aGlkZGVu")
    ]
    assert all(block.signature or block.redacted for block in plain.message.thinking)
    assert plain.message.tool_calls[0].args == '{"a": [1, "\u00e9"]}'


async def test_a_helpful_model_follows_the_schema() -> None:
    closed = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"enum": ["x", "y"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    request = Request((UserMessage("q"),), output_schema=OutputSchema("o", closed))
    for api, name in ((APIS["anthropic"], "m"), (APIS["bedrock"], CLAUDE)):
        async with api.judge_type() as judge:
            model = api.model_type(name, base_url=judge.base_url, api_key=judge.key)
            answer = await model.generate(request)
        assert json.loads(answer.message.content) == {"a": "Paris", "b": "x"}


SEARCH = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "golem"},
}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
CITED = {"type": "text", "text": "Clay.", "citations": [{"type": "x", "cited_text": "clay"}]}


def native(provider: str, *blocks: Any) -> AssistantMessage:
    return AssistantMessage(
        native=Native(provider, tuple(Raw(json.dumps(block).encode()) for block in blocks))
    )


@both_ways
async def test_a_turn_that_the_server_paused_goes_on(stream: bool) -> None:
    pauses = Response(native("anthropic", SEARCH), finish_reason="other")
    answers = [pauses, native("anthropic", FOUND, CITED), "Yes."]
    async with AnthropicJudge(answers) as judge:
        model = Anthropic("m", base_url=judge.base_url, api_key=judge.key)
        agent: Agent[Any] = Agent(model)
        if stream:
            running = agent.stream("What is a golem?")
            async with running:
                async for _ in running:
                    pass
            first = running.result
        else:
            first = await agent.run("What is a golem?")
        assert first.output == "Clay."
        again = await agent.run("Sure?", history=first.messages)
    assert again.output == "Yes."
    assert judge.violations == []
    sent = (judge.requests[2].json or {})["messages"]
    assert [block for m in sent if m["role"] == "assistant" for block in m["content"]] == [
        *(SEARCH, FOUND, CITED)
    ]


async def test_what_the_services_own_tool_did_goes_back() -> None:
    use = {"toolUse": {"toolUseId": "s", "name": "n", "input": {}, "type": "server_tool_use"}}
    told = {"toolResult": {"toolUseId": "s", "content": [{"json": {"a": 1}}]}}
    async with BedrockJudge([native("bedrock-nova", use, told, {"text": "7."}), "8."]) as judge:
        name = "us.amazon.nova-2-lite-v1:0"
        model = Bedrock(name, base_url=judge.base_url, api_key=judge.key)
        agent: Agent[Any] = Agent(model)
        first = await agent.run("3 + 4?")
        await agent.run("And one more?", history=first.messages)
    assert judge.violations == []
    assert (judge.requests[1].json or {})["messages"][1]["content"] == [use, told, {"text": "7."}]


async def test_the_judge_notices_thinking_that_was_changed() -> None:
    """The adapter trusts what is stored; whoever edits it is told by the provider."""

    @tool
    def look() -> str:
        """Look."""
        return "nothing"

    thought = (Thinking("Let me see."),)
    asks = AssistantMessage("", thinking=thought, tool_calls=(ToolCall.of("a", "look", "{}"),))
    async with AnthropicJudge([asks, "Done.", "Again."]) as judge:
        model = Anthropic("m", base_url=judge.base_url, api_key=judge.key)
        agent: Agent[Any] = Agent(model, tools=[look])
        first = await agent.run("Look.")
        assert judge.violations == []
        changed = [
            AssistantMessage(
                m.content,
                tool_calls=m.tool_calls,
                thinking=tuple(
                    Thinking("Ha!", b.signature, provider=b.provider) for b in m.thinking
                ),
            )
            if isinstance(m, AssistantMessage) and m.thinking
            else m
            for m in first.messages
        ]
        with pytest.raises(RunError, match="Invalid `signature`"):
            await agent.run("And now?", history=changed)
        assert rules(judge) == ["signature"]


async def test_exceptions_in_frames_have_the_words_of_the_service() -> None:
    data = frame("throttlingException", {"message": "Slow down."}, "exception")
    assert b"throttlingException" in data
    wrong = misbehave.error_event(0, "Slow down.", code="throttlingException")
    async with BedrockJudge("Hi.", wrong) as judge:
        with pytest.raises(APIError, match=r"Slow down\."):
            await read(Bedrock("m", base_url=judge.base_url, api_key=judge.key))


def test_a_judge_of_frames_streams_what_it_answers() -> None:
    provider = BedrockProvider()
    events = provider.events(CONVERSE, Response(AssistantMessage("Hi there.")))
    assert [event.count(b":event-type") for event in events] == [1] * len(events)
    whole = b"".join(provider.large_event(100_000))
    assert (len(whole), int.from_bytes(whole[:4])) == (len(whole), len(whole))
