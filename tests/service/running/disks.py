"""Real file systems of a megabyte or a few, for a state directory that fills up."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

BALLAST = "ballast"


def mount(*arguments: object) -> None:
    """Mount, or skip the test with the reason why this machine cannot."""
    if os.geteuid() != 0:
        pytest.skip("mounting a file system needs root")
    words = ["mount", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"this machine does not let root mount: {done.stderr.strip()}")


@contextmanager
def mounted(folder: Path, *arguments: object) -> Iterator[Path]:
    """A folder with something mounted on it."""
    folder.mkdir(exist_ok=True)
    mount(*arguments, folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def small_disk(folder: Path, megabytes: int) -> AbstractContextManager[Path]:
    """A real file system of so many megabytes."""
    return mounted(folder, "-t", "tmpfs", "-o", f"size={megabytes}m", "none")


def fill(disk: Path) -> None:
    """Leave no byte free."""
    with (disk / BALLAST).open("ab", buffering=0) as file:
        for size in (65_536, 4_096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def relieve(disk: Path) -> None:
    """Give the space back."""
    (disk / BALLAST).unlink()
