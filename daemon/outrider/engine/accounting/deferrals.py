"""Jobs kept queued by choice, and what became of them: was it right to hold them?

A policy holds jobs that it takes for bad (they would never end), or that had better wait. What it
took for bad and was good is a false positive: a user waited for nothing. Replay knows afterwards
which jobs were bad; live only how a held job ended later is seen.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.engine.state.packing import pack, unpack
from outrider.model.outcomes import COMPLETED_RUN, REMOVED_RUN

LATER: Final = (COMPLETED_RUN, REMOVED_RUN)
_SLACK_S: Final = 1e-3
"""A hold of one epoch between two Unix times may come out shorter by a rounding."""
_HOUR_S: Final = 3600.0


class Deferrals:
    """Jobs that one policy held: kept queued by choice, for one decision epoch or longer in all.

    In shadow the batch system does not wait: a job that it starts while the policy would keep it
    counts as held too, however short that was.

    Args:
        epoch_s: the decision epoch.
        exact: remember each job that is gone, for a report that knows the truth (replay).

    Attributes:
        jobs: held jobs that are gone, by how they ended: ``completed`` or ``removed``.
        seconds: how long those were held in all.
    """

    def __init__(self, epoch_s: float, exact: bool = False) -> None:
        self.jobs = dict.fromkeys(LATER, 0)
        self.seconds = dict.fromkeys(LATER, 0.0)
        self._least_s = epoch_s - _SLACK_S
        self._held_s: dict[int, float] = {}  # of jobs that are not gone
        self._cut_short: set[int] = set()  # of those, started while they would have been kept
        self._gone_s: dict[int, float] | None = {} if exact else None

    def add(self, job: int, held_s: float) -> None:
        """A hold ended: the job started or left."""
        self._held_s[job] = self._held_s.get(job, 0.0) + held_s

    def cut_short(self, job: int) -> None:
        """The batch system started a job that the policy would have kept queued."""
        self._cut_short.add(job)

    def end(self, job: int, later: str) -> None:
        """A job is gone: completed, or removed."""
        held_s = self._held_s.pop(job, 0.0)
        if held_s < self._least_s and job not in self._cut_short:
            return
        self._cut_short.discard(job)
        self.jobs[later] += 1
        self.seconds[later] += held_s
        if self._gone_s is not None:
            self._gone_s[job] = held_s

    def by_job(self, waiting: Mapping[int, float]) -> dict[int, float]:
        """Seconds for which each deferred job was deferred; of jobs that are gone only where exact.

        Args:
            waiting: seconds so far of jobs that wait now, by number.
        """
        held = dict(self._held_s)
        for job, held_s in waiting.items():
            held[job] = held.get(job, 0.0) + held_s
        return (self._gone_s or {}) | {j: s for j, s in held.items() if s >= self._least_s}

    def report(self) -> dict[str, Any]:
        """Held jobs that are gone, and seconds of their holds, by how they ended."""
        return {"jobs": dict(self.jobs), "hold_s": dict(self.seconds)}

    def save(self) -> dict[str, Any]:
        """Everything as plain data, for the daemon: what only a replay remembers is not in it."""
        return {
            "jobs": dict(self.jobs),
            "seconds": dict(self.seconds),
            "held": pack(self._held_s.items()),
            "cut_short": pack(sorted(self._cut_short)),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.jobs, self.seconds = dict(saved["jobs"]), dict(saved["seconds"])
        self._held_s = dict(unpack(saved["held"]))
        self._cut_short = set(unpack(saved["cut_short"]))


def judge(held_s: Mapping[int, float], bad: NDArray[np.bool_]) -> dict[str, Any]:
    """Hold the jobs held against the truth, after the run.

    Args:
        held_s: seconds for which each held job was held, by job number.
        bad: (jobs,) whether each job submitted would never have ended by itself.

    Returns:
        ``held``, of them ``held_bad`` and ``held_good``; ``bad`` and ``good`` jobs in all;
        ``precision`` (bad of the held) and ``recall`` (held of the bad); ``good_delay_h``, hours
        for which good jobs were held. None where there is nothing to compute it from.
    """
    jobs = np.fromiter(held_s.keys(), dtype=np.intp, count=len(held_s))
    hours = np.fromiter(held_s.values(), dtype=np.float64, count=len(held_s)) / _HOUR_S
    good_h = hours[~bad[jobs]]
    held, held_bad, bad_n = len(jobs), len(jobs) - len(good_h), int(bad.sum())
    return {
        "held": held,
        "held_bad": held_bad,
        "held_good": len(good_h),
        "bad": bad_n,
        "good": len(bad) - bad_n,
        "precision": held_bad / held if held else None,
        "recall": held_bad / bad_n if bad_n else None,
        "good_delay_h": {
            "sum": float(good_h.sum()),
            "mean": float(good_h.mean()) if len(good_h) else None,
            "p95": float(np.percentile(good_h, 95)) if len(good_h) else None,
            "max": float(good_h.max()) if len(good_h) else None,
        },
    }
