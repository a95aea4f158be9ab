"""From the body of a plain Gemini answer to a golem response. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from golem.errors import ProtocolError, ProviderError
from golem.model import Delta, Request, Response
from golem_adapters._toolkit.bounds import bounded
from golem_adapters._toolkit.calls import MintedIds, stored_tool_names
from golem_adapters._toolkit.counting import count_in
from golem_adapters._toolkit.lenient import read_json
from golem_adapters._toolkit.quoting import excerpt
from golem_adapters.gemini.dialect import TOOL_NAME
from golem_adapters.gemini.failures import answer_id, blocked, error_within
from golem_adapters.gemini.shapes import read_chunks
from golem_adapters.gemini.turn import Turn


def decode_response(
    body: bytes,
    *,
    request: Request,
    headers: Mapping[str, str],
    secret: str,
    deltas: list[Delta] | None = None,
) -> Response:
    """The response in `body`; `deltas`, when given, receive it in pieces as well.

    Raises APIError for an error in place of an answer and for a blocked prompt, and
    ProtocolError for a body that holds neither.
    """
    try:
        chunks = read_chunks(bounded(body))
    except ValueError as error:
        raise ProtocolError(f"the answer is not JSON: {excerpt(body, secret)}") from error
    turn = new_turn(request)
    given: list[Delta] = [] if deltas is None else deltas
    for chunk in chunks:
        if chunk.error:
            raise _with(turn, error_within(read_json(body), headers, secret=secret))
        turn.add(chunk, given)
    if not turn.ended and turn.block_reason:
        reason, message = turn.block_reason, turn.block_message
        raise _with(turn, blocked(reason, message, answer_id(headers, secret) or turn.response_id))
    if not turn.answered:
        raise ProtocolError(f"the answer has no candidates: {excerpt(body, secret)}")
    return turn.finished(answer_id(headers, secret), given)


def _with(turn: Turn, error: ProviderError) -> ProviderError:
    error.partial = turn.partial()
    return error


def new_turn(request: Request) -> Turn:
    """An empty turn that knows the names of the request's tools and its calls' ids."""
    names = stored_tool_names((tool.name for tool in request.tools), TOOL_NAME)
    return Turn(names, MintedIds(request.messages))


def decode_count(body: bytes, *, headers: Mapping[str, str], secret: str) -> int:
    """The number of tokens in the body of a count's answer.

    Raises APIError for an error in place of it, and ProtocolError for a body without a number.
    """
    error_in = partial(error_within, headers=headers, secret=secret)
    return count_in(body, "totalTokens", secret, error_in)
