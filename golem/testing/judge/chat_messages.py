"""What Chat Completions servers refuse about the messages of a request. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from golem.testing.judge.chat_servers import MISTRAL_ID, ChatRules
from golem.testing.judge.common_rules import judge_members, judge_name
from golem.testing.judge.findings import (
    JSON,
    elements,
    is_array,
    is_json_object,
    is_object,
    members,
)
from golem.testing.judge.media_rules import judge_chat_part
from golem.testing.judge.openai_words import Findings

_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "system": frozenset({"role", "content", "name"}),
    "developer": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset(
        {"role", "content", "name", "refusal", "audio", "tool_calls", "function_call"}
    ),
    "tool": frozenset({"role", "content", "tool_call_id", "name"}),
}


def judge_messages(messages: list[Any], rules: ChatRules, findings: Findings) -> None:
    """Roles, their order, the pairing of calls and results, ids, names, contents."""
    _Walk(rules, findings).judge(messages)


class _Walk:
    """One walk over the messages, in their order.

    A turn with calls is open until every call has its result; nothing but results may stand
    between.
    """

    def __init__(self, rules: ChatRules, findings: Findings) -> None:
        self._rules = rules
        self._findings = findings
        self._open: list[str] = []
        self._turn = ""
        self._last_role = ""

    def judge(self, messages: list[Any]) -> None:
        for index, message in enumerate(messages):
            place = f"messages[{index}]"
            if not is_object(message):
                self._findings.wrong_type(place, "an object", message)
                continue
            role = message.get("role")
            if role not in self._rules.roles:
                self._findings.wrong_value("role", f"{place}.role", role, self._rules.roles)
                continue
            self._message(str(role), message, place)
            self._last_role = str(role)
        self._close_turn()

    def _message(self, role: str, message: JSON, place: str) -> None:
        if role == "tool":
            self._order(role, place)
            self._result(message, place)
        else:
            self._close_turn()
            self._order(role, place)
        known = _MEMBERS[role]
        if role == "assistant":
            known |= self._rules.assistant_members
            self._assistant(message, place)
        else:
            self._content(role, message.get("content"), f"{place}.content")
        judge_members(message, known, self._findings, place=place)

    def _order(self, role: str, place: str) -> None:
        rules, last = self._rules, self._last_role
        if last == "tool" and rules.after_tool is not None and role not in rules.after_tool:
            text = f"Unexpected role '{role}' after role 'tool'"
            kind, code = "invalid_request_message_order", "3230"
            self._findings.add("role_order", place, text, kind=kind, code=code)
        if rules.one_system_message and role == last == "system":
            text = "System message must be at the beginning."
            self._findings.add("one_system_message", place, text)

    # --- assistant turns

    def _assistant(self, message: JSON, place: str) -> None:
        content, calls = message.get("content"), message.get("tool_calls")
        if content is not None:
            self._content("assistant", content, f"{place}.content")
        if is_array(calls) and not calls:
            self._findings.empty_array(f"{place}.tool_calls")
        if not calls and not message.get("audio") and not message.get("function_call"):
            self._without_calls(content, message, place)
        for number, call in enumerate(elements(calls)):
            self._call(members(call), f"{place}.tool_calls[{number}]")
        self._turn = place
        required = self._rules.reasoning_with_calls
        if calls and required and not isinstance(message.get(required), str):
            text = f"The `{required}` in the thinking mode must be passed back to the API."
            self._findings.add(
                "reasoning_passback", place, text, code="invalid_request_error", param=""
            )

    def _without_calls(self, content: Any, message: JSON, place: str) -> None:
        if self._rules.shape == "mistral" and not content:
            text = "Assistant message must have either content or tool_calls, but not none."
            kind, code = "invalid_request_assistant_message", "3240"
            self._findings.add("empty_assistant", place, text, kind=kind, code=code)
        elif content is None and message.get("refusal") is None:
            text = "Invalid value for 'content': expected a string, got null."
            self._findings.add("empty_assistant", f"{place}.content", text)

    def _call(self, call: JSON, place: str) -> None:
        known = frozenset({"id", "type", "function", "custom", "index"}) | self._rules.call_members
        judge_members(call, known, self._findings, place=place)
        call_id = call.get("id")
        self._id(call_id, f"{place}.id", "invalid_function_call")
        if call_id in self._open:
            text = f"Duplicate tool call id '{call_id}' in one message."
            self._findings.add("repeated_id", f"{place}.id", text)
        self._open.append(str(call_id))
        kind = call.get("type", "function")
        if kind not in ("function", "custom"):
            self._findings.wrong_value("call_type", f"{place}.type", kind, ("function", "custom"))
            return
        said = members(call.get(kind))
        judge_name(said.get("name"), f"{place}.{kind}.name", self._findings)
        if kind == "function":
            self._arguments(said.get("arguments"), f"{place}.function.arguments")

    def _arguments(self, value: Any, place: str) -> None:
        if is_object(value) and self._rules.arguments_may_be_objects:
            return
        if not isinstance(value, str):
            self._findings.wrong_type(place, "a string", value)
        elif not is_json_object(value):
            text = f"Invalid '{place}': expected the text of a JSON object."
            self._findings.add("arguments", place, text)

    def _id(self, value: Any, place: str, kind: str) -> None:
        rules = self._rules
        if rules.ids is MISTRAL_ID:
            if not isinstance(value, str) or not rules.ids.fullmatch(value):
                text = f"Tool call id was {value} but must be a-z, A-Z, 0-9, with a length of 9."
                self._findings.add("call_id", place, text, kind=kind, code="3280")
        elif not isinstance(value, str):
            self._findings.wrong_type(place, "a string", value)
        elif not value or len(value) > rules.longest_id:
            self._findings.length("call_id", place, value, rules.longest_id)
        elif not rules.ids.fullmatch(value):
            self._findings.pattern("call_id", place, f"^{rules.ids.pattern}$")

    # --- results

    def _result(self, message: JSON, place: str) -> None:
        call_id = message.get("tool_call_id")
        if call_id is None:
            self._findings.missing(f"{place}.tool_call_id")
            return
        self._id(call_id, f"{place}.tool_call_id", "invalid_tool_message")
        if call_id in self._open:
            self._open.remove(call_id)
            return
        if self._rules.shape == "mistral":
            self._uneven(place, "orphan_result")
            return
        text = (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding"
            " message with 'tool_calls'."
        )
        self._findings.add("orphan_result", place, text, param=f"{place}.role")

    def _close_turn(self) -> None:
        if not self._open:
            return
        if self._rules.shape == "mistral":
            self._uneven(self._turn, "unanswered_call")
        else:
            text = (
                "An assistant message with 'tool_calls' must be followed by tool messages"
                " responding to each 'tool_call_id'. The following tool_call_ids did not have"
                f" response messages: {', '.join(self._open)}"
            )
            self._findings.add("unanswered_call", self._turn, text, param="messages")
        self._open = []

    def _uneven(self, place: str, rule: str) -> None:
        text = "Not the same number of function calls and responses"
        kind = "invalid_request_message_order"
        self._findings.add(rule, place, text, kind=kind, code="3230")

    # --- content

    def _content(self, role: str, content: Any, place: str) -> None:
        if isinstance(content, str):
            return
        if content is None:
            self._findings.missing(place)
        elif not is_array(content):
            self._findings.wrong_type(place, "one of a string or array of objects", content)
        elif not content:
            if not self._rules.empty_content:
                self._findings.empty_array(place)
        else:
            for number, part in enumerate(content):
                judge_chat_part(role, part, f"{place}[{number}]", self._rules, self._findings)
