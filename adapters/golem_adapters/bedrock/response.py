"""From the body of a plain Converse answer to a golem response. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from golem.errors import ProtocolError
from golem.model import Delta, Request, Response
from golem_adapters._toolkit.bounds import bounded
from golem_adapters._toolkit.calls import stored_tool_names
from golem_adapters._toolkit.lenient import members, read_json, whole
from golem_adapters._toolkit.quoting import Secrets, excerpt
from golem_adapters.bedrock.dialect import ConverseDialect
from golem_adapters.bedrock.failures import answer_id, error_within
from golem_adapters.bedrock.shapes import read_answer
from golem_adapters.bedrock.turn import Turn


def decode_response(
    body: bytes,
    *,
    request: Request,
    dialect: ConverseDialect,
    headers: Mapping[str, str],
    secrets: Secrets,
    deltas: list[Delta] | None = None,
) -> Response:
    """The response in `body`; `deltas`, when given, receive it in pieces as well.

    Raises APIError for an error in place of an answer, and ProtocolError for a body that holds
    neither.
    """
    try:
        answer = read_answer(bounded(body))
    except ValueError as error:
        raise ProtocolError(f"the answer is not JSON: {excerpt(body, secrets)}") from error
    message = answer.output.message if answer is not None and answer.output is not None else None
    if answer is None or message is None or message.content is None:
        if complaint := error_within(body, headers, secrets=secrets):
            raise complaint
        raise ProtocolError(f"the answer has no content: {excerpt(body, secrets)}")
    turn = new_turn(request, dialect)
    given: list[Delta] = [] if deltas is None else deltas
    turn.take(answer, given)
    return turn.finished(answer_id(headers, secrets), given)


def new_turn(request: Request, dialect: ConverseDialect) -> Turn:
    """An empty turn that knows the names of the request's tools."""
    return Turn(dialect.name, stored_tool_names(tool.name for tool in request.tools))


def decode_count(body: bytes, *, headers: Mapping[str, str], secrets: Secrets) -> int:
    """The number of tokens in the body of a count's answer.

    Raises APIError for an error in place of it, and ProtocolError for a body without a number.
    """
    try:
        value = read_json(bounded(body))
    except ValueError as error:
        raise ProtocolError(f"the count is not JSON: {excerpt(body, secrets)}") from error
    count = whole(members(value).get("inputTokens"))
    if count is not None and count >= 0:
        return count
    if complaint := error_within(body, headers, secrets=secrets):
        raise complaint
    raise ProtocolError(f"the answer has no count: {excerpt(body, secrets)}")
