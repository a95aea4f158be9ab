"""A run behind an aiohttp endpoint.

Start it with ``python examples/web/aiohttp_app.py``, and ask it something with
``curl -N localhost:8000/chat -d '{"prompt": "hi"}'``.
"""

from __future__ import annotations

from aiohttp import web
from assistant import agent, port, read

from golem.web import HEADERS, sse


async def chat(request: web.Request) -> web.StreamResponse:
    """Answer a question as an event stream; when the client leaves, the run is cancelled."""
    try:
        prompt, history = read(await request.read())
    except ValueError as error:
        return web.json_response({"error": str(error)}, status=400)
    response = web.StreamResponse(headers=HEADERS)
    await response.prepare(request)
    async with agent.stream(prompt, history=history) as stream:
        async for chunk in sse(stream):
            await response.write(chunk)
    return response


app = web.Application()
app.router.add_post("/chat", chat)

if __name__ == "__main__":
    # Without `handler_cancellation` aiohttp lets a handler go on when its client has left.
    web.run_app(app, host="127.0.0.1", port=port(), print=None, handler_cancellation=True)
