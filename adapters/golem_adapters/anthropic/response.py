"""From the body of a plain Messages answer to a golem response. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from golem.errors import ProtocolError
from golem.model import Delta, Request, Response
from golem_adapters._toolkit.bounds import bounded
from golem_adapters._toolkit.calls import stored_tool_names
from golem_adapters._toolkit.counting import count_in
from golem_adapters._toolkit.lenient import read_json
from golem_adapters._toolkit.quoting import excerpt
from golem_adapters.anthropic.dialect import MessagesDialect
from golem_adapters.anthropic.failures import answer_id, error_within
from golem_adapters.anthropic.shapes import read_answer
from golem_adapters.anthropic.turn import Turn


def decode_response(
    body: bytes,
    *,
    request: Request,
    dialect: MessagesDialect,
    headers: Mapping[str, str],
    secret: str,
    deltas: list[Delta] | None = None,
) -> Response:
    """The response in `body`; `deltas`, when given, receive it in pieces as well.

    Raises APIError for an error in place of an answer, and ProtocolError for a body that holds
    neither.
    """
    try:
        answer = read_answer(bounded(body))
    except ValueError as error:
        raise ProtocolError(f"the answer is not JSON: {excerpt(body, secret)}") from error
    if answer is not None and (answer.type == "error" or answer.error):
        raise error_within(read_json(body), headers, secret=secret)
    if answer is None or answer.content is None:
        raise ProtocolError(f"the answer has no content: {excerpt(body, secret)}")
    turn = new_turn(request, dialect)
    given: list[Delta] = [] if deltas is None else deltas
    turn.begin(answer, given)
    return turn.finished(answer_id(headers, secret), given)


def new_turn(request: Request, dialect: MessagesDialect) -> Turn:
    """An empty turn that knows the names of the request's tools."""
    return Turn(dialect.name, stored_tool_names(tool.name for tool in request.tools))


def decode_count(body: bytes, *, headers: Mapping[str, str], secret: str) -> int:
    """The number of tokens in the body of a count's answer.

    Raises APIError for an error in place of it, and ProtocolError for a body without a number.
    """
    error_in = partial(error_within, headers=headers, secret=secret)
    return count_in(body, "input_tokens", secret, error_in)
