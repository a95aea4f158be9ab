"""Token counts add up."""

from __future__ import annotations

import msgspec

from golem import Usage


def test_usage_adds_up_member_by_member() -> None:
    one = Usage(1, 2, 3, 4, 5)
    assert Usage(11, 22, 33, 44, 55) == one + Usage(10, 20, 30, 40, 50)
    assert one == one + Usage()
    assert one.total_tokens == 3


def test_nothing_used_is_falsy() -> None:
    assert not Usage()
    assert Usage(reasoning_tokens=1)


def test_usage_is_camel_case_json_without_zeros() -> None:
    data = msgspec.json.encode(Usage(input_tokens=5, cache_read_tokens=2))
    assert data == b'{"inputTokens":5,"cacheReadTokens":2}'
    assert Usage(5, cache_read_tokens=2) == msgspec.json.decode(data, type=Usage)
