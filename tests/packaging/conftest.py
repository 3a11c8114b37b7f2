"""What the long tests of installs share: a root without network, and wheels for its Python."""

import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging import clean_root
from tests.packaging.clean_root import CleanRoot
from tools.wheelhouse import EXTRAS, Target, make

RootOf = Callable[..., CleanRoot]


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


@pytest.fixture(scope="session")
def root_of(
    tmp_path_factory: pytest.TempPathFactory, require_peer: Callable[[str, str | None], None]
) -> RootOf:
    """`root_of(packages...)`: a root with these beside the minimum; minutes the first time."""
    require_peer("Debian root", clean_root.missing_reason())
    folder = tmp_path_factory.mktemp("roots")

    def made(*packages: str) -> CleanRoot:
        archive = folder / f"{'+'.join(packages)}.tar"
        if not archive.exists():
            clean_root.make(archive, packages)
        return CleanRoot(archive, tmp_path_factory.mktemp("root") / "root")

    return made
