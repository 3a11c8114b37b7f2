"""What several orders share: the last position in the queue, and the longest-free machine."""

from typing import Final

from outrider.api import NO_MACHINE, NOWHERE, Choice, Job, SiteView

LAST: Final = 1e300
"""Position of jobs that come after all others; finite: those at one place come by age."""


def longest_free(job: Job, view: SiteView, reason: str) -> Choice:
    """The machine that has been free the longest; for several CPUs the one they fit tightest.

    `NOWHERE` if the job fits on no free machine, else a start with the given reason.
    """
    cpus = job.spec.cpus
    machine = view.longest_free() if cpus == 1 else view.tightest(cpus)
    if machine == NOWHERE:
        return Choice(NOWHERE, NO_MACHINE, 1.0)
    return Choice(machine, reason, 1.0)
