"""Rows of ``squeue``: a job, or several tasks of an array that are as yet alike."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from outrider_adapters.readers.slurm.record_events import limit_s
from outrider_adapters.slurm.commands import SEPARATOR

FIELDS: Final = (
    "JobArrayID", "State", "SubmitTime", "EligibleTime", "StartTime", "EndTime", "UserName",
    "Account", "GroupName", "NumCPUs", "NumNodes", "TimeLimit", "Partition", "NodeList",
    "RestartCnt", "Feature", "tres-alloc", "tres-per-node", "tres-per-job", "tres-per-task",
    "NumTasks", "ReqNodes", "Reservation", "Reason",
)  # fmt: skip
"""Asked of ``squeue -O``: what users cannot write, or only within what Slurm knows."""
_NOTHING: Final = frozenset({"", "(null)", "N/A", "None", "none"})
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)", re.ASCII)
_MIB: Final = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}


class QueueRow(NamedTuple):
    """A row, in Slurm's own terms; times are Unix seconds, None where Slurm has none.

    Attributes:
        jobs: ids of the jobs that it is about, without the cluster.
        start_s: of the present or last run; while it waits, when Slurm expects to start it.
        vo: its account, else its user's group.
        limit_s: its time limit, seconds; None: unlimited.
        partitions: in which it may run.
        hosts: where it runs or ran; empty where it never did.
        restarts: how often it was queued again.
        tres: what it is given, or asks for: ``cpu``, ``mem`` (MiB), ``gres/gpu``, ...
        generic: generic resources as the user asked for them, of each node, for the whole job, and
            of each task: ``gres:gpu:a100:2``.
        tasks: of it.
        required: nodes that it has to have, as a host list.
        reservation: in which it runs; empty: none.
        reason: why it waits, in Slurm's words.
    """

    jobs: tuple[str, ...]
    state: str
    submit_s: float
    eligible_s: float | None
    start_s: float | None
    end_s: float | None
    user: str
    vo: str
    cpus: int
    nodes: int
    limit_s: float | None
    partitions: tuple[str, ...]
    hosts: str
    restarts: int
    features: str
    tres: tuple[tuple[str, float], ...]
    generic: tuple[str, str, str]
    tasks: int
    required: str
    reservation: str
    reason: str

    def amount(self, resource: str) -> float:
        """Return how much it is given, or asks for, of a trackable resource; 0 if none."""
        return dict(self.tres).get(resource, 0.0)


def row_of(line: str) -> QueueRow:
    """A line of ``squeue`` with `FIELDS`.

    Raises:
        ValueError: it is none; the message says what is wrong.
    """
    values = line.split(SEPARATOR)
    if len(values) != len(FIELDS) + 1 or values[-1]:
        raise ValueError(f"{len(values) - 1} fields; expected {len(FIELDS)}")
    (job, state, submit, eligible, start, end, user, account, group, cpus, nodes, limit,
     partitions, hosts, restarts, features, tres, per_node, per_job, per_task, tasks, required,
     reservation, reason, _) = values  # fmt: skip
    submit_s = _moment(submit)
    if submit_s is None:
        raise ValueError(f'"{submit[:40]}" is no time of a submission')
    return QueueRow(
        jobs=jobs_of(job),
        state=state,
        submit_s=submit_s,
        eligible_s=_moment(eligible),
        start_s=_moment(start),
        end_s=_moment(end),
        user=user,
        vo=_said(account) or _said(group) or "all",
        cpus=_count(cpus),
        nodes=_count(nodes),
        limit_s=limit_s(limit),
        partitions=tuple(partitions.split(",")),
        hosts=_said(hosts),
        restarts=int(restarts),
        features=_said(features),
        tres=trackable(tres),
        generic=(_said(per_node), _said(per_job), _said(per_task)),
        tasks=_count(tasks),
        required=_said(required),
        reservation=_said(reservation),
        reason=_said(reason),
    )


def trackable(text: str) -> tuple[tuple[str, float], ...]:
    """Trackable resources by name; memory in MiB.

    >>> trackable("cpu=3,mem=1.50G,node=3,gres/gpu=2")
    (('cpu', 3.0), ('mem', 1536.0), ('node', 3.0), ('gres/gpu', 2.0))
    """
    found: list[tuple[str, float]] = []
    for part in text.split(","):
        name, _, amount = part.partition("=")
        match = _AMOUNT.fullmatch(amount)
        if match is not None:
            unit = _MIB[match[2]] if name == "mem" else 1.0
            found.append((name, float(match[1]) * unit))
    return tuple(found)


def _moment(text: str) -> float | None:
    """Unix seconds; None where Slurm has none (``N/A``, 0)."""
    return float(text) or None if text.isascii() and text.isdigit() else None


def _count(text: str) -> int:
    """A number, or the least of a range (``2-4`` nodes); at least 1. Raises `ValueError`."""
    return max(1, int(text.partition("-")[0]))


def _said(text: str) -> str:
    return "" if text in _NOTHING else text


# -- arrays ----------------------------------------------------------------------------------------
# Tasks of job arrays: how Slurm writes several of them as one.

MOST_TASKS: Final = 100_000
"""Of one row; a site that lets users wait with more hears of the first of them only."""
MOST_RANGES: Final = 100
"""Of one word."""
_FOLDED = re.compile(r"(\d+)_\[([\d,:-]+)(?:%\d+)?\]", re.ASCII)
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)


def jobs_of(job: str) -> tuple[str, ...]:
    """The ids of the jobs that a row is about.

    >>> jobs_of("12_[1-2,7-11:2%3]")
    ('12_1', '12_2', '12_7', '12_9', '12_11')
    >>> jobs_of("12_4"), jobs_of("13+1")
    (('12_4',), ('13+1',))

    Raises:
        ValueError: it begins like a row of several tasks and is none.
    """
    if "[" not in job:
        return (job,)
    match = _FOLDED.fullmatch(job)
    if match is None:
        raise ValueError(f'"{job[:60]}" names no tasks; expected "12_[1-5%2]"')
    array, parts = match.groups()
    tasks: list[int] = []
    for part in parts.split(","):
        tasks += _range(part, MOST_TASKS - len(tasks))
    return tuple(f"{array}_{task}" for task in tasks)


def _range(part: str, most: int) -> list[int]:
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(f'"{part[:60]}" is no range of tasks; expected "1-5" or "1-9:2"')
    first, last, step = match.groups()
    until = int(last or first) + 1
    return list(range(int(first), until, int(step or 1) or 1)[:most])


def folded(jobs: Iterable[str]) -> list[str]:
    """Jobs as ``scontrol`` takes them: tasks of an array together, so that it can stay whole.

    One of more than a hundred ranges comes in several words.

    >>> folded(["12_1", "13", "12_3", "12_2", "12_7", "14+1"])
    ['12_[1-3,7]', '13', '14+1']
    """
    arrays: dict[str, list[int]] = {}
    for job in jobs:
        array, _, task = job.partition("_")
        tasks = arrays.setdefault(array, [])
        if task:
            tasks.append(int(task))
    words: list[str] = []
    for array, tasks in arrays.items():
        words += _words(array, tasks) if tasks else [array]
    return words


def _words(array: str, tasks: list[int]) -> list[str]:
    ranges: list[list[int]] = []
    for task in sorted(tasks):
        if ranges and task == ranges[-1][-1] + 1:
            ranges[-1][1:] = [task]
        else:
            ranges.append([task])
    parts = ["-".join(map(str, one)) for one in ranges]
    some = (parts[first : first + MOST_RANGES] for first in range(0, len(parts), MOST_RANGES))
    return [f"{array}_[{','.join(one)}]" for one in some]
