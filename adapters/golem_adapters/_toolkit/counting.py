"""The answer of an endpoint that counts tokens. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from golem.errors import APIError, ProtocolError
from golem_adapters._toolkit.bounds import bounded
from golem_adapters._toolkit.lenient import is_object, members, read_json, whole
from golem_adapters._toolkit.quoting import Secrets, excerpt


def count_in(
    body: bytes, member: str, secrets: Secrets, error_in: Callable[[dict[str, Any]], APIError]
) -> int:
    """The number of tokens that stands in `body` under `member`.

    Raises what `error_in` makes of an error in place of it, and ProtocolError for a body without
    a number.
    """
    try:
        value = read_json(bounded(body))
    except ValueError as error:
        raise ProtocolError(f"the count is not JSON: {excerpt(body, secrets)}") from error
    if is_object(value) and value.get("error"):
        raise error_in(value)
    count = whole(members(value).get(member))
    if count is None or count < 0:
        raise ProtocolError(f"the answer has no count: {excerpt(body, secrets)}")
    return count
