"""Tests of what Outrider sees and changes beside each release of Slurm, with its accounting.

All situations are made at once, so each release has one cluster and a few waits.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from outrider.api import events
from outrider_adapters.slurm.adapter import diagnosed
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.settings import SlurmSettings
from tests.peers.beside_slurm.levers import Site, decision
from tests.peers.beside_slurm.watched import (
    Watched,
    of_slurm,
    submit,
    would_start_on,
    write_script,
)
from tests.peers.presence import require_peer
from tests.peers.slurm import RELEASES, Slurm, missing_reason
from tests.peers.slurm_accounting import SlurmAccounting
from tests.peers.slurm_accounting import missing_reason as missing_accounting

pytestmark = pytest.mark.slurm

NODES: Final = {1: "Feature=intel,ssd", 2: "Feature=intel", 3: "Feature=amd", 4: "Feature=arm"}
SETTINGS: Final = """\
Licenses=matlab:2
DefMemPerCPU=1000
AccountingStorageEnforce=limits,qos
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=express Nodes=n1,n2 MaxTime=10 State=UP
PartitionName=closed Nodes=n2 MaxTime=1:00:00 State=DOWN
PartitionName=urgent Nodes=n4 MaxTime=1:00:00 State=UP PriorityTier=9
"""
PEOPLE: Final = (
    "add cluster outrider", "add account physics", "add qos single set MaxJobsPerUser=1",
    "add user root account=physics", "modify user root set qos=normal,single",
)  # fmt: skip
WAITING: Final[dict[str, tuple[tuple[str, ...], str, str]]] = {
    "held by its user": (("-H",), "JobHeldUser", "it is held: by its user"),
    "begins later": (("--begin=2030-01-02T03:04:05",), "BeginTime", "2030-01-02 03:04:05 UTC"),
    "depends on another": (("-d", "afterok:{running}"), "Dependency", "waits for other jobs"),
    "longer than its partition gives": (
        ("-p", "express", "-t20"), "PartitionTimeLimit",
        "it asks for 0:20:00, express gives 0:10:00 at most"),
    "its partition is closed": (("-p", "closed"), "PartitionDown", "closed starts no jobs now"),
    "no licence is left": (("-L", "matlab:2"), "Licenses", "matlab"),
    "its QOS lets one job run": (
        ("-q", "single"), "QOSMaxJobsPerUserLimit", "QOS single allows 1 running job for each"),
    "its node is drained": (
        ("-w", "n3"), "ReqNodeNotAvail", r"n3 is drained \(IDLE\+DRAIN\S*: broken fan\)"),
    "its array runs one at a time": (
        ("--array=1-3%1", "-w", "n2"), "JobArrayTaskLimit", "at most 1 of its tasks at a time"),
    "its reservation has not begun": (
        ("--reservation=course",), "Reservation", "its reservation course begins "),
    "its node is not free": (("-w", "n1", "-n4"), "Resources", "what it asks for is not free"),
    "another is before it": (  # backfill may keep its node for the other, and say so
        ("-w", "n1", "-n3"), "Priority|ReqNodeNotAvail", "1 job of higher priority, which "),
}  # fmt: skip
"""Words of a submission, a pattern of Slurm's reason, and one of a part of the sentence."""
REQUESTS: Final = (
    "-c4", "-n2 -c2", "-c5", "-n3 --mem-per-cpu=2000", "-C ssd", "-C intel&ssd", "-x n1,n2",
    "-p express", "--exclusive", "-L matlab:1",
)  # fmt: skip


@pytest.fixture(scope="module", params=RELEASES)
def slurm(request: pytest.FixtureRequest, folder: Path) -> Iterator[Slurm]:
    """Provide a real Slurm of a release, with accounting and a job on n1 that uses the licences."""
    release: str = request.param
    require_peer(f"Slurm {release}", missing_reason(release))
    require_peer(f"slurmdbd {release}", missing_accounting(release))
    where = folder / release
    with (
        SlurmAccounting(where / "accounting", release) as accounting,
        pytest.MonkeyPatch.context() as patch,
    ):
        running = Slurm(
            where / "run", 4, cpus=4, memory_mib=8000, node_settings=NODES, settings=SETTINGS,
            accounting=accounting.settings, release=release,
        )  # fmt: skip
        write_script(folder)
        for words in PEOPLE:
            running.run("sacctmgr", "-i", *words.split())
        for name, value in running.environment.items():
            patch.setenv(name, value)
        patch.setenv("SLURM_TIME_FORMAT", "%s")
        patch.setenv("SBATCH_ACCOUNT", "physics")
        with running:
            yield running


@pytest.fixture
def watched(slurm: Slurm) -> Watched:
    """Provide a watch that has seen the nodes."""
    made = Watched(slurm)
    made.look()
    return made


def test_the_release_is_met_and_doctor_names_it(slurm: Slurm) -> None:
    settings = SlurmSettings(config=slurm.environment["SLURM_CONF"])
    found = {what: (state, text) for what, state, text, _ in diagnosed(commands(slurm), settings)}
    state, text = found["controller"]
    assert state == "ok"
    assert text.startswith(f"Slurm {slurm.release}.")
    assert found["accounting"] == ("ok", "sacct reports jobs that left between two looks")
    assert {state for state, _ in found.values()} == {"ok"}


def all_idle(slurm: Slurm) -> bool:
    return set(slurm.run("sinfo", "-h", "-N", "-o", "%t").split()) == {"idle"}


def commands(slurm: Slurm) -> SlurmCommands:
    return SlurmCommands(SlurmSettings(config=slurm.environment["SLURM_CONF"]))


def test_every_reason_is_slurms_with_its_numbers(
    slurm: Slurm, watched: Watched, folder: Path
) -> None:
    slurm.run("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=broken fan")
    slurm.run(
        "scontrol", "create", "reservation", "ReservationName=course", "StartTime=now+50minutes",
        "Duration=10", "Nodes=n4", "Users=root",
    )  # fmt: skip
    jobs = {"running": submit(slurm, folder, "-w", "n1", "-n4", "-L", "matlab:1", sleep_s=600)}
    single = submit(slurm, folder, "-w", "n2", "-q", "single", sleep_s=600)
    try:
        slurm.wait_until("runs", lambda: {jobs["running"], single} <= set(slurm.jobs("R")))
        for what, (words, _, _) in WAITING.items():
            wanted = ("-t5", *(word.format(**jobs) for word in words))
            jobs[what] = submit(slurm, folder, *wanted, sleep_s=600)
        jobs["its array runs one at a time"] += "_2"
        wrong: dict[str, str] = {}

        def agree() -> bool:
            watched.look()
            wrong.clear()
            for what, (_, reason, sentence) in WAITING.items():
                reported = watched.ask(f"outrider:{jobs[what]}")
                if (
                    reported is None
                    or not re.fullmatch(reason, reported.code)
                    or not re.search(sentence, reported.sentence)
                ):
                    wrong[what] = str(reported)
            return not wrong

        try:
            slurm.wait_until("agreement", agree)
        except TimeoutError:
            raise AssertionError(wrong) from None
        closed = watched.watch.nodes["n3"]
        assert (closed.usable, closed.reason) == (False, "broken fan"), "without the admin's name"
        array = jobs["its array runs one at a time"].partition("_")[0]
        assert all("submitted" in watched.kinds_of(f"{array}_{n}") for n in (1, 2, 3))
        assert not watched.of(array)
    finally:
        slurm.run("scancel", "-u", "root")
        slurm.run("scontrol", "update", "NodeName=n3", "State=RESUME")
        slurm.wait_until("no jobs", lambda: not slurm.jobs("PD", "R", "CG"))
        slurm.run("scontrol", "delete", "ReservationName=course")
        slurm.wait_until("idle nodes", lambda: all_idle(slurm))


def test_machines_are_its_nodes_and_classes_are_where_it_would_start_jobs(
    slurm: Slurm, watched: Watched, folder: Path
) -> None:
    joined = {e[2]: e[3] for e in watched.told if e[1] == events.JOINED}
    assert sorted(joined) == list(slurm.nodes)
    assert {(spec.cpus, spec.usable) for spec in joined.values()} == {(4, True)}
    assert not [e for e in watched.told if e[1] == events.POWER], "no watts are measured here"
    wrong: dict[str, tuple[set[str], set[str]]] = {}
    for request in REQUESTS:
        words = request.split()
        takes = {n for n in slurm.nodes if would_start_on(slurm, folder, n, words)}
        try:
            job = submit(slurm, folder, "-H", *words)
        except RuntimeError:  # newer releases refuse what no node can hold
            assert not takes
            continue
        watched.look()
        if watched.class_of(job) != takes:
            wrong[request] = watched.class_of(job), takes
    assert not wrong, "request: our class, and Slurm's own --test-only on each node"


def test_a_lease_keeps_a_job_beside_free_nodes_and_lapses_by_itself(
    slurm: Slurm, folder: Path
) -> None:
    blockers = [submit(slurm, folder, "-N1", "--exclusive", sleep_s=600) for _ in slurm.nodes]
    slurm.wait_until("them", lambda: len(slurm.jobs("R")) == len(blockers))
    job = submit(slurm, folder, sleep_s=600)
    slurm.wait_until("its wait", lambda: of_slurm(slurm, job)["Reason"] != "None")
    site = Site(slurm, fence=True)
    with closing(site.lever()) as lever:
        assert lever.apply([decision(job, "defer")]) == {}
        first_s = site.eligible_s(job)
        slurm.run("scancel", *blockers)
        slurm.wait_until("free nodes", lambda: not slurm.jobs("R", "CG"))
        assert lever.apply([decision(job, "defer")]) == {}
        until_s = site.eligible_s(job)
        assert until_s >= first_s
    slurm.wait_until("its run", lambda: of_slurm(slurm, job)["JobState"] == "RUNNING")
    assert float(of_slurm(slurm, job)["StartTime"]) >= until_s


def test_a_preempted_run_is_lost_for_that_reason(
    slurm: Slurm, watched: Watched, folder: Path
) -> None:
    job = submit(slurm, folder, "--requeue", "-w", "n4", "-n4", sleep_s=600)
    watched.look_until("its start", lambda: "started" in watched.kinds_of(job))
    submit(slurm, folder, "-p", "urgent", "-n4", sleep_s=600)
    words = ("-n", "-X", "-D", "-j", job, "-o", "State")  # which the accounting knows a bit later
    slurm.wait_until("its record", lambda: "PREEMPTED" in slurm.run("sacct", *words))
    watched.look_until("its loss", lambda: "evicted" in watched.kinds_of(job))
    [lost] = [extra for kind, _, extra in watched.of(job) if kind == "evicted"]
    assert lost == "preempted"
