"""Whether sanitizing lets a URL pass."""

from __future__ import annotations

from typing import Any

from golem import Part, UserMessage
from golem.history import sanitize_history


def passes(url: str, **policy: Any) -> bool:
    """Whether a part with this URL survives sanitizing."""
    message = UserMessage("look", parts=(Part.image_url(url),))
    [kept], report = sanitize_history([message], **policy)
    assert isinstance(kept, UserMessage)
    assert bool(kept.parts) != bool(report.unsafe_parts)
    return bool(kept.parts)
