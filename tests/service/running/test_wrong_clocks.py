"""The daemon with wrongly dated records, and on a host whose clock was years ahead."""

import time
from pathlib import Path

import pytest

from outrider.journal import Journal
from outrider.model.events import TICK
from tests.service.running.small_site import SmallSite
from tests.service.running.wrong_clock import WrongClock

YEAR_S = 365.25 * 86_400.0
IN_2099_S = 4_075_000_000.0
IN_1970_S = 3_600.0


def test_records_of_2099_and_1970_are_set_aside_and_the_others_go_on(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.run([1, 2])
    with site.daemon:
        site.daemon.wait_until("two", lambda s: s["jobs"]["completed"] == 2)
        for time_s, job in ((IN_2099_S, 3), (IN_1970_S, 4)):
            site.log.at(time_s)
            site.log.submit(job)
        site.log.at(time.time() - 20.0)
        site.log.run([5, 6])
        status = site.daemon.wait_until("all", lambda s: s["jobs"]["completed"] == 4)
        assert status["set_aside"]["implausible_time"] == 2
        assert status["jobs"]["queued"] == 0
        assert abs(status["now_s"] - time.time()) < 300
        site.daemon.kill()  # and the counts go on after a restart
        site.daemon.start()
        status = site.daemon.wait_until("again", lambda s: s["jobs"]["completed"] == 4)
        assert status["set_aside"]["implausible_time"] == 2
        assert status["adapters"][0]["events"]["submitted"] == 6
        assert site.daemon.stop() == 0
    with site.journal() as journal:
        times_s = [event[0] for _, _, event in journal.inputs_after(0)]
        assert max(times_s) < time.time() + 60
        kept = journal.latest_set_aside(10)
        assert [row.reason for _, row in kept] == ["implausible_time"] * 2
        assert sorted(row.time_s for _, row in kept) == pytest.approx([IN_1970_S, IN_2099_S], abs=1)
        last = journal.last_seq()
    with Journal(
        site.state / "journal.sqlite"
    ) as journal:  # retention passes over what is dated so
        journal.prune(time.time() + 60, oldest_snapshot_seq=last)
        assert not list(journal.inputs_after(0))


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_a_clock_ten_years_ahead_and_put_right_leaves_no_trace(
    tmp_path: Path, restarted: bool
) -> None:
    clock = WrongClock(tmp_path / "clock")
    site = SmallSite(tmp_path, environ=clock.environ, tables=TABLES, head="retention_days = 30\n")
    site.log.run([1, 2])
    with site.daemon:
        daemon = site.daemon
        daemon.wait_until("two", lambda s: s["jobs"]["completed"] == 2)
        site.log.submit(3)
        site.log.start(3, 1)
        daemon.wait_until("one runs", lambda s: s["jobs"]["running"] == 1)
        clock.put(10 * YEAR_S)
        ahead = daemon.wait_until("ahead", lambda s: s["now_s"] > time.time() + 9 * YEAR_S)
        assert ahead["jobs"]["running"] == 1
        site.log.at(time.time() + 10 * YEAR_S)  # the batch system is on this host, too
        site.log.complete(3)
        site.log.run([4])
        site.log.submit(5)
        daemon.wait_until("what is dated so", lambda s: s["jobs"]["completed"] == 4)
        if restarted:
            daemon.kill()
        clock.put(0.0)
        if restarted:
            daemon.start()
        status = daemon.wait_until("back", lambda s: s["now_s"] < time.time() + 60)
        assert status["now_s"] > time.time() - 300
        assert status["jobs"]["completed"] == 4
        assert (status["jobs"]["running"], status["jobs"]["queued"]) == (0, 1)
        assert status["goodput_s"] < 600
        site.log.at(time.time() - 10.0)
        site.log.start(5, 2)
        site.log.complete(5)
        site.log.run([6])
        status = daemon.wait_until("goes on", lambda s: s["jobs"]["completed"] == 6)
        assert status["wait_s"]["all"]["mean"] < 600
        assert status["set_aside"] == dict.fromkeys(status["set_aside"], 0)
        assert daemon.stop() == 0
        daemon.start()  # the snapshot of after it is the one that counts now
        status = daemon.wait_until("still", lambda s: s["jobs"]["completed"] == 6)
        assert abs(status["now_s"] - time.time()) < 300
        assert daemon.stop() == 0
    with site.journal() as journal:  # nothing of what came in is gone
        events = [e for _, _, e in journal.inputs_after(0) if e[1] != TICK]
        assert len(events) == sum(site.log.counts.values())


TABLES = """
[adapters.log]
type = "logtail"
paths = ["{log}"]
start_at = "beginning"
poll_s = 0.1
settle_s = 0.1

[policies.bandit]
[policies.fifo]
"""


def test_a_clock_put_back_wrongly_loses_nothing(tmp_path: Path) -> None:
    """Check that events in the meantime are accepted, and wait until the clock is right."""
    clock = WrongClock(tmp_path / "clock")
    site = SmallSite(tmp_path, environ=clock.environ)
    site.log.run([1, 2])
    with site.daemon:
        daemon = site.daemon
        daemon.wait_until("two", lambda s: s["jobs"]["completed"] == 2)
        clock.put(-30 * 86_400.0)
        daemon.wait_until("noted", lambda s: any("stops until" in note for note in s["notes"]))
        site.log.run([3, 4])
        daemon.kill()
        daemon.start()
        assert daemon.status()["jobs"]["completed"] == 2
        clock.put(0.0)
        status = daemon.wait_until("all", lambda s: s["jobs"]["completed"] == 4)
        assert status["set_aside"]["implausible_time"] == 0
        assert not [note for note in status["notes"] if "stops until" in note]
        assert daemon.stop() == 0
