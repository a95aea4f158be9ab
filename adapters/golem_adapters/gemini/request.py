"""From a golem request to the body of a Gemini call. Pure and deterministic.

`contents` stands last in the body, so that the body of a longer conversation begins with the
same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from golem.errors import UnsupportedContentError
from golem.model import OutputSchema, Request, Settings, ToolChoice, ToolSpec
from golem_adapters._toolkit.body import Wire, encoded
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters._toolkit.lenient import is_mapping
from golem_adapters.gemini.conversation import conversation
from golem_adapters.gemini.dialect import TOOL_NAME, GeminiDialect, Traits
from golem_adapters.gemini.schema import parameters, readable

_MODES: Final = {"auto": "AUTO", "none": "NONE", "required": "ANY", "tool": "ANY"}
_BUDGETS: Final = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
"""The thinking budgets that Google's own OpenAI-compatible server gives these efforts."""


class Options(NamedTuple):
    """What a model asks for in every request, beside its settings.

    `thinking` is the API's own ``thinkingConfig``, `safety` its ``safetySettings``,
    `server_tools` what the server runs itself, as the API has it.
    """

    thinking: Mapping[str, Any] | None = None
    safety: Sequence[Mapping[str, Any]] = ()
    server_tools: Sequence[Mapping[str, Any]] = ()


def encode_request(
    request: Request,
    *,
    settings: Settings,
    dialect: GeminiDialect,
    traits: Traits,
    options: Options | None = None,
) -> bytes:
    """The body that asks for `request`, with `settings` already merged.

    Raises UnsupportedContentError, naming it, for a setting that this API does not have, a part
    of a message that it cannot carry, or an output schema beside tools where the model takes
    only one of them.
    """
    options = options or Options()
    body, contents = _prompt(request, dialect, traits, options)
    if request.output_schema is not None and request.tools and not traits.schema_beside_tools:
        raise UnsupportedContentError(
            "models before Gemini 3 follow no output schema while they have tools;"
            " ask for it with output_mode='tool'"
        )
    if options.safety:
        body["safetySettings"] = [dict(setting) for setting in options.safety]
    if config := _generation(settings, request.output_schema, traits, options):
        body["generationConfig"] = config
    choice = _tool_config(request, settings, traits, dialect, options)
    if choice and "tools" in body:
        body["toolConfig"] = choice
    body = _overlaid(body, settings.extra_body or {})
    if "contents" not in body:
        body["contents"] = contents
    return encoded(body)


def encode_count(
    request: Request, *, model: str, dialect: GeminiDialect, traits: Traits, options: Options
) -> bytes:
    """The body that asks how many tokens the prompt of `request` has.

    AI Studio counts nothing but `contents` outside of a request for an answer, which names its
    `model`.
    """
    body, contents = _prompt(request, dialect, traits, options)
    body["contents"] = contents
    if not dialect.vertex:
        body = {"generateContentRequest": {"model": model, **body}}
    return encoded(body)


def _prompt(
    request: Request, dialect: GeminiDialect, traits: Traits, options: Options
) -> tuple[Wire, list[Wire]]:
    """What a prompt consists of: instructions and tools, and the contents."""
    said = conversation(request.messages, dialect, traits)
    body: Wire = {}
    if said.system:
        body["systemInstruction"] = {"parts": said.system}
    tools: list[Wire] = [dict(tool) for tool in options.server_tools]
    if request.tools:
        tools.append({"functionDeclarations": [_declared(tool) for tool in request.tools]})
    if tools:
        body["tools"] = tools
    return body, said.contents


def _declared(tool: ToolSpec) -> Wire:
    wire: Wire = {"name": wire_tool_name(tool.name, TOOL_NAME)}
    if tool.description.strip():
        wire["description"] = tool.description
    wire["parametersJsonSchema"] = parameters(tool.schema)
    return wire


def _tool_config(
    request: Request,
    settings: Settings,
    traits: Traits,
    dialect: GeminiDialect,
    options: Options,
) -> Wire:
    if settings.parallel_tool_calls is False:
        raise UnsupportedContentError(
            "Gemini cannot be held to one tool call a turn (setting 'parallel_tool_calls')"
        )
    config: Wire = {}
    choice = request.tool_choice or ToolChoice()
    if request.tool_choice is not None and request.tools:
        calling: Wire = {"mode": _MODES[choice.mode]}
        if choice.mode == "tool":
            calling["allowedFunctionNames"] = [wire_tool_name(choice.name, TOOL_NAME)]
        config["functionCallingConfig"] = calling
    if options.server_tools and traits.checks_signatures and not dialect.vertex:
        # Without it, what the server's tools did is not in the answer, and cannot go back.
        config["includeServerSideToolInvocations"] = True
    return config


def _generation(
    settings: Settings, output: OutputSchema | None, traits: Traits, options: Options
) -> Wire:
    fields: Wire = {
        "maxOutputTokens": settings.max_tokens,
        "temperature": settings.temperature,
        "topP": settings.top_p,
        "seed": settings.seed,
        "stopSequences": list(settings.stop) or None,
        "presencePenalty": settings.presence_penalty,
        "frequencyPenalty": settings.frequency_penalty,
        "thinkingConfig": _thinking(settings.reasoning_effort, traits, options) or None,
    }
    if output is not None:
        fields["responseMimeType"] = "application/json"
        fields["responseJsonSchema"] = readable(output.schema)
    return {name: value for name, value in fields.items() if value is not None}


def _thinking(effort: str | None, traits: Traits, options: Options) -> Wire:
    """How much to think; an effort goes over the level or budget of the model's own options."""
    config = dict(options.thinking or {})
    if effort is None:
        return config
    config.pop("thinkingLevel", None)
    config.pop("thinkingBudget", None)
    if traits.thinking_levels:
        return {**config, "thinkingLevel": effort.upper()}
    budget = _BUDGETS.get(effort.lower())
    if budget is None:
        known = ", ".join(_BUDGETS)
        raise UnsupportedContentError(
            f"reasoning_effort {effort!r} has no budget for models before Gemini 3; known: {known}"
        )
    return {**config, "thinkingBudget": budget}


def _overlaid(body: Wire, extra: Mapping[str, Any]) -> Wire:
    """`body` with the members of `extra` over it, objects member by member."""
    found = dict(body)
    for name, value in extra.items():
        known = found.get(name)
        if is_mapping(known) and is_mapping(value):
            found[name] = _overlaid(dict(known), value)
        else:
            found[name] = value
    return found
