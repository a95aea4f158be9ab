"""Errors in place of an answer, and answers of somebody who is not the provider."""

from __future__ import annotations

from typing import Final

from golem.testing.judge.misbehave.scene import Act, Scene
from golem.testing.judge.reply import Reply, plain

PAGE: Final = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
    b"<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n"
    b"</body>\r\n</html>\r\n"
)


def status(code: int, message: str = "") -> Act:
    """The provider's error, with a status such as 500, 503 or 529."""
    text = message or "The server had an error while processing your request. Sorry about that!"
    return lambda reply, scene: _failure(reply, scene, text, code)


def rate_limited(after: str = "", *, header: str = "retry-after") -> Act:
    """429, to be tried again `after`: seconds or a date, or milliseconds as ``retry-after-ms``.

    It is said in this header, or where the provider says it: Gemini in the body.
    """
    text = "Rate limit reached for requests. Please try again later."

    def act(reply: Reply, scene: Scene) -> Reply:
        refusal = _failure(reply, scene, text, 429, "rate_limit_exceeded")
        return scene.provider.to_wait(refusal, header, after) if after else refusal

    return act


def out_of_quota(code: str = "insufficient_quota") -> Act:
    """429 that no waiting cures."""
    text = (
        "You exceeded your current quota, please check your plan and billing details. For more"
        " information on this error, read the docs:"
        " https://platform.openai.com/docs/guides/error-codes/api-errors."
    )
    return lambda reply, scene: _failure(reply, scene, text, 429, code)


def quotes_the_key(code: int = 401) -> Act:
    """An error that quotes the key it was sent, as debugging proxies do."""

    def act(reply: Reply, scene: Scene) -> Reply:
        text = f"The key {scene.key} is not allowed here."
        return _failure(reply, scene, text, code, scene.key)

    return act


def html_page(code: int = 502) -> Act:
    """A gateway's page in place of the answer, with whatever status."""
    return lambda reply, scene: plain(PAGE, status=code, kind="text/html")


def redirects(code: int = 307) -> Act:
    """To another host, which notes whether the key came along (`Judge.elsewhere`)."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return plain(b"", status=code).with_header("location", scene.elsewhere)

    return act


def _failure(reply: Reply, scene: Scene, text: str, code: int, word: str | None = None) -> Reply:
    """The provider's error, with the request id of the answer it stands for."""
    refusal = scene.provider.reply(scene.provider.failure(text, code, word), code)
    name = scene.provider.request_id_header
    given = dict(reply.headers).get(name, "")
    return refusal.with_header(name, given) if given else refusal
