"""Comparison of a job's explanation with the output of Slurm's own commands."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.peers.beside_slurm.watched import of_slurm
from tests.peers.slurm import Slurm
from tests.service.running.process import DaemonProcess


class Made(NamedTuple):
    """Slurm with its situations, and a daemon next to it."""

    slurm: Slurm
    daemon: DaemonProcess
    jobs: dict[str, str]

    def explained(self, what: str) -> dict[str, Any]:
        """Return the explanation of a situation's job, with users' names shown."""
        name = quote(f"outrider:{self.jobs[what]}", safe="")
        answer: dict[str, Any] = self.daemon.get(f"/api/v1/explain/{name}")
        return answer


def differences(made: Made, what: str, answer: dict[str, Any]) -> Iterator[str]:
    """Yield the differences between the explanation and Slurm's own commands, a sentence each."""
    shown = of_slurm(made.slurm, made.jobs[what])
    state, message = shown["JobState"], answer.get("batch_system")
    if state == "RUNNING":
        if (answer.get("state"), message) != ("running", None):
            yield f"{answer.get('state')}: {message}; scontrol: {state}"
        if f"is running on {shown['NodeList']}." not in answer.get("sentence", ""):
            yield f"{answer.get('sentence')}; NodeList: {shown['NodeList']}"
    elif state == "PENDING":
        if answer.get("state") not in ("queued", "held") or message is None:
            yield f"{answer.get('state')}: {message}; scontrol: {state}"
        else:
            yield from _differences_of_one_that_waits(made, message, shown)
            yield from _differences_of_runs(answer, int(shown["Restarts"]))
    else:
        yield from _differences_of_one_that_left(answer, shown)


def _differences_of_one_that_waits(
    made: Made, message: dict[str, Any], shown: dict[str, str]
) -> Iterator[str]:
    """Compare with ``scontrol`` for the job, ``squeue`` for others, ``sinfo`` for nodes."""
    if message["code"] != shown["Reason"].partition(",")[0]:
        yield f"{message['code']}; scontrol: {shown['Reason']}"
    start = shown["StartTime"]
    if message["expected_start_s"] != (float(start) if start.isdigit() else None):
        yield f"expected at {message['expected_start_s']}; scontrol: {start}"
    if message["ahead"] is not None and message["ahead"] != _ahead(made.slurm, shown):
        yield f"{message['ahead']} before it; squeue: {_ahead(made.slurm, shown)}"
    counted = {clause["text"]: clause["machines"] for clause in message["clauses"]}
    for text, n in counted.items():
        theirs = _nodes_that_meet(made.slurm, text)
        if theirs is not None and n != theirs:
            yield f"{n} meet {text}; sinfo: {theirs}"
    most = message["removes_most"]
    if most is not None and counted[most] > min(counted.values()):
        yield f"{most} removes most of {counted}"


def _ahead(slurm: Slurm, shown: dict[str, str]) -> int:
    """Count jobs that come first in the same partition, and are not blocked.

    They have a higher priority, or the same and a lower number.
    """
    rows = slurm.run("squeue", "-h", "-r", "-t", "PD", "-p", shown["Partition"], "-o", "%Q|%A|%r")
    waiting = (row.split("|") for row in rows.split("\n") if row)
    mine = (-int(shown["Priority"]), int(shown["JobId"]))
    higher = [reason for priority, job, reason in waiting if (-int(priority), int(job)) < mine]
    return sum(reason in ("Priority", "Resources") for reason in higher)


def _nodes_that_meet(slurm: Slurm, clause: str) -> int | None:
    """Return how many nodes meet a condition, from ``sinfo``; None for other conditions."""
    number, _, what = clause.partition(" ")
    nodes = {
        name: (int(cpus), features.split(","))
        for name, cpus, features in (
            line.split("|") for line in slurm.run("sinfo", "-h", "-N", "-o", "%N|%c|%b").split()
        )
    }
    if what == "CPUs":
        return sum(cpus >= int(number) for cpus, _ in nodes.values())
    if number == "features":
        return sum(what in features for _, features in nodes.values())
    return None


def _differences_of_one_that_left(answer: dict[str, Any], shown: dict[str, str]) -> Iterator[str]:
    how = "completed" if shown["JobState"] == "COMPLETED" else "removed"
    left = answer.get("left") or {}
    if (left.get("how"), left.get("at_s")) != (how, float(shown["EndTime"])):
        yield f"left: {left}; scontrol: {shown['JobState']} at {shown['EndTime']}"
        return
    if answer["state"] is not None or answer["batch_system"] is not None:
        yield f"{answer['state']}, though it has left"
    ran = shown["NodeList"] not in ("", "(null)")
    yield from _differences_of_runs(answer, int(shown["Restarts"]) + ran)
    machines = [run["machine"] for run in answer["runs"]]
    if ran and machines[-1:] != [shown["NodeList"]]:
        yield f"ran on {machines}; NodeList: {shown['NodeList']}"


def _differences_of_runs(answer: dict[str, Any], ended: int) -> Iterator[str]:
    if len(answer["runs"]) != ended:
        yield f"{len(answer['runs'])} runs; Slurm counts {ended} that have ended"
