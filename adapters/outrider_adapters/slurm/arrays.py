"""Tasks of job arrays: how Slurm writes several of them as one."""

import re
from collections.abc import Iterable
from typing import Final

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
        raise ValueError(f'"{job[:60]}" names no tasks; right would be "12_[1-5%2]"')
    array, parts = match.groups()
    tasks: list[int] = []
    for part in parts.split(","):
        tasks += _range(part, MOST_TASKS - len(tasks))
    return tuple(f"{array}_{task}" for task in tasks)


def _range(part: str, most: int) -> list[int]:
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(f'"{part[:60]}" is no range of tasks; right would be "1-5" or "1-9:2"')
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
