"""What adapters are at, in files of the state directory."""

import contextlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from outrider.api.in_progress import InProgress


class InProgressFile(InProgress):
    """Keeps what one adapter is at in a small file.

    It is written in place and not flushed to the disk: it is to outlive the process, not the
    machine. Where it cannot be written (the disk is full) the adapter goes on without.

    Args:
        folder: the state directory.
        label: of the adapter.
    """

    def __init__(self, folder: Path, label: str) -> None:
        self._path = folder / f"in-progress-{quote(label, safe='')}.json"
        self.left = _read(self._path)
        self._is_clear = self.left is None

    def note(self, what: Any) -> None:
        """See `InProgress.note`."""
        if what is None and self._is_clear:
            return
        line = b"\n" if what is None else msgspec.json.encode(what) + b"\n"
        with contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(descriptor, line, 0)  # what stands behind the line end is of before
            finally:
                os.close(descriptor)
            self._is_clear = what is None


def _read(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            line = file.readline(1 << 20)
        return msgspec.json.decode(line) if line.strip() else None
    except (OSError, msgspec.DecodeError):
        return None
