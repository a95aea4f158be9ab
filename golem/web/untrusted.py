"""JSON that a client has posted, read member by member: every complaint names the place.

What comes out are messages as the client claims them. Nothing here judges them: that is
`golem.sanitize_history`'s, and the application's, business.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from golem.codec import encode_json
from golem.errors import HistoryError
from golem.messages import Part
from golem.rawjson import clean_text, without_lone_surrogates

Document = bytes | str | dict[str, Any] | list[Any]
"""A JSON document: its text, or what a JSON library made of it."""

_DATA_URL: Final = re.compile(r"data:(?P<type>[^;,]*)(?P<rest>(?:;[^,]*)?),(?P<data>.*)", re.DOTALL)
_KINDS: Final = ("image", "audio", "video")
_NAMES: Final[Mapping[type, str]] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "true or false",
    type(None): "nothing",
}


class Item:
    """One value of the document, and where it stands: message `index`, member `path`."""

    __slots__ = ("index", "path", "value")

    def __init__(self, value: object, index: int | None = None, path: str = "") -> None:
        self.value = value
        self.index = index
        self.path = path

    def error(self, reason: str) -> HistoryError:
        """The error that says what is wrong with this value."""
        return HistoryError(reason, index=self.index, path=self.path)

    def at(self, name: str) -> Item:
        """The member of that name; its value is None where there is none."""
        path = f"{self.path}.{name}" if self.path else name
        return Item(self.members().get(name), self.index, path)

    def members(self) -> Mapping[str, object]:
        """The value, which has to be an object."""
        if isinstance(self.value, dict):
            return cast("dict[str, object]", self.value)  # pyright: ignore[reportUnknownMemberType]
        raise self._not("an object")

    def items(self) -> Iterator[Item]:
        """The elements of the value, which has to be an array; none where it is absent."""
        for place, value in enumerate([] if self.value is None else self._elements()):
            yield Item(value, self.index, f"{self.path}[{place}]")

    def messages(self) -> Iterator[Item]:
        """The elements of the value as the messages of a conversation."""
        for index, value in enumerate(self._elements()):
            yield Item(value, index)

    def _elements(self) -> list[object]:
        if isinstance(self.value, list):
            return cast("list[object]", self.value)  # pyright: ignore[reportUnknownMemberType]
        raise self._not("an array")

    def text(self) -> str:
        """The value, which has to be a string; without lone surrogates."""
        if not isinstance(self.value, str):
            raise self._not("a string")
        return clean_text(self.value)

    def optional_text(self) -> str:
        """The same; empty where it is absent."""
        return "" if self.value is None else self.text()

    def json(self) -> str:
        """The value as text: a string as it is, anything else as JSON; empty where it is absent."""
        if self.value is None:
            return ""
        if isinstance(self.value, str):
            return self.text()
        try:
            return encode_json(self.value).decode()
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self.error("not a JSON value") from error

    def _not(self, expected: str) -> HistoryError:
        given = next((n for kind, n in _NAMES.items() if isinstance(self.value, kind)), "a number")
        return self.error(f"expected {expected}, not {given}")


def document(given: Document) -> Item:
    """The document, parsed if it is not. Raises HistoryError where it is not JSON."""
    if not isinstance(given, (bytes, str)):
        return Item(given)
    try:
        data = given.encode("utf-8", "replace") if isinstance(given, str) else given
        return Item(msgspec.json.decode(without_lone_surrogates(data)))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise HistoryError(f"not JSON: {error}") from error


def media(url: Item, media_type: str = "", kind: str = "") -> Part:
    """A part by its address; a ``data:`` address is taken apart into inline data.

    Other addresses pass as they are: `golem.sanitize_history` judges them.
    """
    address = url.text()
    if address[:5].lower() != "data:":
        return _part(url, Part(kind or kind_of(media_type), url=address, media_type=media_type))
    found = _DATA_URL.fullmatch(f"data:{address[5:]}")
    if found is None or not found["rest"].lower().endswith(";base64"):
        raise url.error("a data URL has to hold base64")
    data = Item(found["data"], url.index, url.path)
    return inline(data, found["type"] or media_type, kind)


def inline(data: Item, media_type: str, kind: str = "") -> Part:
    """A part whose data stands there in base64."""
    part = Part(kind or kind_of(media_type), data=base64_of(data), media_type=media_type)
    return _part(data, part)


def base64_of(data: Item) -> bytes:
    """The bytes that the value spells."""
    try:
        return base64.b64decode(data.text().encode(), validate=True)
    except (binascii.Error, ValueError) as error:
        if isinstance(error, HistoryError):
            raise
        raise data.error("not standard base64") from error


def kind_of(media_type: str) -> str:
    """The kind of part that a MIME type is."""
    family = media_type.partition("/")[0].lower()
    return family if family in _KINDS else "document"


def _part(place: Item, part: Part) -> Part:
    try:
        part.validate()
    except ValueError as error:
        raise place.error(str(error)) from error
    return part
