"""What a Responses request says: settings, tools, media, results, and items that go back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw, structs

from golem.codec import dump_history, load_history
from golem.errors import UnsupportedContentError
from golem.history import sanitize_history
from golem.messages import (
    AssistantMessage,
    Message,
    Native,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.model import OutputSchema, Request, Settings, ToolChoice, ToolSpec
from golem_adapters._toolkit.calls import INTERRUPTED
from golem_adapters.openai_responses.dialect import dialect_named
from golem_adapters.openai_responses.request import encode_request
from golem_adapters.openai_responses.response import decode_response
from tests.adapters.encoding import encode_responses, items

Item = dict[str, Any]

HI = [UserMessage("hi")]
TOOL = ToolSpec("f", "does it", {"type": "object"})
REASONING: Item = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "plan"}],
    "encrypted_content": "enc",
}
CALL: Item = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"a": 1}',
}
TEXT: Item = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []}],
}


def body(history: list[Message], **options: Any) -> Item:
    found: Item = json.loads(encode_responses(history, **options))
    return found


def answer(*output: Item, dialect: str = "openai") -> AssistantMessage:
    """The message that an answer with these items becomes."""
    data = json.dumps({"id": "resp_1", "status": "completed", "output": output}).encode()
    return decode_response(
        data, request=Request(()), dialect=dialect_named(dialect), headers={}, secret=""
    ).message


def sent(*messages: Message, **options: Any) -> list[Item]:
    return items(list(messages), **options)


def result(call_id: str = "call_1", text: str = "r", **members: Any) -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id, **members)


# --- everything but the input


def test_a_request_keeps_no_state_at_the_server_and_asks_for_sealed_reasoning() -> None:
    assert body([SystemMessage("Be brief."), *HI]) == {
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [
            {"type": "message", "role": "system", "content": "Be brief."},
            {"type": "message", "role": "user", "content": "hi"},
        ],
    }


def test_settings_have_their_names_on_this_wire() -> None:
    settings = Settings(max_tokens=9, temperature=0.5, top_p=0.1, reasoning_effort="low")
    found = body(HI, settings=settings, stream=True)
    assert found["max_output_tokens"] == 9
    assert (found["temperature"], found["top_p"]) == (0.5, 0.1)
    assert found["reasoning"] == {"effort": "low"}
    assert found["stream"] is True


@pytest.mark.parametrize(
    ("dialect", "member"),
    [("openai", "prompt_cache_key"), ("xai", "prompt_cache_key"), ("openrouter", "session_id")],
)
def test_a_cache_key_has_its_name_at_each_server(dialect: str, member: str) -> None:
    keyed = json.loads(
        encode_responses([], dialect=dialect, settings=Settings(prompt_cache_key="c1"))
    )
    assert keyed[member] == "c1"
    assert member not in json.loads(encode_responses([], dialect=dialect))


def test_a_summary_of_the_reasoning_is_asked_for_beside_the_effort() -> None:
    data = encode_request(
        Request(HI),
        model="m",
        settings=Settings(reasoning_effort="high"),
        dialect=dialect_named("openai"),
        stream=False,
        reasoning_summary="auto",
    )
    assert json.loads(data)["reasoning"] == {"effort": "high", "summary": "auto"}


@pytest.mark.parametrize(
    "settings",
    [{"seed": 0}, {"stop": ("END",)}, {"presence_penalty": 0.0}, {"frequency_penalty": 1.0}],
)
def test_a_setting_that_the_api_does_not_have_is_refused_by_name(settings: Any) -> None:
    with pytest.raises(UnsupportedContentError, match=next(iter(settings))):
        encode_responses(HI, settings=Settings(**settings))


def test_extra_members_go_over_golems_own_and_stand_before_the_input() -> None:
    settings = Settings(extra_body={"store": True, "prompt_cache_key": "k"})
    data = encode_responses(HI, settings=settings)
    found = json.loads(data)
    assert (found["store"], found["prompt_cache_key"]) == (True, "k")
    assert list(found)[-1] == "input"


def test_tools_are_flat_and_not_strict() -> None:
    found = body(HI, tools=[TOOL], settings=Settings(parallel_tool_calls=False))
    assert found["tools"] == [
        {
            "type": "function",
            "name": "f",
            "description": "does it",
            "parameters": {"type": "object"},
            "strict": False,
        }
    ]
    assert found["parallel_tool_calls"] is False
    assert "tool_choice" not in found


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        (ToolChoice("auto"), "auto"),
        (ToolChoice("none"), "none"),
        (ToolChoice("required"), "required"),
        (ToolChoice("tool", "f"), {"type": "function", "name": "f"}),
    ],
)
def test_a_choice_of_tools_is_spelled_as_the_api_wants(choice: ToolChoice, wire: Any) -> None:
    assert wire == body(HI, tools=[TOOL], tool_choice=choice)["tool_choice"]
    assert "tool_choice" not in body(HI, tool_choice=choice)


def test_llama_cpp_gets_no_tools_where_none_may_be_called() -> None:
    found = body(HI, tools=[TOOL], tool_choice=ToolChoice("none"), dialect="llama.cpp")
    assert "tools" not in found


def test_an_output_schema_is_a_text_format() -> None:
    schema = OutputSchema("a city", {"type": "object"}, "where")
    found = body(HI, output_schema=schema)["text"]["format"]
    assert found.pop("name").startswith("a_city_")
    assert found == {
        "type": "json_schema",
        "description": "where",
        "schema": {"type": "object"},
        "strict": True,
    }
    assert body(HI, output_schema=schema, dialect="deepseek")["text"] == {
        "format": {"type": "json_object"}
    }
    assert "text" not in body(HI, output_schema=schema, dialect="llama.cpp")


@pytest.mark.parametrize("dialect", ["deepseek", "llama.cpp"])
def test_a_server_that_holds_to_no_schema_is_told_it_in_words(dialect: str) -> None:
    schema = OutputSchema("point", {"type": "object", "properties": {"x": {"type": "integer"}}})
    (instruction,) = items([], output_schema=schema, dialect=dialect)
    assert instruction["role"] == "system"
    assert '"properties":{"x":{"type":"integer"}}' in instruction["content"]


# --- messages from the ordinary fields


def test_a_conversation_is_written_item_by_item() -> None:
    call = ToolCall.of("call_1", "f", '{"a":1}')
    history = [
        *HI,
        AssistantMessage("Wait.", tool_calls=(call,)),
        result(),
        AssistantMessage("Done."),
    ]
    assert items(history)[1:] == [
        {"type": "message", "role": "assistant", "content": "Wait."},
        {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "r"},
        {"type": "message", "role": "assistant", "content": "Done."},
    ]


def test_empty_turns_and_instructions_are_left_out() -> None:
    assert sent(SystemMessage(""), *HI, AssistantMessage("")) == items(HI)


def test_a_failure_says_so_and_a_call_without_an_id_is_answered() -> None:
    calls = (ToolCall.of("call_1", "f", "{}"), ToolCall.of("", "f", "{}"))
    found = sent(*HI, AssistantMessage(tool_calls=calls), result(failed=True))
    assert [item["output"] for item in found[3:]] == ["Error: r", INTERRUPTED]
    assert [item["call_id"] for item in found[1:3]] == [item["call_id"] for item in found[3:]]


def test_long_and_repeated_call_ids_are_mapped_the_same_on_call_and_result() -> None:
    turn = [AssistantMessage(tool_calls=(ToolCall.of("x" * 65, "f", "{}"),)), result("x" * 65)]
    found = sent(*HI, *turn, *turn)
    ids = [item["call_id"] for item in found[1:]]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert all(len(name) <= 64 for name in ids)
    assert found[:3] == sent(*HI, *turn)


def test_a_real_result_answers_the_first_call_of_its_id_and_a_filler_the_last() -> None:
    calls = tuple(ToolCall.of("x", "f", f'{{"n":{n}}}') for n in (1, 2))
    asked = AssistantMessage(tool_calls=calls)
    sent = items([UserMessage("hi"), asked, ToolMessage("one", tool_call_id="x")])
    said = {item["call_id"]: item["output"] for item in sent if "output" in item}
    first, second = (item["call_id"] for item in sent if item["type"] == "function_call")
    assert said == {first: "one", second: INTERRUPTED}


def test_media_are_given_by_url_or_inline() -> None:
    parts = (
        Part.image_url("https://e/x.png"),
        Part.image(b"x", "image/png"),
        Part.document_url("https://e/x.pdf"),
        Part.document(b"x", "application/pdf"),
        Part.audio(b"x", "audio/mpeg"),
    )
    text, *media = sent(UserMessage("look", parts=parts))[0]["content"]
    assert text == {"type": "input_text", "text": "look"}
    name = media[3].pop("filename")
    assert name.startswith("document-")
    assert name.endswith(".pdf")
    assert media == [
        {"type": "input_image", "image_url": "https://e/x.png", "detail": "auto"},
        {"type": "input_image", "image_url": "data:image/png;base64,eA==", "detail": "auto"},
        {"type": "input_file", "file_url": "https://e/x.pdf"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,eA=="},
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": "mp3"}},
    ]


@pytest.mark.parametrize(
    "part", [Part.video(b"x", "video/mp4"), Part.audio_url("https://e/x"), Part("image")]
)
def test_a_part_that_cannot_be_carried_is_refused_by_its_place(part: Part) -> None:
    with pytest.raises(UnsupportedContentError, match=r"messages\[1\]\.parts\[0\]"):
        sent(*HI, UserMessage("x", parts=(part,)))


def test_a_result_holds_its_images_and_files_and_sound_follows() -> None:
    parts = (Part.image_url("https://e/x.png"), Part.audio(b"x", "audio/wav"))
    turn = AssistantMessage(tool_calls=(ToolCall.of("call_1", "f", "{}"),))
    found = sent(*HI, turn, result(parts=parts, tool_name="f"))
    assert [part["type"] for part in found[2]["output"]] == ["input_text", "input_image"]
    assert [part["type"] for part in found[3]["content"]] == ["input_text", "input_audio"]
    assert found[3]["content"][0]["text"] == "Attached to the result of f (call_1):"


def test_where_results_are_text_their_media_follow_the_batch() -> None:
    calls = (ToolCall.of("call_1", "f", "{}"), ToolCall.of("call_2", "f", "{}"))
    pictured = result(parts=(Part.image_url("https://e/x.png"),))
    history = [*HI, AssistantMessage(tool_calls=calls), pictured, result("call_2")]
    found = items(history, dialect="deepseek")
    assert [item["output"] for item in found[3:5]] == ["r", "r"]
    assert found[5]["content"][1]["type"] == "input_image"


# --- the provider's own items


def test_items_go_back_to_the_byte_while_the_turn_is_unchanged() -> None:
    text = '{ "id" : "rs_1", "type":"reasoning","summary":[],"encrypted_content":"e\\u006ec" }'
    raws = (Raw(text.encode()), Raw(json.dumps(CALL).encode()))
    plain = answer(json.loads(text), CALL)
    message = structs.replace(plain, native=Native("openai-responses", raws))
    data = encode_responses([*HI, message, result()])
    assert text.encode() in data
    assert bytes(raws[1]) in data
    stored = load_history(dump_history([*HI, message, result()]))
    assert data == encode_responses(stored)


def test_a_plain_answer_needs_no_items() -> None:
    assert answer(TEXT).native is None
    assert answer(TEXT, CALL).native is None
    assert answer({**TEXT, "phase": None, "content": "Hello"}).native is None


@pytest.mark.parametrize(
    "output",
    [
        (REASONING, TEXT),
        (CALL, TEXT),
        (TEXT, {**TEXT, "id": "msg_2"}),
        ({**TEXT, "phase": "commentary"},),
        ({**TEXT, "content": [{"type": "output_text", "text": "a", "annotations": [{"x": 1}]}]},),
        ({**TEXT, "content": [{"type": "refusal", "refusal": "no"}]},),
        ({**TEXT, "content": [{"type": "output_text", "text": t} for t in "ab"]},),
        ({**CALL, "namespace": "crm"},),
        ({"type": "web_search_call", "id": "ws_1", "status": "completed"}, TEXT),
        ({"type": "something_new", "id": "x_1", "deep": {"er": [1.0, 1e2]}},),
    ],
)
def test_what_fields_cannot_say_goes_back_as_it_came(output: tuple[Item, ...]) -> None:
    message = answer(*output)
    assert message.native is not None
    found = [item for item in sent(message) if not item["type"].endswith("_output")]
    assert list(output) == found


def test_results_stand_directly_behind_the_calls_they_answer() -> None:
    output = (REASONING, CALL, {**REASONING, "id": "rs_2"}, TEXT)
    found = sent(*HI, answer(*output), result())
    assert [item.get("id", item["type"]) for item in found[1:]] == [
        "rs_1",
        "fc_1",
        "function_call_output",
        "rs_2",
        "msg_1",
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"content": "Hello!"},
        {"thinking": ()},
        {"tool_calls": (ToolCall.of("call_1", "f", '{"a": 2}'),)},
        {"tool_calls": (ToolCall.of("call_1", "g", '{"a": 1}'),)},
        {"tool_calls": (ToolCall.of("call_2", "f", '{"a": 1}'),)},
        {"tool_calls": ()},
        {"parts": (Part.image_url("https://e/x.png"),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_of_a_changed_turn_only_the_fields_are_told(change: dict[str, Any]) -> None:
    message = structs.replace(answer(REASONING, TEXT, CALL), **change)
    found = sent(*HI, message)
    assert not [item for item in found if item["type"] == "reasoning" or "id" in item]
    assert [i["content"] for i in found if i.get("role") == "assistant"] == [message.content]


def test_a_turn_that_stands_there_twice_goes_back_once_as_it_came() -> None:
    turn = [answer({**TEXT, "phase": "commentary"}, REASONING, CALL), result()]
    first, second = sent(*turn), sent(*turn, *turn)
    assert second[:4] == first
    again = second[4:]
    assert [item["type"] for item in again] == ["message", "function_call", "function_call_output"]
    assert not [item for item in again if "id" in item]
    assert again[0]["phase"] == "commentary"
    assert again[1]["call_id"] == again[2]["call_id"] != "call_1"


def test_ids_of_items_go_out_once() -> None:
    turn = answer(REASONING, TEXT)
    first, second = sent(turn, *HI, turn)[:2], sent(turn, *HI, turn)[3:]
    assert first == [REASONING, TEXT]
    assert second == [{"type": "message", "role": "assistant", "content": TEXT["content"]}]


def test_a_server_gets_call_ids_of_its_own_back_that_others_refuse() -> None:
    message = answer(REASONING, {**CALL, "call_id": "resp_1:call_0"})
    history = [*HI, message, result("resp_1:call_0")]
    assert [item["call_id"] for item in items(history)[2:]] == ["resp_1:call_0"] * 2
    assert "resp_1:call_0" not in json.dumps(items(history, dialect="azure"))


def test_reasoning_that_the_server_cannot_read_is_left_out_with_the_ids() -> None:
    open_ = {name: value for name, value in REASONING.items() if name != "encrypted_content"}
    message = answer(open_, {**TEXT, "phase": "final_answer"})
    assert sent(message) == [
        {
            "type": "message",
            "role": "assistant",
            "content": TEXT["content"],
            "phase": "final_answer",
        }
    ]
    stored = Settings(extra_body={"store": True})
    assert [item["id"] for item in sent(message, settings=stored)] == ["rs_1", "msg_1"]


def test_a_server_that_keeps_nothing_gets_its_open_reasoning_back() -> None:
    open_ = {"type": "reasoning", "id": "r", "content": [{"type": "reasoning_text", "text": "t"}]}
    message = answer(open_, CALL, dialect="deepseek")
    assert message.thinking[0].text == "t"
    assert [open_, CALL] == sent(message, dialect="deepseek")[:2]


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    assert sent(answer(REASONING)) == []
    assert sent(answer(TEXT, REASONING)) == [TEXT]


def test_arguments_that_were_cut_off_are_wrapped_and_the_reasoning_goes() -> None:
    message = answer(REASONING, {**CALL, "arguments": '{"a', "status": "incomplete"})
    found = sent(*HI, message, result())
    assert found[1]["arguments"] == '{"truncated_args":"{\\"a"}'
    assert [item["type"] for item in found[1:]] == ["function_call", "function_call_output"]


def test_a_call_of_a_free_text_tool_is_answered_in_kind() -> None:
    custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "p", "input": "x"}
    message = answer(custom)
    assert message.tool_calls[0].args == "x"
    assert sent(message, result("c")) == [
        custom,
        {"type": "custom_tool_call_output", "call_id": "c", "output": "r"},
    ]


def test_items_go_to_nobody_else() -> None:
    found = sent(answer(REASONING, TEXT), dialect="azure")
    assert found == [{"type": "message", "role": "assistant", "content": "Hello"}]


def test_a_sanitized_turn_still_has_its_sealed_reasoning() -> None:
    history, _ = sanitize_history([*HI, answer(REASONING, TEXT, CALL), result()])
    found = items(history)
    assert [item["type"] for item in found[1:]] == [
        "reasoning",
        "message",
        "function_call",
        "function_call_output",
    ]
    assert not [item for item in found if "id" in item]


def test_an_image_that_the_server_made_is_a_part_and_goes_back_as_its_item() -> None:
    made = {"type": "image_generation_call", "id": "ig_1", "result": "eA==", "status": "completed"}
    message = answer(made, TEXT)
    assert message.parts == (Part.image(b"x", "image/png"),)
    assert sent(message) == [made, TEXT]
    shown = sent(message, dialect="azure")
    assert [item.get("role") for item in shown] == ["assistant", "user"]
    assert shown[1]["content"][1]["image_url"] == "data:image/png;base64,eA=="


@pytest.mark.parametrize("forged", [b'{"x": 1}', b'{"type": ""}', b'{"type": 5}', b"7", b"{"])
def test_an_item_without_a_type_is_none_that_the_provider_made(forged: bytes) -> None:
    message = AssistantMessage("Hello", native=Native("openai-responses", (Raw(forged),)))
    silent = structs.replace(message, content="")
    assert items([message]) == items([AssistantMessage("Hello")])
    assert items([*HI, silent]) == items(HI)
