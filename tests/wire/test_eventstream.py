"""The parser of AWS event streams: whole frames only, at any split, within its bounds."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.errors import ProtocolError, ProviderError, TransportError
from golem.wire.eventstream import MAX_FRAME, MAX_HEADERS, EventStreamDecoder, Frame
from tests.wire.frames import event, frame, header, typed


def parsed(pieces: Iterable[bytes]) -> tuple[list[Frame], ProviderError | None]:
    """Frames and the error that the stream ended with."""
    decoder = EventStreamDecoder()
    frames: list[Frame] = []
    try:
        for piece in pieces:
            frames += decoder.feed(piece)
        frames += decoder.close()
    except ProviderError as error:
        return frames, error
    return frames, None


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


# AWS's published example: a frame without headers and with an empty payload.
EMPTY = bytes.fromhex("000000100000000005c248eb7d98c8ff")


def test_the_published_empty_frame_is_read_and_is_what_the_tests_write() -> None:
    assert ([Frame({}, b"")], None) == parsed([EMPTY])
    assert frame({}, b"") == EMPTY


def test_a_frame_says_what_it_is() -> None:
    data = event("messageStart", {"role": "assistant"}) + event(
        "throttlingException", {}, "exception"
    )
    data += frame({":message-type": "error", ":error-code": "Oops", ":error-message": "é"}, b"")
    (first, second, third), error = parsed([data])
    assert error is None
    assert (
        first.kind,
        first.name,
        first.payload,
    ) == ("event", "messageStart", b'{"role":"assistant"}')
    assert (second.kind, second.name) == ("exception", "throttlingException")
    assert (third.kind, third.name, third.headers[":error-message"]) == ("error", "Oops", "é")
    assert (Frame({}, b"").kind, Frame({}, b"").name) == ("event", "")


def test_headers_of_every_other_type_are_passed_over() -> None:
    sizes = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
    headers = b"".join(typed(f"h{kind}", kind, bytes(size)) for kind, size in sizes.items())
    headers += typed("bytes", 6, b"\x00\x03abc") + header(":event-type", "x")
    assert ([Frame({":event-type": "x"}, b"p")], None) == parsed([frame(headers, b"p")])


FRAMES = st.builds(
    frame,
    st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=9), max_size=3),
    st.binary(max_size=80),
)


@given(st.lists(FRAMES, max_size=5), st.data())
def test_splits_change_nothing(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frames)
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]
    whole = parsed([stream])
    assert whole == parsed(pieces) == parsed(bytewise(stream))
    assert len(frames) == len(whole[0])


@given(st.lists(FRAMES, min_size=1, max_size=4), st.data())
def test_one_flipped_bit_is_an_error_behind_the_frames_before_it(
    frames: list[bytes], data: st.DataObject
) -> None:
    stream = bytearray(b"".join(frames))
    place = data.draw(st.integers(0, len(stream) - 1))
    stream[place] ^= 1 << data.draw(st.integers(0, 7))
    sound = 0
    while place >= len(b"".join(frames[: sound + 1])):
        sound += 1
    found, error = parsed([bytes(stream)])
    assert (found, error) == (parsed([b"".join(frames[:sound])])[0], error)
    assert isinstance(error, ProtocolError)
    again, same = parsed(bytewise(bytes(stream)))
    assert (found, str(error)) == (again, str(same))


@given(st.lists(FRAMES, min_size=1, max_size=3), st.data())
def test_half_a_frame_at_the_end_is_a_cut_stream(frames: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frames)
    end = data.draw(st.integers(len(stream) - len(frames[-1]) + 1, len(stream) - 1))
    found, error = parsed([stream[:end]])
    assert len(frames) - 1 == len(found)
    assert isinstance(error, TransportError)


def test_damage_is_raised_by_every_later_call() -> None:
    decoder = EventStreamDecoder()
    assert [Frame({}, b"")] == decoder.feed(EMPTY + bytes(16))
    for _ in range(2):
        with pytest.raises(ProtocolError, match="damaged"):
            decoder.feed(EMPTY)
        with pytest.raises(ProtocolError, match="damaged"):
            decoder.close()


@pytest.mark.parametrize(
    ("length", "headers"),
    [
        (0, 0),
        (15, 0),
        (16, 1),
        (MAX_FRAME + 1, 0),
        (2**32 - 1, 0),
        (MAX_FRAME, MAX_HEADERS + 1),
    ],
)
def test_lengths_that_cannot_be_are_refused_before_anything_is_held(
    length: int, headers: int
) -> None:
    prelude = struct.pack(">II", length, headers)
    _, error = parsed([prelude + struct.pack(">I", crc32(prelude))])
    assert isinstance(error, ProtocolError)
    assert str(length) in str(error)


@pytest.mark.parametrize(
    "headers",
    [
        typed("x", 10, b""),
        typed("x", 7, b"\x00\x09abc"),
        typed("x", 7, b"\x00"),
        typed("x", 5, b"123"),
        b"\x05ab",
        b"\x02ab",
        b"\x01\xff\x07\x00\x00",
        typed("x", 7, b"\x00\x01\xff"),
    ],
)
def test_headers_that_cannot_be_read_are_an_error(headers: bytes) -> None:
    frames, error = parsed([frame(headers, b"")])
    assert (frames, isinstance(error, ProtocolError)) == ([], True)
