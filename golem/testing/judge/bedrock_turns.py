"""What Converse refuses about the turns of a request: order, pairs, what stands together. Pure.

The rules are those of §1.0 (the column of Bedrock) and §1.5 of the wire formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import Any, Final, NamedTuple

from golem.testing.judge.bedrock_blocks import CALL, REASONING, RESULT, kind_of, own_use
from golem.testing.judge.bedrock_families import FamilyRules
from golem.testing.judge.bedrock_words import Findings
from golem.testing.judge.findings import JSON, elements, members

MOST_IMAGES: Final = 20
MOST_DOCUMENTS: Final = 5
_ALWAYS_BESIDE: Final = frozenset({RESULT, "cachePoint", "guardContent"})


class Turn(NamedTuple):
    """A message: where it stands, whose it is, its blocks."""

    place: str
    role: str
    blocks: list[Any]

    @property
    def kinds(self) -> list[str]:
        """The kinds of its blocks."""
        return [kind_of(block) for block in self.blocks]

    def ids(self, kind: str) -> list[str]:
        """The ids of its calls or results, without those of the service's own tools."""
        found = (members(members(block).get(kind)) for block in self.blocks if not own_use(block))
        return [str(value.get("toolUseId")) for value in found if value]


def turns_of(messages: Sequence[object]) -> list[Turn]:
    """The messages without instructions between them and what is no message."""
    turns: list[Turn] = []
    for index, message in enumerate(map(members, messages)):
        if message.get("role") in ("user", "assistant"):
            content = elements(message.get("content"))
            turns.append(Turn(f"messages.{index}", message["role"], content))
    return turns


def judge_turns(
    turns: list[Turn],
    family: FamilyRules,
    *,
    budget: bool,
    made_with: Mapping[str, str],
    own_thinking: bool,
    findings: Findings,
) -> None:
    """Everything that takes more than one block to see; `budget`: thinking has one."""
    _judge_order(turns, family, findings)
    for index, turn in enumerate(turns):
        before = turns[index - 1] if index else None
        after = turns[index + 1] if index + 1 < len(turns) else None
        if turn.role == "assistant":
            _judge_answered(turn, after, findings)
            _judge_assistant(turn, findings)
        else:
            _judge_results(turn, before, findings)
            _judge_together(turn, family, findings)
    if budget:
        _judge_budget(turns, findings)
    _judge_signatures(turns, made_with, own_thinking, findings)


# --- order


def _judge_order(turns: list[Turn], family: FamilyRules, findings: Findings) -> None:
    if turns and turns[0].role != "user" and family.user_first:
        text = (
            "A conversation must start with a user message. Try again with a conversation that"
            " starts with a user message."
        )
        findings.add("user_first", turns[0].place, text)
    if turns and turns[-1].role != "user":
        text = (
            "This model does not support assistant message prefill. The conversation must end with"
            " a user message."
        )
        findings.add("prefill", turns[-1].place, text)
    for one, two in pairwise(turns):
        if one.role == two.role and family.alternates:
            text = (
                "A conversation must alternate between user and assistant roles. Make sure the"
                " conversation alternates between user and assistant roles and try again."
            )
            findings.add("alternation", two.place, text)


# --- calls and results


def _judge_answered(turn: Turn, after: Turn | None, findings: Findings) -> None:
    asked = turn.ids(CALL)
    if len(set(asked)) != len(asked):
        text = f"The toolUse blocks at {turn.place}.content contain duplicate Ids."
        findings.add("repeated_id", turn.place, text)
    said = after.ids(RESULT) if after is not None else []
    lost = [call_id for call_id in asked if call_id not in said]
    if lost:
        place = after.place if after is not None else turn.place
        text = f"Expected toolResult blocks at {place}.content for the following Ids: "
        findings.add("unanswered_call", turn.place, text + ", ".join(lost))


def _judge_results(turn: Turn, before: Turn | None, findings: Findings) -> None:
    asked = before.ids(CALL) if before is not None else []
    said = turn.ids(RESULT)
    if len(said) > len(set(asked)) or len(set(said)) != len(said):
        text = (
            f"The number of toolResult blocks at {turn.place}.content exceeds the number of toolUse"
            " blocks of previous turn."
        )
        findings.add("orphan_result", turn.place, text)
    elif strange := [call_id for call_id in said if call_id not in asked]:
        text = f"Unexpected toolResult blocks at {turn.place}.content for the following Ids: "
        findings.add("orphan_result", turn.place, text + ", ".join(strange))
    first = list(takewhile(lambda kind: kind == RESULT, turn.kinds))
    if len(first) != len(said):
        text = f"The toolResult blocks at {turn.place}.content must stand before other blocks."
        findings.add("result_order", turn.place, text)


def _judge_assistant(turn: Turn, findings: Findings) -> None:
    if turn.kinds and turn.kinds[-1] == REASONING:
        text = f"{turn.place}: The final block in an assistant message cannot be `thinking`."
        findings.add("last_thinking", turn.place, text)
    uses = [_use(block) for block in turn.blocks if own_use(block)]
    results = [
        str(members(b[RESULT]).get("toolUseId")) for b in turn.blocks if kind_of(b) == RESULT
    ]
    if sorted(uses) != sorted(results) or len(set(uses)) != len(uses):
        text = f"The toolUse and toolResult blocks of server tools at {turn.place}.content differ."
        findings.add("server_pairing", turn.place, text)


def _use(block: JSON) -> str:
    return str(members(block[CALL]).get("toolUseId"))


# --- what stands in one message


def _judge_together(turn: Turn, family: FamilyRules, findings: Findings) -> None:
    kinds = turn.kinds
    if RESULT in kinds:
        for kind in sorted(set(kinds) - family.beside_results - _ALWAYS_BESIDE):
            text = (
                f"This model doesn't support the {kind} content block beside toolResult blocks at"
                f" {turn.place}.content."
            )
            findings.add("beside_results", turn.place, text)
    if "document" in kinds and "text" not in kinds:
        text = (
            f"The message at {turn.place} holds a document without a text. Add a text block and try"
            " again."
        )
        findings.add("document_text", turn.place, text)
    for kind, most in (("image", MOST_IMAGES), ("document", MOST_DOCUMENTS)):
        if kinds.count(kind) > most:
            text = f"The message at {turn.place} holds more than {most} {kind} blocks."
            findings.add("many_media", turn.place, text)


# --- thinking


def _judge_budget(turns: list[Turn], findings: Findings) -> None:
    if len(turns) < 2 or RESULT not in turns[-1].kinds[:1]:
        return
    first = next(iter(turns[-2].kinds), "")
    if first != REASONING:
        text = (
            f"{turns[-2].place}.content.0.type: Expected `thinking` or `redacted_thinking`, but"
            f" found `{first}`. When `thinking` is enabled, a final `assistant` message must start"
            " with a thinking block."
        )
        findings.add("first_thinking", turns[-2].place, text)


def thoughts_of(content: Sequence[object]) -> Mapping[str, str]:
    """From the proof of each thinking block in an answer to all of its thinking, as JSON."""
    found = list(_proofs(content))
    return {proof: json.dumps(found) for proof, _ in found}


def _proofs(content: Sequence[object]) -> Iterable[tuple[str, str]]:
    for block in content:
        if kind_of(block) == REASONING:
            value = members(members(block)[REASONING])
            readable = members(value.get("reasoningText"))
            proof = value.get("redactedContent") or readable.get("signature")
            yield str(proof), str(readable.get("text", ""))


def _judge_signatures(
    turns: list[Turn], made_with: Mapping[str, str], own_thinking: bool, findings: Findings
) -> None:
    for turn in turns:
        for proof, text in _proofs(turn.blocks if turn.role == "assistant" else ()):
            whole = made_with.get(proof)
            fits = not own_thinking if whole is None else [proof, text] in json.loads(whole)
            if not fits:
                words = f"{turn.place}.content: Invalid `signature` in `thinking` block"
                findings.add("signature", turn.place, words)
