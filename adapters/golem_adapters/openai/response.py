"""From the body of a plain Chat Completions answer to a golem response. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from golem.errors import ProtocolError, ProviderError
from golem.model import Delta, Request, Response
from golem_adapters._toolkit.bounds import bounded
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters._toolkit.lenient import read_json
from golem_adapters._toolkit.quoting import excerpt
from golem_adapters.openai.dialect import ChatDialect
from golem_adapters.openai.failures import answer_id, error_within
from golem_adapters.openai.shapes import Chunk, read_chunk
from golem_adapters.openai.turn import Turn

FAILED: Final = ("error", "insufficient_system_resource", "network_error", "abort")
"""Finish reasons of a server that broke off (DeepSeek's, z.ai's and vLLM's after the common one);
half an answer is not one."""


def decode_response(
    body: bytes,
    *,
    request: Request,
    dialect: ChatDialect,
    headers: Mapping[str, str],
    secret: str,
    deltas: list[Delta] | None = None,
) -> Response:
    """The response in `body`; `deltas`, when given, receive it in pieces as well.

    Raises APIError for an error object in the body, with what came beside it as `partial`, and
    ProtocolError for a body that holds no answer.
    """
    try:
        chunk = read_chunk(bounded(body))
    except ValueError as error:
        raise ProtocolError(f"the answer is not JSON: {excerpt(body, secret)}") from error
    turn = new_turn(request, dialect)
    given: list[Delta] = [] if deltas is None else deltas
    if chunk is not None:
        turn.add(chunk, given, whole=True)
        failure = failure_in(chunk, body, headers, secret)
        if failure is not None:
            failure.partial = turn.partial()
            raise failure
    if chunk is None or not chunk.choices:
        raise ProtocolError(f"the answer has no choices: {excerpt(body, secret)}")
    return turn.finished(answer_id(headers, secret), given)


def new_turn(request: Request, dialect: ChatDialect) -> Turn:
    """An empty turn that knows the names of the request's tools."""
    names = {wire_tool_name(tool.name): tool.name for tool in request.tools}
    return Turn(dialect.name, names, keeps_details=dialect.reasoning_details)


def failure_in(
    chunk: Chunk, data: bytes, headers: Mapping[str, str], secret: str
) -> ProviderError | None:
    """The error that a chunk (or a whole answer) reports in place of, or beside, its content."""
    value: Any = chunk.error or (chunk.x_groq and chunk.x_groq.error)
    if not value and chunk.choices:
        for choice in chunk.choices:
            if choice.error:
                value = choice.error
            elif choice.finish_reason in FAILED:
                message = f"the provider broke off its answer ({choice.finish_reason})"
                value = {"message": message, "type": "server_error"}
    elif not value and chunk.usage is None and (chunk.object == "error" or chunk.message):
        value = read_json(data)  # the flat form
    return error_within(value, headers, secret=secret) if value else None
