"""Tests of the ad cache: objects are made again only if an ad, or its meaning, changed."""

from collections.abc import Sequence
from typing import Any

import pytest

from outrider.api import JobSpec
from outrider_adapters.htcondor.job_steps import JobSpecs
from outrider_adapters.htcondor.machines import AdCache
from outrider_adapters.htcondor.pool_calls import ClassAd
from tests.adapters.htcondor.test_eligibility import JOB, SLOT, Ads, projected


class Counting:
    """Makes the number of an ad, and counts how often."""

    def __init__(self, max_entries: int = 10) -> None:
        self.n = 0
        self.made = AdCache(self.number, max_entries)

    def number(self, ad: Any) -> int:
        self.n += 1
        return int(ad["A"])


def test_an_ad_is_read_once_until_it_changes() -> None:
    counting = Counting()
    assert [counting.made.of(ClassAd({"A": 1})) for _ in range(3)] == [1, 1, 1]
    assert counting.n == 1
    assert counting.made.of(ClassAd({"A": 2})) == 2
    assert counting.made.of(ClassAd({"A": 2, "B": "more"})) == 2
    assert counting.n == 3
    counting.made.clear()
    assert counting.made.of(ClassAd({"A": 1})) == 1
    assert counting.n == 4


def test_the_last_are_remembered_and_never_more_than_twice_as_many() -> None:
    counting = Counting(max_entries=10)
    for a in range(100):
        counting.made.of(ClassAd({"A": a}))
    for a in range(90, 100):
        counting.made.of(ClassAd({"A": a}))
    assert counting.n == 100
    assert len(counting.made._made) + len(counting.made._before) <= 20
    counting.made.of(ClassAd({"A": 1}))
    assert counting.n == 101


def test_what_is_asked_for_at_each_look_outlives_the_others() -> None:
    counting = Counting()
    for _ in range(5):
        counting.made.age()
        counting.made.of(ClassAd({"A": 1}))
    assert counting.n == 1
    counting.made.age()
    counting.made.age()
    counting.made.of(ClassAd({"A": 1}))
    assert counting.n == 2


class Queue:
    """A pool of hand-made ads, as a schedd that adds its time to each answer shows them."""

    def __init__(self, slots: list[str], jobs: list[str]) -> None:
        self.ads = Ads(slots, jobs)
        self.specs = JobSpecs(None, self.ads.watch)
        self.now_s = 0

    def reported(self) -> Sequence[Any]:
        schedd: Any = self
        return self.specs.query(schedd, "true", ["ClusterId"])

    def query(self, constraint: str, names: list[str]) -> list[Any]:
        found = [projected(ad, names) for ad in self.ads.jobs]
        for ad in found:
            ad["ServerTime"] = self.now_s
        return found

    def look(self, now_s: int) -> list[JobSpec]:
        self.now_s = now_s
        self.ads.watch.look_at_slots(now_s)
        reported = [self.specs.of(ad) for ad in self.reported()]
        self.ads.watch.news(now_s, now_s)
        return reported


def test_a_job_that_is_as_it_was_has_the_same_specification() -> None:
    queue = Queue([SLOT], [JOB])
    queue.look(0)
    [first], [again] = queue.look(400), queue.look(800)
    assert again is first
    queue.ads.jobs[0]["RequestMemory"] = 200
    [edited] = queue.look(1200)
    assert edited.resources != first.resources


def test_a_job_gets_its_class_once_the_collector_has_answered() -> None:
    queue = Queue([SLOT], [JOB])
    [ad] = queue.reported()
    assert queue.specs.of(ad).eligible == ""
    [spec] = queue.look(0)
    assert spec.eligible.startswith("requirements-")


def test_a_class_is_kept_for_as_long_as_a_job_of_it_waits_unchanged() -> None:
    queue = Queue([SLOT], [JOB])
    [spec] = queue.look(0)
    for now_s in range(400, 20_000, 400):
        assert queue.look(now_s) == [spec]
        assert spec.eligible in queue.ads.watch._jobs.kinds
    queue.ads.jobs.clear()
    queue.look(20_400)
    queue.look(30_000)
    assert spec.eligible not in queue.ads.watch._jobs.kinds


def test_what_slots_begin_to_read_of_a_job_changes_its_class() -> None:
    queue = Queue([SLOT], [JOB.replace("ProcId", 'Team = "a"; ProcId')])
    [before] = queue.look(0)
    assert queue.look(400) == [before]
    queue.ads.slots[0] = ClassAd(SLOT.replace("START]", 'START && TARGET.Team == "b"]'))
    queue.look(800)
    [after] = queue.look(1200)
    assert after.eligible != before.eligible


@pytest.mark.parametrize("max_entries", [1, 2])
def test_a_queue_larger_than_what_is_remembered_is_read_all_the_same(max_entries: int) -> None:
    counting = Counting(max_entries)
    for _ in range(2):
        assert [counting.made.of(ClassAd({"A": a})) for a in range(7)] == list(range(7))


def test_what_is_no_ad_of_the_library_is_made_each_time() -> None:
    counting = Counting()
    assert [counting.made.of({"A": 3}) for _ in range(2)] == [3, 3]
    assert counting.n == 2
