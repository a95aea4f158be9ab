"""Whatever a history went through, no judge refuses a run of it.

The machine of `tests.history.test_always_runnable`, with the ids, names and texts of hostile
histories thrown in; after every step what a run would send is encoded for every server there are
rules for.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from golem import (
    AssistantMessage,
    Message,
    SystemMessage,
    Thinking,
    ToolCall,
    UserMessage,
    dump_history,
    dump_message,
    iter_history,
    load_history,
    normalize_history,
)
from golem.testing.judge import ChatProvider, Provider, ResponsesProvider
from golem.testing.strategies import HOSTILE_HISTORY
from tests.history.checks import sendable
from tests.history.test_always_runnable import Histories, run, unsendable
from tests.judge.judging import SERVERS, answer_of, judged_responses

PROVIDERS: list[Provider] = [ResponsesProvider(), ResponsesProvider("deepseek")]
PROVIDERS += [ChatProvider(name) for name in ("openai", "mistral", "deepseek", "openrouter")]


def sent_by_a_run(history: list[Message]) -> list[Message]:
    """What a run of `history` sends: every other one has no prompt, where it needs none."""
    alone = len(history) % 2 == 1 and sendable(normalize_history(history)[0])
    options = {} if alone else {"instructions": "be brief"}
    _, model = run(history, None if alone else "go on", ["fine"], **options)
    return list(model.requests[0].messages)


class JudgedHistories(Histories):
    """A conversation that goes from server to server."""

    made_with: dict[str, str]
    """Which items of OpenAI's answers have to go back with which reasoning."""

    @initialize()
    def no_answers(self) -> None:
        self.made_with = {}

    @rule(
        provider=st.sampled_from(PROVIDERS),
        text=st.sampled_from(["", "so", "\n"]),
        thought=st.booleans(),
        ids=st.lists(st.sampled_from(["a", "call_1", "abcDEF123"]), max_size=2, unique=True),
        turn=st.integers(0, 3),
    )
    def is_answered(
        self, provider: Provider, text: str, thought: bool, ids: list[str], turn: int
    ) -> None:
        """By a real server: reasoning, encrypted or not, and items as they came."""
        said = AssistantMessage(
            text,
            thinking=(Thinking("hm"),) if thought else (),
            tool_calls=tuple(ToolCall.of(call_id, "echo", "{}") for call_id in ids),
        )
        message, links = answer_of(provider, said, turn)
        if provider is PROVIDERS[0]:
            self.made_with |= links
        self.take([*self.history, message], repaired=False)

    @rule(more=HOSTILE_HISTORY, first=st.booleans())
    def import_from_elsewhere(self, more: list[Message], first: bool) -> None:
        self.take([*more, *self.history] if first else [*self.history, *more], repaired=False)

    @rule(text=st.sampled_from(["", " ", "\ud800", "\x00"]), system=st.booleans())
    def say(self, text: str, system: bool) -> None:
        said = SystemMessage(text) if system else UserMessage(text)
        self.take([*self.history, said], repaired=False)

    @rule(lines=st.booleans())
    def store(self, lines: bool) -> None:
        """Halves of surrogate pairs are replaced on the way, and so two ids may become one."""
        if lines:
            read = list(iter_history(map(dump_message, self.history)))
        else:
            read = load_history(dump_history(self.history))
        self.take(read, repaired=False)

    @invariant()
    def no_judge_refuses_it(self) -> None:
        if unsendable(self.history):
            return  # the run refuses it itself, as another invariant says
        sent = sent_by_a_run(self.history)
        refused = {name: found for name, judged in SERVERS.items() if (found := judged(sent))}
        assert refused == {}
        assert judged_responses(sent, "openai", self.made_with) == []


TestJudgedHistories = JudgedHistories.TestCase
TestJudgedHistories.settings = settings(
    max_examples=30, stateful_step_count=20, parent=settings.get_profile("golem")
)
