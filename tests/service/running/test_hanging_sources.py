"""Hanging sources and invalid logs of a real daemon: it reports them, and the others continue.

A dead mount is not available in a test. A FIFO without a writer, opened for reading by an adapter,
blocks its thread in the kernel in the same way. `tests/adapters/logtail` has a log whose reading
blocks.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.forbidden import forbidden
from tests.service.running.event_log import EventLog
from tests.service.running.hanging import install
from tests.service.running.small_site import LOG_TABLE, SmallSite

Made = Callable[[Path], object]


def adapter(status: dict[str, Any], label: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [a for a in status["adapters"] if a["label"] == label]
    assert len(found) == 1
    return found[0]


def log_table(label: str, path: Path) -> str:
    table = LOG_TABLE.replace("adapters.log", f"adapters.{label}")
    return table.replace("{log}", str(path))


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def text(path: Path) -> None:
    path.write_text("Dear diary,\n" * 50)
    os.utime(path, (1_000_000_000, 1_000_000_000))


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 100)
    os.utime(path, (1_000_000_000, 1_000_000_000))


def nothing(path: Path) -> None:
    """No file at all."""


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (os.mkfifo, "Is a FIFO"),
        (os.mkdir, "Is a directory"),
        (a_device, "Is a character device"),
        (forbidden, "Permission denied"),
        (text, "no log reader recognises it"),
        (binary, "no log reader recognises it"),
        (nothing, "is not there"),
    ],
    ids=["fifo", "directory", "device", "forbidden", "text", "binary", "missing"],
)
def test_what_is_no_log_is_down_at_once_and_holds_up_neither_logs_nor_the_end(
    tmp_path: Path, make: Made, why: str
) -> None:
    odd = tmp_path / "OddLog"
    make(odd)
    both = LOG_TABLE.replace('["{log}"]', f'["{odd}", "{{log}}"]').replace(
        "[adapters.log]", "[adapters.both]"
    )
    site = SmallSite(tmp_path, tables=LOG_TABLE + both + log_table("odd", odd))
    site.log.run([1])
    with site.daemon as daemon:
        # twice: the log is followed by its own adapter, and by one together with the odd log
        def all_read(status: dict[str, Any]) -> bool:
            seen = [adapter(status, label) for label in ("log", "both")]
            return bool(sum(sum(a["events"].values()) + a["duplicates"] for a in seen) >= 6)

        daemon.wait_until("read", all_read, within_s=20)
        status = daemon.wait_until("down", lambda s: not adapter(s, "odd")["up"], within_s=20)
        assert why in adapter(status, "odd")["problem"]
        assert adapter(status, "log")["up"]
        assert not adapter(status, "both")["up"]
        assert str(odd) in adapter(status, "both")["problem"]
        assert any("odd" in note and why in note for note in status["notes"])
        metrics = site.metrics()
        assert metrics['outrider_adapter_up{adapter="odd"}'] == 0
        assert metrics['outrider_adapter_up{adapter="log"}'] == 1
        ready = daemon.get("/readyz")
        assert not ready["ready"]
        assert any("odd" in reason and why in reason for reason in ready["reasons"])
        site.log.run([2])
        daemon.wait_until("goes on", lambda s: s["jobs"]["completed"] == 2, within_s=20)
        began_s = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - began_s < 5.0
    assert "abandon" not in site.log_text()
    lines = [line for line in site.log_text().splitlines() if "adapter_down" in line]
    assert any("odd" in line and "error" in line.lower() for line in lines)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Install adapters that hang, with the file ALIVE and a FIFO without a writer."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    (tmp_path / "alive").touch()
    os.mkfifo(tmp_path / "fifo")
    paths = {"ALIVE": str(tmp_path / "alive"), "FIFO": str(tmp_path / "fifo")}
    return install(folder) | paths


def test_a_source_that_never_gives_a_sign_of_life_is_down_and_the_others_begin_without_it(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + "[adapters.mute]\n", environ=environ)
    site.log.run([1])
    with site.daemon as daemon:
        first = adapter(daemon.status(), "mute")
        assert not first["up"]
        assert not daemon.get("/readyz")["ready"]
        status = site.wait_until_applied(within_s=40)
        mute = adapter(status, "mute")
        assert mute["input_age_s"] > first["input_age_s"] + 10.0
        assert "no sign of life" in mute["problem"]
        assert adapter(status, "log")["up"]
        assert site.metrics()['outrider_adapter_up{adapter="mute"}'] == 0
        assert site.metrics()['outrider_input_age_seconds{adapter="mute"}'] > 10.0
        site.log.run([2])
        site.wait_until_applied()
        began_s = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - began_s < 5.0
    lost = [line for line in site.log_text().splitlines() if "adapter_down" in line]
    assert len(lost) == 1
    assert "mute" in lost[0]


def test_a_source_that_falls_silent_is_down_when_stale_and_refuses_what_is_decided_meanwhile(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    head = "stale_after_s = 3.0\n"
    site = SmallSite(
        tmp_path,
        head=head,
        tables=LOG_TABLE + "[adapters.fading]\n[policies.fifo]\n",
        environ=environ,
    )
    site.log.run([1])
    site.log.submit(2)
    with site.daemon as daemon:
        site.wait_until_applied()
        assert daemon.get("/readyz") == {"ready": True, "reasons": []}
        fresh = daemon.wait_until("decided", lambda s: s["gate"]["would_act"] >= 1)
        (tmp_path / "alive").unlink()
        gone = daemon.wait_until("down", lambda s: not adapter(s, "fading")["up"], within_s=40)
        assert adapter(gone, "fading")["input_age_s"] > 15.0
        assert "no sign of life for" in daemon.get("/readyz")["reasons"][0]
        assert site.metrics()['outrider_adapter_up{adapter="fading"}'] == 0
        assert site.metrics()['outrider_adapter_up{adapter="log"}'] == 1
        site.log.start(2, 1)
        site.log.complete(2)
        site.log.submit(3)
        stale = daemon.wait_until(
            "decided, and refused", lambda s: s["gate"]["would_refuse"]["stale_input"] >= 1
        )
        assert stale["gate"]["would_act"] == fresh["gate"]["would_act"]
        (tmp_path / "alive").touch()
        daemon.wait_until("up again", lambda s: adapter(s, "fading")["up"], within_s=10)
        assert daemon.get("/readyz")["ready"]
        daemon.wait_until("logged", lambda s: "adapter_up" in site.log_text(), within_s=10)
        assert daemon.stop() == 0


@pytest.mark.parametrize(
    ("kind", "event"), [("blocked", "threads_abandoned"), ("clinging", "adapter_abandoned")]
)
def test_a_plugin_that_blocks_or_never_closes_does_not_hold_up_the_end(
    tmp_path: Path, environ: dict[str, str], kind: str, event: str
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + f"[adapters.{kind}]\n", environ=environ)
    site.log.run([1])
    with site.daemon as daemon:
        site.wait_until_applied()
        daemon.wait_until("begun", lambda s: adapter(s, kind)["up"])
        began_s = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - began_s < 5.0
        assert event in site.log_text()
        daemon.start()  # from the snapshot that was written all the same
        assert daemon.status()["jobs"]["completed"] == 1
        assert daemon.stop() == 0


def test_a_log_whose_reading_blocks_holds_up_neither_its_neighbours_nor_the_end(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    stuck = EventLog(tmp_path / "StuckLog")
    stuck.run([50])
    paths = f'["{stuck.path}", "{{log}}"]\nformat = "stuck"'
    site = SmallSite(tmp_path, tables=LOG_TABLE.replace('["{log}"]', paths), environ=environ)
    site.log.run([1])
    with site.daemon as daemon:
        site.wait_until_applied(within_s=30)
        site.log.run([2])
        site.wait_until_applied()
        shown = daemon.wait_until("down", lambda s: not adapter(s, "log")["up"], within_s=20)
        assert "StuckLog: reading it hangs" in adapter(shown, "log")["problem"]
        began_s = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - began_s < 5.0
        daemon.start()
        held = os.open(tmp_path / "fifo", os.O_RDWR)  # from now on nothing blocks
        daemon.wait_until("read", lambda s: s["jobs"]["completed"] == 3, within_s=30)
        daemon.wait_until("up", lambda s: adapter(s, "log")["up"], within_s=20)
        os.close(held)
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts + stuck.counts


def test_a_log_that_appears_later_is_read_and_its_adapter_is_up(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    with site.daemon as daemon:
        daemon.wait_until("down", lambda s: "is not there" in adapter(s, "log")["problem"])
        site.log.run([1])
        site.wait_until_applied()
        status = daemon.wait_until("up", lambda s: adapter(s, "log")["up"])
        assert adapter(status, "log")["problem"] == ""
        assert daemon.get("/readyz")["ready"]
        assert daemon.stop() == 0


def test_a_log_to_which_nothing_is_written_while_jobs_run_is_told_as_silent(tmp_path: Path) -> None:
    site = SmallSite(tmp_path, head="stale_after_s = 2.0\n")
    site.log.run([1])
    site.log.submit(2)
    with site.daemon as daemon:
        site.wait_until_applied()
        written_s = site.log.path.stat().st_mtime
        time.sleep(max(0.0, written_s + 3.0 - time.time()))
        assert adapter(daemon.status(), "log")["silent"] == {}  # nothing runs
        site.log.start(2, 1)
        site.wait_until_applied()
        written_s = site.log.path.stat().st_mtime
        shown = daemon.wait_until("silent", lambda s: adapter(s, "log")["silent"], within_s=20)
        (since_s,) = adapter(shown, "log")["silent"].values()
        assert since_s == pytest.approx(written_s, abs=0.5)
        assert adapter(shown, "log")["up"]
        site.log.complete(2)
        daemon.wait_until("not silent", lambda s: not adapter(s, "log")["silent"], within_s=20)
        assert daemon.stop() == 0
