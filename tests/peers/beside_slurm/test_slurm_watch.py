"""Tests of the adapter's watch on a real Slurm, look by look."""

import itertools
import os
from pathlib import Path

import pytest

from outrider.api import events
from outrider_adapters.slurm.commands import SlurmCommands, hidden_from_us
from tests.peers.beside_slurm.watched import Watched, of_slurm, submit, would_start_on
from tests.peers.slurm import Slurm

pytestmark = pytest.mark.slurm

REQUESTS = [
    "",
    "-C intel",
    "-C intel&ssd",
    "-C intel|ssd",
    "-C intel|amd&ssd",
    "-C amd|intel&ssd",
    "-C ssd&intel|amd",
    "-C (amd|intel)&ssd",
    "-C [intel|amd]",
    "--mem=8000",
    "-n4",
    "-c4",
    "-n3 --mem-per-cpu=2000",
    "-x n1",
    "-x n[1-2]",
    "-p express",
    "-p express,batch",
    "-p express,batch -t 5",
    "-p express -C ssd",
]


def test_a_job_from_its_submission_to_its_end_at_slurms_own_times(
    slurm: Slurm, folder: Path
) -> None:
    watched = Watched(slurm)
    job = submit(slurm, folder, "-n2", "--mem-per-cpu=500", "-t", "7", sleep_s=1)
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))
    shown = of_slurm(slurm, job)
    assert watched.kinds_of(job) == ["submitted", "started", "completed"]
    (_, submit_s, spec), (_, start_s, place), (_, end_s, _) = watched.of(job)
    assert (f"{submit_s:.0f}", f"{start_s:.0f}", f"{end_s:.0f}") == (
        shown["SubmitTime"],
        shown["StartTime"],
        shown["EndTime"],
    )
    assert (spec.user, spec.vo, spec.cpus, spec.estimate_s) == ("root", "root", 2, 420.0)
    assert spec.resources.memory_mib == 1000.0
    assert place == (shown["NodeList"], 2)
    watched.look()
    assert watched.kinds_of(job) == ["submitted", "started", "completed"], "told once"


def test_tasks_of_an_array_are_jobs_before_slurm_splits_them(slurm: Slurm, folder: Path) -> None:
    watched = Watched(slurm)
    array = submit(slurm, folder, "-H", "--array=1-5,9%2", sleep_s=0.5)
    watched.look()
    tasks = [f"{array}_{n}" for n in (1, 2, 3, 4, 5, 9)]
    assert all(watched.kinds_of(task) == ["submitted", "held"] for task in tasks)
    slurm.run("scontrol", "release", array)
    watched.look_until(
        "the end of all", lambda: all("completed" in watched.kinds_of(task) for task in tasks)
    )
    assert not watched.of(array)
    for task in tasks:
        kinds = watched.kinds_of(task)
        assert kinds[:2] == ["submitted", "held"]
        assert kinds[-3:] == ["released", "started", "completed"]
        # the limit of two at a time holds the last ones once more
        assert kinds[2:-3] in ([], ["released", "held"])
        times = [time_s for _, time_s, _ in watched.of(task)]
        assert times == sorted(times)


def test_an_array_cancelled_while_it_waits(slurm: Slurm, folder: Path) -> None:
    watched = Watched(slurm)
    array = submit(slurm, folder, "-H", "--array=1-3")
    watched.look()
    slurm.run("scancel", f"{array}_2")
    watched.look()
    assert watched.kinds_of(f"{array}_2") == ["submitted", "held", "removed"]
    assert watched.kinds_of(f"{array}_1") == ["submitted", "held"]
    slurm.run("scancel", array)
    watched.look()
    assert watched.kinds_of(f"{array}_3") == ["submitted", "held", "removed"]


def test_components_of_a_heterogeneous_job_are_jobs(slurm: Slurm, folder: Path) -> None:
    watched = Watched(slurm)
    first = submit(slurm, folder, "-n1", ":", "-n2", sleep_s=0.5)
    parts = [f"{first}+0", f"{first}+1"]
    watched.look_until(
        "its end", lambda: all("completed" in watched.kinds_of(part) for part in parts), 60
    )
    [place] = [extra for kind, _, extra in watched.of(f"{first}+1") if kind == "started"]
    assert place[1] == 2
    for part in parts:
        assert watched.kinds_of(part) == ["submitted", "started", "completed"]


def test_a_job_queued_again_is_evicted_and_keeps_its_submission(slurm: Slurm, folder: Path) -> None:
    watched = Watched(slurm)
    job = submit(slurm, folder, "--requeue", sleep_s=60)
    watched.look_until("its start", lambda: "started" in watched.kinds_of(job))
    slurm.run("scontrol", "requeue", job)
    # it pauses at once, and has no reason before the scheduler's next pass
    slurm.wait_until("the reason", lambda: of_slurm(slurm, job)["Reason"] == "BeginTime")
    watched.look_until("its hold", lambda: watched.kinds_of(job)[-1] == "held")
    assert watched.kinds_of(job) == ["submitted", "started", "evicted", "held"]
    [evicted_s] = [time_s for kind, time_s, _ in watched.of(job) if kind == "evicted"]
    assert f"{evicted_s:.0f}" == of_slurm(slurm, job)["SubmitTime"], "which Slurm moves"
    assert watched.of(job)[-1][2] == "BeginTime", "it pauses for two minutes"
    # a node takes a launch in the second of a kill for that of the run that was killed
    slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now+2seconds")
    watched.look_until("another start", lambda: watched.kinds_of(job)[-1] == "started")
    assert watched.kinds_of(job)[3:] == ["held", "released", "started"]
    changed = [extra for kind, _, extra in watched.of(job) if kind == "changed"]
    assert not any("eligible_s" in extra for extra in changed), "the first wait stays what it was"


def test_suspended_resumed_edited_and_cancelled(slurm: Slurm, folder: Path) -> None:
    watched = Watched(slurm)
    job = submit(slurm, folder, "-H", "-t", "10", sleep_s=60)
    watched.look()
    slurm.run("scontrol", "update", f"JobId={job}", "TimeLimit=20", "NumCPUs=2")
    watched.look()
    [changes] = [extra for kind, _, extra in watched.of(job) if kind == "changed"]
    assert (changes["estimate_s"], changes["cpus"]) == (1200.0, 2)
    slurm.run("scontrol", "release", job)
    watched.look_until("its start", lambda: "started" in watched.kinds_of(job))
    slurm.run("scontrol", "suspend", job)
    watched.look_until("suspension", lambda: watched.kinds_of(job)[-1] == "suspended")
    slurm.run("scontrol", "resume", job)
    watched.look_until("going on", lambda: watched.kinds_of(job)[-1] == "resumed")
    slurm.run("scancel", job)
    watched.look_until("its end", lambda: watched.kinds_of(job)[-1] == "removed")
    assert watched.of(job)[-1][2] == "removed"


def test_a_drained_node_is_closed_and_opened_whatever_the_reason_says(slurm: Slurm) -> None:
    watched = Watched(slurm)
    watched.look()
    assert watched.watch.nodes["n2"].usable
    reason = "a=b State=IDLE CPUTot=99"
    slurm.run("scontrol", "update", "NodeName=n2", "State=DRAIN", f"Reason={reason}")
    watched.look_until("the drain", lambda: not watched.watch.nodes["n2"].usable)
    assert watched.watch.nodes["n2"].cpus == 4
    assert watched.watch.nodes["n2"].reason.startswith(reason)
    slurm.run("scontrol", "update", "NodeName=n2", "State=RESUME")
    watched.look_until("its end", lambda: watched.watch.nodes["n2"].usable)
    kinds = [e[1] for e in watched.told if e[2] == "n2"]
    assert kinds == [events.JOINED, events.DRAINED, events.USABLE]


def test_classes_hold_just_the_nodes_that_slurm_would_take(slurm: Slurm, folder: Path) -> None:
    watched = Watched(slurm)
    watched.look()  # the first is history: the classes of its jobs are told with the next
    wrong: dict[str, tuple[set[str], set[str]]] = {}
    for request in REQUESTS:
        words = request.split()
        job = submit(slurm, folder, "-H", *words)
        watched.look()
        takes = {node for node in slurm.nodes if would_start_on(slurm, folder, node, words)}
        if watched.class_of(job) != takes:
            wrong[request] = watched.class_of(job), takes
    assert not wrong, "request: our class, and Slurm's own --test-only on each node"


def test_nodes_that_a_job_excludes_count_also_where_it_starts_while_slurm_is_asked(
    slurm: Slurm, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(slurm)
    watched.look()
    job = submit(slurm, folder, "-x", "n1,n2", "--begin=now+3600", sleep_s=60)
    asked = SlurmCommands.run

    def run(commands: SlurmCommands, *words: str) -> str:
        if "%i|%x" in words and of_slurm(slurm, job)["JobState"] == "PENDING":
            slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now")
            slurm.wait_until("run", lambda: of_slurm(slurm, job)["JobState"] == "RUNNING")
        return asked(commands, *words)

    monkeypatch.setattr(SlurmCommands, "run", run)
    watched.look()
    assert watched.kinds_of(job) == ["submitted", "held"], "the rows are of before its start"
    assert watched.class_of(job) == {"n3"}


def test_names_and_comments_can_hold_anything(slurm: Slurm, folder: Path) -> None:
    watched = Watched(slurm)
    forged = "x\n7\x1fRUNNING\x1f1\x1f1\x1f1\x1f1\x1froot\n"
    job = submit(
        slurm, folder, "-H", "-J", f"a|b {forged} JobState=COMPLETED NodeList=n9",
        "--comment", forged * 10, "--wckey", "q\x1f'\"",
    )  # fmt: skip
    watched.look()
    assert watched.kinds_of(job) == ["submitted", "held"]
    assert {e[2] for e in watched.told if e[1] in events.JOB_KINDS} == {f"outrider:{job}"}


def test_a_restart_tells_what_happened_meanwhile_and_nothing_twice(
    slurm: Slurm, folder: Path
) -> None:
    first = Watched(slurm)
    first.look()  # of the past, after which classes of nodes are told
    waiting = submit(slurm, folder, "-H", sleep_s=0.5)
    running = submit(slurm, folder, sleep_s=3)
    first.look_until("a run", lambda: "started" in first.kinds_of(running))
    missed = submit(slurm, folder, sleep_s=0.5)
    slurm.run("scontrol", "release", waiting)
    slurm.wait_until("all ends", lambda: not slurm.jobs("PD", "R", "CG"))
    second = Watched(slurm, first.cursor)
    second.look()
    assert second.kinds_of(waiting) == ["released", "started", "completed"]
    assert second.kinds_of(running) == ["completed"]
    assert second.kinds_of(missed) == ["submitted", "started", "completed"]
    assert not [e for e in second.told if e[1] in (events.JOINED, events.ELIGIBLE)]


def test_a_silent_controller_makes_looks_grow_old_and_loses_nothing(
    slurm: Slurm, folder: Path
) -> None:
    watched = Watched(slurm, answer_within_s=1.0)
    job = submit(slurm, folder, "-H", sleep_s=0.5)
    watched.look()
    with slurm.silenced():
        batch = watched.watch.look()
        assert not batch.events
        assert "did not answer within 1 s" in batch.note
        assert batch.age_s >= 1.0, "of the last answer, not of the question"
        assert watched.watch.look().age_s > batch.age_s
    slurm.run("scontrol", "release", job)
    watched.look_until("its end", lambda: "completed" in watched.kinds_of(job))
    assert watched.kinds_of(job) == ["submitted", "held", "released", "started", "completed"]


def test_jobs_that_left_unseen_count_as_removed_where_there_is_no_accounting(
    slurm: Slurm, folder: Path
) -> None:
    watched = Watched(slurm)
    job = submit(slurm, folder, "-H")
    watched.look()
    # two jobs of an hour ago, of which Slurm knows nothing any more
    gone = {"4000001": [0, 1.0, 0.0, 0], "4000002": [2, 1.0, 2.0, 0]}
    an_hour_ago_s = watched.cursor["looked_s"] - 3600
    jobs = {**watched.cursor["jobs"], **gone}
    cursor = watched.cursor | {"jobs": jobs, "looked_s": an_hour_ago_s}
    later = Watched(slurm, cursor)
    batch = later.watch.look()
    reported = [e[1:] for e in batch.events if e[2] in {f"outrider:{job}" for job in gone}]
    assert reported == [(events.REMOVED, f"outrider:{job}", "unknown") for job in gone]
    assert batch.note == "the end of 2 jobs is unknown: they count as removed"
    assert not [e for e in batch.events if e[2] == f"outrider:{job}"]


def test_looks_change_nothing_in_slurm(slurm: Slurm, folder: Path) -> None:
    for _ in range(3):
        submit(slurm, folder, "-H", "--array=1-4")
    before = _everything(slurm)
    watched = Watched(slurm)
    for _ in itertools.repeat(None, 5):
        watched.look()
    assert len(watched.told) > 24
    assert _everything(slurm) == before


def _everything(slurm: Slurm) -> list[str]:
    """Return Slurm's data on jobs, nodes, partitions and reservations, except measured load."""
    measured = ("CPULoad", "FreeMem", "LastBusyTime", "LastSchedEval")
    shown = [
        slurm.run("scontrol", "show", what, "-o") for what in ("job", "node", "partition", "res")
    ]
    words = itertools.chain.from_iterable(text.split() for text in shown)
    return [word for word in words if word.partition("=")[0] not in measured]


def test_what_slurm_hides_from_this_user_is_told(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Watched(slurm).commands
    private = {"PrivateData": "jobs,usage", "SlurmUser": "slurm(64030)"}
    assert not hidden_from_us(commands, private), "root sees all"
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    hides = hidden_from_us(commands, private)
    assert hides.startswith("PrivateData=jobs hides other users' jobs or nodes from nobody")
    assert "sacctmgr modify user nobody set adminlevel=Operator" in hides
    assert not hidden_from_us(commands, {"PrivateData": "none"})
    assert not hidden_from_us(commands, private | {"SlurmUser": "nobody(65534)"})
