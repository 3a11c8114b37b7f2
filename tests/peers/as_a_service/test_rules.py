"""Tests of the rules in places where they hold: missing and forbidden are distinguished."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.as_a_service import machine, rules
from tests.peers.presence import require_allowed, require_peer

RULES = Path(rules.__file__)
# A tree with this machine's folders bound into it, which is no mount itself: a plain chroot.
CHROOT = """
mount -t tmpfs tmpfs "$1" && mkdir "$1/tree" && cd /
for place in *; do
    if [ -L "$place" ]; then cp -a "$place" "$1/tree/"
    elif [ -d "$place" ]; then mkdir "$1/tree/$place"; mount --rbind "$place" "$1/tree/$place"; fi
done
shift_to="$1/tree"; shift
exec chroot "$shift_to" "$@"
"""
NO_RIGHT = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")
NO_CGROUPS = ("unshare", "--mount", "sh", "-c", 'umount -l /sys/fs/cgroup; exec "$@"', "sh")


@pytest.fixture(autouse=True)
def as_root() -> None:
    """Skip without root: the rules are for root, as other users lose nothing."""
    if os.geteuid() != 0:
        pytest.skip("only root can put itself into such places")
    if (message := rules.forbidden_reason()) is not None:
        pytest.skip(f"this is such a place itself: {message}")


def reason(*place: str) -> str:
    """Return the outcome of the rules for a process in this place."""
    done = subprocess.run(
        [*place, sys.executable, str(RULES)], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_nothing_is_forbidden_where_a_systemd_can_be_booted() -> None:
    assert reason() == ""


def test_a_root_without_the_right_to_mount_is_a_rule() -> None:
    assert "CAP_SYS_ADMIN" in reason(*NO_RIGHT)


def test_a_place_without_control_groups_is_a_rule() -> None:
    assert "no hierarchy of control groups" in reason(*NO_CGROUPS)


def test_a_chroot_is_a_rule(tmp_path: Path) -> None:
    message = reason("unshare", "--mount", "sh", "-c", CHROOT, "sh", str(tmp_path))
    assert message.startswith("no root of a container can be made: ")


@pytest.mark.parametrize("in_ci", ["true", "false"])
def test_a_rule_is_a_skip_everywhere(monkeypatch: pytest.MonkeyPatch, in_ci: str) -> None:
    monkeypatch.setenv("CI", in_ci)
    with pytest.raises(pytest.skip.Exception, match="forbidden here, whatever is installed: no"):
        require_allowed("systemd", "no control groups")
    require_allowed("systemd", None)


def test_a_missing_program_is_a_skip_on_a_desk_and_a_failure_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine, "program_path", lambda program: None)
    message = machine.missing_reason()
    assert message is not None
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="systemd-nspawn"):
        require_peer("systemd", message)
    monkeypatch.setenv("CI", "false")
    with pytest.raises(pytest.skip.Exception, match="systemd-nspawn"):
        require_peer("systemd", message)
