"""Runs of a conversation as Hypothesis draws them: what the model says, and how the run goes.

A plan is a value: it can be played on either backend, streamed or not, as often as one likes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st
from msgspec.structs import replace

from golem import (
    APIError,
    Approval,
    AssistantMessage,
    Thinking,
    Timeouts,
    ToolCall,
    TransportError,
    Usage,
    UsageLimits,
)
from golem._run.resume import Unresolved
from golem._run.rules import SayWhen, StopWhen
from golem.model import Details, Response
from golem.testing import Fragments, Hang, Scripted, cut_args, dies, fragments, hangs

Kind = Literal["run", "read", "leave", "stop", "stopped", "scope", "native"]


@dataclass(frozen=True)
class Form:
    """How the run is carried out, and what strikes it.

    ``run``; ``read`` to the end; ``leave`` at an event (-1: before any); ``stop`` by the reader at
    an event, or ``stopped`` by another task then; cancelled at a suspension by a ``scope`` or
    ``native``ly.
    """

    kind: Kind
    at: int = 0
    streamed: bool = True
    when: StopWhen = "now"
    within: float | None = None
    saying: tuple[tuple[int, SayWhen], ...] = ()
    """At which events the reader enqueues something."""


@dataclass(frozen=True)
class Plan:
    """One run."""

    script: list[Scripted]
    form: Form
    prompt: str
    instructions: str
    output: tuple[Any, Any]
    output_retries: int
    parallel: bool
    max_turns: int
    limits: UsageLimits
    timeout: Timeouts
    processor: Literal["", "trims", "breaks"]
    journal_fails_at: int | None
    observer_fails: bool
    forks: bool
    other_model: bool

    @property
    def repeatable(self) -> bool:
        """Whether it goes the same way plain and streamed: nothing strikes it but its script."""
        dying = [i for i in self.script if isinstance(i, Fragments) and len(i.items) > 1]
        asked = [i for i in map(_message, self.script) if i is not None]
        steered = {call.name for m in asked for call in m.tool_calls} & {"says", "ends", "hang"}
        return not (dying or steered or self.timeout != Timeouts() or self.form.saying)


@dataclass(frozen=True)
class Answers:
    """What somebody says to the pending calls, in call order, and to what remains."""

    said: tuple[bool | Approval | str, ...]
    unresolved: Unresolved
    odd: bool
    """Whether a call is answered that nobody asked about."""


def _message(item: Scripted) -> AssistantMessage | None:
    if isinstance(item, Response):
        return item.message
    return item if isinstance(item, AssistantMessage) else None


IDS = st.sampled_from(["a", "a", "b", "b", "c", "d", "e", ""])
NAMES = st.sampled_from(
    ["work", "work", "threaded", "alone", "fussy", "ask", "guarded", "job", "fail"]
)
ODD = st.sampled_from(
    ["stop", "boom", "hang", "hides", "converts", "says", "ends", "nope", "final_result", "int"]
)
ARGS = st.sampled_from(['{"n":"x"}'] * 9 + ['{"n":"y"}'] * 7 + ["{}", '{"n":', '{"n":5}', "5"])
TEXTS = st.sampled_from(["", "7", '{"result": 7}', '{"result": "x"}', "a longer answer", "\ud800"])
ERRORS: st.SearchStrategy[Exception] = st.sampled_from(
    [TransportError("reset"), OSError("mine"), APIError("no", status=400)]
)


@st.composite
def messages(draw: st.DrawFn) -> AssistantMessage:
    """What a model says: text, thinking, calls."""
    names = draw(st.sampled_from([NAMES, NAMES | ODD]))
    asked = draw(st.lists(st.tuples(IDS, names, ARGS), max_size=4))
    thought = draw(st.sampled_from([(), (), (Thinking("hm"),)]))
    calls = tuple(ToolCall.of(*call) for call in asked)
    return AssistantMessage(draw(TEXTS), tool_calls=calls, thinking=thought)


@st.composite
def answers(draw: st.DrawFn) -> Scripted:
    """One answer of a model, whole or not."""
    message = draw(messages())
    pieces = len(fragments(message))
    match draw(
        st.sampled_from(["whole"] * 12 + ["response"] * 3 + ["cut", "dies", "hangs", "error"])
    ):
        case "response":
            usage = draw(st.sampled_from([Usage(), Usage(2, 1), Usage(9, 5, 3)]))
            reason = draw(st.sampled_from(["stop", "length", "tool_call", "content_filter"]))
            details = Details(finish_reason=draw(st.sampled_from(["", "pause_turn"])))
            return Response(message, usage, reason, details)
        case "cut" if message.tool_calls:
            return cut_args(message, draw(st.integers(0, 8)))
        case "dies":
            return dies(message, draw(st.integers(0, pieces)), draw(ERRORS))
        case "hangs":
            return hangs(message, draw(st.integers(0, pieces)))
        case "error":
            return draw(ERRORS)
        case _:
            return message


PLACES = st.integers(0, 20)
STOPS: st.SearchStrategy[StopWhen] = st.sampled_from(["now", "after_tools", "after_model"])
SAYING: st.SearchStrategy[tuple[tuple[int, SayWhen], ...]] = st.lists(
    st.tuples(PLACES, st.sampled_from(["next_turn", "idle"])), max_size=2
).map(tuple)
WITHIN = st.sampled_from([None, None, 0.0, 0.002])
QUIET: st.SearchStrategy[tuple[tuple[int, SayWhen], ...]] = st.just(())
FORMS = st.one_of(
    st.just(Form("run", streamed=False)),
    st.builds(Form, st.just("read"), saying=QUIET | SAYING),
    st.builds(Form, st.just("leave"), st.just(-1) | PLACES, saying=QUIET | SAYING),
    st.builds(
        Form,
        st.sampled_from(["stop", "stopped"]),
        PLACES,
        when=STOPS,
        within=WITHIN,
        saying=QUIET | SAYING,
    ),
    st.builds(Form, st.sampled_from(["scope", "native"]), st.integers(0, 60), st.booleans()),
)
TIMEOUTS = st.sampled_from(
    [Timeouts()] * 6
    + [
        Timeouts(total=0.004),
        Timeouts(turn=0.003),
        Timeouts(first_token=0.002, between_tokens=0.002),
        Timeouts(tool=0.001),
    ]
)


def _patient(plan: Plan) -> Plan:
    """The plan, with a bound on how long it waits for a model that hangs."""
    if not any(isinstance(i, Fragments) and isinstance(i.items[-1], Hang) for i in plan.script):
        return plan
    given = plan.timeout
    bounded = replace(given, turn=given.turn or 0.003)
    return Plan(**{**plan.__dict__, "timeout": bounded})


_OTHERWISE: dict[str, st.SearchStrategy[Any]] = {
    "prompt": st.sampled_from(["p", "p", "p", ""]),
    "instructions": st.sampled_from(["", "i"]),
    "output": st.sampled_from(
        [(str, "tool")] * 4
        + [(int, "tool"), ([int, str], "tool"), (int, "prompt"), (int, "native")]
    ),
    "output_retries": st.integers(0, 2),
    "parallel": st.sampled_from([True, True, False]),
    "max_turns": st.integers(1, 8),
    "limits": st.sampled_from(
        [UsageLimits()] * 6
        + [UsageLimits(tool_calls=2), UsageLimits(requests=2), UsageLimits(output_tokens=4)]
    ),
    "timeout": TIMEOUTS,
    "processor": st.sampled_from([""] * 20 + ["trims", "trims", "breaks"]),
    "journal_fails_at": st.sampled_from([None] * 20 + [0, 1, 2, 3, 5]),
    "observer_fails": st.booleans(),
    "forks": st.booleans(),
    "other_model": st.booleans(),
}


def plans(
    scripts: st.SearchStrategy[list[Scripted]], forms: st.SearchStrategy[Form]
) -> st.SearchStrategy[Plan]:
    """Runs with such scripts, in such forms."""
    return st.builds(Plan, script=scripts, form=forms, **_OTHERWISE).map(_patient)


WAITING = st.lists(
    st.tuples(
        IDS,
        st.sampled_from(["ask", "guarded", "job", "ask", "guarded", "job", "work", "fail"]),
        st.sampled_from(['{"n":"x"}', '{"n":"y"}']),
    ),
    min_size=1,
    max_size=4,
).map(lambda calls: [AssistantMessage(tool_calls=tuple(ToolCall.of(*call) for call in calls))])
PLANS = plans(st.lists(answers(), min_size=1, max_size=5), FORMS)
PAUSING = plans(
    st.builds(list.__add__, st.just([]) | st.lists(answers(), max_size=2), WAITING),
    st.sampled_from([Form("run", streamed=False), Form("read")]),
)
ANSWERS: st.SearchStrategy[Answers] = st.builds(
    Answers,
    said=st.lists(
        st.sampled_from([True, True, True, False, Approval(False, "no"), "given", "\ud800"]),
        min_size=2,
        max_size=5,
    ).map(tuple),
    unresolved=st.sampled_from(["error", "interrupt"]),
    odd=st.sampled_from([False] * 9 + [True]),
)

Damage = tuple[Literal["drop", "double", "move"], int, int]
"""What happens to the message at a place, and where its copy goes; places wrap around."""

DAMAGES: st.SearchStrategy[list[Damage]] = st.one_of(
    st.just([]),
    st.just([]),
    st.lists(
        st.tuples(
            st.sampled_from(["drop", "double", "move"]), st.integers(0, 40), st.integers(0, 40)
        ),
        min_size=1,
        max_size=3,
    ),
)
