"""The protocols' own readers, from npm, and how to ask them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Self

from tests.npm import installed

HERE = Path(__file__).parent / "judges"


class Judge:
    """A Node process that reads streams as browsers do."""

    def __enter__(self) -> Self:
        place = installed(HERE, "judge.mjs")
        self._node = subprocess.Popen(
            ["node", "judge.mjs"],
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.close()
        self._node.wait()
        self._node.stdout.close()

    def read(self, protocol: str, body: bytes, **given: Any) -> dict[str, Any]:
        """What the reader of ``ui5``, ``ui6``, ``ui7`` or ``agui`` makes of the stream."""
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        asked = {"protocol": protocol, "body": body.decode(), **given}
        self._node.stdin.write(json.dumps(asked) + "\n")
        self._node.stdin.flush()
        found: dict[str, Any] = json.loads(self._node.stdout.readline())
        return found
