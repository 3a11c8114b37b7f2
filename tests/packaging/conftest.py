"""Fixtures of the long install tests: a root without network, and wheels for its Python."""

import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging import clean_root
from tests.packaging.clean_root import CleanRoot
from tools.wheelhouse import EXTRAS, Target, make


@pytest.fixture(scope="session")
def debian_target() -> Target:
    """The host that a clean root is: this machine's release of Debian, with Debian's own Python."""
    words = ["/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    minor = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    glibc = (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(".")[2]
    return Target(minor, int(glibc), platform.machine())


@pytest.fixture(scope="session")
def wheels(debian_target: Target, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of wheels with every extra, fetched from the indexes that pip is set up for here."""
    folder = tmp_path_factory.mktemp("wheels") / "wheelhouse"
    make(folder, debian_target, EXTRAS)
    return folder


class RootOf:
    """Clean roots by the packages that they hold beside the minimum; each is made once.

    Attributes:
        folder: where their archives and the roots themselves lie.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unpacked = 0

    def archive(self, *packages: str) -> Path:
        """A root as a tar archive; minutes the first time."""
        file = self.folder / f"{'+'.join(packages)}.tar"
        if not file.exists():
            clean_root.make(file, packages)
        return file

    def __call__(self, *packages: str) -> CleanRoot:
        """One of its own."""
        self._unpacked += 1
        return CleanRoot(self.archive(*packages), self.folder / f"root-{self._unpacked}")


@pytest.fixture(scope="session")
def root_of(
    tmp_path_factory: pytest.TempPathFactory, require_peer: Callable[[str, str | None], None]
) -> RootOf:
    """`root_of(packages...)`: a root that holds these beside the minimum."""
    require_peer("Debian root", clean_root.missing_reason())
    return RootOf(tmp_path_factory.mktemp("roots"))
