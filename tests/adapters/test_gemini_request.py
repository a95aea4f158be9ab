"""What goes out to Gemini: settings, tools, schemas, content, signatures, results."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from msgspec import Raw, structs

from golem.errors import UnsupportedContentError
from golem.messages import (
    AssistantMessage,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.model import OutputSchema, Request, Settings, ToolChoice, ToolSpec
from golem_adapters._toolkit.walk import FAILED, GO_ON, OPENING, SAID_NOTHING
from golem_adapters.gemini.conversation import UNSIGNED
from golem_adapters.gemini.dialect import dialect_named, traits_of
from golem_adapters.gemini.request import Options, encode_count
from tests.adapters.generating import answered, body_of, call, encode, shape, text, thought, wire

ASK = [UserMessage("hi")]
WEATHER = ToolSpec("weather", "Tells it.", {"type": "object", "properties": {}})
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
PNG = Part.image(b"png", "image/png")
OLD, NEW = "gemini-2.5-flash", "gemini-3-pro-preview"
SIGNATURE = "c2lnbmVk"


def asks(*calls: ToolCall, content: str = "", **members: Any) -> AssistantMessage:
    return AssistantMessage(content, tool_calls=calls, **members)


def asked(id: str = "c1", args: str = "{}", signature: str = SIGNATURE) -> ToolCall:
    return ToolCall.of(id, "f", args, signature)


def result(id: str = "c1", content: str = "r", **members: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id=id, tool_name="f", **members)


def turn(message: Message, **options: Any) -> list[dict[str, Any]]:
    """The parts of a model's turn."""
    parts: list[dict[str, Any]] = wire([*ASK, message], **options)[1]["parts"]
    return parts


# --- the request


def test_the_smallest_request() -> None:
    assert body_of(ASK) == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def test_every_setting_has_its_member() -> None:
    settings = Settings(
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        seed=7,
        stop=("END",),
        presence_penalty=0.1,
        frequency_penalty=0.2,
        reasoning_effort="low",
    )
    assert body_of(ASK, settings=settings)["generationConfig"] == {
        "maxOutputTokens": 9,
        "temperature": 0.5,
        "topP": 0.9,
        "seed": 7,
        "stopSequences": ["END"],
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
        "thinkingConfig": {"thinkingLevel": "LOW"},
    }


@pytest.mark.parametrize(
    ("effort", "budget"), [("none", 0), ("low", 1024), ("medium", 8192), ("HIGH", 24576)]
)
def test_an_effort_is_a_budget_for_older_models(effort: str, budget: int) -> None:
    settings = Settings(reasoning_effort=effort)
    thinking = {"thinkingBudget": -1, "includeThoughts": True}
    config = body_of(ASK, settings=settings, model=OLD, thinking=thinking)["generationConfig"]
    assert config["thinkingConfig"] == {"includeThoughts": True, "thinkingBudget": budget}


def test_what_the_api_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedContentError, match="parallel_tool_calls"):
        encode(ASK, settings=Settings(parallel_tool_calls=False))
    assert encode(ASK) == encode(ASK, settings=Settings(parallel_tool_calls=True))
    with pytest.raises(UnsupportedContentError, match="'xhigh' has no budget"):
        encode(ASK, settings=Settings(reasoning_effort="xhigh"), model=OLD)


def test_an_extra_body_lies_over_what_golem_says_member_by_member() -> None:
    extra = {"generationConfig": {"topK": 40, "temperature": 1}, "labels": {"a": "b"}}
    body = body_of(ASK, settings=Settings(temperature=0.0, max_tokens=5, extra_body=extra))
    assert body["generationConfig"] == {"temperature": 1, "maxOutputTokens": 5, "topK": 40}
    assert body["labels"] == {"a": "b"}
    assert list(body)[-1] == "contents"
    own = Settings(extra_body={"contents": []})
    assert body_of(ASK, settings=own)["contents"] == []


def test_thinking_and_safety_are_the_apis_own() -> None:
    safety = [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]
    body = body_of(ASK, thinking={"thinkingBudget": 0}, safety=safety)
    assert body["generationConfig"] == {"thinkingConfig": {"thinkingBudget": 0}}
    assert body["safetySettings"] == safety


# --- tools


def test_tools_are_declared_with_their_json_schema() -> None:
    tools = [WEATHER, ToolSpec("9 lives", " ", {"properties": {"a": {"const": 1}}})]
    declared = body_of(ASK, tools=tools)["tools"][0]["functionDeclarations"]
    assert declared[0] == {
        "name": "weather",
        "description": "Tells it.",
        "parametersJsonSchema": {"type": "object", "properties": {}},
    }
    assert declared[1]["name"].startswith("_9_lives_")
    assert declared[1]["parametersJsonSchema"] == {
        "type": "object",
        "properties": {"a": {"enum": [1]}},
    }
    assert "description" not in declared[1]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice("auto"), {"mode": "AUTO"}),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("tool", "weather"), {"mode": "ANY", "allowedFunctionNames": ["weather"]}),
    ],
)
def test_a_tool_choice(choice: ToolChoice, config: dict[str, Any]) -> None:
    body = body_of(ASK, tools=[WEATHER], tool_choice=choice)
    assert body["toolConfig"] == {"functionCallingConfig": config}
    assert "toolConfig" not in body_of(ASK, tool_choice=choice)


def test_tools_of_the_server_show_what_they_did_where_that_can_go_back() -> None:
    search = [{"googleSearch": {}}]
    body = body_of(ASK, tools=[WEATHER], server_tools=search)
    assert [list(tool) for tool in body["tools"]] == [["googleSearch"], ["functionDeclarations"]]
    assert body["toolConfig"] == {"includeServerSideToolInvocations": True}
    assert "toolConfig" not in body_of(ASK, server_tools=search, dialect="vertex")
    assert "toolConfig" not in body_of(ASK, server_tools=search, model=OLD)


def test_an_output_schema_is_enforced() -> None:
    config = body_of(ASK, output_schema=OutputSchema("p", POINT))["generationConfig"]
    assert config == {"responseMimeType": "application/json", "responseJsonSchema": POINT}


def test_older_models_follow_a_schema_only_without_tools() -> None:
    output = OutputSchema("p", POINT)
    assert "generationConfig" in body_of(ASK, output_schema=output, model=OLD)
    assert "generationConfig" in body_of(ASK, output_schema=output, tools=[WEATHER], model=NEW)
    with pytest.raises(UnsupportedContentError, match="output_mode='tool'"):
        encode(ASK, output_schema=output, tools=[WEATHER], model=OLD)


def test_a_count_asks_for_the_whole_prompt() -> None:
    request = Request([SystemMessage("s"), *ASK], [WEATHER])
    prompts: dict[str, Any] = {}
    for name in ("gemini", "vertex"):
        data = encode_count(
            request,
            model="models/m",
            dialect=dialect_named(name),
            traits=traits_of("m"),
            options=Options({"thinkingBudget": 0}),
        )
        prompts[name] = json.loads(data)
    assert set(prompts["vertex"]) == {"systemInstruction", "tools", "contents"}
    assert prompts["gemini"] == {
        "generateContentRequest": {"model": "models/m", **prompts["vertex"]}
    }


# --- the conversation


def test_instructions_stand_in_front_and_later_ones_where_they_were_given() -> None:
    history = [SystemMessage("a"), SystemMessage(" "), *ASK, SystemMessage("b")]
    body = body_of(history)
    assert body["systemInstruction"] == {"parts": [{"text": "a"}]}
    assert body["contents"] == [{"role": "user", "parts": [{"text": "hi"}, {"text": "b"}]}]


def test_a_request_begins_and_ends_with_the_user() -> None:
    assert wire([]) == [{"role": "user", "parts": [{"text": OPENING}]}]
    texts = [part["text"] for c in wire([AssistantMessage("a")]) for part in c["parts"]]
    assert texts == [OPENING, "a", GO_ON]


def test_blank_texts_are_named_or_left_out() -> None:
    assert wire([UserMessage(" \n")])[0]["parts"] == [{"text": SAID_NOTHING}]
    assert shape(wire([*ASK, AssistantMessage(" "), UserMessage("more")])) == ["user:text,text"]


def test_results_stand_in_the_order_of_the_calls_all_in_one_content() -> None:
    history = [*ASK, asks(asked("c1"), asked("c2")), result("c2", "two"), result("c1", "one")]
    contents = wire([*history, UserMessage("more")])
    assert shape(contents)[1:] == [
        "model:functionCall,functionCall",
        "user:functionResponse,functionResponse,text",
    ]
    told = [p["functionResponse"] for p in contents[2]["parts"][:2]]
    assert told == [
        {"id": "c1", "name": "f", "response": {"output": "one"}},
        {"id": "c2", "name": "f", "response": {"output": "two"}},
    ]


def test_a_failure_is_an_error_and_never_without_words() -> None:
    history = [*ASK, asks(asked("a"), asked("b")), result("a", "x", failed=True)]
    contents = wire([*history, result("b", " ", failed=True)])
    responses = [part["functionResponse"]["response"] for part in contents[2]["parts"]]
    assert responses == [{"error": "x"}, {"error": FAILED}]


def test_a_call_without_an_id_is_answered() -> None:
    contents = wire([*ASK, asks(asked("")), UserMessage("more")])
    name = contents[1]["parts"][0]["functionCall"]["id"]
    answer = contents[2]["parts"][0]["functionResponse"]
    assert (name, answer["name"]) == (answer["id"], "f")
    assert "interrupted" in answer["response"]["output"]


@pytest.mark.parametrize(
    ("args", "sent"),
    [
        ('{"b":1,"a":1.50}', b'{"b":1,"a":1.50}'),
        ("", b"{}"),
        ('{"a', b'{"truncated_args":"{\\"a"}'),
        ('{"a":"\\ud800"}', b'{"a":"\\ufffd"}'),
    ],
)
def test_arguments_go_out_as_they_were_written(args: str, sent: bytes) -> None:
    assert b'"args":' + sent in encode([*ASK, asks(asked(args=args)), result()])


# --- signatures


def test_a_signature_of_a_call_goes_back_in_its_part() -> None:
    message = answered([thought("hm"), call("f", SIGNATURE, id="c1", a=1), call("g", id="c2")])
    assert message.native is None
    assert message.tool_calls[0].signature == SIGNATURE
    assert turn(message) == [
        {"text": "hm", "thought": True},
        {
            "functionCall": {"id": "c1", "name": "f", "args": {"a": 1}},
            "thoughtSignature": SIGNATURE,
        },
        {"functionCall": {"id": "c2", "name": "g", "args": {}}},
    ]


@pytest.mark.parametrize(
    "parts",
    [
        [text("a", SIGNATURE)],
        [text("a"), text("", SIGNATURE)],
        [text("a", SIGNATURE), text("b")],
        [{"thoughtSignature": SIGNATURE}],
        [call("f", SIGNATURE, id="c1"), text("after")],
        [text("a"), thought("later")],
        [text("a"), {"executableCode": {"code": "1"}}, text("b")],
        [{"toolCall": {"id": "t"}, "thoughtSignature": SIGNATURE}, text("a")],
        [{"text": "a", "futureMember": 1}],
        [{"inlineData": {"mimeType": "image/png", "data": "eA=="}, "thoughtSignature": SIGNATURE}],
        [{"functionCall": {"id": "c1", "name": "f", "args": {}}, "thoughtSignature": "not|64"}],
        [{"futurePart": {"a": 1.50}}],
    ],
)
def test_what_fields_cannot_say_goes_back_to_the_byte(parts: list[dict[str, Any]]) -> None:
    message = answered(parts)
    assert message.native is not None
    assert message.native.provider == "gemini"
    data = encode([*ASK, message], model=OLD)
    for item in message.native.items:
        assert bytes(item) in data
    assert turn(message, model=OLD) == parts


@pytest.mark.parametrize(
    "parts",
    [
        [text("a")],
        [text("a"), text("b"), text("")],
        [thought("a"), thought("b", SIGNATURE), text("c"), call("f")],
        [text("a"), {"inlineData": {"mimeType": "image/png", "data": "eA=="}}],
        [call("f", SIGNATURE), call("g")],
    ],
)
def test_what_fields_can_say_needs_no_native(parts: list[dict[str, Any]]) -> None:
    assert answered(parts).native is None


def test_a_changed_message_is_sent_from_its_fields() -> None:
    message = answered([text("a", SIGNATURE), {"executableCode": {}}])
    for other in (
        structs.replace(message, content="b"),
        structs.replace(message, tool_calls=(asked(signature=""),)),
        structs.replace(message, parts=(PNG,)),
        structs.replace(message, thinking=(Thinking("x", provider="gemini"),)),
    ):
        assert SIGNATURE not in json.dumps(turn(other)[:2])
        assert "executableCode" not in json.dumps(turn(other))


def test_a_call_that_is_known_by_another_id_keeps_its_signature() -> None:
    message = answered([call("f", SIGNATURE, id="c1"), text("after")])
    contents = wire([*ASK, message, result(), message, result()])
    first, second = contents[1]["parts"][0], contents[3]["parts"][0]
    assert first["functionCall"]["id"] == "c1"
    assert second["functionCall"]["id"] != "c1"
    assert first["thoughtSignature"] == second["thoughtSignature"] == SIGNATURE


def test_a_call_that_had_to_be_told_apart_goes_back_with_what_stands_beside_it() -> None:
    message = answered([call("f", id="a", n=1), text("x", SIGNATURE), call("f", id="a", n=2)])
    parts = turn(message, model=OLD)
    assert parts[1] == text("x", SIGNATURE)
    assert parts[0]["functionCall"]["id"] == "a"
    assert parts[2]["functionCall"]["id"] == message.tool_calls[1].id != "a"


def test_a_part_without_an_id_is_answered_without_one() -> None:
    message = answered([call("f", SIGNATURE), text("after")])
    answer = ToolMessage("r", tool_call_id=message.tool_calls[0].id, tool_name="f")
    contents = wire([*ASK, message, answer])
    assert "id" not in contents[1]["parts"][0]["functionCall"]
    assert contents[2]["parts"] == [
        {"functionResponse": {"name": "f", "response": {"output": "r"}}}
    ]


def test_the_first_of_foreign_calls_says_that_it_has_no_signature() -> None:
    calls = (asked("a", signature=""), asked("b", signature=""))
    assert [part.get("thoughtSignature") for part in turn(asks(*calls))] == [UNSIGNED, None]
    assert base64.b64decode(UNSIGNED) == b"skip_thought_signature_validator"
    assert all("thoughtSignature" not in part for part in turn(asks(*calls), model=OLD))


def test_native_calls_without_a_signature_are_marked_where_they_have_to_be() -> None:
    message = answered([call("f", id="c1"), text("after")])
    assert turn(message, model=NEW)[0]["thoughtSignature"] == UNSIGNED
    assert "thoughtSignature" not in turn(message, model=OLD)[0]


@pytest.mark.parametrize(
    "foreign",
    [
        asks(asked(signature="enc|x")),
        asks(asked(), thinking=(Thinking("hm", provider="anthropic"),)),
        asks(asked(), native=Native("openai-responses")),
    ],
)
def test_signatures_of_others_are_not_sent(foreign: AssistantMessage) -> None:
    (part,) = turn(foreign)
    assert part["thoughtSignature"] == UNSIGNED


def test_native_items_of_others_are_not_sent_even_where_they_say_the_same() -> None:
    """A part that looks like Gemini's own, of a maker that is not."""
    item = json.dumps({"text": "a", "thoughtSignature": SIGNATURE}).encode()
    foreign = AssistantMessage("a", native=Native("somebody", (Raw(item),)))
    assert turn(foreign) == [text("a")]
    assert turn(structs.replace(foreign, native=Native("gemini", (Raw(item),)))) != [text("a")]


def test_only_geminis_own_thoughts_go_back() -> None:
    thoughts = (
        Thinking("mine", provider="gemini"),
        Thinking("signed", signature=SIGNATURE, provider="gemini"),
        Thinking("theirs", signature=SIGNATURE, provider="anthropic"),
        Thinking(redacted="sealed", provider="gemini"),
    )
    parts = turn(AssistantMessage("a", thinking=thoughts))
    assert parts == [thought("mine"), thought("signed", SIGNATURE), text("a")]
    only = AssistantMessage(thinking=thoughts[:1])
    assert shape(wire([*ASK, only])) == ["user:text"]


def test_vertex_does_not_know_the_servers_own_tools() -> None:
    message = answered([{"toolCall": {"id": "t"}, "thoughtSignature": SIGNATURE}, text("a")])
    assert turn(message, dialect="vertex") == [text("a")]


# --- media


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (PNG, {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}),
        (
            Part.image(b"x", "image/jpg"),
            {"inlineData": {"mimeType": "image/jpeg", "data": "eA=="}},
        ),
        (
            Part.document(b"{}", "application/json"),
            {"inlineData": {"mimeType": "text/plain", "data": "e30="}},
        ),
        (
            Part.audio(b"x", "audio/L16;rate=24000"),
            {"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "eA=="}},
        ),
        (
            Part.image_url("data:image/webp;base64,eA=="),
            {"inlineData": {"mimeType": "image/webp", "data": "eA=="}},
        ),
        (
            Part.document_url("data:,a%20b"),
            {"inlineData": {"mimeType": "text/plain", "data": "YSBi"}},
        ),
        (
            Part.video_url("https://youtu.be/x"),
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://youtu.be/x"}},
        ),
        (
            Part.image_url("https://e/x.PNG?a=b"),
            {"fileData": {"mimeType": "image/png", "fileUri": "https://e/x.PNG?a=b"}},
        ),
        (
            Part.document_url("gs://b/x", "text/csv"),
            {"fileData": {"mimeType": "text/csv", "fileUri": "gs://b/x"}},
        ),
        (
            Part.image_url("https://e/x.mp3"),
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://e/x.mp3"}},
        ),
    ],
)
def test_media_go_out_inline_or_by_address(part: Part, sent: dict[str, Any]) -> None:
    assert wire([UserMessage("see", parts=(part,))])[0]["parts"] == [text("see"), sent]


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (Part("hologram", url="https://e"), "hologram part cannot be sent"),
        (Part("image"), "neither a URL nor data"),
        (Part("image", data=b"x"), "without a media type"),
        (Part("image", url="data:image/png;base64,%"), "cannot be read"),
    ],
)
def test_media_that_cannot_be_sent_are_refused_by_place(part: Part, why: str) -> None:
    with pytest.raises(UnsupportedContentError, match=rf"^messages\[1\]\.parts\[1\]: .*{why}"):
        encode([*ASK, UserMessage(parts=(PNG, part))])


def test_media_of_a_result_are_in_it_where_the_model_takes_them() -> None:
    parts = (PNG, Part.audio(b"x", "audio/wav"))
    history = [*ASK, asks(asked()), result(content="see", parts=parts)]
    within, label, sound = wire(history, model=NEW)[2]["parts"]
    assert within["functionResponse"]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "cG5n"}}
    ]
    assert label == text("Attached to the result of f (c1):")
    assert sound["inlineData"]["mimeType"] == "audio/wav"
    old = wire(history, model=OLD)[2]["parts"]
    assert shape([{"role": "user", "parts": old}]) == [
        "user:functionResponse,text,inlineData,inlineData"
    ]
    assert "parts" not in old[0]["functionResponse"]


def test_media_that_a_model_made_stand_in_its_turn() -> None:
    drawn = AssistantMessage("here", parts=(PNG,))
    assert shape(wire([*ASK, drawn]))[1] == "model:text,inlineData"
    spoken = AssistantMessage("here", parts=(Part.audio(b"x", "audio/wav"),))
    assert shape(wire([*ASK, spoken]))[1] == "model:text"


@pytest.mark.parametrize(
    ("signature", "sent"),
    [
        *((good, True) for good in ("c2ln", "c2", "c2==", "c2l", "c2l=", "_-+/")),
        *((bad, False) for bad in ("", "0", "c2lnc", "c2=", "c2ln=", "====", "c 2l", "enc|x")),
    ],
)
def test_only_what_is_base64_is_sent_as_a_signature(signature: str, sent: bool) -> None:
    call = ToolCall.of("c", "f", "{}", signature)
    history = [UserMessage("q"), AssistantMessage(tool_calls=(call,))]
    (part,) = wire(history, model="gemini-2.5-flash")[1]["parts"]
    assert part.get("thoughtSignature", "") == (signature if sent else "")
