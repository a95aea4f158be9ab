"""Reading and writing a stored history, against the standard library's json and plain dicts."""

from __future__ import annotations

import json

import msgspec
from goals import Goal, judge_all
from histories import history
from measure import arguments, medians, report, write

import golem
from golem import Message

ONE_CALL = "one msgspec call"
"""The floor: decoding the structs, with nothing behind it for what another version wrote."""

DECODE = (
    Goal("load_history", "json.loads", 1 / 2),
    Goal("load_history", ONE_CALL, 1.1),  # what forward compatibility costs
)
ENCODE = (Goal("dump_history", "json.dumps", 1 / 4),)


def main() -> None:
    """Print the tables of decoding and encoding."""
    flags = arguments(__doc__)
    data = history(flags.messages)
    text = data.decode()
    messages = golem.load_history(data)
    dicts = json.loads(data)
    newer = data.replace(b'"role":"user"', b'"role":"user","newer":1')
    if golem.dump_history(messages) != data:
        raise SystemExit("the codec does not give back what it read: nothing to measure")

    decoder = msgspec.json.Decoder(list[Message])
    decode = medians(
        {
            "json.loads": lambda: json.loads(text),
            ONE_CALL: lambda: decoder.decode(data),
            "load_history": lambda: golem.load_history(data),
            "load_history, every user message with an unknown member": (
                lambda: golem.load_history(newer)
            ),
        },
        flags.rounds,
    )
    encode = medians(
        {
            "json.dumps": lambda: json.dumps(dicts, ensure_ascii=False, separators=(",", ":")),
            "dump_history": lambda: golem.dump_history(messages),
        },
        flags.rounds,
    )
    figures: dict[str, object] = {"bytes": len(data)}
    figures["decode"] = report("Decode", decode, flags.messages, ("json.loads",))
    judge_all(DECODE, decode)
    figures["encode"] = report("Encode", encode, flags.messages, ("json.dumps",))
    judge_all(ENCODE, encode)
    write(flags.json, figures)


if __name__ == "__main__":
    main()
