"""A minimal Debian root, with nothing of this machine's Python, for installs as a site does them.

It is made by mmdebstrap from the apt sources of this machine, once for a test session, and unpacked
anew for each test. What runs in it is pid 1's child in namespaces of its own: it has no network but
loopback, and whatever it leaves running ends with it.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_PROGRAMS: Final = {"mmdebstrap": "mmdebstrap", "unshare": "util-linux", "ip": "iproute2"}
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SETTINGS: Final = ("Proxy", "Check-", "Retries", "ForceIPv", "CaInfo", "CaPath", "Verify-")
_ENTER: Final = """
set -e
ip link set lo up
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
cd "$1"
mkdir -p .outside
pivot_root . .outside  # not chroot alone: a container inside has to do the same
exec chroot . /usr/bin/env -i PATH="$2" HOME=/root LANG=C.UTF-8 /bin/sh -euc "
umount --lazy /.outside
rmdir /.outside
$3"
"""


def missing_reason() -> str | None:
    """Return why such a root cannot be made here; None if it can."""
    if os.getuid() != 0:
        return f"a root of its own needs root; this is uid {os.getuid()}"
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            return f"there is no {program} (apt-get install {package})"
    if not _sources():
        return "apt has no sources on this machine"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False
    )
    return None if tried.returncode == 0 else "this machine allows no namespaces"


def make(archive: Path, packages: Sequence[str], within_s: float = 900.0) -> None:
    """Write the root as a tar archive.

    Args:
        archive: to be written.
        packages: what it holds beside the minimum.
        within_s: after that many seconds it is given up.
    """
    settings = archive.with_suffix(".apt")
    settings.write_text(_apt_settings(), encoding="utf-8")
    command = [
        "mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}",
        f"--aptopt={settings}", "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/man/*", _release(), str(archive), *map(str, _sources()),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=within_s, check=False)
    assert done.returncode == 0, f"no root: {done.stderr}"


class CleanRoot:
    """A root of its own, unpacked from an archive.

    Attributes:
        folder: where it lies in this machine.
    """

    def __init__(self, archive: Path, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        subprocess.run(["tar", "-xf", archive, "-C", folder], check=True, timeout=300)

    def takes(self, source: Path, place: str) -> None:
        """A copy of a file or folder of this machine, at an absolute place inside."""
        to = self.folder / place.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, to)
        else:
            shutil.copy(source, to)

    def tries(self, script: str, within_s: float = 300.0) -> "subprocess.CompletedProcess[str]":
        """A shell script inside, which ends at the first command that fails."""
        spaces = ("--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child")
        words = ["bash", "-c", _ENTER, "enter", str(self.folder), _PATH, script]
        return subprocess.run(
            ["unshare", *spaces, "--", *words],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=within_s, check=False,
        )  # fmt: skip

    def runs(self, script: str, within_s: float = 300.0) -> str:
        """The same, which has to go well; what it says on stdout."""
        done = self.tries(script, within_s)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def _release() -> str:
    """Debian's name of this machine's release, which its apt sources are for."""
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("VERSION_CODENAME="))


def _sources() -> list[Path]:
    apt = Path("/etc/apt")
    found = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))]
    found += sorted((apt / "sources.list.d").glob("*.sources"))
    return [file for file in found if file.is_file() and file.stat().st_size]


def _apt_settings() -> str:
    """Return this machine's configuration of mirrors."""
    dump = subprocess.run(
        ["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    kept = [line for line in dump if line.split("::")[-1].startswith(_SETTINGS)]
    return "\n".join([*kept, 'Acquire::Languages "none";', 'APT::Install-Recommends "false";', ""])
