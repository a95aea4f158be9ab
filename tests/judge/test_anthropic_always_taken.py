"""Whatever a history went through, the judges of Messages and Converse refuse no run of it.

The machine of `tests.history.test_always_runnable`, with answers of both among them; after every
step what a run would send is encoded for each, and held to its rules.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from golem import AssistantMessage, Message, SystemMessage, Thinking, ToolCall, UserMessage
from golem.errors import UnsupportedContentError
from golem.model import Response
from golem.testing.judge import (
    AnthropicProvider,
    BedrockProvider,
    judge_anthropic,
    judge_bedrock,
)
from golem.testing.strategies import HOSTILE_HISTORY
from tests.adapters import conversing, messaging
from tests.adapters.conversing import CLAUDE, LLAMA, NOVA
from tests.history.test_always_runnable import Histories, unsendable
from tests.judge.test_always_taken import sent_by_a_run

MODELS = (CLAUDE, NOVA, LLAMA, "m")
ANTHROPIC, BEDROCK = AnthropicProvider(), BedrockProvider()
MODES: tuple[Any, ...] = (None, {"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024})


class JudgedHistories(Histories):
    """A conversation that goes between Anthropic, the families on Bedrock and others."""

    made_with: dict[str, dict[str, str]]
    """Of each of them, what its answers said of their thinking."""

    @initialize()
    def no_answers(self) -> None:
        self.made_with = {name: {} for name in ("anthropic", *MODELS)}

    @rule(
        name=st.sampled_from(["anthropic", CLAUDE, NOVA]),
        text=st.sampled_from(["", "so", "\n"]),
        thought=st.booleans(),
        ids=st.lists(st.sampled_from(["a", "toolu_1", "s.1:0"]), max_size=2, unique=True),
        turn=st.integers(0, 3),
    )
    def is_answered(self, name: str, text: str, thought: bool, ids: list[str], turn: int) -> None:
        """By a real server: thinking, signed, and calls as they came."""
        said = AssistantMessage(
            text,
            thinking=(Thinking("hm"),) if thought else (),
            tool_calls=tuple(ToolCall.of(call_id, "echo", "{}") for call_id in ids),
        )
        asked = {"turn": f"{name} {turn}"}
        provider = ANTHROPIC if name == "anthropic" else BEDROCK
        body = provider.answer(asked, Response(said))
        data = json.dumps(body).encode()
        if name == "anthropic":
            message = messaging.decode(data).message
        else:
            message = conversing.decode(data, model=name).message
        self.made_with[name].update(provider.links(body))
        self.take([*self.history, message], repaired=False)

    @rule(more=HOSTILE_HISTORY, first=st.booleans())
    def import_from_elsewhere(self, more: list[Message], first: bool) -> None:
        self.take([*more, *self.history] if first else [*self.history, *more], repaired=False)

    @rule(text=st.sampled_from(["", " ", "\ud800", "\x00"]), system=st.booleans())
    def say(self, text: str, system: bool) -> None:
        said = SystemMessage(text) if system else UserMessage(text)
        self.take([*self.history, said], repaired=False)

    @invariant()
    def no_judge_refuses_it(self) -> None:
        if unsendable(self.history):
            return  # the run refuses it itself, as another invariant says
        sent = sent_by_a_run(self.history)
        refused = {name: found for name in self.made_with if (found := self.refusals(name, sent))}
        assert refused == {}

    def refusals(self, name: str, sent: list[Message]) -> list[str]:
        """What the judge of `name` has against a request with these messages."""
        made_with = self.made_with[name]
        try:
            if name == "anthropic":
                bodies = [json.loads(messaging.encode(sent, thinking=mode)) for mode in MODES]
                found = [v for body in bodies for v in judge_anthropic(body, made_with=made_with)]
            else:
                body = json.loads(conversing.encode(sent, model=name))
                wire = quote(name, safe="")
                found = judge_bedrock(body, model=wire, made_with=made_with)
        except UnsupportedContentError:
            return []  # an image by address, which Bedrock does not fetch; it is named elsewhere
        return list(map(str, found))


TestJudgedHistories = JudgedHistories.TestCase
TestJudgedHistories.settings = settings(
    max_examples=30, stateful_step_count=20, parent=settings.get_profile("golem")
)
