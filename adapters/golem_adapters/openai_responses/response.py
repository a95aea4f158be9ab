"""From the body of a plain Responses answer to a golem response. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from msgspec import structs

from golem.errors import ProtocolError, ProviderError
from golem.messages import AssistantMessage
from golem.model import Delta, Request, Response
from golem_adapters._toolkit.bounds import bounded
from golem_adapters._toolkit.calls import stored_tool_names
from golem_adapters._toolkit.counting import count_in
from golem_adapters._toolkit.lenient import is_object
from golem_adapters._toolkit.quoting import excerpt
from golem_adapters.openai.failures import answer_id, error_within
from golem_adapters.openai_responses.dialect import ResponsesDialect
from golem_adapters.openai_responses.shapes import Answer, read_answer
from golem_adapters.openai_responses.turn import Turn

_BROKEN_OFF: Final = ("failed", "cancelled")
_ENDED: Final = ("completed", "complete", "incomplete")


def decode_response(
    body: bytes,
    *,
    request: Request,
    dialect: ResponsesDialect,
    headers: Mapping[str, str],
    secret: str,
    deltas: list[Delta] | None = None,
) -> Response:
    """The response in `body`; `deltas`, when given, receive it in pieces as well.

    Raises APIError for a response that failed, with what came beside it as `partial`, and
    ProtocolError for a body that holds no answer.
    """
    try:
        answer = read_answer(bounded(body))
    except ValueError as error:
        raise ProtocolError(f"the answer is not JSON: {excerpt(body, secret)}") from error
    if answer is None:
        raise ProtocolError(f"the answer has no output: {excerpt(body, secret)}")
    turn = new_turn(request, dialect)
    given: list[Delta] = [] if deltas is None else deltas
    status = answer.status or ("completed" if answer.output is not None else "")
    failure = failure_in(answer, status, headers, secret)
    if failure is None and not status:
        raise ProtocolError(f"the answer has no output: {excerpt(body, secret)}")
    response = turn.end(answer, status, answer_id(headers, secret), given)
    if failure is not None:
        message = structs.replace(response.message, native=None)
        failure.partial = message if message != AssistantMessage() else None
        raise failure
    return response


def decode_count(body: bytes, *, headers: Mapping[str, str], secret: str) -> int:
    """The number of tokens in the body of a count's answer.

    Raises APIError for an error in place of it, and ProtocolError for a body without a number.
    """
    error_in = partial(error_within, headers=headers, secret=secret)
    return count_in(body, "input_tokens", secret, error_in)


def new_turn(request: Request, dialect: ResponsesDialect) -> Turn:
    """An empty turn that knows the names of the request's tools."""
    return Turn(dialect.name, stored_tool_names(tool.name for tool in request.tools))


def failure_in(
    answer: Answer, status: str, headers: Mapping[str, str], secret: str
) -> ProviderError | None:
    """The error that a response object reports in place of, or beside, its output."""
    value: Any = answer.error
    if status in _BROKEN_OFF and not value:
        value = {"message": f"the provider ended the response as {status}", "code": status}
    if not value or (status in _ENDED and answer.output):
        return None
    return error_within(value if is_object(value) else {"message": value}, headers, secret=secret)
