"""Whatever a server sends, golem holds no more of it than its bounds allow."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import aclosing
from typing import Self

import pytest

from golem.errors import APIError, ProtocolError, ProviderError, TransportError
from golem.model import TextDelta
from golem.testing.judge import Misbehavior, misbehave
from golem.wire import http, sse
from tests.judge.support import (
    API,
    ASK,
    CLAUDES,
    OPENAI,
    TEXT,
    both_ways,
    failure,
    over,
    read,
    with_ids,
)

MEGABYTE = 1024 * 1024
BOUND = 4 * MEGABYTE
"""What the bounds of bodies and events are set to here."""

ALLOWED = 16 * MEGABYTE
"""Of a body at its bound: the bytes, what the HTTP client holds, text, deltas and messages."""

ASSEMBLED = ALLOWED + 2 * BOUND
"""The same where what had come is put together to a block, and read, as JSON too."""

UNPACKED = 2 * 66 * MEGABYTE
"""What one network chunk of 64 KiB can decompress to, and a copy of it: the client unpacks whole
chunks, so that a bomb of any size costs no more."""


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_BODY", BOUND)
    monkeypatch.setattr(sse, "MAX_EVENT", BOUND)


class Peak:
    """How much memory was used at most, beyond what was when it began."""

    def __enter__(self) -> Self:
        gc.collect()
        tracemalloc.start()
        self._begin = tracemalloc.get_traced_memory()[0]
        return self

    def __exit__(self, *error: object) -> None:
        self.bytes = tracemalloc.get_traced_memory()[1] - self._begin
        tracemalloc.stop()


TOO_MUCH: dict[str, tuple[Misbehavior, type[ProviderError]]] = {
    "events": (misbehave.endless("events"), ProtocolError),
    "comments": (misbehave.endless("comments"), ProtocolError),
    "a line": (misbehave.endless("line"), ProtocolError),
    "one event": (misbehave.huge_event(10 * BOUND), ProtocolError),
    "a bomb": (misbehave.bomb(50 * BOUND), ProtocolError),
    "a header": (misbehave.huge_head(MEGABYTE), TransportError),
    "an error": (misbehave.together(misbehave.status(500), misbehave.endless("line")), APIError),
    "an error's bomb": (
        misbehave.together(misbehave.status(500), misbehave.bomb(50 * BOUND)),
        APIError,
    ),
    "a redirect": (
        misbehave.together(misbehave.redirects(), misbehave.endless("line")),
        APIError,
    ),
}


@pytest.mark.usefixtures("small_bounds")
@pytest.mark.parametrize("what", TOO_MUCH)
@both_ways
async def test_too_much_of_anything_is_an_error_and_not_kept(
    api: API, what: str, stream: bool
) -> None:
    wrong, kind = TOO_MUCH[what]
    async with api.judge(wrong) as judge:
        with Peak() as peak:
            error = await failure(api.model(judge), judge, stream=stream)
        await api.model(judge).aclose()  # what was quickly read to its end is kept
        await judge.until_closed()
    assert isinstance(error, kind)
    allowed = ASSEMBLED if api.name in CLAUDES else ALLOWED
    assert peak.bytes < allowed + ("bomb" in what) * UNPACKED


@pytest.mark.usefixtures("small_bounds")
@over("anthropic", *OPENAI)
async def test_what_came_before_too_much_is_kept(api: API) -> None:
    async with api.judge(misbehave.endless("comments", after=8)) as judge:
        error = await failure(api.model(judge), judge, stream=True)
    assert isinstance(error, ProtocolError)
    assert "larger than" in str(error)
    assert error.partial is not None
    assert error.partial.content
    assert TEXT.startswith(error.partial.content)


@with_ids
async def test_ten_megabytes_in_one_event_are_text_like_any_other(api: API) -> None:
    size = 10_000_000
    async with api.judge(misbehave.huge_event(size, after=4), TEXT) as judge:
        with Peak() as peak:
            answer = await read(api.model(judge))
    assert peak.bytes < 8 * size  # the bytes, the text, the delta and the message
    if api.name != "responses":  # there the last event has the word, and says less
        assert len(answer.message.content) == len(TEXT) + size


async def test_a_reader_may_leave_an_endless_stream(api: API) -> None:
    async with api.judge(misbehave.endless()) as judge:
        count = 0
        async with aclosing(api.model(judge).stream(ASK)) as items:
            async for item in items:
                count += isinstance(item, TextDelta)
                if count == 2000:
                    break
        await judge.until_closed()
