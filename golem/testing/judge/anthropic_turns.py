"""What Messages refuses about the turns of a request: order, pairs, thinking. Pure.

Neighbors of one role are one turn, as the API takes them. The rules are those of §1.0 (the column
of Anthropic) and §1.3 of the wire formats; each says which.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from golem.testing.judge.anthropic_blocks import (
    CALL,
    RESULT,
    THOUGHTS,
    server_result,
    server_use,
)
from golem.testing.judge.anthropic_words import Findings
from golem.testing.judge.findings import JSON, elements, members

_MODIFIED: Final = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
    " These blocks must remain as they were in the original response."
)


class Placed(NamedTuple):
    """A block and where it stands."""

    place: str
    block: JSON

    @property
    def kind(self) -> str:
        """Its type, empty for none."""
        return str(self.block.get("type") or "")

    def word(self, name: str) -> str:
        """The text under `name`, empty where there is none."""
        value = self.block.get(name)
        return value if isinstance(value, str) else ""


class Turn(NamedTuple):
    """Everything that one side says before the other does; `place` is its first message's."""

    role: str
    place: str
    blocks: list[Placed]


def turns_of(messages: Sequence[object]) -> list[Turn]:
    """The turns of the messages, without instructions between them and what is no message."""
    turns: list[Turn] = []
    for index, message in enumerate(map(members, messages)):
        role, place = message.get("role"), f"messages.{index}"
        if role not in ("user", "assistant"):
            continue
        if not turns or turns[-1].role != role:
            turns.append(Turn(str(role), place, []))
        turns[-1].blocks.extend(_blocks(message.get("content"), place))
    return turns


def _blocks(content: object, place: str) -> list[Placed]:
    if isinstance(content, str):
        return [Placed(f"{place}.content", {"type": "text", "text": content})]
    return [
        Placed(f"{place}.content.{number}", members(block))
        for number, block in enumerate(elements(content))
    ]


def judge_turns(
    turns: list[Turn],
    *,
    thinking: str,
    prefill: bool,
    made_with: Mapping[str, str],
    own_thinking: bool,
    findings: Findings,
) -> None:
    """Everything that takes more than one block to see.

    `thinking` is the request's mode, `made_with` what the provider's answers said of their
    thinking (`thoughts_of`), `own_thinking`: whether all thinking has to be among that.
    """
    _judge_pairs(turns, findings)
    _judge_server_tools(turns, findings)
    _judge_end(turns, prefill, findings)
    _judge_thinking(turns, thinking, findings)
    _judge_signatures(turns, made_with, own_thinking, findings)


def goes_on(turns: list[Turn]) -> Turn | None:
    """The turn of the assistant that the model itself goes on with, if there is one.

    It stands at the end, or only results follow it.
    """
    if turns and turns[-1].role == "assistant":
        return turns[-1]
    if len(turns) > 1 and turns[-1].blocks and turns[-1].blocks[0].kind == RESULT:
        return turns[-2]
    return None


# --- calls and results: §1.0 "every call answered", "orphan result", "text after results"


def _judge_pairs(turns: list[Turn], findings: Findings) -> None:
    seen: set[str] = set()
    for index, turn in enumerate(turns):
        if turn.role == "assistant":
            for call in _calls(turn):
                if call.word("id") in seen:
                    text = "messages: `tool_use` ids must be unique"
                    findings.add("repeated_id", call.place, text, bare=True)
                seen.add(call.word("id"))
            following = turns[index + 1] if index + 1 < len(turns) else None
            _judge_answers(turn, following, findings)
        else:
            _judge_results(turns[index - 1] if index else None, turn, findings)


def _calls(turn: Turn) -> list[Placed]:
    return [placed for placed in turn.blocks if placed.kind == CALL]


def _judge_answers(turn: Turn, following: Turn | None, findings: Findings) -> None:
    first = takewhile(lambda placed: placed.kind == RESULT, following.blocks if following else ())
    answered = {placed.word("tool_use_id") for placed in first}
    open_ids = [call.word("id") for call in _calls(turn) if call.word("id") not in answered]
    if open_ids:
        text = (
            "`tool_use` ids were found without `tool_result` blocks immediately after:"
            f" {', '.join(open_ids)}. Each `tool_use` block must have a corresponding"
            " `tool_result` block in the next message."
        )
        findings.add("unanswered_call", turn.place, text)


def _judge_results(asking: Turn | None, turn: Turn, findings: Findings) -> None:
    asked = {call.word("id") for call in _calls(asking)} if asking else set[str]()
    answered: set[str] = set()
    for placed in turn.blocks:
        if placed.kind != RESULT:
            continue
        call_id = placed.word("tool_use_id")
        if call_id not in asked:
            text = (
                f"unexpected `tool_use_id` found in `tool_result` blocks: {call_id}. Each"
                " `tool_result` block must have a corresponding `tool_use` block in the previous"
                " message."
            )
            findings.add("orphan_result", placed.place, text)
        elif call_id in answered:
            text = (
                "each tool_use must have a single result. Found multiple `tool_result` blocks"
                f" with id: {call_id}"
            )
            findings.add("repeated_result", placed.place, text)
        answered.add(call_id)


# --- what the server's own tools did: §1.3 "server tool blocks", `pause_turn`


def _judge_server_tools(turns: list[Turn], findings: Findings) -> None:
    speaking = goes_on(turns)
    uses: dict[str, Placed] = {}
    waiting: dict[str, bool] = {}
    for turn in turns:
        for placed in turn.blocks if turn.role == "assistant" else ():
            if server_use(placed.block):
                if placed.word("id") in uses:
                    text = "messages: `server_tool_use` ids must be unique"
                    findings.add("repeated_id", placed.place, text, bare=True)
                uses[placed.word("id")] = placed
                waiting[placed.word("id")] = turn is speaking
            elif server_result(placed.block):
                use = placed.word("tool_use_id")
                if use not in waiting:
                    _loose_result(placed, use, findings)
                waiting.pop(use, None)
            elif placed.kind == CALL:
                _judge_caller(placed, uses, findings)
    for use, may_wait in waiting.items():
        if not may_wait:
            name = uses[use].word("name")
            text = (
                f"`{name}` tool use with id `{use}` was found without a corresponding"
                f" `{name}_tool_result` block"
            )
            findings.add("unanswered_use", uses[use].place, text)


def _loose_result(placed: Placed, use: str, findings: Findings) -> None:
    text = (
        f"unexpected `tool_use_id` found in `{placed.kind}` blocks: {use}. Each `{placed.kind}`"
        " block must have a corresponding `server_tool_use` block before it."
    )
    findings.add("orphan_result", placed.place, text)


def _judge_caller(placed: Placed, uses: Mapping[str, Placed], findings: Findings) -> None:
    source = members(placed.block.get("caller")).get("tool_id")
    if source is not None and source not in uses:
        text = f"no `server_tool_use` block with id `{source}` found for the caller"
        findings.add("caller", f"{placed.place}.tool_use.caller", text)


# --- the end: §1.3 "Prefill"


def _judge_end(turns: list[Turn], prefill: bool, findings: Findings) -> None:
    if not turns or turns[-1].role != "assistant":
        return
    last = turns[-1]
    if not prefill and not any(server_use(p.block) or server_result(p.block) for p in last.blocks):
        text = (
            "This model does not support assistant message prefill. The conversation must end"
            " with a user message."
        )
        findings.add("prefill", last.place, text, bare=True)
    if last.blocks and last.blocks[-1].kind == "text":
        words = last.blocks[-1].word("text")
        if words != words.rstrip():
            text = "messages: final assistant content cannot end with trailing whitespace"
            findings.add("trailing_blank", last.blocks[-1].place, text, bare=True)


# --- thinking: §1.3 "Thinking"


def _judge_thinking(turns: list[Turn], thinking: str, findings: Findings) -> None:
    for turn in turns:
        if turn.role == "assistant" and turn.blocks and turn.blocks[-1].kind in THOUGHTS:
            text = "The final block in an assistant message cannot be `thinking`."
            findings.add("last_thinking", turn.place, text)
    speaking = goes_on(turns)
    if speaking is None or not speaking.blocks:
        return
    first = speaking.blocks[0]
    if thinking == "enabled" and first.kind not in THOUGHTS:
        text = (
            f"Expected `thinking` or `redacted_thinking`, but found `{first.kind}`. When"
            " `thinking` is enabled, a final `assistant` message must start with a thinking block"
            " (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )
        findings.add("first_thinking", f"{first.place}.type", text)
    if thinking == "disabled" and speaking is turns[-1]:
        for placed in speaking.blocks:
            if placed.kind in THOUGHTS:
                text = (
                    "When thinking is disabled, an `assistant` message in the final position"
                    f" cannot contain `{placed.kind}`."
                )
                findings.add("thinking_off", placed.place, text)


def thoughts_of(content: Sequence[object]) -> Mapping[str, str]:
    """From the proof of each thinking block in an answer to all of its thinking, as JSON."""
    found = [_proof(members(block)) for block in content if members(block).get("type") in THOUGHTS]
    return {proof: json.dumps(found) for proof, _ in found}


def _proof(block: JSON) -> tuple[str, str]:
    """What proves a block's maker, and its text."""
    if block.get("type") == "redacted_thinking":
        return str(block.get("data")), ""
    return str(block.get("signature")), str(block.get("thinking"))


def _judge_signatures(
    turns: list[Turn], made_with: Mapping[str, str], own_thinking: bool, findings: Findings
) -> None:
    answers = [turn for turn in turns if turn.role == "assistant"]
    for turn in answers:
        told: dict[str, list[list[str]]] = {}
        for placed in turn.blocks:
            if placed.kind not in THOUGHTS:
                continue
            proof, text = _proof(placed.block)
            whole = made_with.get(proof)
            if whole is None:
                fits = not own_thinking
            else:
                fits = [proof, text] in json.loads(whole)
                told.setdefault(whole, []).append([proof, text])
            if not fits:
                words = f"Invalid `signature` in `{placed.kind}` block"
                findings.add("signature", placed.place, words)
        for whole, said in told.items() if turn is answers[-1] else ():
            if said != json.loads(whole)[: len(said)]:
                findings.add("modified_thinking", turn.place, _MODIFIED)
