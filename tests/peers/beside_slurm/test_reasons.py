"""Tests of waiting reasons in situations on a real Slurm, compared with Slurm's own data."""

import re
import time
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
    reported = watched.why(job)
    assert reported.code == reason
    return reported


@contextmanager
def full(slurm: Slurm, folder: Path) -> Iterator[list[str]]:
    """Use every CPU within the block."""
    jobs = [submit(slurm, folder, "-n4", "-t", "30", sleep_s=300) for _ in slurm.nodes]
    slurm.wait_until("a full cluster", lambda: len(slurm.jobs("R")) == len(slurm.nodes))
    yield jobs


def test_held_by_its_user(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder)
    watched.slurm.run("scontrol", "uhold", job)
    reported = why(watched, job, "JobHeldUser")
    assert reported.sentence == "it is held: by its user, or by a coordinator of its account"
    assert reported.remedies == (f"release it: scontrol release {job}",)
    assert not reported.never
    watched.slurm.run("scontrol", "release", job)
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))


def test_held_by_an_administrator(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "--begin=now+60")
    watched.slurm.run("scontrol", "hold", job)
    reported = why(watched, job, "JobHeldAdmin")
    assert "by an administrator" in reported.sentence


def test_queued_again_and_held(watched: Watched, folder: Path) -> None:
    slurm = watched.slurm
    job = submit(slurm, folder, "--requeue", sleep_s=60)
    watched.look_until("its start", lambda: "started" in watched.kinds_of(job))
    slurm.run("scontrol", "requeuehold", "State=SpecialExit", job)
    slurm.wait_until("it", lambda: of_slurm(slurm, job)["JobState"] == "SPECIAL_EXIT")
    watched.look_until("its hold", lambda: "held" in watched.kinds_of(job))
    reported = watched.why(job)
    assert reported.sentence == (
        "it is held: it was queued again and held, marked as a special exit (job requeued in held "
        "state)"
    )
    assert reported.expected_start_s is None
    assert reported.remedies == (f"release it: scontrol release {job}",)


def test_waits_for_another_job_and_one_that_never_comes(watched: Watched, folder: Path) -> None:
    first = submit(watched.slurm, folder, "-H")
    job = submit(watched.slurm, folder, "-d", f"afterok:{first}")
    reported = why(watched, job, "Dependency")
    assert reported.sentence.startswith(f"it waits for other jobs: afterok:{first}")
    assert not reported.never
    watched.slurm.run("scancel", first)
    never = why(watched, job, "DependencyNeverSatisfied")
    assert never.never
    assert never.remedies[0] == f"remove the dependency: scontrol update JobId={job} Dependency="
    watched.slurm.run("scontrol", "update", f"JobId={job}", "Dependency=")
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))


def test_told_to_begin_later(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "--begin=2030-01-02T03:04:05")
    reported = why(watched, job, "BeginTime")
    begin_s = int(of_slurm(watched.slurm, job)["EligibleTime"])
    assert reported.expected_start_s == begin_s
    assert "2030-01-02 03:04:05 UTC (--begin)" in reported.sentence
    [remedy] = reported.remedies
    watched.slurm.run(*remedy.partition(": ")[2].split())
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))


def test_pauses_after_it_was_queued_again(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "--requeue", sleep_s=60)
    watched.look_until("its start", lambda: "started" in watched.kinds_of(job))
    watched.slurm.run("scontrol", "requeue", job)
    reported = why(watched, job, "BeginTime")
    assert reported.sentence.startswith("it was queued again once, and pauses until ")


def test_an_array_that_runs_two_at_a_time(watched: Watched, folder: Path) -> None:
    array = submit(watched.slurm, folder, "--array=1-5%2", sleep_s=30)
    reported = why(watched, f"{array}_4", "JobArrayTaskLimit")
    assert reported.sentence == (
        "its array runs at most 2 of its tasks at a time, as its user asked; now 2 of its tasks "
        "run and 3 wait"
    )
    remedy = reported.remedies[0].partition(": ")[2].replace("=N", "=5")
    watched.slurm.run(*remedy.split())
    watched.look_until("its start", lambda: "started" in watched.kinds_of(f"{array}_4"))


def test_a_longer_time_than_its_partition_gives(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "-p", "express", "-t", "0:20:00")
    reported = why(watched, job, "PartitionTimeLimit")
    assert reported.never
    assert reported.machines == 0
    assert reported.sentence == (
        "it never starts as submitted: it asks for 0:20:00, express gives 0:10:00 at most"
    )
    shorter, elsewhere = reported.remedies
    assert elsewhere == "use a partition that allows it: batch"
    assert reported.clauses[0].machines == 0
    assert reported.clauses[0].without_it == 3, "the partition's limit is all that keeps it"
    watched.slurm.run(*shorter.partition(": ")[2].split())
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))


def test_a_closed_partition(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "-p", "closed")
    reported = why(watched, job, "PartitionDown")
    assert reported.sentence.startswith("its partition closed starts no jobs now")
    assert not reported.never


def test_what_it_asks_for_is_not_free(watched: Watched, folder: Path) -> None:
    with full(watched.slurm, folder):
        job = submit(watched.slurm, folder, "-n2", "-C", "ssd", "--mem-per-cpu=700")
        slurm = watched.slurm
        slurm.wait_until("a plan", lambda: of_slurm(slurm, job)["StartTime"] != "Unknown")
        reported = why(watched, job, "Resources")
        assert "1 node with 2 CPUs; 0 of the 2 nodes that it may use have so many" in (
            reported.sentence
        )
        assert reported.machines == 2
        meets = {clause.text: clause.machines for clause in reported.clauses}
        assert meets["features ssd"] == 2
        assert meets["2 CPUs"] == meets["1,400 MiB of memory"] == 3
        assert reported.expected_start_s == int(of_slurm(slurm, job)["StartTime"])


def test_who_is_ahead(watched: Watched, folder: Path) -> None:
    with full(watched.slurm, folder):
        first = submit(watched.slurm, folder, "-n3")
        submit(watched.slurm, folder, "-H", "-n4")
        array = submit(watched.slurm, folder, "--array=1-3", "-n2")
        job = submit(watched.slurm, folder, "-n4")
        reported = why(watched, job, "Priority")
    assert reported.ahead == 4, "a held job is not ahead of anybody"
    assert reported.sentence == (
        "4 jobs of higher priority, which want 9 CPUs, wait for batch, too; "
        f"first {first}, {array}_1, {array}_2"
    )


def test_once_nobody_is_before_it_a_job_is_the_next_in_line(watched: Watched, folder: Path) -> None:
    slurm = watched.slurm
    with full(slurm, folder):
        before = submit(slurm, folder, "-n4")
        job = submit(slurm, folder, "-n4")
        assert why(watched, job, "Priority").ahead == 1
        slurm.run("scancel", before)
        watched.look()
        reported = watched.why(job)  # Slurm's reason may still be that of its last cycle
    assert reported.ahead == 0
    assert reported.sentence.startswith(
        "it is among the next in line, but what it asks for is not free: 1 node with 4 CPUs; "
    )


def test_jobs_of_equal_priority_go_by_their_number(watched: Watched, folder: Path) -> None:
    slurm = watched.slurm
    with full(slurm, folder):
        jobs = [submit(slurm, folder, "-n4") for _ in range(4)]
        for job, priority in zip(jobs, (7, 7, 9, 7), strict=True):
            slurm.run("scontrol", "update", f"JobId={job}", f"Priority={priority}")
        one, two, three, last = jobs
        reported = why(watched, last, "Priority")
        assert reported.sentence == (
            "3 jobs that wait for batch, too, and want 12 CPUs come before it: 1 of higher "
            f"priority, 2 of the same priority and a lower number; first {three}, {one}, {two}"
        )
        assert reported.ahead == 3
        assert watched.why(two).sentence.endswith(f"a lower number; first {three}, {one}")


def test_parts_of_a_heterogeneous_job_wait_for_each_other(watched: Watched, folder: Path) -> None:
    slurm = watched.slurm
    with full(slurm, folder):
        job = submit(slurm, folder, "-n1", "-C", "intel", ":", "-n2", "-C", "amd")
        slurm.wait_until("a reason", lambda: of_slurm(slurm, f"{job}+1")["Reason"] == "Resources")
        watched.look()
        first, second = watched.why(f"{job}+0"), watched.why(f"{job}+1")
    assert first.sentence.endswith(
        f"; it starts together with {job}+1, the other parts of its heterogeneous job"
    )
    assert f"together with {job}+0" in second.sentence
    assert second.ahead == 0, "its own parts are not before it"


def test_nodes_are_explained_as_they_are_now(watched: Watched, folder: Path) -> None:
    slurm = watched.slurm
    with full(slurm, folder):
        job = submit(slurm, folder, "-w", "n3")
        watched.look()
        slurm.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=new disk")
        try:
            reported = watched.why(job)
            assert "n3 is draining" in reported.sentence, "no look has seen it yet"
        finally:
            slurm.run("scontrol", "update", "NodeName=n3", "State=RESUME")


def test_licences_in_use(watched: Watched, folder: Path) -> None:
    holder = submit(watched.slurm, folder, "-L", "matlab:2", sleep_s=300)
    watched.slurm.wait_until("its run", lambda: holder in watched.slurm.jobs("R"))
    reported = why(watched, submit(watched.slurm, folder, "-L", "matlab"), "Licenses")
    assert reported.sentence == "licences that it asks for are in use: 1 of matlab (2 of 2 in use)"


def test_reservations_of_its_own_and_of_others(watched: Watched, folder: Path) -> None:
    slurm = watched.slurm
    slurm.run(
        "scontrol", "create", "reservation", "ReservationName=course", "StartTime=now+30minutes",
        "Duration=60", "Nodes=n3", "Users=root",
    )  # fmt: skip
    try:
        own = submit(slurm, folder, "--reservation=course", "-t", "10")
        shown = dict(
            pair.split("=", 1)
            for pair in slurm.run("scontrol", "show", "reservation", "-o").split()
        )
        begins = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(float(shown["StartTime"])))
        reported = why(watched, own, "Reservation")
        assert reported.sentence.startswith(f"its reservation course begins {begins} and ends ")
        watched.watch.recent.forget()
        other = submit(slurm, folder, "-w", "n3", "-t", "50")
        reason = "ReqNodeNotAvail"
        slurm.wait_until(reason, lambda: of_slurm(slurm, other)["Reason"].startswith(reason))
        watched.look()
        reported = watched.why(other)
        assert f"course has 1 of them from {begins[:-4]} to " in reported.sentence
        assert reported.remedies == (
            "wait until they end, or ask for a time limit that ends before them",
        )
        slurm.run("scancel", own, other)
    finally:
        slurm.wait_until("no jobs of it", lambda: not slurm.jobs("PD", "R"))
        slurm.run("scontrol", "delete", "ReservationName=course")


def test_a_node_in_maintenance_has_its_reservation_and_its_end(
    watched: Watched, folder: Path
) -> None:
    slurm = watched.slurm
    slurm.run(
        "scontrol", "create", "reservation", "ReservationName=upgrade", "StartTime=now",
        "Duration=60", "Nodes=n3", "Users=root", "Flags=MAINT",
    )  # fmt: skip
    try:
        job = submit(slurm, folder, "-w", "n3", "-t", "5")
        reason = "ReqNodeNotAvail"
        slurm.wait_until(reason, lambda: of_slurm(slurm, job)["Reason"].startswith(reason))
        slurm.wait_until(
            "its state", lambda: "MAINT" in slurm.run("scontrol", "show", "node", "n3")
        )
        watched.look()
        assert re.match(
            r"it names n3, and 1 of the 1 nodes that it may use are closed: n3 is in maintenance "
            r"\([A-Z+]+\); reserved: upgrade has 1 of them from .* to .* UTC",
            watched.why(job).sentence,
        )
        slurm.run("scancel", job)
    finally:
        slurm.wait_until("no jobs of it", lambda: not slurm.jobs("PD", "R"))
        slurm.run("scontrol", "delete", "ReservationName=upgrade")


def test_a_draining_node_is_told_to_those_that_others_precede(
    watched: Watched, folder: Path
) -> None:
    slurm = watched.slurm
    with full(slurm, folder):
        slurm.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=broken fan")
        try:
            job = submit(slurm, folder, "-w", "n3")
            watched.look_until("the drain", lambda: not watched.watch.nodes["n3"].usable)
            reported = watched.why(job)
        finally:
            slurm.run("scontrol", "update", "NodeName=n3", "State=RESUME")
    assert re.fullmatch(
        r"it names n3, and 1 of the 1 nodes that it may use are closed: n3 is draining, its jobs "
        r"still run \(ALLOCATED\+DRAIN(\+PLANNED)?: broken fan\)",
        reported.sentence,
    )


def test_the_only_node_is_drained(watched: Watched, folder: Path) -> None:
    watched.slurm.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=broken disk")
    try:
        job = submit(watched.slurm, folder, "-C", "amd")
        slurm = watched.slurm
        slurm.wait_until("a reason", lambda: "ode" in of_slurm(slurm, job)["Reason"])
        watched.look_until("the drain", lambda: not watched.watch.nodes["n3"].usable)
        reported = watched.why(job)
    finally:
        watched.slurm.run("scontrol", "update", "NodeName=n3", "State=RESUME")
    assert "1 of the 1 nodes that it may use are closed" in reported.sentence
    assert "broken disk" in reported.sentence


def test_a_limit_of_nodes(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, "-p", "express", "-N3")
    reported = why(watched, job, "PartitionNodeLimit")
    assert reported.never
    assert "partition node limit" in reported.sentence


def test_a_job_that_was_started_since_the_last_look(watched: Watched, folder: Path) -> None:
    slurm = watched.slurm
    with full(slurm, folder) as jobs:
        job = submit(slurm, folder, "-w", "n2", "-n4", sleep_s=60)
        watched.look()
        slurm.run("scancel", *jobs)
        slurm.wait_until("its run", lambda: job in slurm.jobs("R"))
    reported = watched.why(job)
    assert reported.sentence == "is running on n2, as Slurm shows it since the last look"
    assert reported.is_over
    watched.look()
    assert watched.ask(f"outrider:{job}") is None


def test_running_and_unknown_jobs_have_no_reason_to_wait(watched: Watched, folder: Path) -> None:
    job = submit(watched.slurm, folder, sleep_s=30)
    watched.look_until("its start", lambda: "started" in watched.kinds_of(job))
    ask = watched.ask
    assert ask(f"outrider:{job}") is None
    assert ask("outrider:4000000") is None
    assert ask(f"elsewhere:{job}") is None
    assert ask("outrider:1; rm -rf /") is None
