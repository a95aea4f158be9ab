"""Writes docs/providers/support.md: what each adapter carries, asked of the adapters themselves.

Run it from the project's root, ``python docs/generate_support.py``, after a change to an adapter.
Nothing is sent: every cell is what an adapter says of a history (`golem.check_history`), or whether
the request that it writes is another one with a setting than without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from golem import (
    AssistantMessage,
    Message,
    Part,
    Settings,
    Thinking,
    ToolCall,
    ToolMessage,
    UnsupportedContentError,
    UserMessage,
    check_history,
)
from golem.model import OutputSchema, Request, ToolChoice, ToolSpec
from golem_adapters import Anthropic, AzureOpenAI, Bedrock, Gemini, OpenAI, OpenAIResponses
from golem_adapters.openai.dialect import DIALECTS
from golem_adapters.openai_responses.dialect import DIALECTS as RESPONSES

TARGET = Path(__file__).parent / "providers" / "support.md"
AT: dict[str, Any] = {"api_key": "nobody's", "base_url": "http://localhost:1"}
AWS: dict[str, Any] = {**AT, "region": "us-east-1"}

MODELS: Mapping[str, Any] = {
    "`OpenAI`": OpenAI("gpt-5", **AT),
    "`OpenAIResponses`": OpenAIResponses("gpt-5", **AT),
    "`AzureOpenAI`": AzureOpenAI("gpt-5", **AT),
    "`Anthropic`": Anthropic("claude-sonnet", **AT),
    "`Gemini` 3": Gemini("gemini-3-pro", **AT),
    "`Gemini` 2.5": Gemini("gemini-2.5-pro", **AT),
    "`Bedrock` Claude": Bedrock("anthropic.claude-sonnet-4-5-v1:0", **AWS),
    "`Bedrock` Nova": Bedrock("amazon.nova-pro-v1:0", **AWS),
}
SERVERS: Mapping[str, Any] = {
    **{f"Chat `{d.name}`": OpenAI("m", dialect=d, **AT) for d in DIALECTS.values()},
    **{f"Responses `{name}`": OpenAIResponses("m", dialect=name, **AT) for name in RESPONSES},
}

YES, NO, ELSEWHERE, UNSAID = "yes", "no", "behind", "left out"

PARTS: Mapping[str, Part] = {
    "image": Part.image(b"\x89PNG", "image/png"),
    "image by URL": Part.image_url("https://example.com/a.png"),
    "document": Part.document(b"%PDF", "application/pdf"),
    "document by URL": Part.document_url("https://example.com/a.pdf"),
    "sound": Part.audio(b"RIFF", "audio/wav"),
    "sound by URL": Part.audio_url("https://example.com/a.wav"),
    "film": Part.video(b"\x00", "video/mp4"),
    "film by URL": Part.video_url("https://example.com/a.mp4"),
    "document in S3": Part.document_url("s3://bucket/a.pdf"),
}
CALL = ToolCall.of("call_1", "look", "{}")
HOLDERS: Mapping[str, Callable[[Part], list[Message]]] = {
    "user's": lambda part: [UserMessage("see", parts=(part,))],
    "result's": lambda part: [
        UserMessage("look"),
        AssistantMessage(tool_calls=(CALL,)),
        ToolMessage("seen", tool_call_id="call_1", tool_name="look", parts=(part,)),
    ],
    "model's": lambda part: [
        UserMessage("draw"),
        AssistantMessage("", parts=(part,)),
        UserMessage("and?"),
    ],
}
SETTINGS: Mapping[str, Settings] = {
    "`max_tokens`": Settings(max_tokens=7),
    "`temperature`": Settings(temperature=0.5),
    "`top_p`": Settings(top_p=0.5),
    "`seed`": Settings(seed=7),
    "`stop`": Settings(stop=("x",)),
    "`presence_penalty`": Settings(presence_penalty=0.5),
    "`frequency_penalty`": Settings(frequency_penalty=0.5),
    "`reasoning_effort`": Settings(reasoning_effort="low"),
    "`parallel_tool_calls=False`": Settings(parallel_tool_calls=False),
    "`prompt_cache_key`": Settings(prompt_cache_key="k"),
    "`extra_body`": Settings(extra_body={"x": 1}),
}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOL = ToolSpec("look", "Look.", SCHEMA)
OUTPUT = OutputSchema("answer", SCHEMA)
ASK: list[Message] = [UserMessage("look")]

HEAD = """\
# What each adapter carries

Asked of the adapters themselves (`docs/generate_support.py`), with nothing sent: it says what a
request can hold, not what a model makes of it. `check_history` tells the same of [a history of
yours](../portability.md).

"""
NOTES = """\
*yes*: it goes out where it stands; *behind*: in a user's message behind the turn; *left out*: it
is not sent; *no*: refused by name before anything is sent (`UnsupportedContentError`).

"""
OUTPUTS = """\
A choice has to be one of tools that are offered. Output modes are those of [structured
output](../output.md); the mode `prompt` needs nothing of an adapter.

"""
DIALECTS_HEAD = """\
The same of the servers that speak Chat Completions or Responses, by dialect: media of a user, and
whether an answer is held to a schema.

"""


def generate() -> str:
    """The page."""
    return "".join(
        [
            HEAD,
            "## Content\n\n",
            NOTES,
            _table(MODELS, _content()),
            "\nWhat a failed call is marked with, and what of a turn goes back to its maker:\n\n",
            _table(MODELS, {"a failed call": _failure, "signed thinking": _thinking}),
            "\n## Settings\n\n",
            _table(MODELS, {name: _setting(given) for name, given in SETTINGS.items()}),
            "\n## Tools and output\n\n",
            OUTPUTS,
            _table(MODELS, _output()),
            "\n## Compatible servers\n\n",
            DIALECTS_HEAD,
            _servers(),
        ]
    )


def _content() -> Mapping[str, Callable[[Any], str]]:
    return {
        f"{whose} {kind}": _part(holder, part)
        for whose, holder in HOLDERS.items()
        for kind, part in PARTS.items()
    }


def _output() -> Mapping[str, Callable[[Any], str]]:
    return {
        **{
            f"tool choice `{mode}`": _asked(
                Request(ASK, (TOOL,), tool_choice=ToolChoice(mode, "look"))
            )
            for mode in ("auto", "none", "required", "tool")
        },
        "native output": _asked(Request(ASK, output_schema=OUTPUT)),
        "native output beside tools": _asked(Request(ASK, (TOOL,), output_schema=OUTPUT)),
        "native is the default": lambda model: YES if model.native_output else "no",
        "output as a tool": _asked(Request(ASK, (TOOL,), tool_choice=ToolChoice("required"))),
        "counts tokens": lambda model: YES if hasattr(model, "count_tokens") else "no",
    }


# --- asking an adapter


def _part(holder: Callable[[Part], list[Message]], part: Part) -> Callable[[Any], str]:
    def asked(model: Any) -> str:
        kinds = {
            finding.kind
            for finding in check_history(holder(part), model).findings
            if finding.member.startswith("parts")
        }
        words = {"refused": NO, "flattened": ELSEWHERE, "dropped": UNSAID}
        return next((word for kind, word in words.items() if kind in kinds), YES)

    return asked


def _failure(model: Any) -> str:
    asks: Message = AssistantMessage(tool_calls=(CALL,))
    failed = ToolMessage("gone", tool_call_id="call_1", tool_name="look", failed=True)
    found = check_history([*ASK, asks, failed], model).findings
    kinds = {finding.kind for finding in found if finding.member == "failed"}
    return "a word in the text" if "flattened" in kinds else UNSAID if kinds else "the API's mark"


def _thinking(model: Any) -> str:
    """Of its own maker, signed, before a call."""
    maker = "gemini" if isinstance(model, Gemini) else model.dialect.name
    thought = Thinking("hm", signature="c2ln", provider=maker, id="rs_1")
    said = AssistantMessage(thinking=(thought,), tool_calls=(CALL,))
    result = ToolMessage("ok", tool_call_id="call_1", tool_name="look")
    found = check_history([*ASK, said, result], model).findings
    return UNSAID if any(f.member == "thinking[0]" for f in found) else YES


def _setting(given: Settings) -> Callable[[Any], str]:
    def asked(model: Any) -> str:
        tools = (TOOL,)
        plain = _written(model, Request(ASK, tools))
        try:
            changed = _written(model, Request(ASK, tools, settings=given))
        except UnsupportedContentError:
            return NO
        return YES if changed != plain else UNSAID

    return asked


def _asked(request: Request) -> Callable[[Any], str]:
    def asked(model: Any) -> str:
        try:
            changed = _written(model, request) != _written(model, Request(ASK, request.tools))
        except UnsupportedContentError:
            return NO
        only_auto = request.tool_choice is not None and request.tool_choice.mode == "auto"
        return YES if changed or only_auto else UNSAID

    return asked


def _written(model: Any, request: Request) -> tuple[bytes, Mapping[str, str]]:
    """The body and the headers of the request that the model's dialect writes."""
    call = model._wire.encode(request, stream=False)  # noqa: SLF001  (what `check` asks too)
    return call.body, call.headers


# --- tables


def _servers() -> str:
    kinds = ("image", "document", "document by URL", "sound", "film")
    columns: dict[str, Callable[[Any], str]] = {
        kind: _part(HOLDERS["user's"], PARTS[kind]) for kind in kinds
    }
    columns["native output"] = lambda model: YES if model.native_output else "no"
    rows = [[name, *(ask(model) for ask in columns.values())] for name, model in SERVERS.items()]
    return _lines(["server", *columns], rows)


def _table(models: Mapping[str, Any], rows: Mapping[str, Callable[[Any], str]]) -> str:
    cells = [[name, *map(ask, models.values())] for name, ask in rows.items()]
    return _lines(["", *models], cells)


def _lines(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    TARGET.write_text(generate(), "utf-8")
