"""A run behind a FastAPI endpoint.

Start it with ``python examples/web/fastapi_app.py``, and ask it something with
``curl -N localhost:8000/chat -d '{"prompt": "hi"}'``.
"""

from __future__ import annotations

from assistant import agent, read, serve
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import StreamingResponse

from golem.web import HEADERS, sse

app = FastAPI()


@app.post("/chat")
async def chat(request: Request) -> StreamingResponse:
    """Answer a question as an event stream; when the client leaves, the run is cancelled.

    The body is read as bytes: golem's own decoder keeps what a newer client wrote, to the byte.
    """
    try:
        prompt, history = read(await request.body())
    except ValueError as error:
        raise HTTPException(400, {"error": str(error)}) from error
    return StreamingResponse(sse(agent.stream(prompt, history=history)), headers=dict(HEADERS))


if __name__ == "__main__":
    serve(app)
