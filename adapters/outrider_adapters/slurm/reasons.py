"""Explain why a job waits: Slurm's reason in plain words, with Slurm's own numbers."""

import datetime as dt
import re
from collections.abc import Callable, Mapping
from math import inf
from typing import Final, NamedTuple

from outrider.api import Clause, WaitingReason, removing_most
from outrider_adapters.slurm.acting.controller import DEFERRED
from outrider_adapters.slurm.eligibility import Eligibility, JobKind
from outrider_adapters.slurm.job_steps import HOLDS, NEVER, is_limit, never_starts
from outrider_adapters.slurm.limits import Limit
from outrider_adapters.slurm.nodes import Node, Partition, Reservation
from outrider_adapters.slurm.queue_rows import QueueRow

_THROTTLE: Final = re.compile(r"%(\d+)\]")
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MAX_NAMES: Final = 3
_BY_NODES: Final = frozenset(
    {"Resources", "Priority", "ReqNodeNotAvail", "BadConstraints", "PartitionConfig"}
)
"""Reasons that depend on which nodes a job may use."""
NODES: Final = ("Nodes ", "ReqNodeNotAvail")
"""Beginnings of reasons that are about nodes."""


def is_about_nodes(reason: str) -> bool:
    """Return whether a job waits for its turn or for nodes, and for nothing else."""
    return reason in ("", "Priority", "Resources") or reason.startswith(NODES)


class Ahead(NamedTuple):
    """Waiting jobs that Slurm considers before a job.

    Attributes:
        jobs, cpus: how many, and the CPUs that they want.
        equal: how many of them have the same priority, but a lower number.
        first: ids of the first of them.
    """

    jobs: int
    cpus: int
    equal: int
    first: tuple[str, ...]


class WaitingFacts(NamedTuple):
    """Facts about a waiting job, collected when its waiting reason is requested.

    Attributes:
        job: its id.
        row: of the queue, without Outrider's changes.
        shown_eligible_s: when it may begin, including Outrider's changes.
        row_id: id of the row, which may cover several tasks of an array.
        dependency: what it waits for, in Slurm's words; may be empty.
        qos: its quality of service.
        ahead: waiting jobs that Slurm considers before it.
        tasks: how many tasks of its array wait and run.
        parts: the other components of its heterogeneous job.
        kind: determines which nodes it may use.
        nodes: by name.
        partitions: by name.
        reservations: by name.
        now_s: Unix seconds.
        limit: limit that its reason names, with its value; None: none, or it is not known.
        licences: what it asks of each licence, and how many are in use.
    """

    job: str
    row: QueueRow
    shown_eligible_s: float | None
    row_id: str
    dependency: str
    qos: str
    ahead: Ahead
    tasks: tuple[int, int]
    parts: tuple[str, ...]
    kind: JobKind
    nodes: Mapping[str, Node]
    partitions: Mapping[str, Partition]
    reservations: Mapping[str, Reservation]
    now_s: float
    limit: Limit | None
    licences: tuple[str, ...]

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
    is_closed = is_about_nodes(asked.row.reason) and _lacks_open_nodes(asked, may_use)
    sentence, remedies = (_closed if is_closed else _words)(asked, may_use)
    if most is not None and asked.code in _BY_NODES and not is_closed:
        sentence += (
            f"; {most.text} removes most nodes: {len(nodes) - most.machines} of {len(nodes)}"
        )
    if asked.parts:
        sentence += (
            f"; it starts together with {', '.join(asked.parts[:_MAX_NAMES])}, the other parts of "
            "its heterogeneous job"
        )
    never = never_starts(asked.row.reason) or (asked.limit is not None and asked.limit.never)
    is_planned = not never and asked.row.state not in HOLDS
    return WaitingReason(
        code=asked.code or "None",
        sentence=sentence,
        never=never,
        remedies=tuple(remedies),
        machines=len(may_use),
        clauses=clauses,
        expected_start_s=asked.row.start_s if is_planned else None,
        ahead=asked.ahead.jobs if asked.code in ("Priority", "Resources") else None,
        removes_most=None if most is None else most.text,
    )


def _words(asked: WaitingFacts, may_use: frozenset[str]) -> tuple[str, list[str]]:
    """Return a sentence that explains the reason, and possible fixes."""
    if asked.row.state in HOLDS:
        return _queued_again_and_held(asked)
    explained = _EXPLAINED.get(asked.code)
    if explained is not None:
        return explained(asked, may_use)
    code, job = asked.code, asked.job
    if not code:
        return "Slurm has not considered it yet", ["wait for the next cycle of the scheduler"]
    if asked.limit is not None:
        sentence, what = asked.limit.sentence, _spelt(code)
        if asked.limit.never:
            return f"it never starts as submitted: {sentence}", [
                f"ask for less, or use another QOS or account ({what})"
            ]
        return f"a limit holds it back: {sentence}", [
            f"wait until jobs that count against it have ended, or have it raised ({what})"
        ]
    if is_limit(code):
        whose = f"QOS {asked.qos}" if "QOS" in code else f"account {asked.row.vo}"
        sentence = f"a limit of {whose} holds it back: {_spelt(code)} ({code})"
        return sentence, ["wait until jobs that count against it have ended, or have it raised"]
    if asked.row.reason.startswith(NODES):
        return _reserved(asked, may_use)
    never = f"it never starts as submitted: {_spelt(code)} ({code})"
    if never_starts(asked.row.reason) and code not in NEVER:
        words = asked.row.reason[0].lower() + asked.row.reason[1:]
        return f"it never starts as submitted: {words}", [
            "use a partition that admits it, or have its account or QOS admitted"
        ]
    if code in NEVER:
        return never, [f"change what it asks for, or cancel it: scancel {job}"]
    return f"Slurm reports: {asked.row.reason}", []


def _held_by_user(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    sentence = "it is held: by its user, or by a coordinator of its account"
    return sentence, [f"release it: scontrol release {asked.job}"]


def _queued_again_and_held(asked: WaitingFacts) -> tuple[str, list[str]]:
    if asked.row.state == "RESV_DEL_HOLD":
        return "it is held: its reservation was deleted", [
            f"leave it: scontrol update JobId={asked.job} ReservationName=",
            f"release it: scontrol release {asked.job}",
        ]
    exit_word = ", marked as a special exit" if asked.row.state == "SPECIAL_EXIT" else ""
    return f"it is held: it was queued again and held{exit_word} ({asked.row.reason})", [
        f"release it: scontrol release {asked.job}"
    ]


def _held_by_admin(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    sentence = "it is held: by an administrator, or it has priority 0"
    return sentence, [f"ask an administrator to release it: scontrol release {asked.job}"]


def _dependency(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    what = asked.dependency
    if what.startswith("singleton"):
        what += ", no other job of its user with its name may be here before it"
    return f"it waits for other jobs: {what}", [
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
        n = asked.row.restarts
        times = "once" if n == 1 else f"{n} times"
        sentence = f"it was queued again {times}, and pauses until {when}"
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
    waiting, running = asked.tasks
    sentence = f"its array runs {most} at a time, as its user asked"
    if waiting:
        sentence += f"; now {running} of its tasks run and {waiting:,} wait"
    return sentence, [f"let more run: scontrol update JobId={array} ArrayTaskThrottle=N"]


def _priority(asked: WaitingFacts, may_use: frozenset[str]) -> tuple[str, list[str]]:
    jobs, cpus, equal, first = asked.ahead
    where = " or ".join(asked.row.partitions)
    if not jobs:
        return _resources(asked, may_use)
    names = ", ".join(first)
    one = jobs == 1
    wants, wait = ("wants" if one else "want"), ("waits" if one else "wait")
    if not equal:
        before = f"{_n(jobs, 'job')} of higher priority, which {wants} {_n(cpus, 'CPU')}"
        sentence = f"{before}, {wait} for {where}, too"
    else:
        higher = f"{jobs - equal:,} of higher priority, " if jobs > equal else ""
        sentence = (
            f"{_n(jobs, 'job')} that {wait} for {where}, too, and {wants} {_n(cpus, 'CPU')} "
            f"{'comes' if one else 'come'} before it: {higher}{equal:,} of the same priority and a "
            "lower number"
        )
    return f"{sentence}; first {names}", [
        "wait; a shorter time limit helps it to start in a gap before them"
    ]


def _resources(asked: WaitingFacts, may_use: frozenset[str]) -> tuple[str, list[str]]:
    kind = asked.kind
    free = frozenset(name for name in may_use if _is_free(asked.nodes[name], kind))
    so_many = "so many CPUs and so much memory" if kind.memory_mib else "so many CPUs"
    each = " each" if kind.nodes > 1 else ""
    wants = f"{_n(kind.nodes, 'node')} with {_n(kind.cpus, 'CPU')}{each}"
    counted = f"{len(free)} of the {len(may_use)} nodes that it may use have {so_many} free"
    if off := sum(asked.nodes[name].is_off for name in free):
        counted += (
            f" ({off} of them {'is' if off == 1 else 'are'} powered down, and must boot first)"
        )
    if len(free) >= kind.nodes:
        kept = _reservations_on(asked, free)
        but = f"but they are {kept}" if kept else "and Slurm keeps them for jobs before it, if any"
        return f"it is among the next in line, and wants {wants}; {counted}, {but}", [
            "wait; a shorter time limit helps it to start in a gap"
        ]
    sentence = f"it is among the next in line, but what it asks for is not free: {wants}; {counted}"
    return sentence, ["wait for jobs to end there, or ask for less"]


def _node_limit(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    nodes = asked.row.nodes
    gives = ", ".join(
        f"{name} {_takes(asked, name, partition)}" for name in asked.row.partitions
        if (partition := asked.partitions.get(name)) is not None
    )  # fmt: skip
    sentence = f"it never starts as submitted: it asks for {nodes} nodes, {gives or 'too many'}"
    return f"{sentence} (partition node limit)", [
        f"change what it asks for, or cancel it: scancel {asked.job}"
    ]


def _takes(asked: WaitingFacts, name: str, partition: Partition) -> str:
    if asked.row.nodes < partition.min_nodes:
        return f"takes at least {partition.min_nodes}"
    if asked.row.nodes > partition.max_nodes:
        return f"takes at most {partition.max_nodes}"
    return f"has {sum(name in node.partitions for node in asked.nodes.values())}"


def _reservation(asked: WaitingFacts, _: frozenset[str]) -> tuple[str, list[str]]:
    name = asked.row.reservation
    found = asked.reservations.get(name)
    if found is None:
        return f"its reservation {name} does not exist any more", [
            f"leave it: scontrol update JobId={asked.job} ReservationName="
        ]
    if found.start_s > asked.now_s:
        return (
            f"its reservation {name} begins {_utc(found.start_s)} UTC and ends "
            f"{_utc(found.end_s)} UTC"
        ), ["wait until it begins"]
    return f"its reservation {name}, until {_utc(found.end_s)} UTC, has nothing free for it", [
        "wait for jobs to end there, or ask for less"
    ]


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
    asks = f": {', '.join(asked.licences)}" if asked.licences else ""
    return f"licences that it asks for are in use{asks}", ["wait until a job that has them ends"]


def _lacks_open_nodes(asked: WaitingFacts, may_use: frozenset[str]) -> bool:
    """Return whether so many of the nodes are closed that the job cannot start."""
    return bool(may_use) and len(may_use - _closed_among(asked, may_use)) < asked.kind.nodes


def _closed_among(asked: WaitingFacts, may_use: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in may_use if not asked.nodes[name].usable)


def _closed(asked: WaitingFacts, may_use: frozenset[str]) -> tuple[str, list[str]]:
    named = f"it names {asked.row.required}, and " if asked.row.required else ""
    sentence = f"{named}{_closed_words(asked, may_use)}"
    if asked.kind.nodes > 1:
        sentence += f"; it needs {asked.kind.nodes} nodes"
    kept = _reservations_on(asked, _closed_among(asked, may_use))
    return f"{sentence}; {kept}" if kept else sentence, [
        "wait until they are back, or ask for other nodes"
    ]


def _closed_words(asked: WaitingFacts, may_use: frozenset[str]) -> str:
    shut = sorted(_closed_among(asked, may_use))
    words = [f"{name} is {asked.nodes[name].why_closed}" for name in shut[:_MAX_NAMES]]
    words += [f"and {len(shut) - _MAX_NAMES} more"] if len(shut) > _MAX_NAMES else []
    of = f"{len(shut)} of the {len(may_use)} nodes that it may use are closed"
    return f"{of}: {'; '.join(words)}"


def _reserved(asked: WaitingFacts, may_use: frozenset[str]) -> tuple[str, list[str]]:
    sentence = f"Slurm reports: {asked.row.reason}"
    if _closed_among(asked, may_use):
        sentence += f"; {_closed_words(asked, may_use)}"
    if kept := _reservations_on(asked, may_use):
        sentence += f"; {kept}"
        return sentence, ["wait until they end, or ask for a time limit that ends before them"]
    if asked.ahead.jobs and not _closed_among(asked, may_use):
        return _priority(asked, may_use)  # Slurm keeps its nodes for them
    return sentence, ["wait until they are back, or ask for other nodes"]


def _reservations_on(asked: WaitingFacts, names: frozenset[str]) -> str:
    """Return which reservations keep nodes from a job that would begin now, in words."""
    ends_s = asked.now_s + (inf if asked.row.limit_s is None else asked.row.limit_s)
    found = [
        f"{name} has {len(one.nodes & names)} of them from {_utc(one.start_s)} to "
        f"{_utc(one.end_s)} UTC"
        for name, one in sorted(asked.reservations.items(), key=lambda item: item[1].start_s)
        if name != asked.row.reservation
        and one.nodes & names and one.start_s < ends_s and one.end_s > asked.now_s
    ]  # fmt: skip
    return f"reserved: {'; '.join(found[:_MAX_NAMES])}" if found else ""


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
    "PartitionNodeLimit": _node_limit,
    "Reservation": _reservation,
    "PartitionDown": _partition_closed,
    "PartitionInactive": _partition_closed,
    "Licenses": _licences,
}


def _is_free(node: Node, kind: JobKind) -> bool:
    return (
        node.usable
        and node.cpus - node.allocated >= kind.cpus
        and node.memory_mib - node.allocated_mib >= kind.memory_mib
    )


def _n(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


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
