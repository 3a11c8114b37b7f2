"""Start times as leases on a real Slurm: what it does with them, and what is noted of them."""

import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from outrider.api import DecisionRow, Lever, PeerError, Undo
from outrider.testing import LeverConformance, LeverHarness
from outrider_adapters.slurm.adapter import SlurmAdapter
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.lever import LeasedStartTimes
from outrider_adapters.slurm.settings import SlurmSettings
from outrider_adapters.slurm.start_times import StartTimes
from tests.peers.beside_slurm.watched import Watched, of_slurm, submit
from tests.peers.slurm import Slurm

pytestmark = pytest.mark.slurm

LEASE_S = 12
AS_NOBODY = "#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups"


def shows(slurm: Slurm, job: str, attribute: str, value: str) -> bool:
    return of_slurm(slurm, job)[attribute] == value


@pytest.fixture
def full(slurm: Slurm, folder: Path) -> Slurm:
    """Every CPU is taken, so that jobs wait."""
    for _ in range(3):
        job = submit(slurm, folder, "-N1", "--exclusive", sleep_s=600)
        slurm.wait_until("its run", partial(shows, slurm, job, "JobState", "RUNNING"))
    return slurm


@pytest.fixture
def site(full: Slurm) -> "Site":
    return Site(full)


class Site:
    """A Slurm, its adapter's undo log, and levers on it."""

    def __init__(self, slurm: Slurm) -> None:
        self.slurm = slurm
        settings = SlurmSettings(config=slurm.environment["SLURM_CONF"], lease_s=LEASE_S)
        self.adapter = SlurmAdapter("slurm", settings)

    def lever(self) -> Lever:
        return LeasedStartTimes(self.adapter)

    def start_times(self, off_s: float = 0.0) -> StartTimes:
        """With a clock of this host that is off."""
        commands = Watched(self.slurm).commands
        return StartTimes(commands, self.adapter.undo_log, LEASE_S, lambda: time.time() + off_s)

    def eligible_s(self, job: str) -> float:
        return float(of_slurm(self.slurm, job)["EligibleTime"])

    def ahead_s(self, job: str) -> float:
        """How far its start time lies ahead; 0 where it does not."""
        return max(0.0, self.eligible_s(job) - time.time())

    def noted(self, job: str) -> Undo:
        return self.adapter.undo_log.entries[f"outrider:{job}"]


def name(job: str) -> str:
    return f"outrider:{job}"


class Queue(LeverHarness):
    """A job that is to wait, one that is not, and one that has left."""

    def __init__(self, slurm: Slurm, folder: Path) -> None:
        self.site = Site(slurm)
        self.job, self.other, self._gone = (submit(slurm, folder) for _ in range(3))
        for job in (self.job, self.other, self._gone):
            slurm.wait_until("its wait", partial(shows, slurm, job, "Reason", "Resources"))
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
        """The queue is emptied after each test."""


def decision(job: str, action: str) -> DecisionRow:
    return DecisionRow(0.0, name(job), action, None, 1, "best", "bandit", "active", gate="act")


class TestLeasedStartTimes(LeverConformance):
    @pytest.fixture(autouse=True)
    def _queue(self, full: Slurm, folder: Path) -> None:
        self.made = full, folder

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
    assert site.start_times().defer([name(job)]) == {}
    until_s = site.eligible_s(job)
    slurm.run("scancel", *blocker)
    slurm.wait_until("free nodes", lambda: not slurm.jobs("R", "CG"))
    time.sleep(LEASE_S / 2)
    assert of_slurm(slurm, job)["JobState"] == "PENDING"
    assert site.start_times().defer([name(job)]) == {}
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
    assert site.start_times().defer([name(job)]) == {}
    slurm.wait_until("the reason", lambda: of_slurm(slurm, job)["Reason"] == "BeginTime")
    watched.look()
    why = watched.why(job)
    assert why.code == "BeginTime (Outrider's)"
    assert "because Outrider asked for that: no user did" in why.sentence
    assert site.start_times().defer([name(job)]) == {}
    watched.look()
    assert site.start_times().release([name(job)]) == {}
    watched.look()
    slurm.run("scancel", "-u", "root", "-t", "R")
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))
    told = watched.of(job)
    assert [kind for kind, _, _ in told] == ["submitted", "started", "completed"], (
        "no edit, no hold"
    )
    assert told[0][2].eligible_s is None
    assert told[0][1] == eligible_s, "it waits since its user's time"
    assert site.eligible_s(job) > eligible_s, "while Slurm counts from the lease"
    assert site.noted(job), "for as long as Slurm shows the time, which was never its user's"


def test_a_later_begin_of_the_user_is_not_touched(site: Site, folder: Path) -> None:
    job = submit(site.slurm, folder, "--begin=now+600")
    begin_s = site.eligible_s(job)
    assert site.start_times().defer([name(job)]) == {}
    assert site.eligible_s(job) == begin_s
    assert not site.adapter.undo_log.entries


def test_a_begin_within_the_lease_is_given_back(site: Site, folder: Path) -> None:
    job = submit(site.slurm, folder, f"--begin=now+{LEASE_S - 2}")
    begin_s = site.eligible_s(job)
    assert site.start_times().defer([name(job)]) == {}
    assert site.eligible_s(job) > begin_s
    assert site.noted(job).before["begin_s"] == begin_s
    assert site.start_times().release([name(job)]) == {}
    assert site.eligible_s(job) == begin_s
    watched = Watched(site.slurm, undo_log=site.adapter.undo_log)
    watched.look()
    site.slurm.wait_until("the reason", lambda: of_slurm(site.slurm, job)["Reason"] == "BeginTime")
    assert watched.why(job).code == "BeginTime", "it is the user's again"


def test_what_the_user_changes_meanwhile_stays(site: Site, folder: Path) -> None:
    job = submit(site.slurm, folder)
    site.slurm.wait_until("its wait", lambda: of_slurm(site.slurm, job)["Reason"] != "None")
    assert site.start_times().defer([name(job)]) == {}
    site.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    refused = site.start_times().defer([name(job)])
    assert refused == {name(job): "somebody else changed its start time since Outrider did"}
    assert site.ahead_s(job) == 0
    assert site.start_times().release([name(job)]) == {}


def test_the_tasks_of_an_array_are_kept_one_by_one_or_together(site: Site, folder: Path) -> None:
    array = submit(site.slurm, folder, "--array=1-6")
    tasks = [f"{array}_{n}" for n in range(1, 7)]
    site.slurm.wait_until("its wait", lambda: of_slurm(site.slurm, array)["Reason"] != "None")
    assert site.start_times().defer([name(task) for task in tasks]) == {}
    assert len(site.slurm.jobs("PD")) == 1, "it has not been split"
    site.start_times().release_all()
    time.sleep(2)
    assert site.start_times().defer([name(tasks[1]), name(tasks[4])]) == {}
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
    refused = site.start_times().defer([name(held), "elsewhere:1"])
    assert refused == {
        name(held): "Slurm keeps it back itself: it has no eligible time",
        "elsewhere:1": "it waits in the queue no more",
    }


def test_nothing_is_done_by_a_clock_that_is_off(site: Site, folder: Path) -> None:
    job = submit(site.slurm, folder)
    with pytest.raises(PeerError, match=r"the controller's clock differs by -\d+ s"):
        site.start_times(off_s=LEASE_S).defer([name(job)])
    assert site.ahead_s(job) == 0


def test_a_user_without_rights_changes_nothing_and_hears_why(site: Site, folder: Path) -> None:
    """What Slurm refuses is told in its own words, and nothing is noted of it."""
    job = submit(site.slurm, folder)
    site.slurm.wait_until("its wait", lambda: of_slurm(site.slurm, job)["Reason"] != "None")
    with tempfile.TemporaryDirectory() as made:
        readable = Path(made)
        readable.chmod(0o755)
        config = readable / "slurm.conf"
        config.write_text(Path(site.slurm.environment["SLURM_CONF"]).read_text())
        for command in ("scontrol", "squeue", "sdiag"):
            script = readable / command
            script.write_text(f'{AS_NOBODY} {shutil.which(command)} "$@"\n')
            script.chmod(0o755)
        settings = SlurmSettings(config=str(config), commands=made)
        start_times = StartTimes(SlurmCommands(settings), site.adapter.undo_log, LEASE_S, time.time)
        refused = start_times.defer([name(job)])
    assert refused.keys() == {name(job)}
    assert refused[name(job)] == f"scontrol: Invalid user id for job {job}"
    assert site.ahead_s(job) == 0
    assert not site.adapter.undo_log.entries
