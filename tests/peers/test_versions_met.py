"""Test that the page on real peers has the versions that the installed programs report."""

import os
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.peers import pool, slurm
from tests.peers.presence import PEERS_DIR, program_path, require_peer

ROW: Final = re.compile(r"^\| ([^|]+) \| ([\d.]+) \| ([^|]+) \| yes \|", re.MULTILINE)
POOL: Final = PEERS_DIR / "htcondor"
VERSION: Final = re.compile(r"\d+(?:\.\d+)*")


def rows(repository: Path) -> list[tuple[str, str, str]]:
    """Return peer, version and origin of each row of the page."""
    return ROW.findall((repository / "docs" / "real-peers.md").read_text(encoding="utf-8"))


def reported(peer: str, release: str, origin: str) -> str:
    """Return what a peer's program prints about its version, or end the test without it."""
    match peer, origin:
        case "HTCondor (Python bindings)", _:
            return version("htcondor")
        case "HTCondor (daemons)", _:
            require_peer("HTCondor", pool.missing_reason())
            return printed("chroot", str(POOL), "condor_version")
        case "systemd", "Debian 13":
            require_peer("HTCondor", pool.missing_reason())
            return printed("chroot", str(POOL), "/lib/systemd/systemd", "--version")
        case "Slurm", _:
            require_peer(f"Slurm {release}", slurm.missing_reason(release))
            root = slurm.slurm_root(release)
            assert root is not None
            (plugins,) = root.glob("usr/lib/*/slurm-wlm")
            return printed(str(root / "usr/sbin/slurmctld-wlm"), "-V", LD_LIBRARY_PATH=str(plugins))
    program, word = PROGRAMS[peer]
    path = program_path(program)
    require_peer(peer, None if path else f"{program} is neither on the PATH nor below {PEERS_DIR}")
    return printed(str(path), word)


PROGRAMS: Final = {
    "Mosquitto": ("mosquitto", "-h"),
    "Prometheus": ("prometheus", "--version"),
    "Alertmanager": ("prometheus-alertmanager", "--version"),
    "systemd": ("systemd-analyze", "--version"),
}
"""Program of a peer, and the word with which it prints its version."""


def printed(*command: str, **environment: str) -> str:
    """Return the output of a command that may end with any status."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60.0,
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_each_version_on_the_page_is_met(repository: Path) -> None:
    found = rows(repository)
    assert len(found) == 9, found
    for peer, release, origin in found:
        shown = reported(peer, release, origin)
        number = VERSION.search(shown)
        assert number is not None, f"{peer}: {shown[:200]}"
        assert f"{number[0]}.".startswith(f"{release}."), f"{peer}: the page has {release}"


def test_each_release_of_slurm_that_tests_use_is_on_the_page(repository: Path) -> None:
    on_page = {release for peer, release, _ in rows(repository) if peer == "Slurm"}
    assert on_page == set(slurm.RELEASES)
