"""Checks whether the kernel, or the surrounding container, allows booting a systemd.

A program that is missing can be fetched; a rule cannot be changed from inside. So these reasons are
kept apart: each is found by trying what a boot does, not by guessing what kind of place this is.

As a program it prints the reason, or nothing: `python rules.py`.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
_WITHIN_S: Final = 20
# What nspawn's root is made of here, and the move into it that every container begins with.
_TRY: Final = """
mount -t tmpfs -o size=1m tmpfs "$1" && mkdir "$1/up" "$1/work" "$1/root" &&
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$1/root" &&
mkdir "$1/root/left" && cd "$1/root" && pivot_root . left
"""
_NAMESPACES: Final = ("unshare", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork")


def forbidden_reason() -> str | None:
    """Return the rule that forbids booting a systemd in a container here; None if none does.

    For root alone: who is not root is told nothing of rules.
    """
    return _capability() or _cgroups() or _namespaces()


def hierarchies() -> list[tuple[Path, str]]:
    """Return where systemd has its own groups: a mount, and the group of this process in it."""
    found: list[tuple[Path, str]] = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, names, group = line.split(":", 2)
        if number == "0" and not names:
            places = [CGROUPS, CGROUPS / "unified"]
        elif names == "name=systemd":
            places = [CGROUPS / "systemd"]
        else:
            continue
        found += [(p, group) for p in places if (p / "cgroup.procs").exists()]
    return found


def _capability() -> str | None:
    status = Path("/proc/self/status").read_text()
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    if int(effective.split()[1], 16) & 1 << 21:
        return None
    return "root has no CAP_SYS_ADMIN here, and may mount nothing"


def _cgroups() -> str | None:
    found = hierarchies()
    if not found:
        return f"no hierarchy of control groups that systemd could use is mounted at {CGROUPS}"
    for place, group in found:
        new = place / group.lstrip("/") / f"outrider-try-{os.getpid()}"
        try:
            new.mkdir()
            new.rmdir()
        except OSError as error:
            return f"no control group can be made: {new}: {error.strerror}"
    return None


def _namespaces() -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*_NAMESPACES, "sh", "-c", _TRY, "try", folder],
            capture_output=True, text=True, timeout=_WITHIN_S, check=False,
        )  # fmt: skip
    if done.returncode == 0:
        return None
    message = done.stderr.strip().splitlines()
    return f"no root of a container can be made: {message[-1] if message else done.returncode}"


if __name__ == "__main__":
    sys.stdout.write(forbidden_reason() or "")
