"""From a golem request to the body of a Converse call. Pure and deterministic.

`messages` stands last in the body, so that the body of a longer conversation begins with the
same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from golem.errors import UnsupportedContentError
from golem.model import OutputSchema, Request, Settings, ToolChoice
from golem_adapters._toolkit.body import Wire, encoded
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters._toolkit.lenient import is_mapping
from golem_adapters.anthropic.schema import enforceable
from golem_adapters.bedrock.conversation import Conversation, conversation
from golem_adapters.bedrock.dialect import EFFORT, ConverseDialect
from golem_adapters.bedrock.turns import marked, thinks_on, written

MODEL_FIELDS: Final = "additionalModelRequestFields"
"""Where everything goes that one family has and the others have not."""

GONE: Final = "This tool is no longer available."
"""Describes a tool that the history calls and the request no longer has."""

_NO_SETTING: Final = ("seed", "presence_penalty", "frequency_penalty")


class Options(NamedTuple):
    """What a model asks for in every request, beside its settings.

    `cache` is the time that marked prompts are kept for (``5m``, ``1h``; None: no marks),
    `server_tools` what the service runs itself, as the API has it.
    """

    cache: str | None = None
    server_tools: Sequence[Mapping[str, Any]] = ()


def encode_request(
    request: Request,
    *,
    settings: Settings,
    dialect: ConverseDialect,
    options: Options | None = None,
) -> bytes:
    """The body that asks for `request`, with `settings` already merged.

    Raises UnsupportedContentError, naming it, for a setting that this API or family does not
    have, a part of a message that it cannot take or an output schema that it cannot enforce.
    """
    options = options or Options()
    told = conversation(request.messages, dialect)
    body: Wire = _sampling(settings)
    extra = settings.extra_body or {}
    if fields := _model_fields(settings, dialect, extra, told):
        body[MODEL_FIELDS] = fields
    _check_choice(request.tool_choice, fields)
    if request.output_schema is not None and dialect.structured_output:
        body["outputConfig"] = _output(request.output_schema)
    prompt = _prompt(request, told, dialect, options)
    messages = prompt.pop("messages")
    body.update(prompt)
    body.update({name: value for name, value in extra.items() if name != MODEL_FIELDS})
    body.setdefault("messages", messages)
    return encoded(body)


def encode_count(request: Request, *, dialect: ConverseDialect, options: Options) -> bytes:
    """The body that asks how many tokens the prompt of `request` has."""
    told = conversation(request.messages, dialect)
    return encoded({"input": {"converse": _prompt(request, told, dialect, options)}})


def _prompt(
    request: Request, told: Conversation, dialect: ConverseDialect, options: Options
) -> Wire:
    """Tools, instructions and messages, in the order in which caches read them."""
    mark: Wire | None = None
    if options.cache:
        mark = {"cachePoint": {"type": "default"}}
        if options.cache != "5m":
            mark["cachePoint"]["ttl"] = options.cache
    found: Wire = {}
    if tools := _tools(request, told, dialect, options):
        found["toolConfig"] = tools
    if told.system:
        found["system"] = (
            [*told.system, mark] if mark and _marks(dialect, "system") else told.system
        )
    elif tools and mark and _marks(dialect, "tools"):
        tools["tools"].append(mark)
    if mark and _marks(dialect, "messages"):
        marked(told.turns, mark)
    found["messages"] = written(told.turns)
    return found


def _marks(dialect: ConverseDialect, place: str) -> bool:
    return place in dialect.caches


# --- the members of the body


def _sampling(settings: Settings) -> Wire:
    for name in _NO_SETTING:
        if getattr(settings, name) is not None:
            raise UnsupportedContentError(f"the Converse API has no setting {name!r}")
    if settings.parallel_tool_calls is False:
        raise UnsupportedContentError("the Converse API has no setting 'parallel_tool_calls'")
    fields: Wire = {
        "maxTokens": settings.max_tokens,
        "temperature": settings.temperature,
        "topP": settings.top_p,
        "stopSequences": list(settings.stop) or None,
    }
    config = {name: value for name, value in fields.items() if value is not None}
    return {"inferenceConfig": config} if config else {}


def _model_fields(
    settings: Settings, dialect: ConverseDialect, extra: Mapping[str, Any], told: Conversation
) -> Wire:
    """What only this family has, the caller's own over golem's."""
    fields: Wire = {}
    if settings.reasoning_effort is not None:
        if not dialect.effort:
            reason = f"{dialect.name} has no setting 'reasoning_effort'"
            raise UnsupportedContentError(reason)
        fields = _filled(dialect.effort, settings.reasoning_effort)
    own = extra.get(MODEL_FIELDS)
    if is_mapping(own):
        both = fields.keys() & own.keys()
        nested = {n: {**fields[n], **own[n]} for n in both if _both(fields[n], own[n])}
        fields = {**fields, **own, **nested}
    if _budgeted(fields) and not thinks_on(told.turns):
        fields["thinking"] = {"type": "disabled"}  # the history does not allow what was asked for
    return fields


def _both(one: object, other: object) -> bool:
    return is_mapping(one) and is_mapping(other)


def _filled(template: Any, effort: str) -> Any:
    if is_mapping(template):
        return {name: _filled(value, effort) for name, value in template.items()}
    return effort if template == EFFORT else template


def _budgeted(fields: Wire) -> bool:
    thinking = fields.get("thinking")
    return is_mapping(thinking) and thinking.get("type") == "enabled"


def _output(output: OutputSchema) -> Wire:
    """The schema, which this wire has as text, in the part of JSON Schema that is enforced."""
    schema: Wire = {
        "name": wire_tool_name(output.name),
        "schema": msgspec.json.encode(enforceable(output.schema)).decode(),
    }
    if output.description.strip():
        schema["description"] = output.description
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}


def _tools(
    request: Request, told: Conversation, dialect: ConverseDialect, options: Options
) -> Wire:
    """The tools of the request, and where those are gone, the ones that the history calls.

    The API refuses a history with calls in a request without tools, and has no choice ``none``:
    where the model must not call, tools are left out unless the history needs them.
    """
    choice = request.tool_choice or ToolChoice()
    tools: list[Wire] = [dict(tool) for tool in options.server_tools]
    tools += [_tool(tool.name, tool.description, tool.schema) for tool in request.tools]
    if choice.mode == "none" and not told.called:
        return {}
    if not tools:
        tools = [_tool(name, GONE, {}) for name in told.called]
    if not tools:
        return {}
    fields: Wire = {"tools": tools}
    if (wire := _choice(choice, dialect)) is not None:
        fields["toolChoice"] = wire
    if choice.mode == "tool" and "tool" not in dialect.choices:
        fields["tools"] = [t for t in tools if _name_of(t) == wire_tool_name(choice.name)] or tools
    return fields


def _name_of(tool: Wire) -> object:
    spec = tool.get("toolSpec")
    return spec.get("name") if is_mapping(spec) else None


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> Wire:
    spec: Wire = {"name": wire_tool_name(name)}
    if description.strip():
        spec["description"] = description
    whole = schema if schema.get("type") == "object" else {"type": "object", **schema}
    spec["inputSchema"] = {"json": whole}
    return {"toolSpec": spec}


def _choice(choice: ToolChoice, dialect: ConverseDialect) -> Wire | None:
    """The choice as the family has it; None, which is ``auto``, where it has none like it."""
    if choice.mode == "tool" and "tool" in dialect.choices:
        return {"tool": {"name": wire_tool_name(choice.name)}}
    if choice.mode in ("required", "tool") and "any" in dialect.choices:
        return {"any": {}}
    return None


def _check_choice(choice: ToolChoice | None, fields: Wire) -> None:
    if _budgeted(fields) and choice is not None and choice.mode in ("required", "tool"):
        raise UnsupportedContentError(
            f"tool choice {choice.mode!r} cannot be asked of a model that thinks with a budget"
        )
