"""Tests of waiting reasons in situations on a real Slurm, compared with Slurm's own data."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from outrider.api import WaitingReason
from tests.peers.beside_slurm.watched import Watched, of_slurm, submit
from tests.peers.slurm import Slurm

pytestmark = pytest.mark.slurm


@pytest.fixture
def watched(slurm: Slurm) -> Watched:
    """Provide a watch that has seen the nodes."""
    made = Watched(slurm)
    made.look()
    return made


def why(watched: Watched, job: str, reason: str) -> WaitingReason:
    """Return why a job waits, once Slurm itself reports this reason."""
    slurm = watched.slurm
    slurm.wait_until(reason, lambda: of_slurm(slurm, job)["Reason"].startswith(reason))
    watched.look()
    told = watched.why(job)
    assert told.code == reason
    return told


@contextmanager
def full(slurm: Slurm, folder: Path) -> Iterator[list[str]]:
    """Use every CPU within the block."""
    jobs = [submit(slurm, folder, "-n4", "-t", "30", sleep_s=300) for _ in slurm.nodes]
    slurm.wait_until("a full cluster", lambda: len(slurm.jobs("R")) == len(slurm.nodes))
    yield jobs


def test_held_by_its_user(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder)
    watched.slurm.run("scontrol", "uhold", job)
    told = why(watched, job, "JobHeldUser")
    assert told.sentence == "it is held: by its user, or by a coordinator of its account"
    assert told.remedies == (f"release it: scontrol release {job}",)
    assert not told.never
    watched.slurm.run("scontrol", "release", job)
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))


def test_held_by_an_administrator(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "--begin=now+60")
    watched.slurm.run("scontrol", "hold", job)
    told = why(watched, job, "JobHeldAdmin")
    assert "by an administrator" in told.sentence


def test_waits_for_another_job_and_one_that_never_comes(watched: Watched, folder: Path) -> None:
    first = submit(watched.slurm, folder, "-H")
    job = submit(watched.slurm, folder, "-d", f"afterok:{first}")
    told = why(watched, job, "Dependency")
    assert told.sentence.startswith(f"it waits for other jobs: afterok:{first}")
    assert not told.never
    watched.slurm.run("scancel", first)
    never = why(watched, job, "DependencyNeverSatisfied")
    assert never.never
    assert never.remedies[0] == f"remove the dependency: scontrol update JobId={job} Dependency="
    watched.slurm.run("scontrol", "update", f"JobId={job}", "Dependency=")
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))


def test_told_to_begin_later(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "--begin=2030-01-02T03:04:05")
    told = why(watched, job, "BeginTime")
    begin_s = int(of_slurm(watched.slurm, job)["EligibleTime"])
    assert told.expected_start_s == begin_s
    assert "2030-01-02 03:04:05 UTC (--begin)" in told.sentence
    [remedy] = told.remedies
    watched.slurm.run(*remedy.partition(": ")[2].split())
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))


def test_pauses_after_it_was_queued_again(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "--requeue", sleep_s=60)
    watched.look_until("its start", lambda: "started" in watched.kinds_of(job))
    watched.slurm.run("scontrol", "requeue", job)
    told = why(watched, job, "BeginTime")
    assert told.sentence.startswith("it was queued again 1 times, and pauses until ")


def test_an_array_that_runs_two_at_a_time(watched: Watched, folder: Path) -> None:
    array = submit(watched.slurm, folder, "--array=1-5%2", sleep_s=30)
    told = why(watched, f"{array}_4", "JobArrayTaskLimit")
    assert told.sentence == "its array runs at most 2 of its tasks at a time, as its user asked"
    remedy = told.remedies[0].partition(": ")[2].replace("=N", "=5")
    watched.slurm.run(*remedy.split())
    watched.look_until("its start", lambda: "started" in watched.kinds_of(f"{array}_4"))


def test_a_longer_time_than_its_partition_gives(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "-p", "express", "-t", "0:20:00")
    told = why(watched, job, "PartitionTimeLimit")
    assert told.never
    assert told.machines == 0
    assert told.sentence == (
        "it never starts as submitted: it asks for 0:20:00, express gives 0:10:00 at most"
    )
    shorter, elsewhere = told.remedies
    assert elsewhere == "use a partition that allows it: batch"
    assert told.clauses[0].machines == 0
    assert told.clauses[0].without_it == 3, "the partition's limit is all that keeps it"
    watched.slurm.run(*shorter.partition(": ")[2].split())
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))


def test_a_closed_partition(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "-p", "closed")
    told = why(watched, job, "PartitionDown")
    assert told.sentence.startswith("its partition closed starts no jobs now")
    assert not told.never


def test_what_it_asks_for_is_not_free(watched: Watched, folder: Path) -> None:
    with full(watched.slurm, folder):
        job = submit(watched.slurm, folder, "-n2", "-C", "ssd", "--mem-per-cpu=700")
        slurm = watched.slurm
        slurm.wait_until("a plan", lambda: of_slurm(slurm, job)["StartTime"] != "Unknown")
        told = why(watched, job, "Resources")
        assert "1 nodes with 2 CPUs each; 0 of the 2 nodes that it may use have so many" in (
            told.sentence
        )
        assert told.machines == 2
        meets = {clause.text: clause.machines for clause in told.clauses}
        assert meets["features ssd"] == 2
        assert meets["2 CPUs"] == meets["1,400 MiB of memory"] == 3
        assert told.expected_start_s == int(of_slurm(slurm, job)["StartTime"])


def test_who_is_ahead(watched: Watched, folder: Path) -> None:
    with full(watched.slurm, folder):
        submit(watched.slurm, folder, "-n3")
        submit(watched.slurm, folder, "-H", "-n4")
        submit(watched.slurm, folder, "--array=1-3", "-n2")
        job = submit(watched.slurm, folder, "-n4")
        told = why(watched, job, "Priority")
    assert told.ahead == 4, "a held job is not ahead of anybody"
    assert told.sentence == ("4 jobs of higher priority, which want 9 CPUs, wait for batch, too")


def test_the_only_node_is_drained(watched: Watched, folder: Path) -> None:
    watched.slurm.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=broken disk")
    try:
        job = submit(watched.slurm, folder, "-C", "amd")
        slurm = watched.slurm
        slurm.wait_until("a reason", lambda: "ode" in of_slurm(slurm, job)["Reason"])
        watched.look_until("the drain", lambda: not watched.watch.nodes["n3"].usable)
        told = watched.why(job)
    finally:
        watched.slurm.run("scontrol", "update", "NodeName=n3", "State=RESUME")
    assert "1 of the 1 nodes that it may use are closed" in told.sentence
    assert "broken disk" in told.sentence


def test_a_limit_of_nodes(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "-p", "express", "-N3")
    told = why(watched, job, "PartitionNodeLimit")
    assert told.never
    assert "partition node limit" in told.sentence


def test_running_and_unknown_jobs_have_no_reason_to_wait(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, sleep_s=30)
    watched.look_until("its start", lambda: "started" in watched.kinds_of(job))
    ask = watched.ask
    assert ask(f"outrider:{job}") is None
    assert ask("outrider:4000000") is None
    assert ask(f"elsewhere:{job}") is None
    assert ask("outrider:1; rm -rf /") is None
