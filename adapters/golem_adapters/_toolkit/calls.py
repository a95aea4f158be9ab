"""Tool calls on their way to a provider: argument text, ids and names that it accepts.

Stored history keeps what the model wrote; each request maps what its provider would refuse.
Every mapping is a pure function of what stands *before* it in the request, so that a longer
history begins with the same bytes and prompt caches hold.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from golem import rawjson
from golem.codec import dump_message
from golem.messages import AssistantMessage, Message, ToolCall

INTERRUPTED: Final = (
    "Tool call was interrupted before execution; no result was produced."
    " Call the tool again if you need its result."
)
"""The text of a result that stands for none (contract §2.1). Here it answers a call that no
stored result can answer: one without an id."""

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Which tool names every provider takes."""

_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LONGEST_INTEGER: Final = 309
_LARGE: Final = re.compile(r"[0-9][eE]\+?[0-9]{3}|[0-9]{309}")
"""What every number past a double's range has in it, and little else."""

_NO_NAME_CHARACTER: Final = re.compile(r"[^a-zA-Z0-9_-]")


def wire_args(call: ToolCall) -> str:
    r"""The text of the JSON object that stands for the call's arguments (contract §5).

    An object is itself, with lone surrogate escapes as ``\ufffd``; blank text is ``{}``; what
    is no object is wrapped, verbatim, as ``{"truncated_args": "…"}``.
    """
    if not call.truncated:
        return rawjson.without_lone_surrogates(call.args.encode()).decode()
    text = call.args
    if not text.strip():
        return "{}"
    return msgspec.json.encode({"truncated_args": rawjson.clean_text(text)}).decode()


def embedded_args(call: ToolCall) -> str:
    """`wire_args` for a wire that has them as JSON and not as text, where a server reads them.

    A number past the range of a double (``1e999``) is the largest one there is: it is JSON, but
    readers refuse the whole request for it, or take it for infinity.
    """
    args = wire_args(call)
    if _LARGE.search(args) is None:
        return args
    bounded: list[float] = []

    def number(text: str) -> float:
        value = float(text)
        if math.isinf(value):
            value = math.copysign(sys.float_info.max, value)
            bounded.append(value)
        return value

    def integer(text: str) -> float:
        return int(text) if len(text) < _LONGEST_INTEGER else number(text)

    value = json.loads(args, parse_float=number, parse_int=integer)
    return json.dumps(value, separators=(",", ":")) if bounded else args


class IdRule:
    """Which call ids a provider takes: a pattern, and how one is made that fits it."""

    __slots__ = ("_length", "_pattern", "_prefix")

    def __init__(self, pattern: str, *, length: int, prefix: str = "") -> None:
        self._pattern = re.compile(pattern)
        self._length = length
        self._prefix = prefix

    def accepts(self, id: str) -> bool:
        """Whether `id` can stay as it is."""
        return self._pattern.fullmatch(id) is not None

    def made_from(self, id: str, attempt: int) -> str:
        """An id that fits, always the same for the same `id` and `attempt`."""
        seed = f"{attempt}:{id}".encode("utf-8", "replace")
        number = int.from_bytes(blake2b(seed).digest())
        made = self._prefix
        while len(made) < self._length:
            number, digit = divmod(number, len(_LETTERS))
            made += _LETTERS[digit]
        return made


class CallIds:
    """Gives every call of a request an id that fits and is unique, and its result the same.

    Walk the messages in order: `open_turn` for each assistant turn with calls, then `answer`
    for each of its results and `close_turn` for what is left.
    """

    __slots__ = ("_attempts", "_open", "_rule", "_turn", "_used")

    def __init__(self, rule: IdRule) -> None:
        self._rule = rule
        self._used: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._open: dict[str, list[str]] = {}  # stored id -> wire ids that wait for a result
        self._turn: list[str] = []

    def open_turn(self, ids: Iterable[str], rule: IdRule | None = None) -> list[str]:
        """The wire ids of a turn's calls, in order; `rule` goes for this turn only."""
        self._open = {}
        self._turn = []
        for stored in ids:
            wire_id = self._unique(stored, rule or self._rule)
            self._open.setdefault(stored, []).append(wire_id)
            self._turn.append(wire_id)
        return self._turn

    def answer(self, id: str, said: str = "") -> str | None:
        """The wire id for a result with the stored `id`; None where nothing waits for it.

        Results pair by id inside their turn, those of equal (or no) ids in order. One that says
        it is none (`said`) stands before the real ones, where repair put it, but belongs to
        the last of the calls of its id: real results answer the first ones.
        """
        waiting = self._open.get(id)
        if not waiting:
            return None
        return waiting.pop(-1 if said == INTERRUPTED else 0)

    def close_turn(self) -> list[str]:
        """The wire ids of the calls that nothing answered, in order; they are closed now."""
        waiting = {wire_id for ids in self._open.values() for wire_id in ids}
        self._open = {}
        return [wire_id for wire_id in self._turn if wire_id in waiting]

    def _unique(self, id: str, rule: IdRule) -> str:
        wire_id = id
        while wire_id in self._used or not rule.accepts(wire_id):
            attempt = self._attempts.get(id, 0)
            self._attempts[id] = attempt + 1
            wire_id = rule.made_from(id, attempt)
        self._used.add(wire_id)
        return wire_id


class MintedIds:
    """Ids for the calls of an answer whose provider gave none, new in the conversation.

    A pure function of the request: it ends with a prompt that its run has stamped, or with the
    result of a call whose id was made so, which no other request of the conversation does.
    """

    __slots__ = ("_messages", "_seed", "_taken")

    _RULE: Final = IdRule(r"[a-zA-Z0-9_-]{1,64}", length=26, prefix="call_")

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._seed = ""
        self._taken: set[str] = set()

    def taken(self, id: str) -> str:
        """`id`, which the provider gave, and which is not given again."""
        self._taken.add(id)
        return id

    def minted(self, index: int) -> str:
        """The id for the call at `index` of the answer."""
        self._begin()
        attempt = 0
        while (made := self._RULE.made_from(f"{index}:{self._seed}", attempt)) in self._taken:
            attempt += 1
        return self.taken(made)

    def _begin(self) -> None:
        if self._seed:
            return
        messages = self._messages
        last = blake2b(dump_message(messages[-1]) if messages else b"").hexdigest()
        self._seed = f"{len(messages)}:{last}"
        for message in messages:
            if isinstance(message, AssistantMessage):
                self._taken.update(call.id for call in message.tool_calls)


def wire_tool_name(name: str, rule: re.Pattern[str] = TOOL_NAME) -> str:
    """`name` where providers take it, else a readable name made from it, always the same.

    A `rule` of a provider's own takes letters, digits, ``_`` and ``-``, up to 64 of them, but
    not all of these may stand in front.
    """
    if rule.fullmatch(name):
        return name
    digest = blake2b(name.encode("utf-8", "replace"), digest_size=4).hexdigest()
    readable = _NO_NAME_CHARACTER.sub("_", name)
    made = f"{readable[:55]}_{digest}"
    return made if rule.fullmatch(made) else f"_{readable[:54]}_{digest}"


def stored_tool_names(names: Iterable[str], rule: re.Pattern[str] = TOOL_NAME) -> dict[str, str]:
    """From the wire name of each tool that has another one there, back to its own."""
    wired = ((wire_tool_name(name, rule), name) for name in names)
    return {wire: name for wire, name in wired if wire != name}
