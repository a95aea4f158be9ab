"""A model's answer as a run may take it: whole, storable, and without lone surrogates. Pure.

Whoever writes a model may put anything into an answer: structs do not check it. What is wrong is
named here, before it becomes part of a conversation.
"""

from __future__ import annotations

from typing import Final, get_args

from msgspec.structs import astuple, replace

from golem.codec import dump_message, load_message
from golem.errors import HistoryError, ProtocolError
from golem.faults import check
from golem.messages import AssistantMessage
from golem.model import Details, FinishReason, Response
from golem.rawjson import clean_text
from golem.usage import Usage

_REASONS: Final = frozenset(get_args(FinishReason))
_NUMBERS: Final[frozenset[type]] = frozenset({int})
_TEXTS: Final[frozenset[type]] = frozenset({str})


def checked(answer: object) -> Response:
    """A model's answer, if it is one that every later run can send again; without surrogates.

    Raises ProtocolError, saying what is wrong with it.
    """
    message: object = answer.message if isinstance(answer, Response) else None
    if not isinstance(answer, Response) or not isinstance(message, AssistantMessage):
        raise ProtocolError("the model's answer is no Response with an AssistantMessage")
    if wrong := _wrong_in(answer):
        raise ProtocolError(f"the model's answer: {wrong}")
    texts = _texts(message, answer.details)
    if all(map(str.isascii, texts)) or all(clean_text(text) is text for text in texts):
        return answer
    details = Details(*map(clean_text, astuple(answer.details)))
    return replace(answer, message=load_message(dump_message(message)), details=details)


def _wrong_in(answer: Response) -> str:
    """What no event and no history could carry, in words; empty where it is sound."""
    try:
        check([answer.message])  # a few comparisons where nothing is wrong
    except HistoryError as fault:
        return f"{fault.path}: {fault.reason}" if fault.path else fault.reason
    for part in answer.message.parts:
        try:
            part.validate()
        except ValueError as error:
            return str(error)
    if answer.finish_reason not in _REASONS:
        return f"unknown finish reason {answer.finish_reason!r}"
    usage, details = answer.usage, answer.details
    if not _is_all(usage, Usage, _NUMBERS):
        return f"usage has to be a Usage of whole numbers, not {usage!r}"
    if not _is_all(details, Details, _TEXTS):
        return f"details have to be Details of texts, not {details!r}"
    return ""


def _is_all(struct: object, kind: type[Usage | Details], plain: frozenset[type]) -> bool:
    """Whether it is of that kind, with members of plain types, or of subclasses of these."""
    if not isinstance(struct, kind):
        return False
    members = astuple(struct)
    return plain.issuperset(map(type, members)) or all(
        isinstance(member, tuple(plain)) for member in members
    )


def _texts(message: AssistantMessage, details: Details) -> list[str]:
    """The texts that a model gave: where surrogates may come in (contract §1).

    Not the arguments of calls: a call lets none in when it is made.
    """
    texts = [message.content, *astuple(details)]
    texts += [thought.text for thought in message.thinking]
    for call in message.tool_calls:
        texts += (call.id, call.name)
    return texts
