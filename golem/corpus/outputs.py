"""Files that appear when they are complete, and not at all otherwise; gzip by their names."""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

GZIP_LEVEL: Final = 6
"""What the gzip program uses; the level of Python's own default takes twice the time."""


def open_input(path: Path) -> BinaryIO:
    """`path` for reading, unpacked where its name ends in ``.gz``."""
    return cast("BinaryIO", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


@contextmanager
def complete_or_absent(paths: Sequence[Path]) -> Generator[list[BinaryIO]]:
    """Files to write, which take the places of `paths` when the block ends without an exception.

    Whatever else happens leaves nothing behind and what was there untouched. The last of `paths`
    is put in its place last. Gzip files are the same bytes for the same content.

    Raises OSError where a path cannot be written, or is there and no regular file.
    """
    targets = [Path(os.path.realpath(path)) for path in paths]  # a link stays one
    for target in targets:
        if target.exists() and not target.is_file():
            raise OSError(f"not a regular file: {target}")
    drafts = [target.with_name(f".{target.name}.{secrets.token_hex(4)}") for target in targets]
    try:
        with ExitStack() as files:
            yield [
                _open_draft(files, draft, target)
                for draft, target in zip(drafts, targets, strict=True)
            ]
        for draft, target in zip(drafts, targets, strict=True):
            if target.exists():
                shutil.copymode(target, draft)
            draft.replace(target)
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


def _open_draft(files: ExitStack, draft: Path, target: Path) -> BinaryIO:
    file = files.enter_context(draft.open("xb"))
    if target.suffix != ".gz":
        return file
    packed = gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0)
    return cast("BinaryIO", files.enter_context(packed))
