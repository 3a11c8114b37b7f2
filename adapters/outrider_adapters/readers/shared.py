"""Shared by several readers: records of whole jobs, the repeated hour, a bounded cache."""

import datetime as dt
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar

from outrider.api import JobSpec, NamedEvent, events

# -- end records -----------------------------------------------------------------------------------
# Records of a job's end, which tell its whole life: PBS `E`, sacct rows, jobcomp lines.

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
    """Submitted, started and ended, at the times that the record gives.

    What other records told already is found to be a duplicate by the event merger: the submission
    because it is marked as recalled, the start because its time and machine are the same.

    Args:
        job: its id, in the batch system's spelling.
        spec: what its user said.
        submit_s: Unix seconds, or None where the record does not say.
        start_s: of the run that ended, or None if it never ran.
        end_s: of that run, or when the job left the queue.
        machine: the (first) host of the run.
        cpus: CPUs of the run, over all its hosts.
        removed_for: one of the eviction reasons if the run did not complete its job.
    """
    told: list[NamedEvent] = []
    if submit_s is not None:
        recalled = JobSpec(
            user=spec.user, vo=spec.vo, job_class=spec.job_class, cpus=spec.cpus,
            estimate_s=spec.estimate_s, eligible_s=spec.eligible_s, recalled=True,
        )  # fmt: skip
        told.append((submit_s, events.SUBMITTED, job, recalled))
    if start_s is not None:
        told.append((start_s, events.STARTED, job, (machine, cpus)))
    if removed_for:
        told.append((end_s, events.REMOVED, job, removed_for))
    else:
        told.append((end_s, events.COMPLETED, job, None))
    return told


# -- repeated hour ---------------------------------------------------------------------------------
# The hour that the end of summer time repeats: a clock that names no zone shows it twice.

LATE_S: Final = 5.0
"""Records of several writers may stand this much out of order; what stands further back than the
record before it was written in the second of two such hours."""


def again_s(there: dt.datetime) -> float | None:
    """Return when a clock shows this for the second time, in Unix seconds; None if it shows it once."""
    first_s, second_s = there.timestamp(), there.replace(fold=1).timestamp()
    return second_s if second_s > first_s else None


# -- short cache -----------------------------------------------------------------------------------
# A cache for what is made of words of a log: long words, which a stranger wrote, stay outside.

P = ParamSpec("P")
T = TypeVar("T")
MOST_CHARACTERS: Final = 1024
"""Over all arguments of a call; what is longer is made anew each time, and not kept."""


def cached_if_short(entries: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Like `functools.lru_cache`, with a bound on what an entry takes.

    Without one, records of a mebibyte would fill the memory long before there are `entries`.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        cached = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            size = sum(len(word) for word in args if isinstance(word, str))
            if size > MOST_CHARACTERS:
                return function(*args, **kwargs)
            return cached(*args, **kwargs)  # type: ignore[arg-type]  # words and numbers

        return call

    return decorate
