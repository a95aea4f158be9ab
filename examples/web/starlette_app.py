"""A run behind a Starlette endpoint.

Start it with ``python examples/web/starlette_app.py``, and ask it something with
``curl -N localhost:8000/chat -d '{"prompt": "hi"}'``.
"""

from __future__ import annotations

from assistant import agent, read, serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from golem.web import HEADERS, sse


async def chat(request: Request) -> Response:
    """Answer a question as an event stream; when the client leaves, the run is cancelled."""
    try:
        prompt, history = read(await request.body())
    except ValueError as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    return StreamingResponse(sse(agent.stream(prompt, history=history)), headers=dict(HEADERS))


app = Starlette(routes=[Route("/chat", chat, methods=["POST"])])

if __name__ == "__main__":
    serve(app)
