"""The event-stream parser: the standard's rules, at any split, within its bounds."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.errors import ProtocolError
from golem.wire import sse
from golem.wire.sse import ServerSentEvent, SSEDecoder


def parsed(pieces: Iterable[bytes]) -> list[ServerSentEvent]:
    decoder = SSEDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.close()


def datas(stream: bytes) -> list[bytes]:
    return [event.data for event in parsed([stream])]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [b"a"]),
        (b"data: a\r\n\r\n", [b"a"]),
        (b"data: a\r\r", [b"a"]),
        (b"data: a\r\n\ndata: b\n\r\n", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a \n\n", [b" a "]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data\n\n", [b""]),
        (b"data:\ndata:\n\n", [b"\n"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [b"a"]),
        (b": comment\n\ndata: a\n: comment\n\n:\n\n", [b"a"]),
        (b"unknown: x\nDATA: y\ndata : z\n\n", []),
        (b"event: ping\n\ndata: a\n\n", [b"a"]),
        (b"\n\n\n", []),
        (b"", []),
        ("data: é😀\n\n".encode(), ["é😀".encode()]),
        (b"data: a\x0bb\xc2\x85c\xe2\x80\xa8d\n\n", [b"a\x0bb\xc2\x85c\xe2\x80\xa8d"]),
    ],
)
def test_lines_become_events_as_the_standard_says(stream: bytes, expected: list[bytes]) -> None:
    assert expected == datas(stream)


def test_what_stands_beside_the_data_goes_with_its_event() -> None:
    stream = b"event: error\nid: 7\nretry: 1500\ndata: a\n\ndata: b\n\n"
    first, second = parsed([stream])
    assert ServerSentEvent(b"a", "error", "7", 1500) == first
    assert ServerSentEvent(b"b", "", "7", None) == second


def test_an_event_without_data_leaves_nothing_to_the_next() -> None:
    assert [ServerSentEvent(b"a")] == parsed([b"event: error\nretry: 5\n\ndata: a\n\n"])


@pytest.mark.parametrize(
    "line", [b"id: a\0b", b"retry: 1.5", b"retry: " + b"9" * 5000, b"retry: -1"]
)
def test_a_field_that_makes_no_sense_is_skipped(line: bytes) -> None:
    assert [ServerSentEvent(b"a")] == parsed([line + b"\ndata: a\n\n"])


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        (b"data: b\n", b"b"),
        (b"data: b", b"b"),
        (b"data: b\r", b"b"),
        (b"data: b\ndata: c", b"b\nc"),
        (b"data: b\nda", b"b"),
    ],
)
def test_a_last_event_without_its_blank_line_is_given_out_marked(
    rest: bytes, expected: bytes
) -> None:
    first, last = parsed([b"data: a\n\n" + rest])
    assert not first.unfinished
    assert ServerSentEvent(expected, unfinished=True) == last


@pytest.mark.parametrize("rest", [b"da", b": bye", b"event: error", b"event: error\n", b"\xef\xbb"])
def test_trailing_bytes_without_data_are_no_event(rest: bytes) -> None:
    assert datas(b"data: a\n\n" + rest) == [b"a"]


def test_a_carriage_return_at_the_end_of_a_chunk_ends_the_line_at_once() -> None:
    decoder = SSEDecoder()
    assert [event.data for event in decoder.feed(b"data: a\r\n\r")] == [b"a"]
    assert [event.data for event in decoder.feed(b"\ndata: b\r\r")] == [b"b"]
    assert not decoder.feed(b"\n")
    assert not decoder.close()


def test_bytes_that_are_not_utf8_are_replaced_in_the_text_alone() -> None:
    (event,) = parsed([b"data: a\xffb\n\n"])
    assert event.data == b"a\xffb"
    assert event.text == "a\ufffdb"


PIECES = st.sampled_from(
    [
        *(b"\n", b"\r", b"\r\n", b"\n\n", b":", b" ", b"data", b"data:", b"data: ", b"event: e"),
        *(b"id: 1", b"retry: 2", b"x", b"\xc3\xa9", b"\xef\xbb\xbf", b": c", b"\0", b"{}"),
    ]
)
STREAMS = st.lists(PIECES, max_size=30).map(b"".join)


@given(STREAMS, st.lists(st.integers(0, 200), max_size=8))
def test_events_do_not_depend_on_where_the_stream_is_split(stream: bytes, cuts: list[int]) -> None:
    whole = parsed([stream])
    assert whole == parsed(bytes([byte]) for byte in stream)
    edges = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    assert whole == parsed(pieces)


@given(STREAMS)
def test_events_are_those_of_a_reader_that_goes_line_by_line(stream: bytes) -> None:
    expected = [event.data for event in parsed([stream]) if not event.unfinished]
    assert by_the_letter(stream) == expected


def by_the_letter(stream: bytes) -> list[bytes]:
    """The standard's algorithm, transcribed: whole stream, text, line by line."""
    text = stream.decode("latin-1").removeprefix("\xef\xbb\xbf")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    found: list[bytes] = []
    data: list[str] = []
    for line in lines:
        if not line:
            found += ["\n".join(data).encode("latin-1")] if data else []
            data = []
            continue
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
    return found


def test_an_event_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 100)
    for piece in (b"data: xxxxxxxx", b"data: x\n", b"data:\n", b": x"):
        with pytest.raises(ProtocolError, match="larger than 100 bytes"):
            parsed([piece] * 101)


def test_an_event_of_many_short_lines_takes_no_more_memory_than_one_of_a_long_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A line of two bytes is eight on the wire, and sixty in memory."""
    monkeypatch.setattr(sse, "MAX_EVENT", 1_000_000)
    for line in (b"data:ab\n", b"data\n"):
        decoder = SSEDecoder()
        tracemalloc.start()
        with pytest.raises(ProtocolError, match="larger than 1000000 bytes"):
            all(decoder.feed(line * 100) == [] for _ in range(10_000))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
        tracemalloc.stop()


def test_a_line_that_comes_in_single_bytes_takes_no_more_memory_than_its_bytes() -> None:
    decoder = SSEDecoder()
    tracemalloc.start()
    decoder.feed(b"data: ")
    for _ in range(200_000):
        decoder.feed(b"xy")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert decoder.feed(b"\n\n") == [ServerSentEvent(b"xy" * 200_000)]


def test_a_long_stream_of_small_events_is_not_a_large_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 100)
    assert len(datas(b"data: a\n\n" * 500)) == 500
    assert len(parsed([b"data: a\n", b"\n"] * 500)) == 500


def test_an_event_of_many_megabytes_is_read_in_linear_time() -> None:
    chunk = b"x" * 65536
    pieces = [b"data: ", *[chunk] * 200, b"\n\n"]
    (event,) = parsed(pieces)
    assert len(event.data) == 200 * 65536
