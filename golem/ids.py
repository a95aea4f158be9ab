"""Run, conversation and call identifiers: one function, so that there is one kind of id."""

from __future__ import annotations

import uuid_utils


def new_id() -> str:
    """A new time-ordered identifier: the text of a UUID version 7 (contract §3).

    Ids are opaque: compare and store them, do not read anything out of them.
    """
    return str(uuid_utils.uuid7())
