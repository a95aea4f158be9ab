"""The way from what the caller supplied to a machine that can start (contract §4.2).

    supplied history
      → history processor   the application's cut or rewrite; once, on exactly what was supplied
      → validation          what is no message, and media that no run may send, is named before
                            anything is paid for
      → answers             of a resumed run: its pending turn is completed as far as known
      → repair              every call answered in its turn, every result asked for
      → system messages out the current instructions govern, never those of a stored history
      → identity            the most recent message *left* names the conversation
      → instructions        may depend on all of the above

Each step stands where it does because the next relies on it: a trimmed message must neither fail
validation nor donate its conversation, and repair must see what the processor has cut.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from golem._run.cancellation import told
from golem._run.commands import RunFailure, describe
from golem._run.ledger import Ledger
from golem._run.machine import Machine
from golem._run.plan import HistoryProcessor, Plan
from golem._run.resume import Resumption, resume
from golem._run.rules import Rules
from golem.context import RunContext
from golem.errors import HistoryError
from golem.faults import checked
from golem.history.repair import normalize_history
from golem.history.report import HistoryRepair
from golem.messages import Message, SystemMessage
from golem.rawjson import clean_text


class Prepared(Struct, frozen=True):
    """A history ready to be sent: without system messages, paired, and what that took."""

    messages: list[Message]
    repair: HistoryRepair
    resumption: Resumption | None = None


async def prepare_history(plan: Plan) -> Prepared:
    """The supplied history, processed, validated and repaired.

    Raises RunFailure (stage ``history``) for a processor that fails and for a history no run may
    send, an empty one without a prompt included.
    """
    try:
        processed = plan.history
        if plan.processor is not None:
            processed = await told(processed_by, plan.processor, processed)
        processed = checked(processed)
        _validate(processed)
        resumption = None
        if plan.deferred is not None:
            processed, resumption = resume(processed, plan.deferred, plan.unresolved)
        repaired, report = normalize_history(processed)
    except Exception as error:
        raise RunFailure("history", describe(error), error) from error
    kept = [message for message in repaired if type(message) is not SystemMessage]
    if plan.prompt is None and not kept:
        raise RunFailure("history", "there is nothing to send: no prompt, and no history is left")
    return Prepared(kept, report, resumption)


def is_new(plan: Plan) -> bool:
    """Whether the run begins a conversation: with a prompt, and no history to be prepared."""
    supplied = plan.history or plan.processor is not None or plan.deferred is not None
    return not supplied and plan.prompt is not None


def donated_conversation(messages: Sequence[Message]) -> str:
    """The conversation of the most recent identified message that is not a system message."""
    for message in reversed(messages):
        # Asked before validation too, when anything may stand in a history.
        named: str = getattr(message, "conversation_id", "")
        if named and not isinstance(message, SystemMessage):
            return named
    return ""


def fixed_instructions(plan: Plan) -> str | None:
    """The instructions where they are the agent's own texts; None where anything makes them."""
    fixed = [text for text in plan.instructions if isinstance(text, str)]
    if len(fixed) < len(plan.instructions) or plan.output_mode == "prompt":
        return None
    return _joined(fixed)


async def resolved_instructions(plan: Plan, context: RunContext[Any]) -> str:
    """The instructions of the run: once per run, static text first.

    Raises RunFailure (stage ``history``) for an instructions function that fails.
    """
    try:
        return await told(_resolve, plan, context)
    except Exception as error:
        raise RunFailure("history", f"instructions: {describe(error)}", error) from error


def start_machine(
    plan: Plan, prepared: Prepared, instructions: str, *, run_id: str, conversation_id: str
) -> Machine:
    """The machine of the run."""
    system = [SystemMessage(instructions)] if instructions else []
    return Machine(
        head=[*system, *prepared.messages],
        prompt=plan.prompt,
        run_id=run_id,
        conversation_id=conversation_id,
        repair=prepared.repair,
        rules=Rules(
            output=plan.output,
            output_tools=plan.output_tools,
            output_retries=plan.output_retries,
            max_turns=plan.max_turns,
        ),
        ledger=Ledger(plan.limits, plan.price),
        resumption=prepared.resumption,
    )


async def processed_by(processor: HistoryProcessor, messages: Iterable[Message]) -> list[Message]:
    """What a processor makes of the messages, in whichever form it gives it, as a list."""
    processed = processor(list(messages))
    if isinstance(processed, AsyncIterable):
        return [message async for message in processed]
    if inspect.isawaitable(processed):
        processed = await processed
    return list(processed)


def _validate(messages: Sequence[Message]) -> None:
    for index, message in enumerate(messages):
        if isinstance(message, SystemMessage) or not message.parts:
            continue
        for position, part in enumerate(message.parts):
            try:
                part.validate()
            except ValueError as error:
                path = f"parts[{position}]"
                raise HistoryError(str(error), index=index, path=path) from error


async def _resolve(plan: Plan, context: RunContext[Any]) -> str:
    fixed = [text for text in plan.instructions if isinstance(text, str)]
    dynamic: list[str] = []
    for function in plan.instructions:
        if isinstance(function, str):
            continue
        text = function(context)
        dynamic.append(_text_or_none(await text if inspect.isawaitable(text) else text))
    asked = plan.output.instructions if plan.output_mode == "prompt" and plan.output.shapes else ""
    return _joined([*fixed, *dynamic, asked])


def _joined(texts: Iterable[str]) -> str:
    return clean_text("\n\n".join(filter(None, texts)))


def _text_or_none(text: object) -> str:
    """What an instructions function gave: text, or None for nothing to add."""
    if text is None:
        return ""
    if not isinstance(text, str):
        raise TypeError(f"a function returned {type(text).__name__}, not str")
    return text
