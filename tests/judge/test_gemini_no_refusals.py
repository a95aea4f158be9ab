"""Whatever a history went through: repaired and encoded, the judge of Gemini refuses nothing.

The judge has a record of the facts of its own, so what is proved is that two readings of the
rules agree; nothing here is asked of Google.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from golem import Message, UserMessage, check_history, dump_history, repair
from golem.errors import UnsupportedContentError
from golem.messages import AssistantMessage, Part, Thinking, ToolCall, ToolMessage
from golem.model import OutputSchema, Request, Response, Settings, ToolChoice
from golem.testing.judge import GeminiJudge, Violation, judge_gemini
from golem.testing.judge.gemini import GeminiProvider
from golem.testing.strategies import ANY_HISTORY, HOSTILE_HISTORY
from golem_adapters import Gemini
from golem_adapters.gemini.dialect import dialect_named, traits_of
from golem_adapters.gemini.request import Options, encode_count
from tests.adapters.encoding import check
from tests.adapters.generating import decode, encode
from tests.adapters.test_check_history import ODD_HISTORY
from tests.judge.aging import CHOICES, EDITS, SCHEMA, TOOLS, edited, go_on, lived, lives

HISTORIES = HOSTILE_HISTORY | ANY_HISTORY
NEW, OLD = "gemini-3-flash", "gemini-2.5-flash"
SERVERS = {f"{d}-{m}": (d, m) for d in ("gemini", "vertex") for m in (NEW, OLD)}
at_each = pytest.mark.parametrize("server", SERVERS)


def judged(messages: list[Message], server: str, **members: Any) -> list[Violation]:
    """What the server refuses of a request for `messages`."""
    dialect, model = SERVERS[server]
    body = json.loads(encode(messages, model=model, dialect=dialect, **members))
    return judge_gemini(body, model=model, dialect=dialect)


@at_each
@given(history=HISTORIES)
@settings(max_examples=60)
def test_any_repaired_history_is_taken_whoever_begins_it(
    server: str, history: list[Message]
) -> None:
    assert judged(history, server) == []


@at_each
@given(
    history=HISTORIES,
    choice=st.sampled_from([None, *CHOICES]),
    tools=st.sampled_from([(), TOOLS]),
    schema=st.sampled_from([None, OutputSchema("an answer", SCHEMA)]),
    effort=st.sampled_from([None, "low", "high"]),
    own=st.sampled_from([(), ({"googleSearch": {}},)]),
)
@settings(max_examples=25)
def test_any_request_around_it_is_taken(
    server: str,
    history: list[Message],
    choice: ToolChoice | None,
    tools: Any,
    schema: OutputSchema | None,
    effort: str | None,
    own: Any,
) -> None:
    ask = partial(
        judged,
        history,
        server,
        tools=tools,
        tool_choice=choice,
        output_schema=schema,
        server_tools=own,
        settings=Settings(max_tokens=5, temperature=0.5, stop=("x",), reasoning_effort=effort),
    )
    if schema is not None and tools and SERVERS[server][1] == OLD:
        with pytest.raises(UnsupportedContentError, match="no output schema"):
            ask()
        return
    assert ask() == []


@at_each
@given(history=HISTORIES, edits=EDITS)
@settings(max_examples=25)
def test_an_edited_history_is_taken(server: str, history: list[Message], edits: Any) -> None:
    assert judged(edited(history, edits), server) == []


@at_each
@given(history=ODD_HISTORY)
@settings(max_examples=100)
def test_what_many_providers_said_is_taken_unless_the_adapter_refuses_it(
    server: str, history: list[Message]
) -> None:
    """Thinking, native items and signatures of everybody, whole and edited, and any media."""
    assume(b"x-odd" not in dump_history(history))  # which types of documents it reads, it says
    dialect, name = SERVERS[server]
    model = Gemini(name, dialect=dialect, project="p", api_key="k", base_url="http://localhost:1")
    if check_history(history, model).of("refused"):
        return
    assert judged(history, server) == []


@at_each
@given(history=HISTORIES)
@settings(max_examples=25)
def test_any_history_is_counted(server: str, history: list[Message]) -> None:
    dialect, model = SERVERS[server]
    body = encode_count(
        Request(list(repair(history)), TOOLS),
        model=f"models/{model}",
        dialect=dialect_named(dialect),
        traits=traits_of(model),
        options=Options(),
    )
    assert not judge_gemini(json.loads(body), model=model, dialect=dialect, method="countTokens")


MEDIA = [
    *(Part.image(b"x", f"image/{kind}") for kind in ("png", "jpeg", "webp", "heic")),
    Part.document(b"x", "application/json"),
    Part.document(b"x", "text/html"),
    Part.document_url("https://example.com/x"),
    Part.audio(b"x", "audio/L16;rate=24000"),
    Part.video_url("https://youtu.be/x"),
    Part.image_url("data:image/png;base64,eA=="),
]


@at_each
@given(parts=st.lists(st.sampled_from(MEDIA), max_size=3).map(tuple))
@settings(max_examples=25)
def test_media_is_taken_wherever_it_stands(server: str, parts: tuple[Part, ...]) -> None:

    history: list[Message] = [
        UserMessage("", parts=parts),
        AssistantMessage("", parts=parts, tool_calls=(ToolCall.of("c", "f", "{}"),)),
        ToolMessage("seen", parts=parts, tool_call_id="c", tool_name="f"),
        AssistantMessage("", parts=parts),
    ]
    assert judged(history, server) == []


@given(HISTORIES)
def test_the_judge_and_the_field_reports_agree(history: list[Message]) -> None:
    """The checker that came with the reports shares no line with the judge."""
    body = json.loads(encode(history))
    assert (judge_gemini(body), check("gemini", body)) == ([], [])


@given(history=HISTORIES, thought=st.booleans(), calls=st.integers(0, 2))
@settings(max_examples=60)
def test_what_the_server_signed_goes_back_where_it_came(
    history: list[Message], thought: bool, calls: int
) -> None:
    """The judge knows the parts that its signatures were made for."""

    provider = GeminiProvider()
    said = AssistantMessage(
        "So.",
        thinking=(Thinking("hm"),) if thought else (),
        tool_calls=tuple(ToolCall.of("", "f", f'{{"n":{n}}}') for n in range(calls)),
    )
    answer = provider.answer({"contents": []}, Response(said))
    made_with = provider.links(answer)
    message = decode(json.dumps(answer).encode()).message
    sent = json.loads(encode([*history, UserMessage("q"), message, UserMessage("and?")]))
    assert judge_gemini(sent, made_with=made_with) == []
    signatures = [
        part["thoughtSignature"]
        for content in sent["contents"]
        for part in content["parts"]
        if part.get("thoughtSignature") in made_with
    ]
    assert signatures == list(made_with)


# --- through whole runs


def model_at(judge: Any, server: str) -> Gemini:
    dialect, name = SERVERS[server]
    if dialect == "vertex":
        return Gemini(name, base_url=judge.origin, project="p", location="l", token=judge.key)
    return Gemini(name, base_url=judge.base_url, api_key=judge.key)


@at_each
@given(life=lives(HISTORIES))
@settings(max_examples=4)
def test_a_run_on_whatever_earlier_runs_left_is_taken(server: str, life: Any) -> None:
    judge = GeminiJudge(dialect=SERVERS[server][0])
    go_on(judge, lambda judge: model_at(judge, server), lived(life), counts=True)
