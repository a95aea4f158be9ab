"""Lines in, lines out: what does not change is the same bytes, the rest what the passes say."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import golem
from golem import AssistantMessage, HistoryError, ToolCall, ToolMessage, UserMessage
from golem.corpus import (
    LineReport,
    RejectedLine,
    SanitizeOptions,
    normalize_lines,
    sanitize_lines,
)
from golem.corpus.mend import is_same
from golem.corpus.skim import SkimmedAssistant, SkimmedCall, first_unsound, skim
from golem.corpus.spelling import is_plain
from golem.testing.strategies import ANY_HISTORY
from tests.corpus.odd_lines import LINES

CALL = ToolCall.of("a", "look", '{"at": 1}')
SOUND = golem.dump_history(
    [
        UserMessage("Look."),
        AssistantMessage(tool_calls=(CALL,)),
        ToolMessage("seen", tool_call_id="a", tool_name="look"),
        AssistantMessage("I have."),
    ]
)
PENDING = golem.dump_history([UserMessage("Look."), AssistantMessage(tool_calls=(CALL,))])
CUT_OFF = SOUND.replace(b'{"at": 1}', b'"{\\"at\\": "')
REPEATED = (
    b'[{"role":"user","content":"x","parts":[{"kind":"image","url":"file:///x"}],"parts":[]}]'
)


OPTIONS: st.SearchStrategy[SanitizeOptions] = st.builds(
    SanitizeOptions,
    **{
        name: st.sampled_from([False, False, True])
        for name in ("strip_identity", "strip_thinking", "strip_seals", "drop_invalid_parts")
    },
    allowed_hosts=st.sampled_from([None, None, ("e",)]),
    max_messages=st.sampled_from([None, None, 0, 3]),
    max_bytes=st.sampled_from([None, None, 0, 300]),
)


def broken(line: bytes) -> bytes:
    """The line break at the end of a line."""
    if not line.endswith(b"\n"):
        return b""
    return b"\r\n" if line.endswith(b"\r\n") else b"\n"


def whole(line: bytes) -> tuple[bytes, Any] | HistoryError:
    """What loading, normalizing and dumping make of a line; the error where it is no history."""
    try:
        history = golem.load_history(line)
    except HistoryError as error:
        return error
    messages, report = golem.normalize_history(history)
    same = len(messages) == len(history) and all(map(lambda a, b: a is b, messages, history))
    return (line if same else golem.dump_history(messages) + broken(line)), report


@given(LINES)
def test_a_line_becomes_what_the_whole_pass_makes_of_it(line: bytes) -> None:
    reports: list[LineReport] = []
    rejects: list[RejectedLine] = []
    made = list(normalize_lines([line], on_report=reports.append, on_reject=rejects.append))
    expected = whole(line)
    if isinstance(expected, HistoryError):
        content = line.rstrip(b"\r\n")
        refused = [RejectedLine.of(1, str(expected), content)] if line.strip() else []
        assert (made, reports, rejects) == ([] if refused else [line], [], refused)
    else:
        bytes_expected, repair = expected
        assert made == [bytes_expected]
        assert reports == ([LineReport(1, repair=repair)] if repair else [])
        assert rejects == []
        if bytes_expected == line:
            assert made[0] is line


@given(LINES)
def test_a_line_that_looks_sound_is_sound(line: bytes) -> None:
    skimmed = skim(line)
    if skimmed is not None and first_unsound(skimmed) is None:
        expected = whole(line)
        assert not isinstance(expected, HistoryError)
        assert expected[0] is line
        assert not expected[1]


def test_what_is_found_behind_a_sound_beginning_is_counted_from_the_first_message() -> None:
    again = ToolMessage("seen again", tool_call_id="a", tool_name="look")
    asked = AssistantMessage(tool_calls=(CALL,))
    line = golem.dump_history([*golem.load_history(SOUND), again, asked, UserMessage("Well?")])
    reports: list[LineReport] = []
    [made] = normalize_lines([line], on_report=reports.append)
    assert made == golem.dump_history(golem.normalize_history(golem.load_history(line))[0])
    assert reports[0].repair is not None
    assert [
        (change.kind, change.input_index, change.output_index)
        for change in reports[0].repair.changes
    ] == [("dropped", 4, None), ("synthesized", 5, 5)]


@given(LINES)
def test_sanitizing_gives_what_the_whole_pass_gives_or_the_same_bytes(line: bytes) -> None:
    reports: list[LineReport] = []
    made = list(sanitize_lines([line], on_report=reports.append, on_reject=id))
    try:
        messages, found = golem.sanitize_history(golem.load_history(line))
    except HistoryError:
        assert made == ([] if line.strip() else [line])
        return
    assert golem.load_history(made[0]) == golem.load_history(golem.dump_history(messages))
    if made[0] is not line:
        assert made == [golem.dump_history(messages) + broken(line)]
    assert bool(reports) >= bool(found)
    assert list(sanitize_lines(made)) == made


@given(LINES, OPTIONS)
def test_a_line_is_sanitized_as_its_history_is(line: bytes, options: SanitizeOptions) -> None:
    reports: list[LineReport] = []
    rejects: list[RejectedLine] = []
    made = list(
        sanitize_lines([line], on_report=reports.append, on_reject=rejects.append, **options)
    )
    try:
        history = golem.load_history(line)
        messages, found = golem.sanitize_history(history, **options)
    except HistoryError as error:
        content = line.rstrip(b"\r\n")
        refused = [RejectedLine.of(1, str(error), content)] if line.strip() else []
        assert (made, reports, rejects) == ([] if refused else [line], [], refused)
        return
    changed = not is_same(history, messages)
    written = golem.dump_history(messages)
    respelled = not changed and written != line.rstrip(b"\r\n") and not is_plain(line)
    rewritten = written + broken(line)
    assert made == [rewritten if changed or respelled else line]
    told = [LineReport(1, sanitized=found, respelled=respelled)] if found or respelled else []
    assert (reports, rejects) == (told, [])


@given(st.lists(ANY_HISTORY, max_size=4))
def test_normalizing_lines_again_changes_none_of_them(histories: list[list[golem.Message]]) -> None:
    lines = [golem.dump_history(history) + b"\n" for history in histories]
    once = list(normalize_lines(lines))
    again = list(normalize_lines(once))
    assert all(map(lambda a, b: a is b, again, once))


@pytest.mark.parametrize("line", [SOUND, b"[]", b"null\n", b"\n", b"  \r\n", CUT_OFF, b" []\r\n"])
def test_a_line_in_which_nothing_changes_is_the_same_object(line: bytes) -> None:
    [made] = normalize_lines([line])
    assert made is line


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_rewritten_line_keeps_its_line_break(end: bytes) -> None:
    [made] = normalize_lines([PENDING + end])
    assert made == golem.dump_history(golem.normalize_history(golem.load_history(PENDING))[0]) + end


def test_cut_off_arguments_are_reported_and_kept_to_the_byte() -> None:
    reports: list[LineReport] = []
    assert list(normalize_lines([CUT_OFF], on_report=reports.append)) == [CUT_OFF]
    [report] = reports
    assert report.repair is not None
    assert report.repair.truncated == ("a",)


def test_a_line_that_is_no_history_is_named_with_its_number() -> None:
    lines = normalize_lines([SOUND, b'[{"role":"developer"}]'], first_line=7)
    assert next(lines) == SOUND
    with pytest.raises(HistoryError, match=r'^history\[0\]: unknown role "developer" \(line 8\)$'):
        next(lines)


@pytest.mark.parametrize(
    ("line", "kept"),
    [(b"nonsense\n", {"text": "nonsense"}), (b"\xff", {"data": "/w=="})],
)
def test_a_rejected_line_is_handed_out_with_its_number_reason_and_bytes(
    line: bytes, kept: dict[str, str]
) -> None:
    rejects: list[RejectedLine] = []
    assert list(normalize_lines([SOUND, line, SOUND], on_reject=rejects.append)) == [SOUND, SOUND]
    [rejected] = rejects
    assert rejected == RejectedLine(2, rejected.reason, len(line.rstrip()), **kept)
    assert rejected.reason.startswith("history: not ")


@pytest.mark.parametrize("lines", [SOUND, SOUND.decode(), bytearray(SOUND), [SOUND.decode()]])
def test_text_in_place_of_lines_is_the_callers_mistake(lines: Any) -> None:
    with pytest.raises(TypeError, match=r"lines are wanted|a line is bytes"):
        list(normalize_lines(lines))


def test_lines_are_read_as_the_result_is() -> None:
    source = io.BytesIO(SOUND + b"\n" + SOUND + b"\n")
    made = normalize_lines(source)
    next(made)
    assert source.tell() == len(SOUND) + 1


def test_a_repeated_member_does_not_pass_a_boundary_as_it_is() -> None:
    reports: list[LineReport] = []
    [made] = sanitize_lines([REPEATED], on_report=reports.append)
    assert json.loads(made) == [{"role": "user", "content": "x"}]
    assert reports[0].respelled


@pytest.mark.parametrize(
    "line",
    [SOUND, b'[ {"role": "user", "content": "caf\\u00e9"} ]\n', b'[{"content":"x","role":"user"}]'],
)
def test_a_harmless_line_passes_a_boundary_as_the_same_object(line: bytes) -> None:
    [made] = sanitize_lines([line])
    assert made is line


def test_sanitizing_takes_the_options_of_the_history_pass() -> None:
    stamped = golem.dump_history([UserMessage("x", run_id="r")])
    assert list(sanitize_lines([stamped], strip_identity=True)) == [
        golem.dump_history([UserMessage("x")])
    ]
    hosts = iter(["example.com"])
    linked = (
        b'[{"role":"user","content":"x","parts":[{"kind":"image","url":"https://evil.test/"}]}]'
    )
    made = list(sanitize_lines([linked, linked], allowed_hosts=hosts))
    assert made == [b'[{"role":"user","content":"x"}]'] * 2
    with pytest.raises(ValueError, match="max_bytes"):
        sanitize_lines([], max_bytes=-1)


def test_a_history_over_a_limit_is_rejected_with_its_reason() -> None:
    rejects: list[RejectedLine] = []
    made = sanitize_lines([SOUND], max_messages=2, on_reject=rejects.append)
    assert list(made) == []
    assert rejects[0].reason == "history: more than 2 messages"


@pytest.mark.parametrize(
    ("skimmed", "real"), [(SkimmedAssistant, AssistantMessage), (SkimmedCall, ToolCall)]
)
def test_the_look_knows_the_members_of_the_contract(skimmed: Any, real: Any) -> None:
    """A member that the look did not know would send every line that has it the long way."""
    assert skimmed.__struct_encode_fields__ == tuple(
        name for name in real.__struct_encode_fields__ if name != "unknown"
    )
    assert skimmed.__struct_config__.tag == real.__struct_config__.tag
