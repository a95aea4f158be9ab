"""Which model an example talks to: the flags win, then ``OPENAI_API_KEY``, then the local one.

For programs: ``add_arguments(parser)``, then ``with choose_model(arguments) as choice``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

import httpx

from golem.model import Model
from golem_adapters import OpenAI
from local_model import MODEL, LocalModelError, local_model

OPENAI_MODEL = "gpt-5-mini"


class Choice(NamedTuple):
    """A model, and a line that tells a person what they are talking to."""

    model: Model
    description: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags that choose the model."""
    parser.add_argument(
        "--base-url", metavar="URL", help="a server that speaks OpenAI Chat Completions"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help=f"the model's name (default: {OPENAI_MODEL}, or the first one the server lists)",
    )


@contextmanager
def choose_model(arguments: argparse.Namespace) -> Generator[Choice, None, None]:
    """The chosen model, ready to be asked; a local server is stopped at the end.

    Exits with a message where there is none.
    """
    if arguments.base_url:
        name = arguments.model or _first_model(arguments.base_url)
        try:
            model = OpenAI(name, base_url=arguments.base_url)
        except ValueError as error:
            raise SystemExit(str(error)) from error
        yield Choice(model, f"{name} at {model.base_url}")  # without what may be secret in it
    elif os.environ.get("OPENAI_API_KEY"):
        name = arguments.model or OPENAI_MODEL
        yield Choice(OpenAI(name), f"{name} at OpenAI")
    else:
        _no_proxy_for("127.0.0.1")
        try:
            with local_model() as base_url:
                model = OpenAI(MODEL, base_url=base_url, temperature=0.0, max_tokens=200)
                yield Choice(
                    model,
                    f"{MODEL}, running on this machine "
                    "(a tiny model of 135 million parameters: do not expect it to be clever)",
                )
        except LocalModelError as error:
            raise SystemExit(f"{error}\nOr set OPENAI_API_KEY, or give --base-url.") from error


def _first_model(base_url: str) -> str:
    """The first model that the server lists."""
    try:
        answer = httpx.get(f"{base_url.rstrip('/')}/models", timeout=10).raise_for_status()
        name: str = answer.json()["data"][0]["id"]
    except (httpx.HTTPError, ValueError, LookupError) as error:
        raise SystemExit(f"{base_url} lists no models ({error}): give --model NAME.") from error
    return name


def _no_proxy_for(host: str) -> None:
    """Keep requests to `host` away from a proxy that the environment names."""
    hosts = [h for h in os.environ.get("NO_PROXY", "").split(",") if h]
    os.environ["NO_PROXY"] = ",".join([*hosts, host])
