"""From a golem request to the body of a Messages call. Pure and deterministic.

`messages` stands last in the body, so that the body of a longer conversation begins with the
same bytes; the marks for caches are the request's and the instructions', never a message's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from golem.errors import UnsupportedContentError
from golem.model import OutputSchema, Request, Settings, ToolChoice
from golem_adapters._toolkit.body import Wire, encoded
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters._toolkit.lenient import is_mapping, text
from golem_adapters.anthropic.conversation import Conversation, conversation
from golem_adapters.anthropic.dialect import MessagesDialect
from golem_adapters.anthropic.schema import enforceable

MAX_TOKENS: Final = 16_384
"""Most tokens of an answer where the caller names no bound, which the API demands.

Every model that is served takes it, and a plain answer of that length comes well within the ten
minutes that a connection is given. A budget for thinking is added to it.
"""

_NO_SETTING: Final = ("seed", "presence_penalty", "frequency_penalty")
_SAMPLING: Final = ("temperature", "top_p", "top_k")


class Options(NamedTuple):
    """What a model asks for in every request, beside its settings.

    `thinking` is the API's own member, `cache` the time that marked prompts are kept for (``5m``,
    ``1h``; None: no marks), `server_tools` what the server runs itself, as the API has it.
    """

    thinking: Mapping[str, Any] | None = None
    cache: str | None = None
    server_tools: Sequence[Mapping[str, Any]] = ()


def encode_request(
    request: Request,
    *,
    model: str,
    settings: Settings,
    dialect: MessagesDialect,
    stream: bool,
    options: Options | None = None,
) -> bytes:
    """The body that asks `model` for `request`, with `settings` already merged.

    Raises UnsupportedContentError, naming it, for a setting that this API does not have, a part
    of a message that it cannot carry or an output schema that it cannot enforce.
    """
    options = options or Options()
    body: Wire = {"model": model, "max_tokens": _max_tokens(settings, options)}
    body.update(_sampling(settings))
    extra = settings.extra_body or {}
    mode = _mode(extra.get("thinking", options.thinking))
    said = conversation(request.messages, dialect, mode["type"])
    body.update(_thinking(mode, said))
    if config := _output(settings, request.output_schema, dialect):
        body["output_config"] = config
    if options.cache:
        body["cache_control"] = _mark(options.cache)
    tools = _tools(request, settings, dialect, options)
    _check_choice(request.tool_choice, said.thinking)
    body.update(tools)
    if said.system:
        body["system"] = _marked(said.system, options.cache)
    elif options.cache and tools:
        body["tools"] = _marked(tools["tools"], options.cache)
    if stream:
        body["stream"] = True
    body.update(extra)
    body.update(_thinking(mode, said))  # the history may not allow what was asked for
    if "messages" not in body:
        body["messages"] = said.messages
    return encoded(body)


def encode_count(
    request: Request, *, model: str, dialect: MessagesDialect, options: Options
) -> bytes:
    """The body that asks how many tokens the prompt of `request` has.

    The endpoint refuses tools that the server runs, so those do not count.
    """
    mode = _mode(options.thinking)
    said = conversation(request.messages, dialect, mode["type"])
    body: Wire = {"model": model, **_thinking(mode, said)}
    if request.tools:
        body["tools"] = [_tool(tool.name, tool.description, tool.schema) for tool in request.tools]
    if said.system:
        body["system"] = said.system
    body["messages"] = said.messages
    return encoded(body)


def api_version(settings: Settings, dialect: MessagesDialect, chosen: str | None) -> str:
    """The ``anthropic-version`` for a request with `settings`: the one `chosen`, else the newest.

    The newer versions have no sampling settings; a request with one goes to the last that does,
    unless the caller chose another, which raises UnsupportedContentError.
    """
    used = [name for name in _SAMPLING if _uses(settings, name)]
    last = dialect.last_sampling_version
    if not used or not last:
        return chosen or dialect.version
    if chosen and chosen > last:
        raise UnsupportedContentError(
            f"version {chosen} of the API has no setting {used[0]!r}; {last} is the last that does"
        )
    return chosen or last


def _uses(settings: Settings, name: str) -> bool:
    own = getattr(settings, name, None)
    return own is not None or (settings.extra_body or {}).get(name) is not None


# --- the members of the body


def _max_tokens(settings: Settings, options: Options) -> int:
    if settings.max_tokens is not None:
        return settings.max_tokens
    budget = (options.thinking or {}).get("budget_tokens")
    return MAX_TOKENS + budget if isinstance(budget, int) else MAX_TOKENS


def _sampling(settings: Settings) -> Wire:
    for name in _NO_SETTING:
        if getattr(settings, name) is not None:
            raise UnsupportedContentError(f"the Messages API has no setting {name!r}")
    fields: Wire = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "stop_sequences": list(settings.stop) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _mode(asked: object) -> Wire:
    """The thinking that was asked for; an empty type where nobody said."""
    mode: Wire = dict(asked) if is_mapping(asked) else {}
    return {**mode, "type": text(mode.get("type"))}


def _thinking(mode: Wire, said: Conversation) -> Wire:
    """The member for the `mode` that was asked for, or for the one that the history allows."""
    if not mode["type"]:
        return {}
    return {"thinking": mode if mode["type"] == said.thinking else {"type": said.thinking}}


def _output(settings: Settings, output: OutputSchema | None, dialect: MessagesDialect) -> Wire:
    config: Wire = {}
    if settings.reasoning_effort is not None:
        config["effort"] = settings.reasoning_effort
    if output is not None and dialect.structured_output:
        config["format"] = {"type": "json_schema", "schema": enforceable(output.schema)}
    return config


def _tools(
    request: Request, settings: Settings, dialect: MessagesDialect, options: Options
) -> Wire:
    choice = request.tool_choice or ToolChoice()
    tools: list[Wire] = [dict(tool) for tool in options.server_tools]
    tools += [_tool(tool.name, tool.description, tool.schema) for tool in request.tools]
    if not tools or (choice.mode == "none" and dialect.drops_tools_for_none):
        return {}  # a choice without tools is an error on this wire
    fields: Wire = {"tools": tools}
    single = settings.parallel_tool_calls is False
    if request.tool_choice is not None or single:
        fields["tool_choice"] = _choice(choice, single=single)
    return fields


def _tool(name: str, description: str, schema: Mapping[str, Any]) -> Wire:
    tool: Wire = {"name": wire_tool_name(name)}
    if description.strip():
        tool["description"] = description
    tool["input_schema"] = (
        schema if schema.get("type") == "object" else {"type": "object", **schema}
    )
    return tool


def _choice(choice: ToolChoice, *, single: bool) -> Wire:
    wire: Wire = {"type": "any" if choice.mode == "required" else choice.mode}
    if choice.mode == "tool":
        wire["name"] = wire_tool_name(choice.name)
    if single and choice.mode != "none":
        wire["disable_parallel_tool_use"] = True
    return wire


def _check_choice(choice: ToolChoice | None, thinking: str) -> None:
    if thinking == "enabled" and choice is not None and choice.mode in ("required", "tool"):
        raise UnsupportedContentError(
            f"tool choice {choice.mode!r} cannot be asked of a model that thinks with a budget"
        )


def _mark(ttl: str) -> Wire:
    return {"type": "ephemeral", "ttl": ttl}


def _marked(blocks: list[Wire], ttl: str | None) -> list[Wire]:
    """`blocks` with a mark on the last: up to there every conversation begins alike."""
    if not ttl or "cache_control" in blocks[-1]:
        return blocks
    return [*blocks[:-1], {**blocks[-1], "cache_control": _mark(ttl)}]
