"""Images, documents, video and sound in Converse, both ways. Pure.

A part is inline or in S3 (``s3://bucket/key``); the service fetches nothing else.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from golem.messages import Part
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.lenient import members, text
from golem_adapters._toolkit.media import inline_data, is_data_url
from golem_adapters.bedrock.dialect import ConverseDialect

_S3: Final = "s3://"
_OFFICE: Final = "vnd.openxmlformats-officedocument"
_TEXTS: Final = ("application/json", "application/xml", "application/yaml")
_FORMATS: Final[Mapping[str, Mapping[str, str]]] = {
    "image": {"jpg": "jpeg", "jpeg": "jpeg", "png": "png", "gif": "gif", "webp": "webp"},
    "document": {
        "pdf": "pdf",
        "x-pdf": "pdf",
        "csv": "csv",
        "msword": "doc",
        "doc": "doc",
        f"{_OFFICE}.wordprocessingml.document": "docx",
        "docx": "docx",
        "vnd.ms-excel": "xls",
        "xls": "xls",
        f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
        "xlsx": "xlsx",
        "html": "html",
        "xhtml+xml": "html",
        "htm": "html",
        "plain": "txt",
        "txt": "txt",
        "markdown": "md",
        "md": "md",
    },
    "video": {
        "x-matroska": "mkv",
        "mkv": "mkv",
        "quicktime": "mov",
        "mov": "mov",
        "mp4": "mp4",
        "webm": "webm",
        "x-flv": "flv",
        "flv": "flv",
        "mpeg": "mpeg",
        "mpg": "mpg",
        "x-ms-wmv": "wmv",
        "wmv": "wmv",
        "3gpp": "three_gp",
        "3gp": "three_gp",
        "three_gp": "three_gp",
    },
    "audio": {
        "mp3": "mp3",
        "mpeg": "mp3",
        "opus": "opus",
        "wav": "wav",
        "x-wav": "wav",
        "wave": "wav",
        "aac": "aac",
        "x-aac": "x-aac",
        "flac": "flac",
        "x-flac": "flac",
        "mp4": "mp4",
        "x-m4a": "m4a",
        "m4a": "m4a",
        "ogg": "ogg",
        "webm": "webm",
        "x-matroska": "mkv",
        "pcm": "pcm",
        "mka": "mka",
    },
}
"""Each kind's formats by what stands behind the slash of a media type, or behind a name's dot."""


def content_block(part: Part, dialect: ConverseDialect, number: int) -> Wire | str:
    """The content block for `part`, or why there is none; `number` is a document's.

    Documents get neutral names, which have to differ: the real ones could be read as
    instructions.
    """
    kind = part.kind
    if kind not in dialect.media or kind not in _FORMATS:
        return f"{kind} part cannot be sent"
    data, media_type = part.data, part.media_type
    if is_data_url(part.url) and not data:
        read = inline_data(part.url)
        if read is None:
            return f"{kind} part has a data URL that cannot be read"
        data, media_type = read
    source = _source(part.url, data, kind, dialect)
    if isinstance(source, str):
        return source
    spelled = _format(kind, media_type, part.url)
    if spelled is None:
        return f"{kind} of type {media_type!r} cannot be sent"
    body: Wire = {"format": spelled, "source": source}
    return {kind: {**body, "name": f"document-{number}"} if kind == "document" else body}


def _source(url: str, data: bytes, kind: str, dialect: ConverseDialect) -> Wire | str:
    if data:
        return {"bytes": base64.b64encode(data).decode()}
    if not url:
        return f"{kind} part has neither a URL nor data, which cannot be sent"
    if url[: len(_S3)].lower() != _S3:
        return f"{kind} part with a URL that is not in S3 cannot be sent"
    if kind not in dialect.s3:
        return f"{kind} part from S3 cannot be sent"
    if len(url) == len(_S3):
        return f"{kind} part from S3 without a place cannot be sent"
    return {"s3Location": {"uri": _S3 + url[len(_S3) :]}}


def _format(kind: str, media_type: str, url: str) -> str | None:
    """The service's name for a format: by the media type, where there is none by the name."""
    spelled = media_type.partition(";")[0].strip().lower()
    if not spelled and url:
        spelled = f"{kind}/{_ending(url)}"
    found = _FORMATS[kind].get(spelled.partition("/")[2])
    if found is None and kind == "document" and (spelled[:5] == "text/" or spelled in _TEXTS):
        return "txt"
    return found


def _ending(url: str) -> str:
    """What stands behind the last dot of the name in `url`; empty where it cannot be read."""
    try:
        return urlsplit(url).path.rpartition(".")[2].lower()
    except ValueError:
        return ""


def made_part(kind: str, body: object) -> Part | None:
    """The part for a block of media that a model made; None where it holds nothing."""
    found: dict[str, Any] = members(body)
    source = members(found.get("source"))
    media_type = f"{kind}/{text(found.get('format')) or 'png'}"
    if uri := text(members(source.get("s3Location")).get("uri")):
        return Part(kind, url=uri, media_type=media_type)
    try:
        data = base64.b64decode(text(source.get("bytes")), validate=True)
    except (binascii.Error, ValueError):
        return None
    return Part(kind, data=data, media_type=media_type) if data else None
