"""Limits as callers give them: whole numbers; not booleans, nor what compares oddly."""

from __future__ import annotations


def at_least(name: str, value: object, least: int) -> None:
    """Raise ValueError, naming the limit, unless `value` is an integer of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{name} must be an integer, got {value!r:.40}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
