"""Histories that are broken in every way pairing can break, for Hypothesis.

The alphabets are small on purpose: ids have to collide for anything interesting to happen. The
content of a message is its place, so that no two results can be mistaken for each other.
"""

from __future__ import annotations

from hypothesis import strategies as st

from golem import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage

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
