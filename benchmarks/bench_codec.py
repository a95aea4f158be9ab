"""Reading and writing a stored history, against the standard library's json and plain dicts."""

from __future__ import annotations

import json

from histories import history
from measure import arguments, medians, report, write

import golem


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

    decode = medians(
        {
            "json.loads": lambda: json.loads(text),
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
    write(
        flags.json,
        {
            "bytes": len(data),
            "decode": report("Decode", decode, flags.messages, ("json.loads",)),
            "encode": report("Encode", encode, flags.messages, ("json.dumps",)),
        },
    )


if __name__ == "__main__":
    main()
