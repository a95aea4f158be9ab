"""Whatever a history went through, the judge of Gemini refuses no run of it.

The machine of `tests.judge.test_always_taken`, with answers of Gemini itself among those of other
servers: every signature it made goes back in its part, or not at all.
"""

from __future__ import annotations

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from golem import AssistantMessage, Thinking, ToolCall
from golem.model import Response
from golem.testing.judge import GeminiProvider, judge_gemini
from tests.adapters.generating import decode, encode
from tests.history.test_always_runnable import unsendable
from tests.judge.test_always_taken import JudgedHistories, sent_by_a_run
from tests.judge.test_gemini_no_refusals import SERVERS

NEW = GeminiProvider("gemini", "gemini-3-flash")
OLD = GeminiProvider("vertex", "gemini-2.5-flash")


class GeminiHistories(JudgedHistories):
    """A conversation that comes by Gemini now and then."""

    signed: dict[str, str]
    """Which part each signature was made for."""

    @initialize()
    def nothing_signed(self) -> None:
        self.signed = {}

    @rule(
        provider=st.sampled_from([NEW, OLD]),
        text=st.sampled_from(["", "so", "\n"]),
        thought=st.booleans(),
        ids=st.lists(st.sampled_from(["", "a", "call_1"]), max_size=2),
        turn=st.integers(0, 3),
    )
    def is_answered_by_gemini(
        self, provider: GeminiProvider, text: str, thought: bool, ids: list[str], turn: int
    ) -> None:
        said = AssistantMessage(
            text,
            thinking=(Thinking("hm"),) if thought else (),
            tool_calls=tuple(ToolCall.of(call_id, "echo", "{}") for call_id in ids),
        )
        answer = provider.answer({"contents": [str(turn)]}, Response(said))
        self.signed |= provider.links(answer)
        message = decode(json.dumps(answer).encode()).message
        self.take([*self.history, message], repaired=False)

    @invariant()
    def gemini_refuses_nothing(self) -> None:
        if unsendable(self.history):
            return  # the run refuses it itself, as another invariant says
        sent = sent_by_a_run(self.history)
        for dialect, name in SERVERS.values():
            body = json.loads(encode(sent, model=name, dialect=dialect))
            assert judge_gemini(body, model=name, dialect=dialect, made_with=self.signed) == []


TestGeminiHistories = GeminiHistories.TestCase
TestGeminiHistories.settings = settings(
    max_examples=20, stateful_step_count=15, parent=settings.get_profile("golem")
)
