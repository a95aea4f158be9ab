"""Whether a history can go to a model as it is, before it does."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from golem.agent import resolve_model
from golem.faults import checked
from golem.history import repair
from golem.messages import Message
from golem.model import Model
from golem.portability import HistoryCheck, check_by


def check_history(history: Iterable[Message], model: Model | str) -> HistoryCheck:
    """What `model`'s adapter would drop, rename, flatten or refuse of `history`. Sends nothing.

    The adapter writes the request that a run would send for the repaired history, and notes what
    it does while it writes, so the report cannot differ from the request. A history is portable
    all the same: what is dropped means nothing to the model, what is renamed is renamed back in
    its answer. Only what is refused stands in the way of a run.

    Args:
        history: messages as they are stored; damage is repaired first, as a run does.
        model: a model, a `golem.FallbackModel` (every finding then says which member it is about)
            or the ``"provider:name"`` of a registered adapter.

    Returns:
        The report, falsy when the history goes out as it is. `unknown` names a model whose
        adapter does not say.

    Raises:
        HistoryError: something in the history is no message, or malformed.
        ValueError, TypeError: there is no such model.
        UnsupportedContentError: one of the model's own settings is refused by its API.
    """
    messages = checked(history)
    repaired = list(repair(messages))
    report = check_by(resolve_model(model), repaired)
    places = _places(messages, repaired)
    found = [
        replace(finding, message_index=places[finding.message_index]) for finding in report.findings
    ]
    found.sort(key=lambda finding: finding.message_index)
    return replace(report, findings=tuple(found))


def _places(given: Sequence[Message], repaired: Sequence[Message]) -> list[int]:
    """Where each repaired message stands in the given history.

    A message is the same object there; one that repair made takes the place of the turn before.
    """
    known: defaultdict[int, deque[int]] = defaultdict(deque)
    for index, message in enumerate(given):
        known[id(message)].append(index)
    places: list[int] = []
    for message in repaired:
        found = known.get(id(message))
        places.append(found.popleft() if found else (places[-1] if places else 0))
    return places
