"""An edit is believed only once it has been read back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from outrider_adapters.htcondor import edit_and_read_back
from outrider_adapters.htcondor.pool_calls import short_id
from outrider_adapters.mock_condor.faults import Faults
from tests.adapters.htcondor.watched_pool import WatchedPool


@pytest.fixture
def alices(tmp_path: Path) -> Iterator[WatchedPool]:
    """A pool that alice talks to."""
    made = WatchedPool(tmp_path, user="alice")
    yield made
    made.close()


def priority(site: WatchedPool, job: str) -> object:
    cluster = short_id(job).split(".")[0]
    return site.pool.schedd("alice").query(f"ClusterId == {cluster}", ["JobPrio"])[0]["JobPrio"]


def test_an_edit_of_ones_own_jobs_is_done(alices: WatchedPool) -> None:
    jobs = [alices.submit(run_s=1000) for _ in range(3)]
    assert edit_and_read_back(alices.point, jobs, "JobPrio", "5") == {}
    assert [priority(alices, job) for job in jobs] == [5, 5, 5]


def test_a_refused_edit_is_read_back_and_reported(alices: WatchedPool) -> None:
    mine, theirs = alices.submit(run_s=1000), alices.submit(run_s=1000, user="bob")
    assert alices.point.schedd.edit([short_id(theirs)], "JobPrio", "5") == 1, (
        "it says that it was done"
    )
    refused = edit_and_read_back(alices.point, [mine, theirs], "JobPrio", "5")
    assert refused == {theirs: "reported as done, but JobPrio is 0"}
    assert (priority(alices, mine), priority(alices, theirs)) == (5, 0)


def test_an_edit_that_is_lost_on_the_way_is_reported(alices: WatchedPool) -> None:
    alices.pool.transport.faults = Faults(refused_edit_ratio=0.5)
    jobs = [alices.submit(run_s=1000) for _ in range(20)]
    refused = edit_and_read_back(alices.point, jobs, "JobPrio", "5")
    assert 0 < len(refused) < 20
    assert list(refused) == [job for job in jobs if priority(alices, job) != 5]


def test_a_job_that_has_left_does_not_undo_the_edit_of_the_others(alices: WatchedPool) -> None:
    here, gone = alices.submit(run_s=1000), alices.submit(run_s=1000)
    alices.pool.remove(short_id(gone))
    left = {gone: "it has left the queue"}
    assert edit_and_read_back(alices.point, [here, gone], "JobPrio", "5") == left
    assert priority(alices, here) == 5
    assert edit_and_read_back(alices.point, [gone], "JobPrio", "5") == left


def test_expressions_are_compared_as_what_they_mean(alices: WatchedPool) -> None:
    job = alices.submit(run_s=1000)
    assert edit_and_read_back(alices.point, [job], "PolicyUntil", "(1+  2)*60") == {}


def test_what_the_schedd_refuses_aloud_is_told_in_its_words(alices: WatchedPool) -> None:
    job = alices.submit(run_s=1000)
    refused = edit_and_read_back(alices.point, [job], "Owner", '"bob"')
    assert list(refused) == [job]
    assert "Owner is immutable" in refused[job]


def test_an_outage_raises(alices: WatchedPool) -> None:
    job = alices.submit(run_s=1000)
    alices.fails(outage_ratio=1.0)
    with pytest.raises(alices.calls.failure):
        edit_and_read_back(alices.point, [job], "JobPrio", "5")
