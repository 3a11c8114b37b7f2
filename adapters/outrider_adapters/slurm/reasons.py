"""Explain why a job waits: Slurm's reason in plain words, with Slurm's own numbers."""

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from outrider.api import Clause, WaitingReason, removing_most
from outrider_adapters.slurm.acting.controller import DEFERRED
from outrider_adapters.slurm.eligibility import Eligibility, JobKind
from outrider_adapters.slurm.job_steps import NEVER, is_limit
from outrider_adapters.slurm.nodes import Node, Partition
from outrider_adapters.slurm.queue_rows import QueueRow

_THROTTLE: Final = re.compile(r"%(\d+)\]")
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_NAMES: Final = 3
_BY_NODES: Final = frozenset(
    {"Resources", "Priority", "ReqNodeNotAvail", "BadConstraints", "PartitionConfig"}
)
"""Reasons that depend on which nodes a job may use."""


class WaitingFacts(NamedTuple):
    """Facts about a waiting job, collected when its waiting reason is requested.

    Attributes:
        job: its id.
        row: of the queue, without Outrider's changes.
        shown_eligible_s: when it may begin, including Outrider's changes.
        row_id: id of the row, which may cover several tasks of an array.
        dependency: what it waits for, in Slurm's words; may be empty.
        qos: its quality of service.
        ahead: jobs of higher priority that wait for one of its partitions, and the CPUs they want.
        kind: determines which nodes it may use.
        nodes: by name.
        partitions: by name.
    """

    job: str
    row: QueueRow
    shown_eligible_s: float | None
    row_id: str
    dependency: str
    qos: str
    ahead: tuple[int, int]
    kind: JobKind
    nodes: Mapping[str, Node]
    partitions: Mapping[str, Partition]

    @property
    def code(self) -> str:
        """Slurm's reason code, without the details that follow it."""
        return self.row.reason.partition(",")[0].strip()


def waiting_reason(asked: WaitingFacts, eligibility: Eligibility) -> WaitingReason:
    """Return why a job waits."""
    conditions = eligibility.conditions(asked.kind)
    nodes = frozenset(asked.nodes)
    may_use = nodes.intersection(*(met for _, met in conditions))
    clauses = tuple(
        Clause(
            text,
            len(nodes & met),
            len(nodes.intersection(*(m for other, m in conditions if other != text))),
        )
        for text, met in conditions
    )
    most = removing_most(clauses, len(nodes))
    sentence, remedies = _words(asked, may_use)
    if most is not None and asked.code in _BY_NODES:
        sentence += (
            f"; {most.text} removes most nodes: {len(nodes) - most.machines} of {len(nodes)}"
        )
    return WaitingReason(
        code=asked.code or "None",
        sentence=sentence,
        never=asked.code in NEVER,
        remedies=tuple(remedies),
        machines=len(may_use),
        clauses=clauses,
        expected_start_s=asked.row.start_s,
        ahead=asked.ahead[0] if asked.code in ("Priority", "Resources") else None,
        removes_most=None if most is None else most.text,
    )


def _words(asked: WaitingFacts, may_use: frozenset[str]) -> tuple[str, list[str]]:
    """Return a sentence that explains the reason, and possible fixes."""
    explained = _EXPLAINED.get(asked.code)
    if explained is not None:
        return explained(asked, may_use)
    code, job = asked.code, asked.job
    if not code:
        return "Slurm has not considered it yet", ["wait for the next cycle of the scheduler"]
    if is_limit(code):
        whose = f"QOS {asked.qos}" if "QOS" in code else f"account {asked.row.vo}"
        sentence = f"a limit of {whose} holds it back: {_spelt(code)} ({code})"
        return sentence, ["wait until jobs that count against it have ended, or have it raised"]
    if asked.row.reason.startswith(("Nodes ", "ReqNodeNotAvail")):
        return _closed(asked, may_use)
    never = f"it never starts as submitted: {_spelt(code)} ({code})"
    if code in NEVER:
        return never, [f"change what it asks for, or cancel it: scancel {job}"]
    return f"Slurm reports: {asked.row.reason}", []


def _held_by_user(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    sentence = "it is held: by its user, or by a coordinator of its account"
    return sentence, [f"release it: scontrol release {asked.job}"]


def _held_by_admin(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    sentence = "it is held by an administrator, or has priority 0"
    return sentence, [f"ask an administrator to release it: scontrol release {asked.job}"]


def _dependency(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    return f"it waits for other jobs: {asked.dependency}", [
        "wait for these jobs",
        f"remove the dependency: scontrol update JobId={asked.job} Dependency=",
    ]


def _dependency_never(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    sentence = f"it never starts: its dependency can never be satisfied, {asked.dependency}"
    return sentence, [
        f"remove the dependency: scontrol update JobId={asked.job} Dependency=",
        f"cancel it: scancel {asked.job}",
    ]


def _begin_time(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    begin_s = asked.row.eligible_s
    when = "its begin time" if begin_s is None else f"{_utc(begin_s)} UTC"
    if asked.row.restarts:
        sentence = f"it was queued again {asked.row.restarts} times, and pauses until {when}"
        return sentence, ["wait: Slurm pauses two minutes before a job's next run"]
    sentence = f"its begin time is {when} (--begin)"
    return sentence, [f"let it begin now: scontrol update JobId={asked.job} StartTime=now"]


def _deferred(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    until_s = asked.shown_eligible_s
    when = "a begin time" if until_s is None else f"{_utc(until_s)} UTC"
    sentence = (
        f"Slurm keeps it until {when}, because Outrider asked for that: no user did, and unless "
        "Outrider asks again it may begin then"
    )
    return sentence, [f"let it begin now: scontrol update JobId={asked.job} StartTime=now"]


def _array_limit(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    array = asked.job.partition("_")[0]
    throttle = _THROTTLE.search(asked.row_id)
    most = f"at most {throttle[1]} of its tasks" if throttle else "only some of its tasks"
    sentence = f"its array runs {most} at a time, as its user asked"
    return sentence, [f"let more run: scontrol update JobId={array} ArrayTaskThrottle=N"]


def _priority(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    jobs, cpus = asked.ahead
    where = " or ".join(asked.row.partitions)
    sentence = f"{jobs} jobs of higher priority, which want {cpus:,} CPUs, wait for {where}, too"
    return sentence, ["wait; a shorter time limit helps it to start in a gap before them"]


def _resources(asked: WaitingFacts, may_use: frozenset[str]) -> tuple[str, list[str]]:
    kind = asked.kind
    free = sum(_is_free(asked.nodes[name], kind) for name in may_use)
    sentence = (
        f"it is among the next in line, but what it asks for is not free: {kind.nodes} nodes with "
        f"{kind.cpus} CPUs each; {free} of the {len(may_use)} nodes that it may use have so many "
        "CPUs free"
    )
    return sentence, ["wait for jobs to end there, or ask for less"]


def _time_limit(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    limit_s = asked.row.limit_s
    asks = "no limit" if limit_s is None else _span(limit_s)
    longest = {
        name: partition.max_s for name in asked.row.partitions
        if (partition := asked.partitions.get(name)) is not None and partition.max_s is not None
    }  # fmt: skip
    gives = ", ".join(f"{name} gives {_span(max_s)}" for name, max_s in longest.items())
    remedies = []
    if longest:
        most = _span(max(longest.values()))
        remedies = [f"ask for at most {most}: scontrol update JobId={asked.job} TimeLimit={most}"]
    elsewhere = sorted(
        name for name, partition in asked.partitions.items()
        if partition.admits(limit_s, asked.row.nodes)
    )  # fmt: skip
    if elsewhere:
        remedies.append(f"use a partition that allows it: {', '.join(elsewhere[:_MAX_NAMES])}")
    return f"it never starts as submitted: it asks for {asks}, {gives} at most", remedies


def _partition_closed(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    where = " or ".join(asked.row.partitions)
    sentence = f"its partition {where} starts no jobs now: an administrator has closed it"
    return sentence, ["wait until it is opened, or use another partition"]


def _licences(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    return "licences that it asks for are in use", ["wait until a job that has them ends"]


def _closed(asked: WaitingFacts, may_use: frozenset[str]) -> tuple[str, list[str]]:
    shut = [name for name in sorted(may_use) if not asked.nodes[name].usable]
    closed = [
        f"{name} is {asked.nodes[name].state} ({asked.nodes[name].reason or 'no reason given'})"
        for name in shut[:_MAX_NAMES]
    ]
    sentence = f"Slurm reports: {asked.row.reason}; {len(shut)} of the {len(may_use)} nodes that "
    sentence += "it may use are closed" + (f": {'; '.join(closed)}" if closed else "")
    return sentence, ["wait until they are back, or ask for other nodes"]


_EXPLAINED: Final[Mapping[str, Callable[[WaitingFacts, frozenset[str]], tuple[str, list[str]]]]] = {
    "JobHeldUser": _held_by_user,
    "JobHeldAdmin": _held_by_admin,
    "Dependency": _dependency,
    "DependencyNeverSatisfied": _dependency_never,
    "BeginTime": _begin_time,
    DEFERRED: _deferred,
    "JobArrayTaskLimit": _array_limit,
    "Priority": _priority,
    "Resources": _resources,
    "PartitionTimeLimit": _time_limit,
    "PartitionDown": _partition_closed,
    "PartitionInactive": _partition_closed,
    "Licenses": _licences,
}


def _is_free(node: Node, kind: JobKind) -> bool:
    return node.usable and node.cpus - node.allocated >= kind.cpus


def _spelt(code: str) -> str:
    """Spell out Slurm's code: ``QOSMaxJobsPerUserLimit`` as *QOS max jobs per user limit*."""
    words = _WORD.split(code)
    return " ".join(word if word.isupper() else word.lower() for word in words)


def _utc(time_s: float) -> str:
    return dt.datetime.fromtimestamp(time_s, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


def _span(seconds: float) -> str:
    """Format seconds in Slurm's notation: ``[days-]hours:minutes:seconds``."""
    minutes, rest_s = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    clock = f"{hours}:{minutes:02d}:{rest_s:02d}"
    return f"{days}-{hours:02d}:{minutes:02d}:{rest_s:02d}" if days else clock
