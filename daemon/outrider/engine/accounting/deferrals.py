"""Statistics of jobs that a policy deferred: was it right to defer them?

A policy defers jobs that it considers bad (they would never end), or that had better wait. A
good job considered bad is a false positive: a user waited for nothing. A replay knows afterwards
which jobs were bad; live, only how a deferred job ended later is known.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.engine.state.packing import pack, unpack
from outrider.model.decisions import COMPLETED_RUN, REMOVED_RUN

LATER: Final = (COMPLETED_RUN, REMOVED_RUN)
_SLACK_S: Final = 1e-3
"""A deferral of one epoch between two Unix times may come out shorter by a rounding."""
_HOUR_S: Final = 3600.0


class Deferrals:
    """Record of the jobs that one policy deferred, for one decision epoch or longer in all.

    In shadow the batch system does not wait: a job that it starts while the policy would defer
    it counts too, however short that was.

    Args:
        epoch_s: the decision epoch.
        exact: remember each job that is gone, for a report that knows the truth (replay).

    Attributes:
        jobs: deferred jobs that are gone, by how they ended: ``completed`` or ``removed``.
        seconds: how long those were deferred in all.
    """

    def __init__(self, epoch_s: float, exact: bool = False) -> None:
        self.jobs = dict.fromkeys(LATER, 0)
        self.seconds = dict.fromkeys(LATER, 0.0)
        self._min_s = epoch_s - _SLACK_S
        self._deferred_s: dict[int, float] = {}  # of jobs that are not gone
        self._cut_short: set[int] = set()  # of those, started while the policy would defer them
        self._gone_s: dict[int, float] | None = {} if exact else None

    def add(self, job: int, deferred_s: float) -> None:
        """Add a deferral that ended: the job started or left."""
        self._deferred_s[job] = self._deferred_s.get(job, 0.0) + deferred_s

    def cut_short(self, job: int) -> None:
        """Record that the batch system started a job that the policy would have deferred."""
        self._cut_short.add(job)

    def end(self, job: int, later: str) -> None:
        """Record that a job is gone: completed, or removed."""
        deferred_s = self._deferred_s.pop(job, 0.0)
        if deferred_s < self._min_s and job not in self._cut_short:
            return
        self._cut_short.discard(job)
        self.jobs[later] += 1
        self.seconds[later] += deferred_s
        if self._gone_s is not None:
            self._gone_s[job] = deferred_s

    def by_job(self, waiting: Mapping[int, float]) -> dict[int, float]:
        """Return the seconds for which each job was deferred; of gone jobs only where exact.

        Args:
            waiting: seconds so far of jobs that wait now, by number.
        """
        by_job = dict(self._deferred_s)
        for job, deferred_s in waiting.items():
            by_job[job] = by_job.get(job, 0.0) + deferred_s
        return (self._gone_s or {}) | {j: s for j, s in by_job.items() if s >= self._min_s}

    def report(self) -> dict[str, Any]:
        """Return the counts and seconds of deferred jobs that are gone, by how they ended."""
        return {"jobs": dict(self.jobs), "defer_s": dict(self.seconds)}

    def save(self) -> dict[str, Any]:
        """Return everything as plain data, for the daemon: without what only a replay keeps."""
        return {
            "jobs": dict(self.jobs),
            "seconds": dict(self.seconds),
            "deferred_s": pack(self._deferred_s.items()),
            "cut_short": pack(sorted(self._cut_short)),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        self.jobs, self.seconds = dict(saved["jobs"]), dict(saved["seconds"])
        self._deferred_s = dict(unpack(saved["deferred_s"]))
        self._cut_short = set(unpack(saved["cut_short"]))


def judge(deferred_s: Mapping[int, float], bad: NDArray[np.bool_]) -> dict[str, Any]:
    """Compare the deferred jobs with the truth, after the run.

    Args:
        deferred_s: seconds for which each deferred job was deferred, by job number.
        bad: (jobs,) whether each job submitted would never have ended by itself.

    Returns:
        ``deferred``, of them ``deferred_bad`` and ``deferred_good``; ``bad`` and ``good`` jobs in
        all; ``precision`` (bad of the deferred) and ``recall`` (deferred of the bad);
        ``good_delay_h``, hours for which good jobs were deferred. None where there is nothing to
        compute it from.
    """
    jobs = np.fromiter(deferred_s.keys(), dtype=np.intp, count=len(deferred_s))
    hours = np.fromiter(deferred_s.values(), dtype=np.float64, count=len(deferred_s)) / _HOUR_S
    good_h = hours[~bad[jobs]]
    deferred, deferred_bad, bad_n = len(jobs), len(jobs) - len(good_h), int(bad.sum())
    return {
        "deferred": deferred,
        "deferred_bad": deferred_bad,
        "deferred_good": len(good_h),
        "bad": bad_n,
        "good": len(bad) - bad_n,
        "precision": deferred_bad / deferred if deferred else None,
        "recall": deferred_bad / bad_n if bad_n else None,
        "good_delay_h": {
            "sum": float(good_h.sum()),
            "mean": float(good_h.mean()) if len(good_h) else None,
            "p95": float(np.percentile(good_h, 95)) if len(good_h) else None,
            "max": float(good_h.max()) if len(good_h) else None,
        },
    }
