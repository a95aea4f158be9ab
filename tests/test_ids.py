"""Identifiers: UUID version 7, in the order they were made."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

from golem import new_id


def test_an_id_is_the_text_of_a_uuid_version_7() -> None:
    made = new_id()
    assert type(made) is str
    assert uuid.UUID(made).version == 7
    assert uuid.UUID(made).variant == uuid.RFC_4122
    assert made == str(uuid.UUID(made))


def test_ids_sort_in_the_order_they_were_made() -> None:
    made = [new_id() for _ in range(10_000)]
    assert sorted(made) == made
    assert len(made) == len(set(made))


def test_ids_made_in_several_threads_are_all_different() -> None:
    with ThreadPoolExecutor(4) as pool:
        made = [
            made
            for batch in pool.map(lambda _: [new_id() for _ in range(2_000)], range(8))
            for made in batch
        ]
    assert len(set(made)) == 16_000
