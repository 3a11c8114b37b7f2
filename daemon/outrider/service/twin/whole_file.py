"""Files in the state directory that the process beside the daemon writes and the daemon reads."""

import os
from pathlib import Path

Stamp = tuple[int, int, int]


def write_whole(path: Path, content: bytes) -> None:
    """Put it in the place of what stood there: whole, or not at all; for its owner alone.

    Raises:
        OSError: it cannot be written, as on a full disk; what stood there stays.
    """
    part = path.with_name(f"{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def read_at_most(path: Path, most_bytes: int) -> bytes | None:
    """What stands in a file; None: there is none.

    Raises:
        OSError: it cannot be read.
        ValueError: it is longer, and so none of ours.
    """
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except FileNotFoundError:
        return None
    if len(content) > most_bytes:
        raise ValueError(f"it is longer than {most_bytes:,} bytes")
    return content


def stamp_of(path: Path) -> Stamp | None:
    """By which it is seen that a file is another one than before; None: there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
