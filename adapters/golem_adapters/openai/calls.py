"""The tool calls of one answer as they come together, in all the ways in which servers cut them.

Pieces in, deltas out, calls at the end. What was given out is never taken back. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from golem.ids import new_id
from golem.messages import ToolCall
from golem.model import Delta, ToolCallDelta
from golem_adapters._toolkit.bounds import room_for
from golem_adapters._toolkit.lenient import members, text
from golem_adapters._toolkit.pieces import ArgumentText, Mended
from golem_adapters._toolkit.telling import tell_args
from golem_adapters.openai.shapes import Call, Function, arguments_text

_LONGEST_NAME: Final = 1024
"""Characters of a call's name that are read. No provider takes a tool whose name is past 128."""


class _PendingCall:
    """A tool call whose arguments are still coming.

    `name` is the wire's as far as it came, `told` what was given out of the tool's own.
    """

    __slots__ = ("args", "given_id", "id", "index", "mended", "name", "signature", "told")

    def __init__(self, index: int, id: str, given_id: str, name: str) -> None:
        self.index = index
        self.id = id
        self.given_id = given_id
        self.name = name
        self.signature = ""
        self.told = ""
        self.args = ArgumentText()
        self.mended = Mended()

    def call(self, name: str) -> ToolCall:
        return ToolCall.of(self.id, name, self.args.text, self.signature)


class CallPieces:
    """Collects the calls of one answer; `names` maps wire tool names to the tools' own."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._calls: list[_PendingCall] = []
        self._opened = 0  # so many calls at the front were given out
        self._by_index: dict[int, _PendingCall] = {}
        self._by_id: dict[str, _PendingCall] = {}
        self._function_call: _PendingCall | None = None

    def __bool__(self) -> bool:
        return bool(self._calls)

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls as far as they have come and been told."""
        return tuple(call.call(call.told) for call in self._calls[: self._opened])

    def finish(self, deltas: list[Delta], *, cut: bool) -> None:
        """Tell what only the end can: that a call without arguments has none, ``{}``.

        A turn that was `cut` short was cut in its last call, whose arguments may have been still
        to come: without any, it stays a call that nobody may run.
        """
        for call in self._calls:
            self._give(call, call.mended.rest(), deltas)
        for call in self._calls[:-1] if cut else self._calls:
            if not call.args:
                self._give(call, "{}", deltas)
        if self._calls:
            self._open(self._calls[-1], deltas)

    def add(self, piece: Call, place: int | None, deltas: list[Delta], whole: bool) -> None:
        """A piece of a call; `place`: where it stands among several of the same chunk."""
        name, args = _content(piece)
        given = piece.id or ""
        if not (name or args or given):
            return
        call = None if whole else self._continued(piece.index, given, name, place)
        if call is None:
            call = self._new_call(given, name, deltas)
            if piece.index is not None:
                self._by_index[piece.index] = call
        elif name:
            self._rename(call, name, deltas)
        if piece.extra_content is not None:
            call.signature = signature_in(piece.extra_content) or call.signature
        self._give(call, args, deltas)

    def add_function(self, function: Function, deltas: list[Delta]) -> None:
        """A piece of a call in the form before `tool_calls`: one a turn, without an id."""
        name, args = _content(Call(function=function))
        if self._function_call is None:
            if not name and not args:
                return
            self._function_call = self._new_call("", name, deltas)
        elif name:
            self._rename(self._function_call, name, deltas)
        self._give(self._function_call, args, deltas)

    def _continued(
        self, index: int | None, id: str, name: str, place: int | None
    ) -> _PendingCall | None:
        """The call that a piece goes on with; None: it begins a new one.

        By index, else by id, else by place, else the last call. A name where one is known
        already tells more than that: servers number all their calls 0, others repeat the name
        (or a random id) in every piece of one call, or send it in pieces too.
        """
        if index is not None:
            call = self._by_index.get(index)
        elif id in self._by_id or (id and name):
            call = self._by_id.get(id)
        elif place is not None and place < len(self._calls):
            call = self._calls[place]
        elif place is not None and name:
            call = None
        else:
            call = self._calls[-1] if self._calls else None
        if call is None or not name or not call.name:
            return call
        if id and call.given_id:
            return call if id == call.given_id else None
        if call.args.whole:
            return None
        if name == call.name or self._leads(call.name + name):
            return call
        other = index is None or (not call.args and {name, call.name} <= self._names.keys())
        return None if other else call

    def _new_call(self, id: str, name: str, deltas: list[Delta]) -> _PendingCall:
        room_for(len(self._calls), "tool calls")
        fresh = id if id and id not in self._by_id else new_id()
        call = _PendingCall(len(self._calls), fresh, id, name)
        self._calls.append(call)
        if id:
            self._by_id.setdefault(id, call)
        if name in self._names or not self._names:
            self._open(call, deltas)  # else its name may be the first piece of one
        return call

    def _open(self, call: _PendingCall, deltas: list[Delta]) -> None:
        """Give out that `call` has begun, and those before it."""
        while self._opened <= call.index:
            pending = self._calls[self._opened]
            pending.told = self._own_name(pending.name)
            deltas.append(ToolCallDelta(pending.index, pending.id, pending.told))
            self._opened += 1

    def _rename(self, call: _PendingCall, name: str, deltas: list[Delta]) -> None:
        """Take in a name where the call has one: the same again, all of it so far, or a piece."""
        if call.args and call.name:
            return  # a piece of arguments that repeats it
        longer = self._joined(call.name, name)[:_LONGEST_NAME]
        own = self._own_name(longer)
        if call.index >= self._opened:
            call.name = longer
            if longer in self._names:
                self._open(call, deltas)
        elif own != call.told and own.startswith(call.told):
            deltas.append(ToolCallDelta(call.index, name=own[len(call.told) :]))
            call.name, call.told = longer, own

    def _joined(self, known: str, name: str) -> str:
        if self._leads(known + name):
            return known + name
        if name.startswith(known) or self._leads(name):
            return name
        return known if known in self._names else known + name

    def _leads(self, name: str) -> bool:
        """Whether a tool's name on the wire begins with `name`."""
        return any(tool.startswith(name) for tool in self._names)

    def _own_name(self, name: str) -> str:
        return self._names.get(name, name)

    def _give(self, call: _PendingCall, args: str, deltas: list[Delta]) -> None:
        given = call.args.taken(call.mended.taken(args))
        if not given:
            return
        self._open(call, deltas)
        tell_args(call.index, given, deltas)


def _content(piece: Call) -> tuple[str, str]:
    """Name and argument text of a piece of a call, whichever kind of tool it is for."""
    function, custom = piece.function, piece.custom
    name, args = "", ""
    if function is not None:
        name, args = function.name or "", arguments_text(function.arguments)
    if custom is not None and not name and not args:
        name, args = custom.name or "", custom.input or ""
    return name[:_LONGEST_NAME], args


def signature_in(extra: Any) -> str:
    """The thought signature in Google's extra content."""
    return text(members(members(extra).get("google")).get("thought_signature"))
