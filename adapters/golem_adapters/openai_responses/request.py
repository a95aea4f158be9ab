"""From a golem request to the body of a Responses call. Pure and deterministic.

The server keeps nothing (``store: false``): the whole conversation goes out every time, and with
it what the model has to get back. `input` stands last in the body, so that the body of a longer
conversation begins with the same bytes.
"""

from __future__ import annotations

import re
from typing import Final

from golem.errors import UnsupportedContentError
from golem.model import OutputSchema, Request, Settings, ToolChoice
from golem_adapters._toolkit.body import Wire, encoded, parallel_switch
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters.openai_responses.conversation import written_input
from golem_adapters.openai_responses.dialect import ResponsesDialect

_SCHEMA_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NO_SETTING: Final = ("seed", "stop", "presence_penalty", "frequency_penalty")


def encode_request(
    request: Request,
    *,
    model: str,
    settings: Settings,
    dialect: ResponsesDialect,
    stream: bool,
    reasoning_summary: str | None = None,
) -> bytes:
    """The body that asks `model` for `request`, with `settings` already merged.

    Raises UnsupportedContentError, naming it, for a setting that this API does not have or a
    part of a message that it cannot carry.
    """
    body: Wire = {"model": model}
    body.update(_sampling(settings, reasoning_summary))
    if dialect.cache_key and settings.prompt_cache_key is not None:
        body[dialect.cache_key] = settings.prompt_cache_key
    body.update(_tools(request, settings, dialect))
    if request.output_schema is not None and dialect.structured_output:
        body["text"] = {"format": _format(request.output_schema, dialect)}
    if stream:
        body["stream"] = True
    body["store"] = False
    if dialect.encrypted_reasoning:
        body["include"] = ["reasoning.encrypted_content"]
    body.update(settings.extra_body or {})
    if "input" not in body:
        stored = bool((settings.extra_body or {}).get("store"))
        body["input"] = written_input(request, dialect, stored=stored)
    return encoded(body)


def encode_count(
    request: Request, *, model: str, dialect: ResponsesDialect, effort: str | None
) -> bytes:
    """The body that asks how many tokens the prompt of `request` has.

    The endpoint takes what makes the prompt and nothing else: no sampling, nothing about streams
    or storage.
    """
    body: Wire = {"model": model}
    if effort is not None:
        body["reasoning"] = {"effort": effort}
    body.update(_tools(request, Settings(), dialect))
    body["input"] = written_input(request, dialect, stored=False)
    return encoded(body)


# --- everything but the input


def _sampling(settings: Settings, reasoning_summary: str | None) -> Wire:
    for name in _NO_SETTING:
        if getattr(settings, name) not in (None, ()):
            raise UnsupportedContentError(f"the Responses API has no setting {name!r}")
    reasoning = {"effort": settings.reasoning_effort, "summary": reasoning_summary}
    fields: Wire = {
        "max_output_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "reasoning": {name: word for name, word in reasoning.items() if word is not None} or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _tools(request: Request, settings: Settings, dialect: ResponsesDialect) -> Wire:
    choice = request.tool_choice or ToolChoice()
    if not request.tools or (choice.mode == "none" and dialect.drops_tools_for_none):
        # A choice without tools is an error on this wire; the caller's own may be there.
        return parallel_switch(settings) if "tools" in (settings.extra_body or {}) else {}
    tools: list[Wire] = []
    for tool in request.tools:
        function: Wire = {"type": "function", "name": wire_tool_name(tool.name)}
        if tool.description:
            function["description"] = tool.description
        # Left out, `strict` means true to the server, which then rewrites or refuses schemas.
        function.update(parameters=tool.schema, strict=False)
        tools.append(function)
    fields: Wire = {"tools": tools}
    if choice.mode == "tool":
        fields["tool_choice"] = {"type": "function", "name": wire_tool_name(choice.name)}
    elif request.tool_choice is not None:
        fields["tool_choice"] = choice.mode
    return fields | parallel_switch(settings)


def _format(output: OutputSchema, dialect: ResponsesDialect) -> Wire:
    if dialect.structured_output == "json_object":
        return {"type": "json_object"}
    name = output.name
    if not _SCHEMA_NAME.fullmatch(name):
        name = wire_tool_name(name)
    schema: Wire = {"type": "json_schema", "name": name}
    if output.description:
        schema["description"] = output.description
    schema["schema"] = output.schema
    schema["strict"] = output.strict
    return schema
