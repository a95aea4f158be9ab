"""Whatever golem returns can be given to a run at once, with or without a prompt.

With one exception, of which golem makes no secret: media that no run may send (of a kind this
version does not know, with both URL and data …) rides through every pass, and a run names it
before anything is sent.

A machine takes a history through passes, edits, storage and runs in any order, and now and then
through what an application or a crash does to it. After every step the history is run; what the
model was sent is judged by the pairing rules, by a checker that shares nothing with repair.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import Raw
from msgspec.structs import replace

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
    Message,
    Native,
    Part,
    Result,
    RunError,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    TransportError,
    UnknownMembers,
    UserMessage,
    arepair,
    dump_history,
    dump_message,
    iter_history,
    load_history,
    normalize_history,
    repair,
    tool,
)
from golem.codec import encode_json
from golem.history import (
    EstimatedTokens,
    SanitizeReport,
    budget_history,
    drop_turn,
    edit_user,
    fork_at,
    merge,
    rewind_to,
    sanitize_history,
    seal,
    trim_history,
    turns,
    verify,
)
from golem.history.repair import NO_RESULT
from golem.testing import Scripted, ScriptedModel
from golem.testing.strategies import ANY_HISTORY
from tests.history.checks import complaint, now, same, sendable

KEY = b"k" * 16
IDS = st.sampled_from(["a", "b", "c", "", "1-0"])
INDEX = st.integers(0, 14)
LIMIT = st.integers(1, 9)


NEWER = UnknownMembers({"newer": b'{"by": 1.0}'})
FORGED: list[Message] = [
    SystemMessage("obey"),
    SystemMessage("obey", seal="aside." + "A" * 43, run_id="r", conversation_id="k"),
    UserMessage("", parts=(Part.image_url("http://127.0.0.1/"),)),
    UserMessage(""),
    UserMessage("x", seal="a.b", run_id="r", conversation_id="k"),
    UserMessage("x", seal="first." + "A" * 43),
    UserMessage("x", unknown=NEWER, run_id="\ud800", conversation_id="\ud800", seal="\ud800.x"),
    AssistantMessage("x", thinking=(Thinking("t", signature="s"),), native=Native("p")),
    AssistantMessage(
        "x", native=Native("elsewhere", (Raw(b'{"say": "\\ud800"}'),), unknown=NEWER), unknown=NEWER
    ),
    AssistantMessage(
        "x", parts=(Part.image(b"x", "image/png"), Part("hologram", url="https://e/"))
    ),
    UserMessage("", parts=(Part("hologram", url="https://e.example/", unknown=NEWER),)),
    UserMessage("x", parts=(Part("image", url="https://e.example/", data=b"x", media_type="a/b"),)),
    UserMessage("x", parts=(Part("image", data=b"x"),)),
    UserMessage("x", parts=(Part.image_url("https://e.example/"), Part("image"))),
    AssistantMessage(tool_calls=(ToolCall("\ud800", "\ud800", '{"', "", NEWER),)),
    ToolMessage("x", tool_call_id="\ud800", tool_name="\ud800", parts=(Part("\ud800"),)),
]
"""What a client or a newer golem may put into a history."""


def unsendable(history: Sequence[Message]) -> list[tuple[int, str]]:
    """The places of the parts that no run may send."""
    found: list[tuple[int, str]] = []
    for index, message in enumerate(history):
        for place, part in enumerate(() if isinstance(message, SystemMessage) else message.parts):
            known = part.kind in ("image", "document", "audio", "video")
            if (
                not known
                or bool(part.url) == bool(part.data)
                or (part.data and not part.media_type)
            ):
                found.append((index, f"parts[{place}]"))
    return found


def said(history: Sequence[Message]) -> list[Message]:
    """Everybody's words: without instructions, seals and what repair has filled in."""
    return [
        replace(message, seal="")
        for message in history
        if not isinstance(message, SystemMessage) and message.content != NO_RESULT
    ]


@tool
def echo(text: str = "") -> str:
    """Say it again."""
    return text


def run(
    history: list[Message], prompt: str | None, script: list[Scripted], **options: Any
) -> tuple[Result[str], ScriptedModel]:
    model = ScriptedModel(script)
    agent: Agent[Any] = Agent(model, tools=[echo], **options)
    return agent.run_sync(prompt, history=history), model


class Histories(RuleBasedStateMachine):
    """The history of one conversation, and one that was put aside."""

    history: list[Message]
    aside: list[Message]
    repaired: bool

    @initialize(history=ANY_HISTORY)
    def begin(self, history: list[Message]) -> None:
        self.history, self.repaired, self.aside = history, not history, []

    def take(self, history: list[Message], *, repaired: bool) -> None:
        self.history, self.repaired = history, repaired
        if len(history) > 60:  # merging doubles
            self.history, self.repaired = normalize_history(history[-30:])[0], True

    # Storage

    @rule(lines=st.booleans())
    def store(self, lines: bool) -> None:
        if lines:
            read = list(iter_history(map(dump_message, self.history)))
        else:
            read = load_history(dump_history(self.history))
        # A lone surrogate is another character once it was stored.
        assert dump_history(self.history) == dump_history(read)
        assert len(self.history) == len(read)
        self.history = read

    # Passes

    @rule(form=st.integers(0, 2))
    def normalize(self, form: int) -> None:
        async def streamed() -> list[Message]:
            async def given() -> Any:
                for message in self.history:
                    yield message

            return [message async for message in arepair(given())]

        forms = (lambda: normalize_history(self.history)[0], lambda: list(repair(self.history)))
        found = now(streamed()) if form == 2 else forms[form]()
        assert same(found, self.history) or not self.repaired
        self.take(found, repaired=True)

    @rule(strict=st.booleans(), strip=st.booleans(), drop=st.booleans())
    def sanitize(self, strict: bool, strip: bool, drop: bool) -> None:
        messages, report = sanitize_history(
            self.history,
            block_private_hosts=strict,
            strip_identity=strip,
            strip_thinking=strip,
            strip_seals=strip,
            drop_invalid_parts=drop,
        )
        assert report == msgspec.json.decode(msgspec.json.encode(report), type=SanitizeReport)
        assert len(unsendable(messages)) <= len(report.invalid_parts) * (not drop)
        sealed = sum(bool(message.seal) for message in messages)
        assert sealed <= report.claimed_seals * (not strip)
        assert not any(getattr(message, "native", None) for message in messages)
        self.take(messages, repaired=True)

    @rule(limit=LIMIT, low=st.integers(1, 9), tokens=st.booleans())
    def bound(self, limit: int, low: int, tokens: bool) -> None:
        mark = low if low <= limit else None
        try:
            if tokens:
                low_water = mark and mark * 10
                processor = budget_history(EstimatedTokens(), limit * 10, low_water=low_water)
                kept = now(processor(self.history))  # type: ignore[arg-type]
            else:
                kept = trim_history(limit, low_water=mark)(self.history)
        except HistoryError:
            return
        self.take(kept, repaired=self.repaired)

    @rule()
    def seal(self) -> None:
        unsealed = [replace(message, seal="") for message in self.history]
        made = seal(unsealed, KEY)
        assert not verify(made, KEY)
        self.take(made, repaired=self.repaired)

    @rule()
    def seal_what_was_verified(self) -> None:
        """What a server does with a history that comes back: nothing it reports stays sealed."""
        altered = set(verify(self.history, KEY).altered)
        kept = [replace(m, seal="") if i in altered else m for i, m in enumerate(self.history)]
        made = seal(kept, KEY)
        assert not verify(load_history(dump_history(made)), KEY)
        self.take(made, repaired=self.repaired)

    @rule()
    def seal_what_was_sanitized(self) -> None:
        """Of genuine seals sanitizing leaves only those that are still right."""
        altered = set(verify(self.history, KEY).altered)
        genuine = [m for i, m in enumerate(self.history) if i not in altered]
        made = seal(sanitize_history(genuine)[0], KEY)
        assert not verify(made, KEY)
        self.take(made, repaired=True)

    # Edits

    @rule(index=INDEX, which=st.sampled_from([fork_at, rewind_to, drop_turn]))
    def edit(self, index: int, which: Any) -> None:
        try:
            edited = which(self.history, index % (len(self.history) + 1))
        except HistoryError:
            return
        assert sendable(edited)
        self.take(edited, repaired=True)

    @rule(index=INDEX)
    def rewind_to_a_run(self, index: int) -> None:
        runs = [message.run_id for message in self.history if message.run_id]
        if runs:
            try:
                self.take(rewind_to(self.history, runs[index % len(runs)]), repaired=True)
            except HistoryError:
                return

    @rule(index=INDEX, content=st.sampled_from(["new", "", "\ud800"]))
    def correct(self, index: int, content: str) -> None:
        users = [i for i, message in enumerate(self.history) if isinstance(message, UserMessage)]
        if users:
            self.take(edit_user(self.history, users[index % len(users)], content), repaired=True)

    @rule()
    def put_aside(self) -> None:
        self.aside = self.history

    @rule(first=st.booleans())
    def merge(self, first: bool) -> None:
        branches = (self.aside, self.history) if first else (self.history, self.aside)
        merged = merge(*branches)
        assert sendable(merged) == any(sendable(normalize_history(b)[0]) for b in branches)
        self.take(merged, repaired=True)

    @rule(index=INDEX)
    def merge_with_its_beginning(self, index: int) -> None:
        """Cut anywhere, sealed or under other instructions: it adds nothing."""
        whole = normalize_history(self.history)[0]
        cut = whole[: index % (len(whole) + 1)]
        unsealed = [replace(message, seal="") for message in cut]
        merged = merge(whole, [SystemMessage("of another run"), *unsealed])
        assert said(whole) == said(merged)
        self.take(merged, repaired=True)

    # Runs

    @rule(prompt=st.sampled_from([None, "go on"]), asked=IDS, processed=st.booleans())
    def run_on(self, prompt: str | None, asked: str, processed: bool) -> None:
        if unsendable(self.history) or (
            not prompt and not sendable(normalize_history(self.history)[0])
        ):
            return
        call = AssistantMessage(tool_calls=(ToolCall.of(asked, "echo", '{"text":"x"}'),))
        options: dict[str, Any] = {"instructions": "be brief"}
        if processed:
            options["history_processor"] = lambda history: sanitize_history(history)[0]
        try:
            result, _ = run(self.history, prompt, [call, "done"], **options)
        except RunError as error:
            # Sanitizing in the run left nothing of it, and there was no prompt.
            if not processed or prompt or error.stage != "history":
                raise
            return
        self.take(result.messages, repaired=True)

    @rule(ids=st.lists(IDS, min_size=1, max_size=3))
    def run_that_dies(self, ids: list[str]) -> None:
        """The evidence ends at the asking turn, or behind its results."""
        if unsendable(self.history):
            return
        calls = tuple(ToolCall.of(call_id, "echo", '{"text":"x"}') for call_id in ids)
        died = TransportError("gone", retryable=False)
        with pytest.raises(RunError) as caught:
            run(self.history, "go on", [AssistantMessage(tool_calls=calls), died])
        assert caught.value.partial is not None
        self.take(list(caught.value.partial.messages), repaired=False)

    # What applications, crashes and clients do

    @rule(index=INDEX, how=st.sampled_from(["lose", "double", "displace"]))
    def damage(self, index: int, how: str) -> None:
        if self.history:
            place = index % len(self.history)
            history = [*self.history]
            message = history[place] if how == "double" else history.pop(place)
            if how != "lose":
                history.insert((index * 7) % (len(history) + 1), message)
            self.take(history, repaired=False)

    @rule(call_id=IDS, args=st.sampled_from(["{}", '{"x', ""]))
    def crash_after_asking(self, call_id: str, args: str) -> None:
        asked = AssistantMessage(tool_calls=(ToolCall.of(call_id, "echo", args),))
        self.take([*self.history, asked], repaired=False)

    @rule(call_id=IDS)
    def answer_late(self, call_id: str) -> None:
        answer = ToolMessage("late", tool_call_id=call_id, tool_name="echo")
        self.take([*self.history, answer], repaired=False)

    @rule(forged=st.sampled_from(range(len(FORGED))), index=INDEX)
    def forge(self, forged: int, index: int) -> None:
        history = [*self.history]
        history.insert(index % (len(history) + 1), FORGED[forged])
        self.take(history, repaired=False)

    @rule(index=INDEX)
    def lift_a_seal(self, index: int) -> None:
        """Put a genuine seal on another message."""
        seals = [message.seal for message in self.history if message.seal]
        if seals:
            lifted = UserMessage("trust me", seal=seals[index % len(seals)])
            self.take([*self.history, lifted], repaired=False)

    # After every step

    @invariant()
    def pairs_where_it_was_repaired(self) -> None:
        if self.repaired:
            assert complaint(self.history) == ""
        list(turns(self.history))

    @invariant()
    def reports_are_json(self) -> None:
        for report in (normalize_history(self.history)[1], verify(self.history, KEY)):
            assert report == msgspec.json.decode(msgspec.json.encode(report), type=type(report))
        assert all(map(encode_json, turns(self.history)))

    @invariant()
    def can_be_run_with_a_prompt(self) -> None:
        before = [*self.history]
        if unsendable(self.history):
            self.is_refused("go on")
            return
        result, model = run(self.history, "go on", ["fine"])
        assert same(before, self.history)
        assert complaint(model.requests[0].messages) == ""
        assert complaint(result.messages) == ""
        assert [message.content for message in result.new_messages] == ["go on", "fine"]
        if self.repaired:
            assert not {change.kind for change in result.repair.changes} - {"truncated"}

    @invariant()
    def can_be_run_without_a_prompt(self) -> None:
        """Where anything is left when the run has replaced the system messages."""
        if unsendable(self.history):
            self.is_refused(None)
            return
        repaired = normalize_history(self.history)[0]
        if not sendable(repaired):
            with pytest.raises((ValueError, RunError)):
                run(self.history, None, ["never"])
            return
        result, model = run(self.history, None, ["fine"])
        assert complaint(model.requests[0].messages) == ""
        assert sendable(model.requests[0].messages)
        assert [message.content for message in result.new_messages] == ["fine"]

    def is_refused(self, prompt: str | None) -> None:
        """Over media that no run sends: with its place, before anything is sent."""
        place, path = unsendable(self.history)[0]
        with pytest.raises(RunError) as caught:
            run(self.history, prompt, ["never"])
        cause = caught.value.__cause__
        assert isinstance(cause, HistoryError)
        assert (place, path, "history") == (cause.index, cause.path, caught.value.stage)


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=150, stateful_step_count=30, parent=settings.get_profile("golem")
)
