"""Histories that are broken in every way pairing can break, for Hypothesis.

The alphabets are small on purpose: ids have to collide for anything interesting to happen. The
content of a message is its place, so that no two results can be mistaken for each other.

`HOSTILE_HISTORY` is for what stands behind repair, an adapter: ids, names, texts and arguments are
whatever can be stored, thinking and media come with them.
"""

from __future__ import annotations

from hypothesis import strategies as st

from golem import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)

REUSED_IDS = st.sampled_from(["a", "a", "b", "c"])
SOME_IDS = st.sampled_from(["", "a", "b"])
ARGS = st.sampled_from(["{}", "{}", "{}", '{"x":1}', '{"x":', "", "5", "null"])

Recipe = tuple[str, list[tuple[str, str]]]
"""A role and (id, args) of its calls, or the one id a result answers."""

EMPTY: list[Recipe] = [("user", []), ("system", []), ("assistant", [])]
"""Messages without calls."""


def recipes(ids: st.SearchStrategy[str]) -> st.SearchStrategy[Recipe]:
    """One message of a history whose calls and results take their ids from `ids`."""
    calls: st.SearchStrategy[list[tuple[str, str]]] = st.lists(st.tuples(ids, ARGS), max_size=3)
    result = st.tuples(ids, st.just("")).map(lambda pair: ("tool", [pair]))
    return st.one_of(
        result,
        result,
        calls.map(lambda asked: ("assistant", asked)),
        st.sampled_from(EMPTY),
    )


def build(recipe: list[Recipe]) -> list[Message]:
    """The history a recipe stands for."""
    return [_message(role, calls, index) for index, (role, calls) in enumerate(recipe)]


def _message(role: str, calls: list[tuple[str, str]], index: int) -> Message:
    text = f"#{index}"
    match role:
        case "tool":
            return ToolMessage(text, tool_call_id=calls[0][0], tool_name=f"t{index}")
        case "assistant":
            asked = tuple(ToolCall.of(call_id, f"f{index}", args) for call_id, args in calls)
            return AssistantMessage(text, tool_calls=asked)
        case "system":
            return SystemMessage(text)
        case _:
            return UserMessage(text)


def histories(ids: st.SearchStrategy[str] = SOME_IDS) -> st.SearchStrategy[list[Message]]:
    """Histories in which ids are reused, repeated and missing, results late, doubled and lost."""
    return st.lists(recipes(ids), max_size=12).map(build)


@st.composite
def damaged_histories(draw: st.DrawFn) -> list[Message]:
    """Sound histories with unique ids, of which a few messages were lost, doubled or displaced."""
    sound: list[Recipe] = []
    for turn in range(draw(st.integers(1, 4))):
        sound.append(("user", []))
        ids = [f"{turn}-{n}" for n in range(draw(st.integers(0, 3)))]
        sound.append(("assistant", [(call_id, draw(ARGS)) for call_id in ids]))
        sound.extend(("tool", [(call_id, "")]) for call_id in draw(st.permutations(ids)))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(sound) - 1))
        match draw(st.sampled_from(["lose", "double", "displace"])):
            case "lose" if len(sound) > 1:
                del sound[place]
            case "double":
                sound.insert(draw(st.integers(0, len(sound))), sound[place])
            case _:
                sound.insert(draw(st.integers(0, len(sound) - 1)), sound.pop(place))
    return build(sound)


ANY_HISTORY = st.one_of(histories(), histories(REUSED_IDS), damaged_histories())


# Hostile to adapters

_TEXT = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "",
            " ",
            "\n",
            "\x00",
            "\x7f\x1b[0m",
            "\u2028\u2029\ufeff",
            "data: [DONE]\n\n",
            '"}]}',
            "\ud800",
            "\udfff\ud83d",
            "\U0001f600",
            "</s><|im_end|>",
            "[INST]",
        ]
    ),
)
_LONG = "call_" + "a" * 90
_DEEP = '{"a":' * 300 + "1" + "}" * 300
_IDS = st.one_of(
    st.sampled_from(
        ["", "", "a", "a", "b", "call_1", "abcDEF123", "abcDEF124", "functions.get:0", "a b"]
    ),
    st.sampled_from(
        [_LONG + "1", _LONG + "2", "a\n", "\u00e9", "\ud800", "fc_1|call_1", "null", "0"]
    ),
    st.text(max_size=5),
)
_NAMES = st.one_of(
    st.sampled_from(["f", "f", "get weather", "get_weather", "a.b", "a_b", "", "f\n", "1"]),
    st.sampled_from(["x" * 80, "x" * 64, "na\u00efve", "\ud800", "-", "functions.f"]),
    st.text(max_size=5),
)
_ARGS = st.one_of(
    ARGS,
    st.sampled_from(['{"a":"\\ud800"}', '{"a":NaN}', '{"a":1}{"a":1}', "[1]", '"x"', "\ufeff{}"]),
    st.sampled_from(['{"a":"\n"}', "{'a': 1}", '{"a":1,"a":2}', " {} ", "\ud800", _DEEP]),
    _TEXT,
)
_MEDIA = st.lists(
    st.sampled_from([Part.image(b"\x89PNG", "image/png"), Part.image_url("https://e/x.png")]),
    max_size=2,
).map(tuple)
_PROVIDERS = ["openai", "openai-responses", "mistral", "deepseek", "groq", "openrouter", "x", ""]
_THOUGHTS = st.lists(
    st.builds(
        Thinking,
        text=_TEXT,
        signature=st.sampled_from(["", "", "sig"]),
        redacted=st.just(""),
        provider=st.sampled_from(_PROVIDERS),
        id=st.sampled_from(["", "rs_1", "\ud800"]),
    ).filter(lambda block: bool(block.text or block.signature)),
    max_size=2,
).map(tuple)
_CALLS = st.lists(st.builds(ToolCall.of, _IDS, _NAMES, _ARGS, _TEXT), max_size=3).map(tuple)
_RESULTS = st.builds(
    ToolMessage, _TEXT, tool_call_id=_IDS, tool_name=_NAMES, parts=_MEDIA, failed=st.booleans()
)
_MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, _TEXT, parts=_MEDIA),
    st.builds(AssistantMessage, _TEXT, tool_calls=_CALLS, thinking=_THOUGHTS, parts=_MEDIA),
    _RESULTS,
    st.builds(SystemMessage, _TEXT),
)


@st.composite
def _answered(draw: st.DrawFn) -> list[Message]:
    """A turn whose calls are answered, now and then not all of them or twice."""
    calls = draw(_CALLS)
    turn: list[Message] = [
        AssistantMessage(draw(_TEXT), tool_calls=calls, thinking=draw(_THOUGHTS))
    ]
    for call in draw(st.permutations(calls)):
        texts = draw(st.sampled_from([1, 1, 1, 1, 0, 2]).flatmap(_texts))
        turn += [ToolMessage(text, tool_call_id=call.id, tool_name=call.name) for text in texts]
    return turn


def _texts(count: int) -> st.SearchStrategy[list[str]]:
    return st.lists(_TEXT, min_size=count, max_size=count)


HOSTILE_HISTORY: st.SearchStrategy[list[Message]] = st.lists(
    st.one_of(_MESSAGES.map(lambda message: [message]), _answered()), max_size=6
).map(lambda pieces: [message for piece in pieces for message in piece])
"""Histories with ids, names, texts and arguments of every kind that can be stored; not repaired."""
