"""Media that go out to Converse: how each is spelled, where it stands, and what is refused."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from golem.errors import UnsupportedContentError
from golem.messages import AssistantMessage, Part, UserMessage
from golem_adapters.bedrock.dialect import UNKNOWN, dialect_of
from tests.adapters.conversing import CLAUDE, MP4, NOVA, PDF, PNG, result, shape, turn, wire

ENCODED = base64.b64encode(b"png").decode()


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (PNG, {"image": {"format": "png", "source": {"bytes": ENCODED}}}),
        (
            Part.image(b"png", "image/JPG; q=1"),
            {"image": {"format": "jpeg", "source": {"bytes": ENCODED}}},
        ),
        (
            Part.image_url(f"data:image/webp;base64,{ENCODED}"),
            {"image": {"format": "webp", "source": {"bytes": ENCODED}}},
        ),
        (
            Part.video_url("s3://b/k.mov"),
            {"video": {"format": "mov", "source": {"s3Location": {"uri": "s3://b/k.mov"}}}},
        ),
        (
            Part.video_url("S3://b/k", "video/3gpp"),
            {"video": {"format": "three_gp", "source": {"s3Location": {"uri": "s3://b/k"}}}},
        ),
    ],
)
def test_media_go_inline_or_from_s3(part: Part, block: dict[str, Any]) -> None:
    assert block == wire([UserMessage("see", parts=(part,))], model=NOVA)[0]["content"][1]


@pytest.mark.parametrize(
    ("media_type", "spelled"),
    [
        ("application/pdf", "pdf"),
        ("text/csv", "csv"),
        ("text/plain; charset=utf-8", "txt"),
        ("text/x-python", "txt"),
        ("application/json", "txt"),
        ("text/markdown", "md"),
        ("text/html", "html"),
        ("application/msword", "doc"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ],
)
def test_documents_by_their_media_type(media_type: str, spelled: str) -> None:
    messages = wire([UserMessage("see", parts=(Part.document(b"x", media_type),))])
    assert messages[0]["content"][1]["document"]["format"] == spelled


def test_documents_have_neutral_names_that_differ_and_a_text_beside_them() -> None:
    history = [
        UserMessage("", parts=(PDF, PDF)),
        AssistantMessage("a"),
        UserMessage("", parts=(PDF,)),
    ]
    messages = wire(history)
    assert shape(messages) == [
        "user:text,document,document",
        "assistant:text",
        "user:text,document",
    ]
    names = [b["document"]["name"] for m in messages for b in m["content"] if "document" in b]
    assert names == ["document-1", "document-2", "document-3"]


def test_media_of_a_result_stand_in_it_where_the_family_takes_them_there() -> None:
    history = turn(result("see", PNG, PDF))
    inside = wire(history)[2]["content"]
    assert [next(iter(b)) for b in inside[0]["toolResult"]["content"]] == [
        "text",
        "image",
        "document",
    ]
    beside = wire(history, model=NOVA)[2]["content"]
    assert [next(iter(b)) for b in beside[0]["toolResult"]["content"]] == ["text", "image"]
    assert beside[1] == {"text": "Attached to the result of f (c1):"}
    assert "document" in beside[2]
    alone = wire(turn(result("", PDF)), model=NOVA)[2]["content"]
    assert alone[0]["toolResult"]["content"] == [{"text": "(no result)"}]


def test_media_that_a_model_made_follow_its_turn() -> None:
    history = [UserMessage("q"), AssistantMessage("here", parts=(PNG,)), UserMessage("n")]
    assert shape(wire(history)) == ["user:text", "assistant:text", "user:text,image,text"]


@pytest.mark.parametrize(
    ("model", "part", "why"),
    [
        (CLAUDE, Part.image_url("https://e/x.png"), "a URL that is not in S3"),
        (CLAUDE, Part.image_url("s3://b/x.png"), "image part from S3"),
        (CLAUDE, MP4, "video part cannot be sent"),
        (NOVA, Part.audio(b"x", "audio/wav"), "audio part cannot be sent"),
        (NOVA, Part.image(b"x", "image/tiff"), "'image/tiff'"),
        (NOVA, Part.image_url("s3://b/x"), "cannot be sent"),
        (NOVA, Part.image_url("s3://", "image/png"), "without a place"),
        (NOVA, Part.image_url("data:image/png;base64,%%%"), "data URL that cannot be read"),
        (NOVA, Part("image"), "neither a URL nor data"),
        (UNKNOWN, Part("hologram", url="s3://b/x"), "hologram part"),
    ],
)
def test_what_cannot_be_carried_is_refused_with_its_place(model: Any, part: Part, why: str) -> None:
    family = model.name if model is UNKNOWN else dialect_of(model).name
    with pytest.raises(UnsupportedContentError, match=r"messages\[1\]\.parts\[1\]") as caught:
        wire([UserMessage("a"), UserMessage("b", parts=(PNG, part))], model=model)
    assert why in str(caught.value)
    assert family in str(caught.value)


def test_more_media_than_one_message_may_hold_are_several_messages() -> None:
    pictures = UserMessage("see", parts=(PNG,) * 25)
    papers = UserMessage("", parts=(PDF,) * 7)
    assert shape(wire([pictures], model=NOVA)) == [
        "user:" + ",".join(["text", *["image"] * 20]),
        "assistant:text",
        "user:" + ",".join(["image"] * 5),
    ]
    messages = wire([*turn(result()), papers], model=NOVA)[2:]
    assert shape(messages) == [
        "user:" + ",".join(["toolResult", "text", *["document"] * 5]),
        "assistant:text",
        "user:" + ",".join(["text", *["document"] * 2]),
    ]
