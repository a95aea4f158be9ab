"""Images, sound and documents in Responses, out and in. Pure."""

from __future__ import annotations

from golem.messages import Part
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.lenient import text
from golem_adapters.openai.media import audio_part, carried, decoded, file_name, link
from golem_adapters.openai_responses.dialect import ResponsesDialect


def content_part(part: Part, dialect: ResponsesDialect) -> Wire | str:
    """The content part for `part`, or why there is none."""
    found = carried(part)
    if isinstance(found, str):
        return found
    part = found
    match part.kind:
        case "image":
            return {"type": "input_image", "image_url": link(part), "detail": "auto"}
        case "audio":
            return audio_part(part)
        case "document" if part.media_type.lower().startswith("audio/"):
            return f"document of type {part.media_type!r} cannot be sent"
        case "document" if part.data:
            return {"type": "input_file", "filename": file_name(part), "file_data": link(part)}
        case "document" if dialect.file_urls:
            return {"type": "input_file", "file_url": part.url}
        case "document":
            return "document by URL cannot be sent"
        case _:
            return f"{part.kind} part cannot be sent"


def fits_in_result(part: Part, dialect: ResponsesDialect) -> bool:
    """Whether `part` may stand in a tool's result; sound may only stand in a message."""
    return dialect.media_in_results and part.kind in ("image", "document")


def generated_image(item: Wire) -> Part | None:
    """The part for the image in an item of the server's image generation."""
    data = decoded([text(item.get("result"))])
    if not data:
        return None
    return Part.image(data, f"image/{text(item.get('output_format')) or 'png'}")
