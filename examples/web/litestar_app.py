"""A run behind a Litestar endpoint.

Start it with ``python examples/web/litestar_app.py``, and ask it something with
``curl -N localhost:8000/chat -d '{"prompt": "hi"}'``.
"""

from __future__ import annotations

from typing import Any

from assistant import agent, read, serve
from litestar import Litestar, Request, post
from litestar.exceptions import ClientException
from litestar.response import Stream

from golem.web import HEADERS, sse


@post("/chat", status_code=200)
async def chat(request: Request[Any, Any, Any]) -> Stream:
    """Answer a question as an event stream; when the client leaves, the run is cancelled."""
    try:
        prompt, history = read(await request.body())
    except ValueError as error:
        raise ClientException(str(error)) from error
    return Stream(sse(agent.stream(prompt, history=history)), headers=dict(HEADERS))


app = Litestar([chat])

if __name__ == "__main__":
    serve(app)
