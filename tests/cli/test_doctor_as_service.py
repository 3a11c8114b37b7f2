"""The doctor examines as the daemon: by its own word, else in a transient unit.

A stand-in for ``systemctl`` runs what the transient unit names, without a sandbox.
"""

import json
import os
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest

from outrider.cli.doctor import checks
from tests.cli.running import COMMAND, outrider
from tests.service.running.other_users import NOBODY, as_user, need_root, open_folder
from tests.service.running.small_site import SmallSite

SYSTEMCTL = """#!/bin/sh
echo "$@" >> {folder}/asked
case $1 in
cat) cat {folder}/unit ;;
start)
  cp {folder}/run/systemd/system/$2 {folder}/transient
  command=$(sed -n 's/^ExecStart=//p' {folder}/transient | tail -n 1)
  output=$(sed -n 's/^StandardOutput=truncate://p' {folder}/transient)
  eval "$command" > "$output" || true ;;
esac
"""
UNIT = """[Service]
Type=notify
ExecStart=/usr/bin/outrider run --config /etc/outrider/outrider.toml
NoNewPrivileges=yes
# {folder}/outrider.service.d/60-venv.conf
[Service]
ExecStart=
ExecStart={program} run --config {config}
"""


class Host:
    """A host whose service runs a site's configuration."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.site = SmallSite(folder)
        self.site.log.raw(b"000 (001.000.000) 2026-11-21 10:00:00 Job submitted\n...\n")
        (folder / "run" / "systemd" / "system").mkdir(parents=True)
        stand_in = folder / "bin" / "systemctl"
        stand_in.parent.mkdir()
        stand_in.write_text(SYSTEMCTL.format(folder=shlex.quote(str(folder))))
        stand_in.chmod(0o755)
        monkeypatch.setenv("PATH", f"{stand_in.parent}:{os.environ['PATH']}")
        self.unit(COMMAND)
        monkeypatch.setattr(checks, "is_installed", lambda loaded, root=None: True)
        monkeypatch.setattr(checks, "check_unit", lambda loaded: iter(()))
        real = checks.examined_in_unit
        monkeypatch.setattr(checks, "examined_in_unit", lambda config: real(config, folder / "run"))

    def unit(self, program: object) -> None:
        """Write the installed unit, as ``systemctl cat`` prints it."""
        text = UNIT.format(folder=self.folder, program=program, config=self.site.config)
        (self.folder / "unit").write_text(text)

    def doctor(self) -> tuple[int, dict[str, dict[str, Any]]]:
        """Return the exit code and the checks by name."""
        done = outrider("doctor", "--config", self.site.config, "--json")
        return done.code, {check["name"]: check for check in json.loads(done.out)["checks"]}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host whose daemon does not run."""
    return Host(tmp_path, monkeypatch)


def test_without_a_daemon_root_examines_in_a_unit_like_the_services(host: Host) -> None:
    need_root()
    code, found = host.doctor()
    assert (code, found["as the service"]["state"]) == (0, "ok"), found
    assert found["adapter log"]["state"] == "ok"
    unit = (host.folder / "transient").read_text()
    assert unit.startswith("[Service]\nType=notify\n"), "the unit's own settings, with its sandbox"
    after = unit.partition("NoNewPrivileges=yes")[2]
    for line in ("Type=oneshot", "User=outrider", "Restart=no", "WatchdogSec=0"):
        assert f"\n{line}\n" in after
    run = host.folder / "run"
    assert [path.name for path in run.rglob("*") if not path.is_dir()] == [], "nothing is left"
    assert [path.name for path in run.iterdir()] == ["systemd"]
    asked = (host.folder / "asked").read_text().split("\n")
    assert asked[1] == asked[3] == "daemon-reload"


def test_what_fails_in_the_unit_fails_the_doctor(host: Host) -> None:
    need_root()
    host.site.log.path.unlink()
    code, found = host.doctor()
    assert (code, found["adapter log"]["state"]) == (1, "fail")


def test_a_unit_that_does_not_start_is_said_and_we_examine_ourselves(host: Host) -> None:
    need_root()
    host.unit("/nowhere/outrider")
    code, found = host.doctor()
    assert (code, found["as the service"]["state"]) == (0, "warn")
    assert (
        "the service itself was not examined: a transient unit"
        in (found["as the service"]["found"])
    )
    assert found["adapter log"]["state"] == "ok"
    host.unit("")
    (host.folder / "unit").write_text("[Service]\nExecStart=/bin/sleep 1\n")
    assert "is not `outrider run`" in host.doctor()[1]["as the service"]["found"]


def test_without_systemd_or_root_the_doctor_says_that_it_could_not(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_root()
    (host.folder / "run" / "systemd" / "system").rmdir()
    assert "systemd does not run here" in host.doctor()[1]["as the service"]["found"]
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    found = host.doctor()[1]["as the service"]
    assert "only root may start a unit" in found["found"]
    assert found["remedy"].startswith("run it as root: outrider doctor")


def test_a_running_daemon_is_asked_and_no_unit_is_started(host: Host) -> None:
    with host.site.daemon as daemon:
        daemon.wait_until("up", lambda s: s["adapters"][0]["up"])
        code, found = host.doctor()
        assert code == 0, found
        assert found["adapter log: the running daemon"]["found"].startswith("up, ")
        assert "the running daemon records there" in found["state directory"]["found"]
        assert "as the service" not in found
        host.site.log.path.rename(host.folder / "moved")
        daemon.wait_until("down", lambda s: not s["adapters"][0]["up"])
        code, found = host.doctor()
    down = found["adapter log: the running daemon"]
    assert (code, down["state"], down["found"][:6]) == (1, "fail", "down: ")
    assert down["remedy"]
    assert not (host.folder / "asked").exists()


def test_another_user_is_told_what_it_may_not_see_of_a_daemon_that_is_well() -> None:
    need_root()
    with open_folder() as folder:
        site = SmallSite(folder, head=f'socket = "{folder / "s"}"\n')
        site.log.raw(b"000 (001.000.000) 2026-11-21 10:00:00 Job submitted\n...\n")
        site.log.path.chmod(0o600)
        site.config.chmod(0o644)
        with site.daemon as daemon:
            daemon.wait_until("up", lambda s: s["adapters"][0]["up"])
            site.config.write_text(site.config.read_text().replace("127.0.0.1:0", daemon.url[7:]))

            def ask() -> bytes:
                done = outrider("doctor", "--config", site.config)
                return f"{done.code}\n{done.out}{done.err}".encode()

            assert ask().startswith(b"0\n"), "as root, which also loads what a child may not read"
            said = as_user(NOBODY, [NOBODY], ask).decode()
            assert stat.S_IMODE(site.state.stat().st_mode) == 0o700
    assert said.startswith("0\n"), said
    assert "ok    adapter log: the running daemon: up" in said
    assert "warn  journal: " in said
    assert "it is private to the daemon's user" in said
    assert "warn  adapter log: the daemon reads it, and the user nobody cannot: " in said
