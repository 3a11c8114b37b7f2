"""A file of lines that one process appends to; what it holds outlives a kill -9."""

import fcntl
import os
from pathlib import Path
from typing import BinaryIO

from outrider.model.errors import ConfigurationError


class LineFile:
    """Lines on the disk, added one by one while the file is locked.

    Args:
        path: made if it is not there.

    Attributes:
        lines: those that were there, whole. A last one that was cut off by a kill is taken away.

    Raises:
        ConfigurationError: another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO = path.open("a+b")
        try:
            self._lock()
            self.lines = self._whole()
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(f"{self.path}: another process is writing to it") from error

    def _whole(self) -> list[bytes]:
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        return whole.splitlines()

    def add(self, line: bytes) -> None:
        """Append a line; it is on the disk on return."""
        self._file.write(line + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def clear(self) -> None:
        """Take all lines away."""
        self._file.truncate(0)

    def close(self) -> None:
        """Let go of the file; an empty one goes."""
        if os.fstat(self._file.fileno()).st_size == 0:
            self.path.unlink()
        self._file.close()
