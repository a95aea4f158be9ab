"""One answer as it comes together: items and pieces in, deltas out, the response at the end.

The last event of a stream holds the whole response again, as a plain answer does. So both end in
`Turn.end`, which reads the items that the provider gave; where it gave none, or others than were
streamed, it reads those that the stream built up, in the same way. What was told in deltas is
never taken back. Pure; knows neither SSE nor HTTP.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Final

from msgspec import Raw

from golem.ids import new_id
from golem.messages import AssistantMessage, Native, ToolCall
from golem.model import (
    Delta,
    Details,
    FinishReason,
    Response,
    TextDelta,
    ThinkingDelta,
)
from golem_adapters._toolkit.bounds import room_for
from golem_adapters._toolkit.lenient import members, text
from golem_adapters._toolkit.story import Asked, Story
from golem_adapters._toolkit.telling import tell_args
from golem_adapters.openai_responses.growing import UNFINISHED, GrowingItem, ItemCall
from golem_adapters.openai_responses.items import (
    CALLS,
    FUNCTION_CALL,
    MESSAGE,
    REASONING,
    Item,
    asked,
    kind,
    plain,
    story,
)
from golem_adapters.openai_responses.shapes import Answer, read_item
from golem_adapters.openai_responses.usage import usage_of

_INCOMPLETE: Final[Mapping[str, FinishReason]] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content_filter",
}
_COMPLETED: Final = ("completed", "complete")


class Turn:
    """Collects one answer of `provider`; `names` maps wire tool names back to the tools' own."""

    def __init__(self, provider: str, names: Mapping[str, str]) -> None:
        self._provider = provider
        self._names = names
        self._items: list[GrowingItem] = []
        self._open: dict[str, list[GrowingItem]] = {}  # by kind, the last begun last
        self._untold: dict[str, deque[GrowingItem]] = {}  # by what is told in one line
        self._by_index: dict[int, GrowingItem] = {}
        self._by_id: dict[str, GrowingItem] = {}
        self._said: list[str] = []
        self._thought: list[str] = []
        self._calls: list[ItemCall] = []
        self._call_ids: set[str] = set()
        self._answer = Answer()

    # --- taking in

    def begun(self, answer: Answer) -> None:
        """The response object of a stream's first event: who answers."""
        self._answer = answer

    def opened(self, index: int | None, item: Item, deltas: list[Delta]) -> None:
        """An item begins; what it holds already counts only if no pieces come."""
        name = text(item.get("id"))
        growing = self._known(index, name, kind(item))
        if growing is None or growing.done:
            growing = self._new(index, item)
        elif growing.opened and name != growing.item.get("id"):
            growing = self._new(index, item)  # servers number all their items 0
        elif not growing.opened:
            growing.item = {**item, **growing.item}
        growing.opened = True
        self._tell(growing, deltas)

    def piece(
        self,
        of: str,
        index: int | None,
        id: str,
        part: str,
        place: int,
        piece: str,
        deltas: list[Delta],
        *,
        whole: bool = False,
    ) -> None:
        """A piece (or the `whole`) of a part of an item of the kind `of`."""
        growing = self._known(index, id, of)
        if growing is not None and growing.done:
            return  # it has been whole: this repeats it
        if growing is None:
            growing = self._new(index, {"type": of, "id": id, "status": UNFINISHED})
        if whole:
            growing.complete(part, place, piece)
        else:
            growing.add(part, place, piece)
        self._tell(growing, deltas)

    def closed(self, index: int | None, raw: Raw, deltas: list[Delta]) -> None:
        """An item is whole."""
        item = read_item(raw)
        if not item:
            return
        growing = self._known(index, text(item.get("id")), kind(item))
        if growing is not None and growing.done:
            return
        if growing is None:
            growing = self._new(index, {**item})
        growing.finish(Raw(bytes(raw)), item)
        self._tell(growing, deltas)

    def _known(self, index: int | None, id: str, of: str) -> GrowingItem | None:
        """The item of the kind `of` that is meant: by id, else by index, else the last one.

        Indexes and ids are left out by some servers, are all the same at others, and there are
        gateways whose ids change from event to event.
        """
        growing = self._by_id.get(id) if id else None
        if growing is None and index is not None:
            growing = self._by_index.get(index)
        elif growing is None:
            growing = self._last_open(of)
        if growing is None or growing.kind != of:
            return None
        another = growing.done and id and id != growing.item.get("id")
        return None if another else growing

    def _last_open(self, of: str) -> GrowingItem | None:
        waiting = self._open.get(of, [])
        while waiting and waiting[-1].done:
            waiting.pop()
        return waiting[-1] if waiting else None

    def _new(self, index: int | None, item: Item) -> GrowingItem:
        room_for(len(self._items), "items")
        growing = GrowingItem(item)
        self._items.append(growing)
        self._open.setdefault(growing.kind, []).append(growing)
        self._untold.setdefault(_line(growing), deque()).append(growing)
        if index is not None:
            self._by_index[index] = growing
        if name := text(item.get("id")):
            self._by_id[name] = growing
        return growing

    # --- telling

    def _tell(self, growing: GrowingItem, deltas: list[Delta]) -> None:
        """Give out what is new of `growing`, and of those that waited for it.

        Each kind of thing is told in the order of the items: a text waits for the end of the
        one before, a call for the name of the one before.
        """
        if growing.call is not None:
            self._tell_call(growing, deltas)
        line = self._untold[_line(growing)]
        while line and self._tell_next(line[0], deltas):
            line.popleft()

    def _tell_next(self, growing: GrowingItem, deltas: list[Delta]) -> bool:
        """Give out what is new of the first item of its line; whether the next may be told."""
        if growing.kind in CALLS:
            return self._tell_call(growing, deltas)
        if new := growing.new():
            self._tell_text(growing.kind, new, deltas)
        return growing.done

    def _tell_text(self, of: str, new: str, deltas: list[Delta]) -> None:
        if of == MESSAGE:
            self._said.append(new)
            deltas.append(TextDelta(new))
        else:
            self._thought.append(new)
            deltas.append(ThinkingDelta(new))

    def _tell_call(self, growing: GrowingItem, deltas: list[Delta]) -> bool:
        """Give out what is new of a call; False while nothing says which call it is."""
        if growing.call is None:
            said = asked(growing.item)
            if not said.name and not growing.done:
                return False
            growing.call = self._begin_call(said, deltas)
        growing.call.add(growing.new(), deltas)
        return True

    def _begin_call(self, said: Asked, deltas: list[Delta]) -> ItemCall:
        fresh = said.id if said.id and said.id not in self._call_ids else new_id()
        call = ItemCall(len(self._calls), fresh, self._names.get(said.name, said.name), said)
        self._calls.append(call)
        self._call_ids.add(fresh)
        call.begin(deltas)
        return call

    # --- giving out

    def partial(self) -> AssistantMessage | None:
        """The message as far as it has come, calls cut off included; None before anything."""
        raws = [growing.built(UNFINISHED) for growing in self._items]
        said = story(map(read_item, raws), self._provider)
        for call in said.calls[len(self._calls) :]:
            self._begin_call(call, [])
        message = self._message(said, None)
        return message if message != AssistantMessage() else None

    def end(self, answer: Answer, status: str, request_id: str, deltas: list[Delta]) -> Response:
        """The response, of which `answer` is the provider's last word, with `status`.

        `deltas` get what had not been told.
        """
        raws = [self._sealed(raw) for raw in answer.output or () if read_item(raw)]
        said = self._story(raws, status)
        verbatim = True
        if not raws or not self._continues(said):
            ended = "completed" if status in _COMPLETED else "incomplete"
            raws = [growing.built(ended) for growing in self._items]
            verbatim = all(growing.raw is not None for growing in self._items)
            said = self._story(raws, status)
        self._tell_rest(said, deltas)
        native = None
        if verbatim and not plain([read_item(raw) for raw in raws]):
            native = Native(self._provider, tuple(Raw(bytes(raw)) for raw in raws))
        reason = text(members(answer.incomplete_details).get("reason"))
        details = Details(
            response_id=answer.id or self._answer.id or "",
            request_id=request_id,
            model=answer.model or self._answer.model or "",
            finish_reason=reason or status,
            finish_message=f"refusal: {said.refusal}" if said.refusal else "",
        )
        usage = usage_of(answer.usage or {})
        return Response(self._message(said, native), usage, _finish(said, status, reason), details)

    def _sealed(self, raw: Raw) -> Raw:
        """The item `raw`, or as it came before where only that holds its encrypted reasoning."""
        item = read_item(raw)
        if kind(item) != REASONING or item.get("encrypted_content"):
            return raw
        came = self._by_id.get(text(item.get("id")))
        if came is None or came.raw is None or not came.item.get("encrypted_content"):
            return raw
        return came.raw

    def _story(self, raws: list[Raw], status: str) -> Story:
        """What the items say. Where the answer was cut, it was cut in the last one."""
        items = [read_item(raw) for raw in raws]
        if items and status not in _COMPLETED and not items[-1].get("status"):
            items[-1]["status"] = "incomplete"
        return story(items, self._provider)

    def _continues(self, said: Story) -> bool:
        """Whether `said` begins with all that was told."""
        return (
            said.content.startswith("".join(self._said))
            and said.thoughts.startswith("".join(self._thought))
            and len(said.calls) >= len(self._calls)
            and all(
                call.said[:2] == whole[:2] and whole.args.startswith(call.args.text)
                for call, whole in zip(self._calls, said.calls, strict=False)
            )
        )

    def _tell_rest(self, said: Story, deltas: list[Delta]) -> None:
        if thought := said.thoughts[len("".join(self._thought)) :]:
            deltas.append(ThinkingDelta(thought))
        if content := said.content[len("".join(self._said)) :]:
            deltas.append(TextDelta(content))
        for place, whole in enumerate(said.calls):
            if place == len(self._calls):
                self._begin_call(whole, deltas)
            call = self._calls[place]
            tell_args(call.index, whole.args[len(call.args.text) :], deltas)

    def _message(self, said: Story, native: Native | None) -> AssistantMessage:
        return AssistantMessage(
            content=said.content,
            parts=said.parts,
            tool_calls=tuple(
                ToolCall.of(call.id, call.name, whole.args)
                for call, whole in zip(self._calls, said.calls, strict=False)
            ),
            thinking=said.thinking,
            native=native,
        )


def _line(growing: GrowingItem) -> str:
    """Which items are told one behind the other."""
    return FUNCTION_CALL if growing.kind in CALLS else growing.kind


def _finish(said: Story, status: str, reason: str) -> FinishReason:
    if said.refusal:
        return "content_filter"  # no answer to be read as one, whatever the server calls it
    if status == "incomplete":
        return _INCOMPLETE.get(reason, "other")
    if status in _COMPLETED:
        return "tool_call" if said.calls else "stop"
    return "other"
