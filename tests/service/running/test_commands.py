"""The daemon as a process, commanded by its administrators and by others of its host."""

import grp
import json
import os
import socket
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outrider.journal import Journal
from outrider.service.shapes.status import Status
from tests.cli.running import outrider, shell
from tests.fixtures.plain import EVERYTHING, shaped
from tests.service.running.other_users import NOBODY, as_user, get, need_root
from tests.service.running.small_site import SmallSite
from tests.service.running.test_who_may_look import over_port, status_of
from tests.service.web.shapes import undeclared

GROUPS = sorted(grp.getgrall(), key=lambda one: one.gr_gid)
LOOKS, ADMINS = GROUPS[1], GROUPS[2]
"""Two groups that this host has and that we need not be in: the kernel asks for numbers."""
SHADOW = {"command": "mode", "mode": "shadow", "why": "new disks"}


@pytest.fixture
def site(tmp_path: Path, path: Path) -> Iterator[SmallSite]:
    """A daemon with a socket for people who look and people who command."""
    head = (
        f'socket = "{path}"\nsocket_group = "{LOOKS.gr_name}"\nadmin_group = "{ADMINS.gr_name}"\n'
    )
    site = SmallSite(tmp_path, head=head)
    with site.daemon:
        yield site


def post(path: Path, command: dict[str, Any]) -> bytes:
    """The whole answer that comes over a Unix socket, head and all."""
    body = json.dumps(command).encode()
    head = (
        "POST /api/v1/commands HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(20.0)
        client.connect(str(path))
        client.sendall(head.encode() + body)
        received = b""
        while more := client.recv(60_000):
            received += more
        return received


def test_the_status_before_the_first_event_has_its_declared_shape(site: SmallSite) -> None:
    status = site.daemon.status()
    assert status["since_s"] is None, "nothing is counted yet"
    told = shaped(status, Status, strict=True)
    assert undeclared(status, json.loads(EVERYTHING.encode(told))) == []


def test_members_of_the_admin_group_alone_may_command(site: SmallSite, path: Path) -> None:
    """Membership in it suffices."""
    need_root()
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    by_admin = as_user(NOBODY, [NOBODY, ADMINS.gr_gid], lambda: post(path, SHADOW))
    assert status_of(by_admin) == 200, by_admin
    by_looker = as_user(NOBODY, [NOBODY, LOOKS.gr_gid], lambda: post(path, SHADOW))
    assert status_of(by_looker) == 403
    assert f"member of the group {ADMINS.gr_name}" in by_looker.decode()
    assert status_of(as_user(NOBODY, [NOBODY, LOOKS.gr_gid], lambda: get(path))) == 200
    by_any = as_user(NOBODY, [NOBODY], lambda: post(path, SHADOW))
    assert (status_of(by_any), b"may read but not send commands" in by_any) == (403, True)
    assert "command_refused" in site.log_text()
    [row, _] = site.daemon.status()["commands"]
    assert (row["uid"], row["command"]) == (None, "mode")
    assert row["user"].startswith("u-"), "over TCP nobody is shown who it was"
    site.daemon.stop()
    with Journal(site.state / "journal.sqlite", read_only=True) as journal:
        [(_, record)] = journal.latest_commands(1)
    assert (record.uid, record.why) == (NOBODY, "new disks")


def test_over_the_port_nothing_is_commanded(site: SmallSite) -> None:
    request = urllib.request.Request(
        site.daemon.url + "/api/v1/commands", json.dumps(SHADOW).encode(), method="POST"
    )
    with pytest.raises(urllib.error.HTTPError, match="405") as refused:
        urllib.request.urlopen(request, timeout=20)
    refused.value.close()
    assert over_port(site.daemon.url, "/api/v1/commands")[0] == 200


def test_the_mode_is_shown_lowered_and_recorded(site: SmallSite) -> None:
    config = ("--config", site.config)
    shown = outrider("mode", *config)
    assert shown.out.splitlines()[0] == "mode       shadow; the configuration's is shadow"
    lowered = outrider("mode", "observe", "--why", "upgrade", *config)
    assert (lowered.code, lowered.out.splitlines()[:2]) == (
        0, ["mode: done", "  the mode was shadow and is observe"],
    )  # fmt: skip
    assert site.daemon.status()["mode"] == "observe"
    shown = outrider("mode", "--json", *config).json()
    assert shown["mode_limit"]["most"] == "observe"
    assert (shown["mode_limit"]["uid"], shown["mode_limit"]["why"]) == (os.getuid(), "upgrade")
    refused = outrider("mode", "shadow", *config)
    assert (refused.code, refused.out.splitlines()[0]) == (1, "mode: refused")
    second = outrider("status", *config).out.splitlines()[1].strip()
    assert second.startswith("configured: shadow; at most observe, by a command by ")
    assert second.endswith(": upgrade")
    listed = outrider("ledger", "commands", site.state / "journal.sqlite").out
    assert "shadow -> observe; upgrade" in listed


def test_promote_shows_the_evidence_and_climbs_back(site: SmallSite) -> None:
    config = ("--config", site.config)
    outrider("mode", "observe", *config)
    looked = outrider("promote", "--dry-run", *config)
    assert (looked.code, "Nothing blocks the next step." in looked.out) == (0, True)
    climbed = outrider("promote", "--why", "done", *config)
    assert (climbed.code, site.daemon.status()["mode"]) == (0, "shadow")
    assert "the mode was observe and is shadow" in climbed.out
    again = outrider("promote", *config)
    assert again.code == 1
    assert 'blocked    the configuration sets mode = "shadow"' in again.out
    assert "guard      mean_wait_s: not known yet; no bound" in again.out


def test_release_says_whether_the_daemon_did_it(site: SmallSite) -> None:
    done = outrider("release", "--config", site.config)
    assert (done.code, done.out.splitlines()) == (
        0,
        ["by the running daemon:", "release: done", "  no adapter here can change anything"],
    )
    site.daemon.stop()
    done = outrider("release", "--config", site.config)
    assert (done.code, done.out) == (0, "No configured adapter has a lever.\n")
    assert done.err == "by this command: no daemon runs\n"


def test_without_a_daemon_or_its_socket_commands_say_so(tmp_path: Path, path: Path) -> None:
    site = SmallSite(tmp_path, head=f'socket = "{path}"\n')
    for words in (("mode", "shadow"), ("promote",)):
        done = shell(*words, "--config", site.config)
        assert (done.code, "no daemon answers: the socket does not exist" in done.err) == (3, True)
    with site.daemon:
        path.unlink()
        done = shell("release", "--config", site.config)
        assert done.code == 0
        assert "the running daemon has no admin socket" in done.err


def test_without_a_configured_socket_commands_go_over_that_of_the_state_directory(
    tmp_path: Path,
) -> None:
    site = SmallSite(tmp_path)
    done = shell("mode", "shadow", "--config", site.config)
    assert (done.code, "no daemon answers: the socket does not exist" in done.err) == (3, True)
    with site.daemon:
        assert shell("mode", "observe", "--config", site.config).code == 0
        assert "by the running daemon" in shell("release", "--config", site.config).out
