"""What Responses servers refuse about the items of a request's input. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from golem.testing.judge.common_rules import judge_members, judge_name
from golem.testing.judge.findings import JSON, is_array, is_json_object, is_object, members
from golem.testing.judge.media_rules import is_address, is_base64, is_data, judge_link, judge_sound
from golem.testing.judge.openai_words import Findings
from golem.testing.judge.responses_servers import ResponsesRules
from golem.testing.judge.word_rules import FILE_DETAILS, IMAGE_DETAILS, PHASES, judge_word

LONGEST_CALL_ID: Final = 64

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "assistant": ("output_text", "refusal"),
    "user": ("input_text", "input_image", "input_file", "input_audio"),
    "system": ("input_text", "input_image", "input_file"),
    "developer": ("input_text", "input_image", "input_file"),
    "output": ("input_text", "input_image", "input_file"),
}
_CALLS: Final[Mapping[str, str]] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_OUTPUTS: Final = frozenset(_CALLS.values())
_PREFIXES: Final[Mapping[str, str]] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}
_ITEM_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "message": frozenset({"type", "id", "role", "status", "content", "phase"}),
    "reasoning": frozenset({"type", "id", "summary", "content", "encrypted_content", "status"}),
    "function_call": frozenset(
        {"type", "id", "call_id", "name", "arguments", "status", "namespace", "caller"}
    ),
    "custom_tool_call": frozenset(
        {"type", "id", "call_id", "name", "input", "status", "namespace", "caller"}
    ),
    "function_call_output": frozenset({"type", "id", "call_id", "output", "status", "caller"}),
    "custom_tool_call_output": frozenset({"type", "id", "call_id", "output", "caller"}),
}


def judge_items(
    items: list[Any],
    rules: ResponsesRules,
    findings: Findings,
    made_with: Mapping[str, str],
    *,
    stored: bool,
    continued: bool = False,
) -> None:
    """Ids, their order and pairing, names, contents.

    `made_with` is as for `judge_responses`; `stored`: the server keeps what it answered;
    `continued`: it has kept what came before, calls among it.
    """
    _Walk(rules, findings, made_with, stored=stored, continued=continued).judge(items)


class _Walk:
    """One walk over the items of the input, in their order."""

    def __init__(
        self,
        rules: ResponsesRules,
        findings: Findings,
        made_with: Mapping[str, str],
        *,
        stored: bool,
        continued: bool,
    ) -> None:
        self._rules = rules
        self._findings = findings
        self._made_with = made_with
        self._stored = stored
        self._continued = continued
        self._ids: set[str] = set()
        self._calls: dict[str, str] = {}  # every call so far, and what answers it
        self._open: dict[str, str] = {}  # calls that wait for a result, and where they stand
        self._hosted: set[str] = set()  # calls of hosted tools, which need no answer here
        self._thought: tuple[str, str] | None = None  # reasoning without its item, and its place

    def judge(self, items: list[Any]) -> None:
        for index, item in enumerate(items):
            place = f"input[{index}]"
            if not is_object(item):
                self._findings.wrong_type(place, "an object", item)
                continue
            kind = str(item.get("type") or ("message" if "role" in item else ""))
            if not kind:
                self._findings.missing(f"{place}.type")
                continue
            self._item(kind, item, place)
        self._follower("", "")
        self._unanswered()

    def _item(self, kind: str, item: JSON, place: str) -> None:
        if kind in _ITEM_MEMBERS:
            judge_members(item, _ITEM_MEMBERS[kind], self._findings, place=place)
        self._follower(kind, str(item.get("role", "assistant")))
        self._id(kind, item, place)
        if self._rules.adjacent_results and kind not in (*_CALLS, *_OUTPUTS):
            self._unanswered()
        match kind:
            case "message":
                self._message(item, place)
            case "reasoning":
                self._reasoning(item, place)
            case "function_call" | "custom_tool_call":
                self._call(kind, item, place)
            case "function_call_output" | "custom_tool_call_output":
                self._result(kind, item, place)
            case "item_reference":
                self._reference(item, place)
            case _:  # what a hosted tool did goes back as it came; some the client carries out
                self._hosted.add(str(item.get("call_id", "")))

    # --- what holds for every item

    def _id(self, kind: str, item: JSON, place: str) -> None:
        name = item.get("id")
        if name is None:
            return
        prefix = _PREFIXES.get(kind)
        if not isinstance(name, str):
            self._findings.wrong_type(f"{place}.id", "a string", name)
            return
        if self._rules.item_prefixes and prefix and not name.startswith(prefix):
            text = f"Invalid '{place}.id': '{name}'. Expected an ID that begins with '{prefix}'."
            self._findings.add("item_id", f"{place}.id", text, code="invalid_value")
        if name in self._ids:
            text = (
                f"Duplicate item found with id {name}. Remove duplicate items from your input and"
                " try again."
            )
            self._findings.add("repeated_item_id", f"{place}.id", text, param="input")
        thought = self._made_with.get(name)
        if thought and thought not in self._ids:
            text = (
                f"Item '{name}' of type '{kind}' was provided without its required 'reasoning'"
                f" item: '{thought}'."
            )
            self._findings.add("reasoning_left_out", place, text, param="input")
        self._ids.add(name)

    def _follower(self, kind: str, role: str) -> None:
        """Whether an item may stand behind the reasoning that stands before it, if one does."""
        if self._thought is None:
            return
        name, place = self._thought
        if kind == "reasoning":
            return  # several in a row lead to the same item
        if not kind or kind in _OUTPUTS or (kind == "message" and role != "assistant"):
            text = (
                f"Item '{name}' of type 'reasoning' was provided without its required following"
                " item."
            )
            self._findings.add("reasoning_follower", place, text, param="input")
        self._thought = None

    # --- items

    def _message(self, item: JSON, place: str) -> None:
        role, content = item.get("role"), item.get("content")
        judge_word(item.get("phase"), f"{place}.phase", PHASES, self._findings)
        if role not in ("user", "assistant", "system", "developer"):
            supported = ("assistant", "system", "developer", "user")
            self._findings.wrong_value("role", place, role, supported)
        elif content is None:
            self._findings.missing(f"{place}.content")
        elif is_array(content):
            self._parts(str(role), content, f"{place}.content")
        elif not isinstance(content, str):
            self._findings.wrong_type(
                f"{place}.content", "one of an array of objects or string", content
            )

    def _reasoning(self, item: JSON, place: str) -> None:
        name = str(item.get("id", ""))
        self._thought = (name, place)
        if not is_array(item.get("summary")):
            self._findings.missing(f"{place}.summary")
        if self._rules.sealed_reasoning and not self._stored and not item.get("encrypted_content"):
            self._not_stored("reasoning_not_stored", name, place)

    def _reference(self, item: JSON, place: str) -> None:
        if item.get("id") is None:
            self._findings.missing(f"{place}.id")
        elif not self._stored and not self._continued:
            self._not_stored("reference_not_stored", str(item["id"]), place)

    def _not_stored(self, rule: str, name: str, place: str) -> None:
        text = (
            f"Item with id '{name}' not found. Items are not persisted when `store` is set to"
            " false. Try again with `store` set to true, or remove this item from your input."
        )
        self._findings.add(rule, place, text, param="input", status=404)

    def _call(self, kind: str, item: JSON, place: str) -> None:
        call_id = self._call_id(item, place)
        judge_name(item.get("name"), f"{place}.name", self._findings)
        member = "arguments" if kind == "function_call" else "input"
        value = item.get(member)
        if not isinstance(value, str):
            self._findings.wrong_type(f"{place}.{member}", "a string", value)
        elif kind == "function_call" and not is_json_object(value):
            text = f"Invalid '{place}.arguments': expected the text of a JSON object."
            self._findings.add("arguments", f"{place}.arguments", text)
        if call_id in self._calls:
            text = f"Duplicate tool call with call_id {call_id}."
            self._findings.add("repeated_call_id", f"{place}.call_id", text, param="input")
        self._calls[call_id] = _CALLS[kind]
        self._open[call_id] = place

    def _call_id(self, item: JSON, place: str) -> str:
        call_id = item.get("call_id")
        if call_id is None:
            self._findings.missing(f"{place}.call_id")
        elif not isinstance(call_id, str):
            self._findings.wrong_type(f"{place}.call_id", "a string", call_id)
        elif not call_id or len(call_id) > LONGEST_CALL_ID:
            self._findings.length("call_id", f"{place}.call_id", call_id, LONGEST_CALL_ID)
        return str(call_id)

    def _result(self, kind: str, item: JSON, place: str) -> None:
        call_id = self._call_id(item, place)
        answered = self._open.pop(call_id, None) is not None and self._calls[call_id] == kind
        known = call_id in self._hosted or (self._continued and call_id not in self._calls)
        if not answered and not known:
            of = "function" if kind == "function_call_output" else "custom tool"
            text = f"No tool call found for {of} call output with call_id {call_id}."
            self._findings.add("orphan_result", place, text, param="input")
        output = item.get("output")
        if output is None:
            self._findings.missing(f"{place}.output")
        elif is_array(output) and not self._rules.text_results:
            self._parts("output", output, f"{place}.output")
        elif not isinstance(output, str):
            wanted = "one of an array of objects or string"
            self._findings.wrong_type(f"{place}.output", wanted, output)

    def _unanswered(self) -> None:
        for call_id, place in self._open.items():
            kind = "function" if self._calls[call_id] == "function_call_output" else "custom tool"
            if self._rules.adjacent_results:
                text = f"No tool output found for tool call {call_id}."
                code, param = "invalid_request_error", ""
            else:
                text = f"No tool output found for {kind} call {call_id}."
                code, param = None, "input"
            self._findings.add("unanswered_call", place, text, code=code, param=param)
        self._open = {}

    # --- content

    def _parts(self, role: str, content: list[Any], place: str) -> None:
        for number, part in enumerate(content):
            where = f"{place}[{number}]"
            kind = members(part).get("type")
            if kind not in _PARTS[role]:
                self._findings.wrong_value("part_type", where, kind, _PARTS[role])
                continue
            match kind:
                case "input_image":
                    self._image(part, where)
                case "input_file":
                    self._file(part, where)
                case "input_audio":
                    judge_sound(part.get("input_audio"), f"{where}.input_audio", self._findings)
                case _:
                    member = "refusal" if kind == "refusal" else "text"
                    if not isinstance(part.get(member), str):
                        value = part.get(member)
                        self._findings.wrong_type(f"{where}.{member}", "a string", value)

    def _image(self, part: JSON, place: str) -> None:
        judge_word(part.get("detail"), f"{place}.detail", IMAGE_DETAILS, self._findings)
        if not part.get("file_id"):
            judge_link(part.get("image_url"), f"{place}.image_url", "image", self._findings)

    def _file(self, part: JSON, place: str) -> None:
        url, data = part.get("file_url"), part.get("file_data")
        judge_word(part.get("detail"), f"{place}.detail", FILE_DETAILS, self._findings)
        if part.get("file_id"):
            return
        if isinstance(data, str) and data.startswith("data:audio/"):
            text = (
                f"Invalid input: got unsupported MIME type '{data[5:].partition(';')[0]}'."
                " Expected a supported file type."
            )
            self._findings.add("file_type", place, text, code="unsupported_file", param="input")
        elif data is not None:
            if not is_data(str(data)) and not is_base64(data):
                text = f"Invalid '{place}.file_data': expected base64-encoded data."
                self._findings.add("file_data", f"{place}.file_data", text, code="invalid_value")
            elif not part.get("filename"):
                self._findings.missing(f"{place}.filename")
        elif not isinstance(url, str) or not is_address(url):
            text = f"Error while downloading {url}."
            self._findings.add("media_link", place, text, code="invalid_file_url", param="input")
