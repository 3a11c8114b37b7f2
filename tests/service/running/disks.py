"""Real file systems of a megabyte or a few, for a state directory that fills up."""

import os
import shutil
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


@contextmanager
def freezable_disk(folder: Path, image: Path) -> Iterator[Path]:
    """A real ext4 of 64 MB in an image file, for `frozen`."""
    if shutil.which("mkfs.ext4") is None or shutil.which("fsfreeze") is None:
        pytest.skip("a disk that can be frozen needs mkfs.ext4 and fsfreeze")
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    with mounted(folder, "-o", "loop", image):
        yield folder


@contextmanager
def frozen(disk: Path) -> Iterator[None]:
    """Freeze a disk within the block: writers hang without an error."""
    subprocess.run(["fsfreeze", "--freeze", disk], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", disk], check=True)
