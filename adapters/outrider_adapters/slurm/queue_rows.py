"""Parser of ``squeue`` rows: a job, or several tasks of an array in the same state."""

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
"""Fields of ``squeue -O``: users cannot write them, or only values that Slurm validates."""
_NOTHING: Final = frozenset({"", "(null)", "N/A", "None", "none"})
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)", re.ASCII)
_MIB: Final = {"K": 1 / 1024, "": 1.0, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}


class QueueRow(NamedTuple):
    """Row of ``squeue``, in Slurm's own terms; times are Unix seconds, None if Slurm has none.

    Attributes:
        jobs: ids of the row's jobs, without the cluster.
        start_s: of the present or last run; for a waiting job, when Slurm expects to start it.
        vo: its account, else its user's group.
        limit_s: its time limit, seconds; None: unlimited.
        partitions: in which it may run.
        hosts: where it runs or ran; empty where it never did.
        restarts: how often it was requeued.
        tres: what is allocated, or requested: ``cpu``, ``mem`` (MiB), ``gres/gpu``, ...
        generic: generic resources as the user requested them, of each node, for the whole job, and
            of each task: ``gres:gpu:a100:2``.
        tasks: number of tasks.
        required: nodes that the user requires, as a host list.
        reservation: its reservation; empty: none.
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
        """Return the allocated or requested amount of a trackable resource; 0 if none."""
        return dict(self.tres).get(resource, 0.0)


def row_of(line: str) -> QueueRow:
    """Parse a line of ``squeue`` with `FIELDS`.

    Raises:
        ValueError: the line is invalid; the message contains the fault.
    """
    values = line.split(SEPARATOR)
    if len(values) != len(FIELDS) + 1 or values[-1]:
        raise ValueError(f"{len(values) - 1} fields; expected {len(FIELDS)}")
    (job, state, submit, eligible, start, end, user, account, group, cpus, nodes, limit,
     partitions, hosts, restarts, features, tres, per_node, per_job, per_task, tasks, required,
     reservation, reason, _) = values  # fmt: skip
    submit_s = _moment(submit)
    if submit_s is None:
        raise ValueError(f'"{submit[:40]}" is not a time of submission')
    return QueueRow(
        jobs=jobs_of(job),
        state=state,
        submit_s=submit_s,
        eligible_s=_moment(eligible),
        start_s=_moment(start),
        end_s=_moment(end),
        user=user,
        vo=_value_or_empty(account) or _value_or_empty(group) or "all",
        cpus=_count(cpus),
        nodes=_count(nodes),
        limit_s=limit_s(limit),
        partitions=tuple(partitions.split(",")),
        hosts=_value_or_empty(hosts),
        restarts=int(restarts),
        features=_value_or_empty(features),
        tres=trackable(tres),
        generic=(_value_or_empty(per_node), _value_or_empty(per_job), _value_or_empty(per_task)),
        tasks=_count(tasks),
        required=_value_or_empty(required),
        reservation=_value_or_empty(reservation),
        reason=_value_or_empty(reason),
    )


def trackable(text: str) -> tuple[tuple[str, float], ...]:
    """Parse trackable resources by name; memory in MiB.

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
    """Return Unix seconds; None where Slurm has none (``N/A``, 0)."""
    return float(text) or None if text.isascii() and text.isdigit() else None


def _count(text: str) -> int:
    """Return a number, or the start of a range (``2-4`` nodes), at least 1. Raises `ValueError`."""
    return max(1, int(text.partition("-")[0]))


def _value_or_empty(text: str) -> str:
    return "" if text in _NOTHING else text


# -- arrays ----------------------------------------------------------------------------------------
# Tasks of job arrays: how Slurm writes several of them as one.

MAX_TASKS: Final = 100_000
"""Limit of tasks of one row; of an array with more waiting tasks only the first are followed."""
MAX_RANGES: Final = 100
"""Limit of ranges in one word."""
_FOLDED = re.compile(r"(\d+)_\[([\d,:-]+)(?:%\d+)?\]", re.ASCII)
_PART = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)


def jobs_of(job: str) -> tuple[str, ...]:
    """Return the ids of a row's jobs.

    >>> jobs_of("12_[1-2,7-11:2%3]")
    ('12_1', '12_2', '12_7', '12_9', '12_11')
    >>> jobs_of("12_4"), jobs_of("13+1")
    (('12_4',), ('13+1',))

    Raises:
        ValueError: the text begins like a row of several tasks but is invalid.
    """
    if "[" not in job:
        return (job,)
    match = _FOLDED.fullmatch(job)
    if match is None:
        raise ValueError(f'"{job[:60]}" contains no tasks; expected "12_[1-5%2]"')
    array, parts = match.groups()
    tasks: list[int] = []
    for part in parts.split(","):
        tasks += _range(part, MAX_TASKS - len(tasks))
    return tuple(f"{array}_{task}" for task in tasks)


def _range(part: str, max_n: int) -> list[int]:
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(f'"{part[:60]}" is not a range of tasks; expected "1-5" or "1-9:2"')
    first, last, step = match.groups()
    until = int(last or first) + 1
    return list(range(int(first), until, int(step or 1) or 1)[:max_n])


def folded(jobs: Iterable[str]) -> list[str]:
    """Return jobs as ``scontrol`` takes them: array tasks together, so that it can stay whole.

    Tasks with more than a hundred ranges are split into several words.

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
    some = (parts[first : first + MAX_RANGES] for first in range(0, len(parts), MAX_RANGES))
    return [f"{array}_[{','.join(one)}]" for one in some]
