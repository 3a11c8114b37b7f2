"""Treatment of tests without their real peer: skipped on a desk, failed in CI.

Where the place itself forbids the peer, by a rule of its kernel or container that no package
changes, the test skips in CI, too, and says which rule.
"""

import os
import shutil
from pathlib import Path

import pytest

PEERS_DIR = Path(os.environ.get("OUTRIDER_PEERS", "/var/tmp/outrider-peers"))
"""Folder in which `make peers` puts programs that it does not install into the system."""


def require_peer(name: str, missing: str | None) -> None:
    """Return if the peer is there (`missing` is None), otherwise end the test.

    Args:
        name: The peer, as a person would call it ("HTCondor pool").
        missing: What is missing and why, in one line; None when nothing is.
    """
    if missing is None:
        return
    message = f"no real {name}: {missing}"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{message} (skipped on a desk, but CI=true demands it)")
    pytest.skip(f"{message} (as root, `make peers` fetches it)")


def require_allowed(name: str, forbidden: str | None) -> None:
    """Return if the peer is allowed (`forbidden` is None), otherwise skip the test.

    Args:
        name: The peer, as a person would call it.
        forbidden: The rule of this kernel or container that was met when it was tried. A program
            that is missing is none: that is for `require_peer`.
    """
    if forbidden is not None:
        pytest.skip(f"{name} is forbidden here, whatever is installed: {forbidden}")


def program_path(program: str) -> Path | None:
    """Return the path of a program of the system or of `make peers`, or None."""
    unpacked = (p for p in PEERS_DIR.glob(f"*/usr/bin/{program}") if "htcondor" not in p.parts)
    fetched = next(unpacked, None)
    if fetched is not None:
        return fetched
    found = shutil.which(program)
    return Path(found) if found else None


def require_program(program: str, name: str) -> Path:
    """Return the path of the peer's program, or end the test as `require_peer` does."""
    path = program_path(program)
    if path is None:
        require_peer(name, f"{program} is neither on the PATH nor below {PEERS_DIR}")
    assert path is not None
    return path
