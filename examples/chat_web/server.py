"""A chat in the browser: streaming, tools, approvals, a Stop button, and nothing lost on reload.

Start it with ``python examples/chat_web/server.py`` and open http://127.0.0.1:8000. Without a key
a model of a few rules answers (``model.py``); with ``GOLEM_MODEL=openai:gpt-5-mini`` and its key a
real one does. Runs are detached from the connections that read them: a closed tab stops nothing,
a second tab or a reload reads on from the record. The page is a few small files, with no build.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from model import RuleModel

from golem import Agent, tool
from golem.web import asgi

PAGE = Path(__file__).parent / "page"
FILES = {
    "/": ("index.html", b"text/html; charset=utf-8"),
    "/chat.css": ("chat.css", b"text/css; charset=utf-8"),
    "/chat.js": ("chat.js", b"text/javascript; charset=utf-8"),
    "/draw.js": ("draw.js", b"text/javascript; charset=utf-8"),
    "/events.js": ("events.js", b"text/javascript; charset=utf-8"),
    "/words.js": ("words.js", b"text/javascript; charset=utf-8"),
}
POLICY = b"default-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'"


@tool
async def weather(city: str) -> str:
    """What the weather is like in a city."""
    await anyio.sleep(0.8)  # somebody looks out of the window
    return f"{city}: 21 degrees and fair"


@tool(requires_approval=True)
def delete_drafts(older_than_days: int) -> str:
    """Delete drafts for good."""
    return f"12 drafts older than {older_than_days} days are gone"


def agent_for(identity: str) -> Agent[Any, str]:
    """The agent that serves whoever is asking; its tools could be scoped to them."""
    return Agent(
        os.environ.get("GOLEM_MODEL") or RuleModel(),
        instructions=f"You are talking to {identity}. Be brief.",
        tools=[weather, delete_drafts],
        parallel_tool_calls=True,
    )


# A forged history is not refused here but cleaned, for the page to show what was done to it.
runs = asgi.app(agent_for, on_disconnect="detach", unsafe="drop")


async def app(scope: Any, receive: Any, send: Any) -> None:
    """The page's files; everything else is the runs'."""
    if scope["type"] != "http" or scope["path"] not in FILES:
        await runs(scope, receive, send)
        return
    name, kind = FILES[scope["path"]]
    headers = [
        (b"content-type", kind),
        (b"content-security-policy", POLICY),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-cache"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": (PAGE / name).read_bytes()})


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    print(f"http://127.0.0.1:{port}", flush=True)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=2)
