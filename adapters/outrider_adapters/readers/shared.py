"""Code shared by readers: whole-job records, the repeated hour, a bounded cache."""

import datetime as dt
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar

from outrider.api import JobSpec, NamedEvent, events

# -- end records -----------------------------------------------------------------------------------
# Records of a job's end, which contain its whole life: PBS `E`, sacct rows, jobcomp lines.

KILLED: Final = "killed"
REMOVED: Final = "removed"


def life_of(
    job: str,
    spec: JobSpec,
    submit_s: float | None,
    start_s: float | None,
    end_s: float,
    machine: str,
    cpus: int,
    removed_for: str = "",
) -> list[NamedEvent]:
    """Return the submission, start and end of a job, at the times of its record.

    The event merger drops events that other records contained already: the submission
    because it is marked as recalled, the start because its time and machine are the same.

    Args:
        job: its id, in the batch system's spelling.
        spec: its user's request.
        submit_s: Unix seconds, or None if the record does not contain it.
        start_s: of the run that ended, or None if it never ran.
        end_s: of that run, or when the job left the queue.
        machine: the (first) host of the run.
        cpus: CPUs of the run, over all its hosts.
        removed_for: one of the eviction reasons if the run did not complete its job.
    """
    found: list[NamedEvent] = []
    if submit_s is not None:
        recalled = JobSpec(
            user=spec.user, vo=spec.vo, job_class=spec.job_class, cpus=spec.cpus,
            estimate_s=spec.estimate_s, eligible_s=spec.eligible_s, recalled=True,
        )  # fmt: skip
        found.append((submit_s, events.SUBMITTED, job, recalled))
    if start_s is not None:
        found.append((start_s, events.STARTED, job, (machine, cpus)))
    if removed_for:
        found.append((end_s, events.REMOVED, job, removed_for))
    else:
        found.append((end_s, events.COMPLETED, job, None))
    return found


# -- repeated hour ---------------------------------------------------------------------------------
# The hour repeated at the end of summer time: a clock without a zone shows it twice.

MAX_DISORDER_S: Final = 5.0
"""Maximum disorder of records of several writers, in seconds. A record further back than the one
before it was written in the second of two such hours.
"""


def again_s(there: dt.datetime) -> float | None:
    """Return when a clock shows this for the second time, Unix seconds; None if it does so once."""
    first_s, second_s = there.timestamp(), there.replace(fold=1).timestamp()
    return second_s if second_s > first_s else None


# -- short cache -----------------------------------------------------------------------------------
# Cache of objects made from words of a log; long words, which users wrote, are not cached.

P = ParamSpec("P")
T = TypeVar("T")
MAX_CHARACTERS: Final = 1024
"""Limit for the arguments of a call together; for longer ones the result is not cached."""


def cached_if_short(entries: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Cache results like `functools.lru_cache`, with a bound on the size of an entry.

    Without a bound, records of a mebibyte would fill the memory long before there are `entries`.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        cached = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            size = sum(len(word) for word in args if isinstance(word, str))
            if size > MAX_CHARACTERS:
                return function(*args, **kwargs)
            return cached(*args, **kwargs)  # type: ignore[arg-type]  # words and numbers

        return call

    return decorate
