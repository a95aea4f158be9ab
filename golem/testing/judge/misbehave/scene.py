"""What a misbehaviour is, and what it is told."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from golem.testing.judge.provider import Provider
from golem.testing.judge.reply import Reply


class Scene(Struct, frozen=True):
    """What a misbehaviour may need to know: the API, where another host listens, the key."""

    provider: Provider
    elsewhere: str = ""
    key: str = ""


Act = Callable[[Reply, Scene], Reply]
"""Makes a worse reply of the one that was due."""


class Inattention(Struct, frozen=True):
    """The server reads no more than about `after` bytes of a request's body.

    Then it closes the connection, or (`hangs`) leaves it open.
    """

    after: int = 0
    hangs: bool = False


Misbehavior = Act | Inattention
"""One thing that a server does wrong, once."""


def together(*acts: Act) -> Act:
    """One after the other: each makes its own of what the one before it left."""

    def act(reply: Reply, scene: Scene) -> Reply:
        for one in acts:
            reply = one(reply, scene)
        return reply

    return act
