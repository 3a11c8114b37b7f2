"""What the days of a canary trial came to: sums by the day in which a wait began. Pure code."""

from typing import Any, Final

import msgspec

from outrider.acting.trial import Trial
from outrider.model.jobs import RUNNING, SUSPENDED_STATE, Job

OVERHEAD_CAP_S: Final = 86_400.0
"""A job's overhead counts up to a day, as in the twin: no single job makes the mean."""


class DaySums(msgspec.Struct, array_like=True):
    """Sums of one day.

    Attributes:
        goodput_s: CPU-seconds of runs of its that completed their job.
        badput_s: CPU-seconds of runs of its that were thrown away.
        energy_j: joules of both; nan where watts are unknown.
        completed, evictions: how many of each.
        overhead_s: overheads of the jobs submitted in it that completed, each up to a day.
        overheads: how many those are.
    """

    goodput_s: float = 0.0
    badput_s: float = 0.0
    energy_j: float = 0.0
    completed: int = 0
    evictions: int = 0
    overhead_s: float = 0.0
    overheads: int = 0


class TrialTally:
    """Counts each run for the day in which its job began to wait for it, however long it lasts.

    That is the day of its submission, or of the eviction before. By the day of the start, what is
    deferred on an acting day and let go at midnight would count for the other side, and acting
    would look better than it is. Overheads count for the day of the submission.

    Args:
        trial: which days there are.

    Attributes:
        days: (days,) their sums.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.days = [DaySums() for _ in trial.acts]
        self._evicted_s: dict[int, float] = {}
        """By number of the job, when it was last evicted, for as long as it is there."""
        self._removed: int | None = None

    def run_ended(
        self, job: Job, cpu_s: float, joules: float, time_s: float, completes: bool
    ) -> None:  # fmt: skip
        """A run ended.

        Args:
            job: whose.
            cpu_s: CPU-seconds of work.
            joules: that it took; nan where the watts are unknown.
            time_s: when it ended.
            completes: its job is done; else it was thrown away.
        """
        since_s = self._evicted_s.pop(job.number, None)
        if since_s is None and job.runs <= 1:  # else it was evicted before anybody counted
            since_s = _waits_since_s(job)
        if not completes and job.number != self._removed:
            self._evicted_s[job.number] = time_s
        day = None if since_s is None else self.trial.counts_for(since_s)
        if day is None:
            return
        sums = self.days[day]
        sums.energy_j += joules
        if completes:
            sums.goodput_s += cpu_s
            sums.completed += 1
        else:
            sums.badput_s += cpu_s
            sums.evictions += 1

    def job_removed(self, job: Job) -> None:
        """A job leaves without completing; where it runs, the end of its run is told next."""
        if job.state in (RUNNING, SUSPENDED_STATE):
            self._removed = job.number
        else:
            self._evicted_s.pop(job.number, None)

    def job_completed(self, submit_s: float, overhead_s: float) -> None:
        """A job completed, so many seconds later than its last run alone would have taken."""
        if (day := self.trial.counts_for(submit_s)) is None:
            return
        sums = self.days[day]
        sums.overhead_s += min(max(overhead_s, 0.0), OVERHEAD_CAP_S)
        sums.overheads += 1

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        days = msgspec.to_builtins(self.days)
        evicted = list(self._evicted_s.items())
        return {"registered_s": self.trial.registered_s, "days": days, "evicted": evicted}

    def restore(self, saved: dict[str, Any] | None) -> None:
        """Go on from what `save` gave, if that was of the same trial."""
        if saved is None or saved["registered_s"] != self.trial.registered_s:
            return
        self.days = [msgspec.convert(day, DaySums, strict=False) for day in saved["days"]]
        self._evicted_s = dict(saved["evicted"])


def _waits_since_s(job: Job) -> float:
    """Since when a job waited for its first run; its start where its submission was not seen."""
    if job.submit_s is None:
        return job.start_s
    eligible_s = job.spec.eligible_s
    return job.submit_s if eligible_s is None else max(job.submit_s, eligible_s)
