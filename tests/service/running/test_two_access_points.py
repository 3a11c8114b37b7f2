"""Jobs of the same id from two access points are two jobs, for every part of the daemon."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import outrider
from tests.service.running.event_log import EventLog
from tests.service.running.small_site import SmallSite

POLICIES = "[policies.bandit]\n[policies.fifo]\n"
TABLE = """
[adapters.{label}]
type = "logtail"
paths = [{paths}]
start_at = "beginning"
poll_s = 0.1
settle_s = 0.1
"""
AP1, AP2 = "10.0.0.1", "10.0.0.2"


class TwoAccessPoints:
    """A daemon that follows the event logs of two access points.

    Args:
        folder: of everything.
        adapters: 1 for both logs in one, 2 for one each.
    """

    def __init__(self, folder: Path, adapters: int) -> None:
        self.logs = [EventLog(folder / "one", schedd=AP1), EventLog(folder / "two", schedd=AP2)]
        paths = [f'"{log.path}"' for log in self.logs]
        tables = [TABLE.format(label="both", paths=", ".join(paths))]
        if adapters == 2:
            tables = [
                TABLE.format(label=label, paths=path)
                for label, path in zip(("one", "two"), paths, strict=True)
            ]
        self.site = SmallSite(folder, tables="".join(tables) + POLICIES)
        self.daemon = self.site.daemon

    def wait(self, **jobs: int) -> None:
        """Wait until the daemon counts so many jobs."""
        self.daemon.wait_until(
            f"{jobs}", lambda s: all(s["jobs"][state] == n for state, n in jobs.items())
        )


@pytest.fixture(params=[1, 2], ids=["one adapter", "two adapters"])
def points(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TwoAccessPoints]:
    """A daemon that follows the logs of two access points."""
    made = TwoAccessPoints(tmp_path, request.param)
    with made.daemon:
        yield made


def test_the_same_ids_from_two_access_points_are_counted_twice_also_after_a_restart(
    points: TwoAccessPoints,
) -> None:
    one, two = points.logs
    for log, machine in zip(points.logs, (1, 2), strict=True):
        log.submit(1, 2, 3)
        log.start(1, machine)
    points.wait(submitted=6, running=2)
    points.site.kill()
    points.daemon.start()
    for log, machine in zip(points.logs, (1, 2), strict=True):
        log.complete(1)
        log.run([4], machine + 10)
    points.wait(submitted=8, completed=4, queued=4)
    status = points.daemon.get("/api/v1/status")
    assert status["repairs"] == {}
    assert all(policy["broken"] is None for policy in status["policies"])
    jobs = {row["job"] for row in points.daemon.get("/api/v1/jobs")["jobs"]}
    assert jobs == {f"{schedd}#{n}.0" for schedd in (AP1, AP2) for n in (2, 3)}
    assert one.counts == two.counts


def test_a_schedd_whose_spool_was_reset_begins_anew_and_nothing_dies(
    points: TwoAccessPoints,
) -> None:
    one, _ = points.logs
    one.submit(1, 2)
    one.start(1, 1)
    points.wait(queued=1, running=1)
    one.ahead_s += 5.0  # a reset takes its time; within a second it would be reported again
    one.submit(1, 2)
    points.wait(queued=2, running=0, removed=2)
    jobs = {row["job"] for row in points.daemon.get("/api/v1/jobs")["jobs"]}
    assert all(job.startswith((f"{AP1}#1.0#", f"{AP1}#2.0#")) for job in jobs)
    points.site.kill()
    points.daemon.start()
    one.start(1, 1)
    one.complete(1)
    points.wait(queued=1, completed=1, removed=2)


def test_a_short_form_is_explained_where_one_job_has_it_and_else_lists_who_has(
    tmp_path: Path,
) -> None:
    points = TwoAccessPoints(tmp_path, 1)
    one, two = points.logs
    with points.daemon as daemon:
        one.submit(1, 2)
        two.submit(1)
        points.wait(queued=3)
        url = daemon.url
        answer = outrider("explain", "2.0", "2", "--url", url, "--json").json()
        assert [found["job"] for found in answer["jobs"]] == [f"{AP1}#2.0"] * 2
        several = outrider("explain", "1.0", "--url", url, "--json")
        assert several.code == 1
        candidates = [f"{AP1}#1.0", f"{AP2}#1.0"]
        assert sorted(json.loads(several.out)["candidates"]) == candidates
        assert all(name in outrider("explain", "1.0", "--url", url).out for name in candidates)
        assert (
            outrider("explain", candidates[1], "--url", url, "--json").json()["job"]
            == (candidates[1])
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/api/v1/explain/1.0")
        with refused.value as answer:
            assert answer.code == 300
            assert json.load(answer) == {
                "error": "'1.0' matches 2 jobs (2 queued); name one",
                "candidates": candidates,
                "total": 2,
                "states": {"queued": 2},
            }
        one.start(1, 1)
        two.start(1, 2)
        one.complete(1)
        points.wait(running=1, completed=1)
        daemon.wait_until("recorded", lambda s: s["ledger"]["rows"] == s["ledger"]["last_seq"])
    journal = points.site.state / "journal.sqlite"
    answer = outrider("explain", "2.0", "--ledger", journal, "--json").json()
    assert answer["job"] == f"{AP1}#2.0"
    gone = outrider("explain", "1.0", "--ledger", journal, "--json")
    assert (gone.code, sorted(json.loads(gone.out)["candidates"])) == (1, candidates)
