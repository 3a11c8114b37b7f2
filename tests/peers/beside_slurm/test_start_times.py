"""Tests of start times as leases on a real Slurm: their effects and notes."""

import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from outrider.api import DecisionRow, Lever, PeerError
from outrider.testing import LeverConformance, LeverHarness
from tests.peers.beside_slurm.levers import LEASE_S, Site, as_user, decision, name
from tests.peers.beside_slurm.watched import Watched, of_slurm, submit
from tests.peers.slurm import Slurm

pytestmark = pytest.mark.slurm


def shows(slurm: Slurm, job: str, attribute: str, value: str) -> bool:
    return of_slurm(slurm, job)[attribute] == value


def waits(slurm: Slurm, job: str) -> bool:
    """Return whether Slurm has considered it, and found no place."""
    return of_slurm(slurm, job)["Reason"] in ("Resources", "Priority")


@pytest.fixture
def site(slurm: Slurm, full: list[str]) -> Site:
    """Provide the lever on a Slurm whose nodes are full."""
    assert full
    return Site(slurm)


class Queue(LeverHarness):
    """Queue with a job to defer, one to leave alone, and one that has left."""

    def __init__(self, slurm: Slurm, folder: Path) -> None:
        self.site = Site(slurm)
        self.job, self.other, self._gone = (submit(slurm, folder) for _ in range(3))
        for job in (self.job, self.other, self._gone):
            slurm.wait_until("its wait", partial(waits, slurm, job))
        slurm.run("scancel", self._gone)

    def lever(self) -> Lever:
        return self.site.lever()

    def decision(self) -> DecisionRow:
        return decision(self.job, "defer")

    def seen(self) -> Any:
        return [self.site.ahead_s(job) > 0 for job in (self.job, self.other)]

    @property
    def gone(self) -> str:
        return name(self._gone)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        """Do nothing: the queue is emptied after each test."""


class TestLeasedStartTimes(LeverConformance):
    @pytest.fixture(autouse=True)
    def _queue(self, slurm: Slurm, full: list[str], folder: Path) -> None:
        assert full
        self.made = slurm, folder

    def harness(self) -> LeverHarness:
        return Queue(*self.made)


def test_a_deferred_job_waits_beside_free_nodes_and_begins_when_nobody_renews(
    slurm: Slurm, folder: Path
) -> None:
    site = Site(slurm)
    blocker = [submit(slurm, folder, "-N1", "--exclusive", sleep_s=600) for _ in range(3)]
    slurm.wait_until("them", lambda: len(slurm.jobs("R")) == 3)
    job = submit(slurm, folder, sleep_s=60)
    slurm.wait_until("its wait", lambda: of_slurm(slurm, job)["Reason"] != "None")
    assert site.defer(job) == {}
    until_s = site.eligible_s(job)
    slurm.run("scancel", *blocker)
    slurm.wait_until("free nodes", lambda: not slurm.jobs("R", "CG"))
    time.sleep(LEASE_S / 2)
    assert of_slurm(slurm, job)["JobState"] == "PENDING"
    assert site.defer(job) == {}
    assert site.eligible_s(job) > until_s
    until_s = site.eligible_s(job)
    slurm.wait_until("its run", lambda: of_slurm(slurm, job)["JobState"] == "RUNNING", 20.0)
    assert 0 <= float(of_slurm(slurm, job)["StartTime"]) - until_s <= 3


def test_a_watch_tells_of_the_job_as_its_user_left_it(site: Site, folder: Path) -> None:
    slurm = site.slurm
    watched = Watched(slurm, undo_log=site.adapter.undo_log)
    job = submit(slurm, folder)
    watched.look_until("its wait", lambda: watched.kinds_of(job) == ["submitted"])
    eligible_s = site.eligible_s(job)
    assert site.defer(job) == {}
    slurm.wait_until("the reason", lambda: of_slurm(slurm, job)["Reason"] == "BeginTime")
    watched.look()
    why = watched.why(job)
    assert why.code == "BeginTime (Outrider's)"
    assert "because Outrider asked for that: no user did" in why.sentence
    assert site.defer(job) == {}
    watched.look()
    slurm.wait_until("a later second", lambda: time.time() >= eligible_s + 1)
    assert site.withdraw(job) == {}
    watched.look()
    slurm.run("scancel", "-u", "root", "-t", "R")
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))
    reported = watched.of(job)
    assert [kind for kind, _, _ in reported] == ["submitted", "started", "completed"], (
        "no edit, no hold"
    )
    assert reported[0][2].eligible_s is None
    assert reported[0][1] == eligible_s, "it waits since its user's time"
    assert site.eligible_s(job) > eligible_s, "while Slurm counts from the lease"
    assert site.noted(job), "for as long as Slurm shows the time, which was never its user's"


def test_a_later_begin_of_the_user_is_not_touched(site: Site, folder: Path) -> None:
    job = submit(site.slurm, folder, "--begin=now+600")
    begin_s = site.eligible_s(job)
    assert site.defer(job) == {}
    assert site.eligible_s(job) == begin_s
    assert not site.adapter.undo_log.entries


def test_a_begin_within_the_lease_is_given_back(site: Site, folder: Path) -> None:
    job = submit(site.slurm, folder, f"--begin=now+{LEASE_S - 2}")
    begin_s = site.eligible_s(job)
    assert site.defer(job) == {}
    assert site.eligible_s(job) > begin_s
    assert site.noted(job).before["begin_s"] == begin_s
    assert site.withdraw(job) == {}
    assert site.eligible_s(job) == begin_s
    watched = Watched(site.slurm, undo_log=site.adapter.undo_log)
    watched.look()
    site.slurm.wait_until("the reason", lambda: of_slurm(site.slurm, job)["Reason"] == "BeginTime")
    assert watched.why(job).code == "BeginTime", "it is the user's again"


def test_what_the_user_changes_meanwhile_stays(site: Site, folder: Path) -> None:
    job = submit(site.slurm, folder)
    site.slurm.wait_until("its wait", lambda: of_slurm(site.slurm, job)["Reason"] != "None")
    eligible_s = site.eligible_s(job)
    assert site.defer(job) == {}
    site.slurm.wait_until("a later second", lambda: time.time() >= eligible_s + 1)
    site.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    refused = site.defer(job)
    assert refused == {job: "its start time was changed since Outrider set it"}
    assert site.ahead_s(job) == 0
    assert site.withdraw(job) == {}


def test_the_tasks_of_an_array_are_kept_one_by_one_or_together(site: Site, folder: Path) -> None:
    array = submit(site.slurm, folder, "--array=1-6")
    tasks = [f"{array}_{n}" for n in range(1, 7)]
    site.slurm.wait_until("its wait", lambda: of_slurm(site.slurm, array)["Reason"] != "None")
    assert site.defer(*tasks) == {}
    assert len(site.slurm.jobs("PD")) == 1, "it has not been split"
    with closing(site.lever()) as lever:
        assert lever.withdraw_all() == 6
    time.sleep(2)
    assert site.defer(tasks[1], tasks[4]) == {}
    shown = site.slurm.run("squeue", "-h", "-r", "-t", "PD", "-O", "JobArrayID:|,EligibleTime:|")
    ahead = {
        line.split("|")[0] for line in shown.split() if float(line.split("|")[1]) > time.time()
    }
    assert ahead == {tasks[1], tasks[4]}
    watched = Watched(site.slurm, undo_log=site.adapter.undo_log)
    watched.look()
    assert all(watched.kinds_of(task) == ["submitted"] for task in tasks), "all wait, none is held"


def test_jobs_that_slurm_keeps_back_are_left_to_it(site: Site, folder: Path) -> None:
    held = submit(site.slurm, folder, "--hold")
    refused = site.defer(held, "elsewhere:1")
    assert refused == {
        held: "the batch system itself holds it: it has no eligible time",
        "elsewhere:1": "it no longer waits in the queue",
    }


def test_nothing_is_done_by_a_clock_that_is_off(site: Site, folder: Path) -> None:
    job = submit(site.slurm, folder)
    with pytest.raises(PeerError, match=r"the controller's clock differs by -\d+ s"):
        site.defer(job, off_s=LEASE_S)
    assert site.ahead_s(job) == 0


def test_a_user_without_rights_changes_nothing_and_hears_why(site: Site, folder: Path) -> None:
    """Report Slurm's own words for a refusal, and note nothing."""
    job = submit(site.slurm, folder)
    site.slurm.wait_until("its wait", lambda: of_slurm(site.slurm, job)["Reason"] != "None")
    with as_user(site.slurm, 65534) as settings:
        nobody = Site(site.slurm, **settings)
        refused = nobody.defer(job)
    assert refused == {job: f"scontrol: Invalid user id for job {job}"}
    assert site.ahead_s(job) == 0
    assert not nobody.adapter.undo_log.entries
