"""Tests of an access point without an event log: its events come from queue and history."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from outrider.api import Batch
from outrider_adapters.htcondor import WatchSettings
from tests.adapters.htcondor.watched_pool import WatchedPool, kinds, named, spec_of

SETTINGS = WatchSettings(left_after_s=0, queue_s=30, snapshot_s=90)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[WatchedPool]:
    """A pool whose event log the watch may not read."""
    made = WatchedPool(tmp_path, settings=SETTINGS, has_log=False)
    made.look()
    yield made
    made.close()


def of_job(batches: list[Batch], job: str) -> list[tuple[float, str]]:
    """Return time and kind of each reported event of a job."""
    reported = [event for batch in batches for event in batch.events]
    return [(event[0], named(event)[0]) for event in reported if event[2] == job]


def test_a_life_is_told_with_the_times_of_the_ad(alone: WatchedPool) -> None:
    begin_s = alone.pool.now_s
    job = alone.submit(run_s=100)
    batches = [alone.look(30) for _ in range(5)]
    reported = of_job(batches, job)
    assert [kind for _, kind in reported] == ["submitted", "started", "completed"]
    times = [time_s for time_s, _ in reported]
    assert times[0] == begin_s
    assert begin_s < times[1] <= begin_s + 20, "the cycle of 10 s, not the look after 30"
    assert times[2] == times[1] + 100
    spec = spec_of([named(event) for batch in batches for event in batch.events], job)
    assert (spec.user, spec.vo, spec.recalled) == ("alice", "physics", False)


def test_a_job_that_came_and_went_between_two_looks_is_told_whole(alone: WatchedPool) -> None:
    job = alone.submit(run_s=3)
    reported = of_job([alone.look(60)], job)
    assert [kind for _, kind in reported] == ["submitted", "started", "completed"]
    assert reported[2][0] == reported[1][0] + 3
    assert of_job([alone.look(60) for _ in range(4)], job) == [], "told once"


def test_an_eviction_and_the_next_start_between_two_looks_are_told(alone: WatchedPool) -> None:
    job = alone.submit(run_s=500)
    started = [named(event) for event in alone.look(30).events if event[2] == job]
    [machine] = [extra[0] for kind, _, extra in started if kind == "started"]
    alone.pool.owner_came(machine.partition("@")[0])
    batch = alone.look(30)
    reported = [named(event) for event in batch.events if event[2] == job]
    (evicted, _, cause), (again, _, (elsewhere, *_)) = reported
    assert (evicted, cause, again) == ("evicted", "owner", "started")
    assert elsewhere != machine
    assert batch.events == sorted(batch.events, key=lambda event: event[0])


def test_holds_releases_removals_and_edits(alone: WatchedPool) -> None:
    job = alone.submit(run_s=500, request_cpus="64")  # nobody has so many
    assert kinds(alone.reported(30), job) == ["submitted"]
    schedd = alone.pool.schedd("alice")
    alone.act("hold", job)
    assert alone.reported(30) == [("held", job, "Python-initiated action (by user alice)")]
    alone.act("release", job)
    assert kinds(alone.reported(30), job) == ["released"]
    schedd.edit([job.rpartition("#")[2]], "RequestCpus", "2")
    changed = [
        extra for kind, name, extra in alone.reported(90) if (kind, name) == ("changed", job)
    ]
    assert changed == [{"cpus": 2}]
    alone.act("remove", job)
    assert kinds(alone.reported(30), job)[-1] == "removed"


def test_a_restart_goes_on_and_tells_nothing_twice(alone: WatchedPool) -> None:
    waiting = alone.submit(run_s=500, request_cpus="64")
    running = alone.submit(run_s=70)
    cursor = alone.look(30).cursor
    alone.look(30)  # told after the cursor that was kept, and by the next process again
    after = alone.new_watch()
    after.start(cursor)
    alone.pool.advance(alone.pool.now_s + 30)
    new = alone.submit(run_s=500, request_cpus="64")
    batches = []
    for _ in range(4):
        alone.pool.advance(alone.pool.now_s + 30)
        batches.append(after.look())
    assert of_job(batches, waiting) == []
    assert [kind for _, kind in of_job(batches, running)] == ["completed"]
    assert [kind for _, kind in of_job(batches, new)] == ["submitted"]


def test_who_left_before_the_beginning_is_not_told_nor_after_a_restart_again(
    alone: WatchedPool,
) -> None:
    before = alone.submit(run_s=3)
    alone.pool.advance(alone.pool.now_s + 20)
    watch = alone.new_watch()
    watch.start(None)
    watch.look()
    later = alone.submit(run_s=3)
    alone.pool.advance(alone.pool.now_s + 30)
    batch = watch.look()
    assert of_job([batch], before) == []
    assert [kind for _, kind in of_job([batch], later)] == ["submitted", "started", "completed"]
    again = alone.new_watch()
    again.start(batch.cursor)
    alone.pool.advance(alone.pool.now_s + 30)
    assert again.look().events == []


def test_until_it_is_asked_again_nothing_is_taken_as_seen(alone: WatchedPool) -> None:
    asked = alone.look(30)
    assert asked.seen_until_s == alone.pool.now_s
    between = alone.look(10)
    assert between.seen_until_s == asked.seen_until_s


def test_a_schedd_that_does_not_answer_holds_up_nobody(alone: WatchedPool) -> None:
    job = alone.submit(run_s=3)
    alone.fails(outage_ratio=1.0)
    away = [alone.look(30) for _ in range(3)]
    assert away[-1].seen_until_s == alone.pool.now_s
    assert away[-1].age_s == 90.0, "since its last answer"
    alone.fails()
    assert [kind for _, kind in of_job([alone.look(30)], job)] == [
        "submitted", "started", "completed",
    ]  # fmt: skip
