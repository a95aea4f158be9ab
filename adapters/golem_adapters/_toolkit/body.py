"""Request bodies: the settings that apply, and JSON that is always the same bytes. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from golem.model import OutputSchema, Settings
from golem_adapters._toolkit.lenient import clean, is_mapping

Wire = dict[str, Any]
"""A JSON object on its way out."""


def merged(own: Settings, of_request: Settings | None) -> Settings:
    """`own` settings with those of the request over them; extra bodies are merged too."""
    if of_request is None:
        return own
    changes: dict[str, Any] = {
        name: value
        for name in Settings.__struct_fields__
        if (value := getattr(of_request, name)) is not None and value != ()
    }
    if own.extra_body and of_request.extra_body:
        changes["extra_body"] = {**own.extra_body, **of_request.extra_body}
    return msgspec.structs.replace(own, **changes) if changes else own


def parallel_switch(settings: Settings) -> Wire:
    """The member that lets a model ask for several calls in one turn, if there is a word on it."""
    parallel = settings.parallel_tool_calls
    return {} if parallel is None else {"parallel_tool_calls": parallel}


def schema_words(output: OutputSchema) -> str:
    """The instruction that tells a model of a schema which its server does not hold it to."""
    schema = encoded(dict(output.schema)).decode()
    return f"Answer with one JSON object, and nothing else, that follows this JSON Schema: {schema}"


def encoded(body: Wire) -> bytes:
    """`body` as JSON; equal bodies, built in the same order, are equal bytes."""
    try:
        return _encoder.encode(body)
    except UnicodeEncodeError:
        # A lone surrogate somewhere in the text. Rare: found by failing, not by looking.
        return _encoder.encode(clean(body))


def _plain(value: object) -> object:
    """What the JSON encoder cannot write by itself: a caller's read-only mapping."""
    if is_mapping(value):
        return dict(value)
    raise TypeError(f"{type(value).__name__} in a request body")


_encoder: Final = msgspec.json.Encoder(enc_hook=_plain)
