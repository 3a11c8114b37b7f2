"""Places in line, and where the first of the line goes: what several orders share."""

from typing import Final

from outrider.api import NO_MACHINE, NOWHERE, Choice, Job, SiteView

LAST: Final = 1e300
"""The place of jobs that come after all others, by age: a number, for infinity is no place."""


def longest_free(job: Job, view: SiteView, reason: str) -> Choice:
    """The machine that has been free the longest; for several CPUs the tightest that has them.

    `NOWHERE` because it fits on no machine that is free, else a start for the given reason.
    """
    cpus = job.spec.cpus
    machine = view.longest_free() if cpus == 1 else view.tightest(cpus)
    if machine == NOWHERE:
        return Choice(NOWHERE, NO_MACHINE, 1.0)
    return Choice(machine, reason, 1.0)
