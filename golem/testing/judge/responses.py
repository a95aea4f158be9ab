"""The judge of Responses requests, counts of tokens included."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from golem.messages import AssistantMessage
from golem.model import Response
from golem.testing.judge.answers import counted, default_said, minted, pieces_of, with_ids
from golem.testing.judge.findings import JSON, Violation, elements, members
from golem.testing.judge.misbehave import Misbehavior
from golem.testing.judge.openai_words import CREATED, UNREADABLE, failed, refused_key
from golem.testing.judge.provider import Provider, Said
from golem.testing.judge.reply import event
from golem.testing.judge.responses_rules import judge_responses
from golem.testing.judge.responses_servers import ResponsesRules, responses_rules_named
from golem.testing.judge.server import DEFAULT_KEY, Answers, Judge
from golem.usage import Usage

_COUNTING: Final = "/responses/input_tokens"
_SEALED: Final = "reasoning.encrypted_content"
_INCOMPLETE: Final[Mapping[str, str]] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
_BEGUN: Final[Mapping[str, JSON]] = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
}
"""What an item has when it is announced, before anything of it came."""


class ResponsesJudge(Judge):
    """A server that speaks Responses and refuses what the provider refuses.

    It remembers which items it made after which reasoning, and wants them back together.
    See `golem.testing.judge.server.Judge` for what can be asked of it.

    Args:
        answers: what to answer: always the same, one item for each request, or a function of the
            request's body; beyond them, and by default, what a helpful model would.
        misbehave: what to do wrong; one for every request, or a sequence, one for each.
        dialect: whose rules: ``openai``, ``azure`` or ``deepseek``.
        key: the key that requests must carry.
    """

    def __init__(
        self,
        answers: Answers = (),
        misbehave: Misbehavior | Sequence[Misbehavior | None] | None = None,
        *,
        dialect: str | ResponsesRules = "openai",
        key: str = DEFAULT_KEY,
    ) -> None:
        super().__init__(ResponsesProvider(dialect), answers, misbehave, key=key)


class ResponsesProvider(Provider):
    """Responses as its judge sees it, at the server of `dialect`."""

    path = "/responses"
    unreadable = UNREADABLE

    def __init__(self, dialect: str | ResponsesRules = "openai") -> None:
        self.rules = responses_rules_named(dialect)
        self.key_header = self.rules.key_header

    def serves(self, path: str) -> bool:
        """Whether a model answers, or counts, at this path."""
        return super().serves(path) or (self.rules.counts and path.endswith(_COUNTING))

    def judge(self, body: Any, made_with: Mapping[str, str]) -> list[Violation]:
        """What is wrong with the body of a request for an answer."""
        return judge_responses(body, dialect=self.rules, made_with=made_with)

    def judge_request(
        self, path: str, headers: Mapping[str, str], body: Any, made_with: Mapping[str, str]
    ) -> list[Violation]:
        """What is wrong with a request, for an answer or a count."""
        counts = path.endswith(_COUNTING)
        return judge_responses(body, dialect=self.rules, made_with=made_with, counts=counts)

    def aside(self, path: str, body: JSON) -> JSON | None:
        """The number of tokens, where they are counted."""
        if not path.endswith(_COUNTING):
            return None
        tokens = counted(body, Response(AssistantMessage())).input_tokens
        return {"object": "response.input_tokens", "input_tokens": tokens}

    def links(self, answer: JSON) -> Mapping[str, str]:
        """The item behind each reasoning item."""
        found: dict[str, str] = {}
        for before, item in itertools.pairwise(elements(answer.get("output"))):
            if before.get("type") == "reasoning" and item.get("type") != "reasoning":
                found[item["id"]] = before["id"]
        return found

    def default(self, body: JSON) -> Said:
        """What a helpful model answers."""
        wanted = members(members(body.get("text")).get("format"))
        given = body.get("input")
        last = members((elements(given) or [None])[-1])
        return default_said(
            elements(body.get("tools")),
            body.get("tool_choice"),
            wanted.get("schema"),
            asked=isinstance(given, str) or last.get("role") == "user",
            wants_json=wanted.get("type") == "json_object",
        )

    # --- answers

    def answer(self, body: JSON, said: Response) -> JSON:
        """A response that says `said`."""
        ids = [f"call_{minted(body, f'call {n}')}" for n in range(len(said.message.tool_calls))]
        output = list(self._items(body, with_ids(said, ids)))
        reason = _INCOMPLETE.get(said.finish_reason)
        ended: JSON = {"status": "incomplete" if reason else "completed", "output": output}
        ended["incomplete_details"] = {"reason": reason} if reason else None
        ended["usage"] = _usage(counted(body, said))
        return {**self._frame(body), **ended}

    def events(self, body: JSON, said: Response) -> Sequence[bytes]:
        """The events of the same response."""
        whole = self.answer(body, said)
        frame = self._frame(body)
        told: list[JSON] = [
            {"type": f"response.{word}", "response": frame} for word in ("created", "in_progress")
        ]
        for index, item in enumerate(whole["output"]):
            told += _item_events(item, index)
        told.append({"type": f"response.{whole['status']}", "response": whole})
        return [
            event({**one, "sequence_number": number}, one["type"])
            for number, one in enumerate(told)
        ]

    def _items(self, body: JSON, said: Response) -> Iterable[JSON]:
        message = said.message
        thought = "".join(block.text for block in message.thinking)
        if thought:
            item: JSON = {"id": f"rs_{minted(body, 'rs', 48)}", "type": "reasoning"}
            item["summary"] = [{"type": "summary_text", "text": thought}]
            if _SEALED in elements(body.get("include")):
                item["encrypted_content"] = f"gAAAA{minted(body, 'sealed', 40)}=="
            yield item
        cut = said.finish_reason in _INCOMPLETE
        status = "incomplete" if cut else "completed"
        if message.content:
            part: JSON = {"type": "output_text", "text": message.content}
            part |= {"annotations": [], "logprobs": []}
            yield {
                "id": f"msg_{minted(body, 'msg', 48)}",
                "type": "message",
                "status": "completed" if message.tool_calls else status,
                "role": "assistant",
                "content": [part],
            }
        for number, call in enumerate(message.tool_calls):
            yield {
                "id": f"fc_{minted(body, f'fc {number}', 48)}",
                "type": "function_call",
                "status": status if number == len(message.tool_calls) - 1 else "completed",
                "arguments": call.args,
                "call_id": call.id,
                "name": call.name,
            }

    def _frame(self, body: JSON) -> JSON:
        said = ("instructions", "max_output_tokens", "store", "tools", "tool_choice", "text")
        return {
            "id": f"resp_{minted(body, 'response', 48)}",
            "object": "response",
            "created_at": CREATED,
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "model": body.get("model"),
            "output": [],
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "usage": None,
            "metadata": {},
            **{name: body.get(name) for name in said},
        }

    # --- failures

    def failure(self, message: str, status: int, code: str | None = None) -> JSON:
        """The body of an error."""
        return failed(message, status, code)

    def failing_event(self, message: str, code: str | None = None) -> bytes:
        """An error event."""
        said = {"type": "error", "code": code or "server_error", "message": message}
        return event({**said, "param": None, "sequence_number": 9}, "error")

    def text_event(self, text: str) -> bytes:
        """A delta that brings `text`."""
        name = "response.output_text.delta"
        place = {"item_id": "msg_more", "output_index": 0, "content_index": 0}
        return event({"type": name, **place, "delta": text, "logprobs": []}, name)

    def refused_key(self, key: str) -> Violation:
        """The answer to a wrong key."""
        return refused_key(key, self.rules.name)


def _item_events(item: JSON, index: int) -> list[JSON]:
    """An item as it comes: announced, in pieces, whole."""
    kind = item["type"]
    place = {"item_id": item["id"], "output_index": index}
    begun = {**item, **_BEGUN[kind]}
    if kind != "reasoning":
        begun["status"] = "in_progress"
    told: list[JSON] = [
        {"type": "response.output_item.added", "output_index": index, "item": begun}
    ]
    if kind == "function_call":
        told += _told("function_call_arguments", place, "arguments", item["arguments"])
    elif kind == "reasoning":
        for number, part in enumerate(item["summary"]):
            where = {**place, "summary_index": number}
            told.append(
                {"type": "response.reasoning_summary_part.added", **where, "part": _blank(part)}
            )
            told += _told("reasoning_summary_text", where, "text", part["text"])
            told.append({"type": "response.reasoning_summary_part.done", **where, "part": part})
    else:
        for number, part in enumerate(item["content"]):
            where = {**place, "content_index": number}
            told.append({"type": "response.content_part.added", **where, "part": _blank(part)})
            told += _told("output_text", where, "text", part["text"])
            told.append({"type": "response.content_part.done", **where, "part": part})
    told.append({"type": "response.output_item.done", "output_index": index, "item": item})
    return told


def _told(name: str, place: JSON, member: str, text: str) -> list[JSON]:
    told: list[JSON] = [
        {"type": f"response.{name}.delta", **place, "delta": piece} for piece in pieces_of(text)
    ]
    return [*told, {"type": f"response.{name}.done", **place, member: text}]


def _blank(part: JSON) -> JSON:
    return {**part, "text": ""}


def _usage(usage: Usage) -> JSON:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
