"""Several access points of one pool are one stream, each with its own ids, log and outages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from outrider_adapters.htcondor import PoolCalls, PoolWatch
from outrider_adapters.logtail import LogtailSettings
from outrider_adapters.polling import StartAt
from tests.adapters.htcondor.watched_pool import WatchedPool, kinds, named


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[WatchedPool, WatchedPool]]:
    """Two schedds that count their jobs from 1."""
    sites = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        sites.append(WatchedPool(tmp_path / name, domain=f"{name}.test"))
    yield sites[0], sites[1]
    for site in sites:
        site.close()


def watch_of(
    sites: tuple[WatchedPool, WatchedPool], logged: int, start_at: StartAt = "beginning"
) -> PoolWatch:
    """Return a watch on the first pool's slots and both pools' jobs; `logged` have logs."""
    first = sites[0]
    calls = first.calls
    points = tuple(site.point for site in sites)
    both = PoolCalls(calls.collector, calls.slot_ads, calls.failure, points)
    logs = {
        site.point.name: LogtailSettings(
            paths=(str(site.log),), format="htcondor", start_at=start_at, settle_s=0.0
        )
        for site in sites[:logged]
    }
    return PoolWatch(both, logs, first.settings, first.now)


def advance(sites: tuple[WatchedPool, WatchedPool], seconds: float) -> None:
    for site in sites:
        site.pool.advance(site.pool.now_s + seconds)


@pytest.mark.parametrize("logged", [0, 1, 2])
def test_the_same_number_at_two_access_points_is_two_jobs(
    two: tuple[WatchedPool, WatchedPool], logged: int
) -> None:
    watch = watch_of(two, logged)
    watch.start(None)
    reported = [named(event) for event in watch.look().events]
    jobs = [site.submit(run_s=25) for site in two]
    assert [job.rpartition("#")[2] for job in jobs] == ["1.0", "1.0"]
    for _ in range(4):
        advance(two, 30)
        batch = watch.look()
        assert batch.events == sorted(batch.events, key=lambda event: event[0])
        reported += [named(event) for event in batch.events]
    for job in jobs:
        assert kinds(reported, job) == ["submitted", "started", "completed"]
    watch.close()


def test_one_that_does_not_answer_leaves_the_other_alone(
    two: tuple[WatchedPool, WatchedPool],
) -> None:
    watch = watch_of(two, logged=0)
    watch.start(None)
    watch.look()
    one, other = (site.submit(run_s=5) for site in two)
    two[1].fails(outage_ratio=1.0)
    advance(two, 30)
    batch = watch.look()
    reported = [named(event) for event in batch.events]
    assert kinds(reported, one) == ["submitted", "started", "completed"]
    assert "the schedd schedd@two.test does not answer" in batch.note
    assert "schedd@one.test" not in batch.note
    two[1].fails()
    advance(two, 30)
    reported = [named(event) for event in watch.look().events]
    assert kinds(reported, other) == ["submitted", "started", "completed"]
    watch.close()


def test_a_cursor_of_one_access_point_begins_the_other_at_its_beginning(
    two: tuple[WatchedPool, WatchedPool],
) -> None:
    jobs = [site.submit(run_s=500) for site in two]
    alone = two[0].new_watch()
    alone.start(None)
    cursor = alone.look().cursor
    alone.close()
    watch = watch_of(two, logged=2)
    watch.start(cursor)
    advance(two, 30)
    reported = [named(event) for event in watch.look().events]
    assert kinds(reported, jobs[0])[0] == "started", "its submission was told before"
    assert kinds(reported, jobs[1]) == ["submitted", "started"]
    watch.close()


@pytest.mark.parametrize("start_at", ["now", "beginning"])
def test_a_log_that_can_be_read_one_day_takes_over_from_the_queue(
    two: tuple[WatchedPool, WatchedPool], start_at: StartAt
) -> None:
    before = watch_of(two, logged=0)
    before.start(None)
    jobs = [site.submit(run_s=40) for site in two]
    lasting = [site.submit(run_s=400) for site in two]
    waiting = [site.submit(run_s=20, request_cpus="64") for site in two]
    cursor = before.look().cursor
    advance(two, 30)
    cursor = before.look().cursor
    for site, job in zip(two, waiting, strict=True):
        site.act("remove", job)
    advance(two, 60)  # while no daemon runs, most of them end
    later = [site.submit(run_s=20) for site in two]
    after = watch_of(two, logged=2, start_at=start_at)
    after.start(cursor)
    batches = []
    for _ in range(4):
        advance(two, 30)
        batches.append(after.look())
    # a daemon that runs skips history
    reported = [named(event) for one in batches if not one.history for event in one.events]
    assert [kinds(reported, job) for job in jobs] == [["completed"]] * 2
    assert [kinds(reported, job) for job in waiting] == [["removed"]] * 2
    assert [kinds(reported, job) for job in lasting] == [[], []]
    assert [kinds(reported, job) for job in later] == [["submitted", "started", "completed"]] * 2
    resumed = watch_of(two, logged=2, start_at=start_at)
    resumed.start(batches[-1].cursor)
    advance(two, 400)
    reported = [named(event) for event in resumed.look().events]
    assert [kinds(reported, job) for job in lasting] == [["completed"]] * 2
    after.close()
    resumed.close()


def test_a_log_that_can_no_longer_be_read_is_replaced_by_the_queue(
    two: tuple[WatchedPool, WatchedPool],
) -> None:
    before = watch_of(two, logged=2)
    before.start(None)
    jobs = [site.submit(run_s=130) for site in two]
    lasting = [site.submit(run_s=4000) for site in two]
    waiting = [site.submit(run_s=20, request_cpus="64") for site in two]
    for _ in range(4):
        advance(two, 30)
        cursor = before.look().cursor
    before.close()
    for site, job in zip(two, waiting, strict=True):
        site.act("remove", job)
    advance(two, 60)
    later = [site.submit(run_s=20) for site in two]
    after = watch_of(two, logged=0)
    after.start(cursor)
    reported = []
    for _ in range(4):
        advance(two, 30)
        reported += [named(event) for event in after.look().events]
    assert [kinds(reported, job) for job in jobs] == [["completed"]] * 2
    assert [kinds(reported, job) for job in waiting] == [["removed"]] * 2
    assert [kinds(reported, job) for job in lasting] == [[], []]
    assert [kinds(reported, job) for job in later] == [["submitted", "started", "completed"]] * 2
