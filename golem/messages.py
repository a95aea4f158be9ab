"""The durable contract: the four messages of a conversation and what they are made of.

Their JSON (contract §1) is read and written by every version of golem and by its Go sibling, so
it only ever grows: nothing here is renamed, retyped or dropped, a new field has a default and
stands where the contract's field order puts it. Reading and writing bytes is in
``golem.codec``; passes over whole histories are in ``golem.history``.

All structs are frozen: share them freely, change them with ``msgspec.structs.replace``.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct, field

from golem import rawjson
from golem.errors import HistoryError

T = TypeVar("T")

if TYPE_CHECKING:
    RawArgs = Raw | str
else:
    # Decoded as Raw: msgspec knows no union with it. `ToolCall.__post_init__` narrows.
    RawArgs = Raw

PART_KINDS: Final = frozenset({"image", "document", "audio", "video"})

_SMALL: Final = 2 * rawjson.MAX_DEPTH
"""An object of fewer bytes cannot be nested too deep."""


class UnknownMembers(Mapping[str, bytes]):
    """Members that a newer writer put on a struct: name to the exact bytes of the JSON value.

    They ride along unread and are written back after the known members (contract §1, *Forward
    compatibility*). Immutable and hashable; equal when they are written alike.
    """

    __slots__ = ("_members",)

    def __init__(self, members: Mapping[str, bytes] | None = None) -> None:
        self._members = dict(members or {})

    def __getitem__(self, name: str) -> bytes:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownMembers) and self._written() == other._written()

    def __hash__(self) -> int:
        return hash(frozenset(self._written().items()))

    def _written(self) -> dict[str, bytes]:
        return {name: one_line(text) for name, text in self._members.items()}

    def __repr__(self) -> str:
        return f"UnknownMembers({self._members!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy of nothing is the one NO_MEMBERS, by which the encoder tells that there is nothing
        # to splice in: messages from another process would otherwise be written the slow way.
        return _members_of, (self._members,)


NO_MEMBERS: Final = UnknownMembers()


def _members_of(members: dict[str, bytes]) -> UnknownMembers:
    return UnknownMembers(members) if members else NO_MEMBERS


class _Contract(
    Struct,
    frozen=True,
    gc=False,  # acyclic by construction: strings, bytes, tuples and structs of this module
    omit_defaults=True,
    repr_omit_defaults=True,
    forbid_unknown_fields=True,  # the strict path; unknown members take the codec's tolerant one
    rename="camel",
):
    """Configuration shared by everything that is stored."""


class Part(_Contract, frozen=True):
    """A piece of media in a user message, a tool result or a model's answer.

    Either `url` or inline `data` (with its `media_type`). One flat struct, so that a kind this
    version does not know still loads, passes through and is written back.
    """

    kind: Annotated[str, Meta(description="image, document, audio, video; may grow")]
    url: Annotated[str, Meta(description="where the media is, when it is not inline")] = ""
    data: Annotated[bytes, Meta(description="the media itself; standard base64 in JSON")] = b""
    media_type: Annotated[str, Meta(description="MIME type; required beside data")] = ""
    unknown: UnknownMembers = NO_MEMBERS

    @classmethod
    def image_url(cls, url: str, media_type: str = "") -> Part:
        """An image by reference."""
        return cls("image", url=url, media_type=media_type)

    @classmethod
    def image(cls, data: bytes, media_type: str) -> Part:
        """An inline image."""
        return cls("image", data=data, media_type=media_type)

    @classmethod
    def document_url(cls, url: str, media_type: str = "") -> Part:
        """A document by reference."""
        return cls("document", url=url, media_type=media_type)

    @classmethod
    def document(cls, data: bytes, media_type: str) -> Part:
        """An inline document."""
        return cls("document", data=data, media_type=media_type)

    @classmethod
    def audio_url(cls, url: str, media_type: str = "") -> Part:
        """A sound by reference."""
        return cls("audio", url=url, media_type=media_type)

    @classmethod
    def audio(cls, data: bytes, media_type: str) -> Part:
        """An inline sound."""
        return cls("audio", data=data, media_type=media_type)

    @classmethod
    def video_url(cls, url: str, media_type: str = "") -> Part:
        """A video by reference."""
        return cls("video", url=url, media_type=media_type)

    @classmethod
    def video(cls, data: bytes, media_type: str) -> Part:
        """An inline video."""
        return cls("video", data=data, media_type=media_type)

    def validate(self) -> None:
        """Raise ValueError unless this is a part a run may send (contract §1, *Part*).

        A known kind, exactly one of `url` and non-empty `data`, `data` with its media type.
        Schemes are not judged here (that is sanitizing), nor what a provider takes (adapters).
        """
        if self.kind not in PART_KINDS:
            raise ValueError(f"unsupported part kind {self.kind!r}")
        if not self.url and not self.data:
            raise ValueError(f"{self.kind} part has neither a URL nor inline data")
        if self.url and self.data:
            raise ValueError(f"{self.kind} part has both a URL and inline data")
        if self.data and not self.media_type:
            raise ValueError(f"{self.kind} part with inline data requires a media type")


class Thinking(_Contract, frozen=True):
    """A block of a model's reasoning, kept so that it can go back to whoever made it."""

    text: Annotated[str, Meta(description="the readable reasoning")] = ""
    signature: Annotated[str, Meta(description="the maker's proof of the text; opaque")] = ""
    redacted: Annotated[str, Meta(description="encrypted reasoning; opaque")] = ""
    provider: Annotated[str, Meta(description="who made it; a signature goes nowhere else")] = ""
    id: Annotated[str, Meta(description="the maker's id of the block")] = ""
    unknown: UnknownMembers = NO_MEMBERS

    def validate(self) -> None:
        """Raise ValueError unless exactly one of `text` and `redacted` is there.

        A signature with empty text is valid too: providers that hide the text send that.
        """
        if self.redacted and self.text:
            raise ValueError("thinking has both text and redacted data")
        if self.redacted and self.signature:
            raise ValueError("redacted thinking cannot carry a signature")
        if not self.text and not self.redacted and not self.signature:
            raise ValueError("thinking has neither text nor redacted data nor a signature")


class ToolCall(_Contract, frozen=True, eq=False):
    """A model's request to run a tool. Make one with `ToolCall.of`.

    The arguments are the model's own text, never reparsed and rewritten: key order, number
    spelling and duplicate keys survive. Read them as `args` (text) or `arguments()` (decoded);
    `truncated` says that they are not a JSON object. Calls are equal when they are written
    alike. A `Raw` is taken for decoded JSON and not checked again: give text.
    """

    id: Annotated[str, Meta(description="pairs the call with its result; empty: unpairable")]
    name: Annotated[str, Meta(description="the tool the model asked for")]
    raw: Annotated[
        RawArgs,
        Meta(description="an object: the arguments; a string: the verbatim text of no object"),
    ] = field(name="args")
    signature: Annotated[str, Meta(description="a provider's thought signature; opaque")] = ""
    unknown: UnknownMembers = NO_MEMBERS

    def __post_init__(self) -> None:
        """Settle how `raw` is held: Raw for an object, str for any other text.

        Runs for decoded calls too, where Raw may hold any JSON value: a string is the verbatim
        text of something that is no object; a bare scalar or array is its own text and null is
        empty (the Go spelling).
        """
        raw = self.raw
        if type(raw) is Raw:
            text, size = utf_8_decode(raw, None, True)  # the cheapest look that proves it UTF-8
            if 0 < size < _SMALL and text[0] == "{":
                return
            held = _settle(bytes(raw))
        elif isinstance(raw, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            held = _hold(rawjson.clean_text(raw).encode())
        else:
            raise TypeError(f"args is the model's own text, not {type(raw).__name__}")
        if held is not raw:
            msgspec.structs.force_setattr(self, "raw", held)

    @classmethod
    def of(cls, id: str, name: str, args: str, signature: str = "") -> ToolCall:
        """A call with arguments as the model wrote them.

        White space around a JSON object is trimmed, blank text is empty, any other text is kept
        as it is; lone surrogates become U+FFFD.

        Raises TypeError for arguments that are not text.
        """
        return cls(id, name, args, signature)

    @property
    def args(self) -> str:
        """The model's argument text; empty when it sent none."""
        raw = self.raw
        return raw if isinstance(raw, str) else bytes(raw).decode()

    @property
    def truncated(self) -> bool:
        """Whether the arguments are not a valid JSON object (cut off, empty, a scalar …)."""
        return type(self.raw) is str

    def arguments(self, type: type[T] = dict[str, Any]) -> T:  # type: ignore[assignment]
        """The arguments decoded as `type`, any type msgspec can decode.

        Raises ValueError, naming the call, when the text is no JSON object or does not fit.
        """
        if isinstance(self.raw, str):
            raise ValueError(f"arguments of call {self.id!r} ({self.name}) are not a JSON object")
        data = rawjson.without_lone_surrogates(bytes(self.raw))
        try:
            return msgspec.json.decode(data, type=type)
        except (msgspec.MsgspecError, RecursionError) as error:  # the latter on a deep stack
            raise ValueError(f"arguments of call {self.id!r} ({self.name}): {error}") from error

    def __repr__(self) -> str:
        signature = f", signature={self.signature!r}" if self.signature else ""
        return f"ToolCall.of({self.id!r}, {self.name!r}, {self.args!r}{signature})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolCall) and self._written() == other._written()

    def __hash__(self) -> int:
        return hash(self._written())

    def _written(self) -> tuple[object, ...]:
        """What tells calls apart once stored, where line breaks between tokens are spaces."""
        raw = self.raw
        args = raw if isinstance(raw, str) else one_line(bytes(raw))
        return self.id, self.name, args, self.signature, self.unknown


class Native(_Contract, frozen=True, eq=False):
    """What a provider sent, where the ordinary fields cannot reproduce it exactly.

    The same provider gets `items` back byte for byte while the message is unchanged; every other
    reader uses the ordinary fields, which always tell the whole visible story.
    """

    provider: Annotated[str, Meta(description="the only one the items may be sent back to")]
    items: Annotated[tuple[Raw, ...], Meta(description="the provider's items, verbatim")] = ()
    unknown: UnknownMembers = NO_MEMBERS

    def __post_init__(self) -> None:
        for item in self.items:
            if not rawjson.is_utf8(bytes(item)):
                raise ValueError("native item is not UTF-8")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Native) and self._written() == other._written()

    def __hash__(self) -> int:
        return hash(self._written())

    def _written(self) -> tuple[object, ...]:
        return self.provider, tuple(one_line(bytes(item)) for item in self.items), self.unknown


class _Message(_Contract, frozen=True, tag_field="role"):
    content: Annotated[str, Meta(description="the text of the message")] = ""


class SystemMessage(_Message, frozen=True, tag="system", kw_only=True):
    """Instructions. A run replaces those of its history with its own."""

    run_id: str = ""
    conversation_id: str = ""
    seal: str = ""
    unknown: UnknownMembers = NO_MEMBERS


class UserMessage(_Message, frozen=True, tag="user", kw_only=True):
    """What a person (or the program in their place) said; the text comes before the parts."""

    parts: tuple[Part, ...] = ()
    run_id: str = ""
    conversation_id: str = ""
    seal: str = ""
    unknown: UnknownMembers = NO_MEMBERS


class AssistantMessage(_Message, frozen=True, tag="assistant", kw_only=True):
    """What a model answered: text, media, requests to run tools, its reasoning."""

    parts: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: tuple[Thinking, ...] = ()
    native: Native | None = None
    run_id: str = ""
    conversation_id: str = ""
    seal: str = ""
    unknown: UnknownMembers = NO_MEMBERS


class ToolMessage(_Message, frozen=True, tag="tool", kw_only=True):
    """The result of one tool call, as the model reads it; `failed`: a definitive failure."""

    parts: tuple[Part, ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    failed: bool = False
    run_id: str = ""
    conversation_id: str = ""
    seal: str = ""
    unknown: UnknownMembers = NO_MEMBERS


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage

MESSAGE_TYPES: Final[Mapping[str, type[Message]]] = {
    "system": SystemMessage,
    "user": UserMessage,
    "assistant": AssistantMessage,
    "tool": ToolMessage,
}


def not_a_message(value: object, index: int) -> HistoryError:
    """The error every pass raises for something in a history that is no message."""
    return HistoryError(f"not a message but {type(value).__name__}", index=index)


def one_line(data: bytes) -> bytes:
    """JSON text with line breaks as spaces. Valid JSON has raw ones only between tokens."""
    return data.replace(b"\n", b" ").replace(b"\r", b" ")


def _settle(data: bytes) -> Raw | str:
    """How a call holds the stored JSON value `data` of its args."""
    if data[:1] == b'"':
        return _hold(rawjson.text(data).encode())
    if data == b"null":
        return ""
    return _hold(data)


def _hold(text: bytes) -> Raw | str:
    """How a call holds the argument text `text`."""
    trimmed = text.strip(rawjson.BLANKS)
    if not trimmed:
        return ""
    return Raw(trimmed) if rawjson.is_object(trimmed) else text.decode()
