"""`golem.web.sse`: frames with ids, heartbeats, and a source that is closed whatever happens."""

from __future__ import annotations

import pytest

from golem import Agent
from golem.events import decode_event
from golem.testing import ScriptedModel
from golem.web import sse
from golem.wire.sse import SSEDecoder


async def test_a_run_comes_out_as_its_events() -> None:
    """Each event is one frame, whose id is its run and its number."""
    agent = Agent(ScriptedModel(["Hello, you."]))
    stream = agent.stream("hi")
    decoder = SSEDecoder()
    frames = [frame async for chunk in sse(stream) for frame in decoder.feed(chunk)]
    events = [decode_event(frame.data) for frame in frames]
    assert events[-1].kind == "run_finished"
    assert [f"{stream.run_id}:{n}" for n in range(len(events))] == [f.id for f in frames]
    resumed = [f async for c in sse(events, after=frames[2].id) for f in decoder.feed(c)]
    assert frames[3:] == resumed


@pytest.mark.parametrize("id", ["", "run", "run:", "run:x", ":3", "run:-1", "run:1.", "run:1.2.x"])
def test_what_is_no_id_is_refused_at_once(id: str) -> None:
    """The handler can still answer with a status."""
    with pytest.raises(ValueError, match="not the id of an event"):
        sse([], after=id)
