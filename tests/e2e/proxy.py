"""A loopback server in front of the real one that sees and can delay what goes over the wire."""

from __future__ import annotations

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

HOLD_EVENTS = 2
HOLD_SECONDS = 60.0
"""The longest an answer is held back, so that a failing test ends."""


class Proxy:
    """Forwards to `target`, keeping every request body.

    The streamed answer to request number `hold` (from 1) stops after two events with text, as if
    the model thought on, until `release()`; `holding` is set while it does.
    """

    def __init__(self, target: str) -> None:
        self.target = urlsplit(target)
        self.bodies: list[dict[str, Any]] = []
        self.hold = 0
        self.holding = threading.Event()
        self._go_on = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._go_on.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def base_url(self) -> str:
        """What a client is given instead of the target's base URL."""
        return f"http://127.0.0.1:{self._server.server_port}{self.target.path}"

    def release(self) -> None:
        """Let the held answer go on."""
        self._go_on.set()

    def wait_here(self) -> None:
        """What a held answer does."""
        self.holding.set()
        self._go_on.wait(HOLD_SECONDS)


def texts(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text of every message of a Chat Completions request."""
    return [(message["role"], _text(message.get("content"))) for message in body["messages"]]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._forward(b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            proxy.bodies.append(json.loads(body))
            self._forward(body, held=len(proxy.bodies) == proxy.hold)

        def _forward(self, body: bytes, *, held: bool = False) -> None:
            upstream = http.client.HTTPConnection(proxy.target.netloc, timeout=HOLD_SECONDS)
            try:
                headers = {"content-type": self.headers.get("content-type", "")}
                upstream.request(self.command, self.path, body, headers)
                answer = upstream.getresponse()
                self.send_response(answer.status)
                self.send_header("content-type", answer.getheader("content-type", ""))
                self.end_headers()
                self._copy(answer, held)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client is gone, which is what some tests are about
            finally:
                upstream.close()

        def _copy(self, answer: http.client.HTTPResponse, held: bool) -> None:
            seen = 0
            for line in answer:
                self.wfile.write(line)
                self.wfile.flush()
                seen += b'"content":"' in line
                if held and seen == HOLD_EVENTS and line == b"\n":
                    proxy.wait_here()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
