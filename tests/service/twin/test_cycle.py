"""The process that asks: when it asks again, and how it ends."""

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from outrider.service.config.loaded import load_config
from outrider.service.twin import twin_file
from outrider.service.twin.cycle import TwinCycle, locked
from tests.service.running.process import OUTRIDER
from tests.service.twin.conftest import MakeSite
from tests.service.twin.watched_site import FEW, HANGS_AFTER_S, NICE, WatchedSite

LONG = "replicates = 900"
"""Enough replicates to take minutes, so that the process can be ended during a run."""


class EnoughError(Exception):
    """A test has seen what it wanted to."""


class Clock:
    """A clock that only advances in `sleep`; it allows a number of runs."""

    def __init__(self, until_s: float) -> None:
        self.now_s = 1e9
        self.until_s = self.now_s + until_s

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds
        if self.now_s > self.until_s:
            raise EnoughError


def times_asked(site: WatchedSite, within_s: float, **kept: Any) -> list[float]:
    """Return when it asks, seconds from its start, of a journal that is not there."""
    site.journal.unlink(missing_ok=True)
    if kept:
        twin_file.write_plain(site.state, kept)
    clock = Clock(within_s)
    begin_s, times = clock.now_s, []
    cycle = TwinCycle(load_config(site.config), clock=lambda: clock.now_s, sleep=clock.sleep)
    ask = cycle.ask_now

    def asking() -> Any:
        times.append(clock.now_s - begin_s)
        return ask()

    cycle.ask_now = asking  # type: ignore[method-assign]
    with pytest.raises(EnoughError):
        cycle.run()
    return times


def test_what_cannot_be_asked_is_asked_again_later_and_later(make_site: MakeSite) -> None:
    times = times_asked(make_site(), 100_000)
    waits_s = [b - a for a, b in itertools.pairwise(times)]
    assert times[0] == 0
    assert waits_s == [900, 1800, 3600, 7200, 14400, 28800]


def test_never_more_seldom_than_configured_and_never_at_once(make_site: MakeSite) -> None:
    times = times_asked(make_site("every_s = 5"), 100)
    assert times == [5.0 * n for n in range(21)]


def test_a_restart_goes_on_where_it_was(make_site: MakeSite) -> None:
    kept = {"asked_s": 1e9 - 50_000, "took_s": 9.0, "candidates": {"fifo": {}}, "answer": None}
    assert times_asked(make_site(), 37_000, **kept) == [pytest.approx(36_400, abs=5)]


@pytest.mark.parametrize(
    "kept",
    [
        {"asked_s": 1e9 - 9.0, "candidates": {"sjf": {}}},
        {"asked_s": 1e9 - 9.0, "candidates": {"fifo": {}}, "longest_deferral_s": 60.0},
        {"asked_s": 1e9 - 9.0, "candidates": {"fifo": {}}, "longest_deferral_s": None},
        {"asked_s": 1e9 + 9.0, "candidates": {"fifo": {}}},
        {"asked_s": "yesterday", "candidates": {"fifo": {}}},
        {"somebody": "else's"},
    ],
    ids=[
        "other policies",
        "another bound",
        "no bound",
        "a clock that was put back",
        "damaged",
        "foreign",
    ],
)
def test_it_asks_at_once_where_what_is_written_is_no_answer(
    make_site: MakeSite, kept: dict[str, Any]
) -> None:
    assert times_asked(make_site(), 60, **kept) == [0.0]


def test_a_full_disk_does_not_make_it_ask_at_once(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    site = make_site()
    monkeypatch.setattr(twin_file, "write_plain", full)
    assert times_asked(site, 1_000) == [0.0, 900.0]


def test_every_s_zero_asks_never_and_ends(make_site: MakeSite) -> None:
    site = make_site("every_s = 0")
    assert site.start().wait(HANGS_AFTER_S) == 0
    assert site.written() == {}


def test_it_goes_on_at_its_priority_and_follows_the_configuration(make_site: MakeSite) -> None:
    site = make_site()
    process = site.start()
    try:
        site.wait_until("asked", lambda written: written.get("answer"))
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == NICE
        time.sleep(1.0)
        assert site.askings() == 1, "the next time is tomorrow"
        site.configure("no_such_key = 1", "[policies.sjf]")
        time.sleep(6.0)
        assert process.poll() is None
        site.configure(FEW, "[policies.sjf]")
        site.wait_until("about sjf", lambda written: "sjf" in written["candidates"])
        assert "config_reload_failed" in site.log.read_text()
    finally:
        process.terminate()
        assert process.wait(HANGS_AFTER_S) == 0


def test_told_to_stop_while_it_asks_it_ends_and_that_is_no_failure(make_site: MakeSite) -> None:
    site = make_site(LONG)
    process = site.start()
    site.wait_until("asking", lambda written: written.get("asking_since_s"))
    process.terminate()
    assert process.wait(HANGS_AFTER_S) == 0
    assert site.written() == {"asking_since_s": None}


def test_one_that_was_killed_while_it_asked_is_owned_up_to_and_not_tried_at_once(
    make_site: MakeSite,
) -> None:
    site = make_site(LONG)
    process = site.start()
    site.wait_until("asking", lambda written: written.get("asking_since_s"))
    process.kill()
    process.wait()
    process = site.start()
    try:
        written = site.wait_until("owned up", lambda written: written.get("answer"))
        assert "was killed before it had a result" in written["answer"]["refused"]
        assert written["failures"] == 1
        time.sleep(1.0)
        assert site.written()["asking_since_s"] is None, "it waits a quarter of an hour"
    finally:
        process.terminate()
        process.wait(HANGS_AFTER_S)


def test_only_one_asks_for_a_state_directory(make_site: MakeSite) -> None:
    site = make_site(LONG)
    with locked(site.state):  # by this process
        assert site.start("--once").wait(HANGS_AFTER_S) == 2
    assert "another process runs the twin there" in site.log.read_text()
    assert site.written() == {}


def test_it_ends_with_the_daemon_that_started_it_however_that_ends(
    make_site: MakeSite, tmp_path: Path
) -> None:
    site = make_site(LONG)
    started = (
        "import os, subprocess, sys, time\n"
        f"words = [{str(OUTRIDER)!r}, 'run-twin', '--config', {str(site.config)!r}]\n"
        "child = subprocess.Popen([*words, '--parent', str(os.getpid())])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", started], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            site.wait_until("asking", lambda written: written.get("asking_since_s"))
        finally:
            parent.kill()
    deadline_s = time.monotonic() + HANGS_AFTER_S
    while is_running(child):
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
    assert site.written() == {"asking_since_s": None}


def is_running(pid: int) -> bool:
    """Return whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
