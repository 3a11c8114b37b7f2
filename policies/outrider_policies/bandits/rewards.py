"""Rewards for dodging evictions and saving energy: equations 4 and 5 of McGough and Forshaw."""

from typing import Any

from outrider.api import COMPLETED_RUN, Outcome, SiteView

RIGHTLY_DEFERRED = 1.0
WRONGLY_DEFERRED = -1.0


def run_reward(outcome: Outcome, sigma: float, view: SiteView) -> float:
    """The reward of a run, in [-1, 1] (equation 4).

    ``1 - sigma E`` if it completed, ``-1 + sigma (1 - E)`` if it was evicted or killed.

    Args:
        outcome: the end of a run.
        sigma: weight of energy against not being evicted, in [0, 1].
        view: the site.
    """
    energy = relative_watts(outcome.cluster, view)
    if outcome.ending is COMPLETED_RUN:
        return 1.0 - sigma * energy
    return -1.0 + sigma * (1.0 - energy)


def relative_watts(cluster: int, view: SiteView) -> float:
    """``E = (e - e_b) / (e_w - e_b)`` from active watts: 0 for the best cluster, 1 for the worst.

    Equation 5 as printed. The paper's text puts E into [-1, 1], but e_b <= e <= e_w leaves
    [0, 1], and only so do rewards stay in [-1, 1]. 0 where watts are unknown or all equal.
    """
    least, most = view.watts_span()
    watts = view.active_w[cluster]
    return 0.0 if watts is None or most <= least else (watts - least) / (most - least)


class DeferredJobs:
    """Decisions to defer a job, until they can be judged.

    That is when the job has left: then its run time is known, and so is what happened to the
    machines. Deferring was wrong if some machine was available (no owner, no reboot) for as long
    as the job runs. Jobs that ran on that machine later do not matter: they would not have been
    there. Deferring a job that never completed was right.
    """

    def __init__(self) -> None:
        self._deferred: dict[int, list[tuple[float, int]]] = {}

    def add(self, job: int, now: float, state: int) -> None:
        """Add a decision to defer a job, made in this state."""
        self._deferred.setdefault(job, []).append((now, state))

    def judge(self, outcome: Outcome, view: SiteView) -> list[tuple[int, float]]:
        """The job has left: (state, reward) of each decision to defer it."""
        deferred = self._deferred.pop(outcome.job, None)
        if deferred is None:
            return []
        if outcome.ending is not COMPLETED_RUN:
            return [(state, RIGHTLY_DEFERRED) for _, state in deferred]
        run_s, was_available = outcome.run_s, view.was_available
        return [
            (state, WRONGLY_DEFERRED if was_available(at, at + run_s) else RIGHTLY_DEFERRED)
            for at, state in deferred
        ]

    def save(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {"kept": [[job, list(decisions)] for job, decisions in self._deferred.items()]}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._deferred = {
            job: [(at, state) for at, state in deferred] for job, deferred in saved["kept"]
        }
