"""Policy ``wsept``: jobs of the least expected run time per cost of waiting come first."""

import random
from collections.abc import Hashable, Sequence
from math import inf, sqrt
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import (
    COMPLETED_RUN,
    Job,
    JobSpec,
    Learns,
    Outcome,
    Policy,
    PolicySettings,
    Queue,
    Ranks,
    SiteView,
)
from outrider_policies.estimators.context_histograms import Floats
from outrider_policies.estimators.learned import MIDDLES_S, Kind, RunTimeDistributions


class WseptSettings(PolicySettings, frozen=True):
    """Settings of the longest wait before age decides, and of the memory."""

    oldest_first_after_s: Annotated[
        float,
        Meta(
            gt=0,
            description="A job that has waited so long comes before all that have not, the oldest "
            "first. Less protects long jobs; more allows a lower mean slowdown.",
        ),
    ] = 604_800.0
    contexts: Annotated[
        int,
        Meta(ge=100, le=1_000_000, description="Maximum of users, requests and so on remembered of "
             "each kind; less than 1 kB each in memory, in ten kinds."),
    ] = 4096  # fmt: skip


class Wsept(Ranks, Learns, Policy[WseptSettings]):
    """Weighted shortest expected processing time, with learned distributions of run times.

    For every kind of job (class, VO, user, request, CPUs) it learns how long its jobs run, from
    those that ended, and orders the queue by `ExpectedLengths`. Waiting jobs are judged again
    whenever a job of their user ends: what is learned while they wait counts for them too. It
    needs no class and no request, and uses both where they exist.

    Where the site estimates run times (``--estimates learned``), these take the place of requests.
    """

    name = "wsept"
    description = "least expected run time for what waiting costs first, learned by kind of job"
    api_version = 1
    features = ("job_class", "user", "vo", "estimate_s", "cpus")

    def __init__(self, settings: WseptSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._expected = ExpectedLengths(settings.contexts)
        self._kinds: dict[int, tuple[JobSpec, Kind]] = {}  # of waiting jobs
        self._lengths: dict[str, dict[Kind, float]] = {}  # by user, until a job of theirs ends

    # -- the queue ----------------------------------------------------------------------------

    def on_dequeue(self, job: Job, view: SiteView) -> None:
        """Forget the kind of a job that left the queue."""
        self._kinds.pop(job.number, None)

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Return the expected length; below 0, by age, for jobs that have waited too long."""
        settings: WseptSettings = self.settings
        if len(self._lengths) > settings.contexts:  # users who came once and never again
            self._lengths.clear()
        jobs = queue.jobs
        places = np.fromiter(map(self._length_s, jobs), dtype=np.float64, count=len(jobs))
        waits_s = view.now - queue.submit_s
        too_long = waits_s > settings.oldest_first_after_s
        places[too_long] = -waits_s[too_long]
        return places

    def _length_s(self, job: Job) -> float:
        spec, kind = self._kinds.get(job.number, (None, None))
        if kind is None or spec is not job.spec:  # new, or edited
            kind = _kind(job)
            self._kinds[job.number] = job.spec, kind
        known = self._lengths.get(kind.user)
        if known is None:
            known = self._lengths[kind.user] = {}
        length_s = known.get(kind)
        if length_s is None:
            length_s = known[kind] = self._expected.length_s(kind)
        return length_s

    # -- learning -----------------------------------------------------------------------------

    def group_key(self, job: Job, view: SiteView) -> Hashable:
        """Return the kind of the job."""
        return _kind(job)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """Learn how long a job of a kind ran, regardless of which scheduler started it."""
        if outcome.ending == COMPLETED_RUN and isinstance(outcome.key, tuple) and outcome.key:
            kind = Kind(*outcome.key)
            self._expected.learn(kind, outcome.run_s)
            self._lengths.pop(kind.user, None)
        return ()

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the distributions, and the lengths valid until a job of their user ends."""
        lengths = [
            [list(kind), length_s]
            for of_user in self._lengths.values()
            for kind, length_s in of_user.items()
        ]
        return self._expected.save() | {"lengths_s": lengths}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned. Raises `ValueError` if it does not fit."""
        self._expected.restore(saved)
        self._kinds.clear()
        self._lengths.clear()
        for values, length_s in saved["lengths_s"]:
            kind = Kind(*values)
            self._lengths.setdefault(kind.user, {})[kind] = length_s

    # -- explaining ---------------------------------------------------------------------------

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the expected run time of jobs of this kind, and the length that orders it."""
        settings: WseptSettings = self.settings
        wait_s = job.wait_s(view.now) or 0.0
        if wait_s > settings.oldest_first_after_s:
            days = settings.oldest_first_after_s / 86_400
            return f"it has waited for more than {days:.0f} days: only older jobs start before it"
        kind = _kind(job)
        length_s = self._expected.length_s(kind)
        return (
            f"half of the jobs of this kind are expected to run less than "
            f"{self._expected.median_s(kind) / 60:.1f} min; it is ordered as a job of "
            f"{length_s / 60:.1f} min, and shorter ones start before it"
        )


def _kind(job: Job) -> Kind:
    return Kind.of(job.spec, job.spec.estimate_s)


# -- expected lengths ------------------------------------------------------------------------------
# One number for a distribution of run times: it orders jobs of unknown length.

SHORTEST_S: Final = 10.0
"""Lower bound of run times for the cost of waiting, as in the bounded slowdown, seconds."""
WARM_UP_JOBS: Final = 10
"""Completions before anything is predicted from them."""


def weighted_length_s(likely: Floats, longest_s: float = inf) -> float:
    """Return the length of a distribution: see `ExpectedLengths`.

    Args:
        likely: (bins,) probabilities of the bins of `MIDDLES_S`, which sum to 1.
        longest_s: nothing runs longer.
    """
    runs_s = np.minimum(MIDDLES_S, longest_s)
    mean_s = float(likely @ runs_s)
    cost = float(likely @ (1.0 / np.maximum(runs_s, SHORTEST_S)))
    return sqrt(mean_s / cost)


class ExpectedLengths:
    """Length in seconds by which jobs of a kind are ordered, learned from all that ended.

    Where a second of waiting costs a job w, the order that costs least in expectation on one
    machine is that of the least E[run] / w (Rothkopf 1966, "Scheduling with random service times",
    Management Science 12(9)). For the mean slowdown w is E[1 / run]; so jobs are ordered by

        length = sqrt(E[run] / E[1 / max(run, 10 s)]),

    which is the run time itself where that is known. Where it is not, a kind with some runs under
    a minute comes before one of the same mean without any.

    A job does not run longer than its user requested, where the batch system enforces that: the
    distribution ends there. Before ten jobs have ended all lengths up to the request are equally
    likely, on the logarithmic scale.

    Args:
        contexts: see `RunTimeDistributions`.
    """

    def __init__(self, contexts: int) -> None:
        self._distributions = RunTimeDistributions(contexts)

    def learn(self, kind: Kind, run_s: float) -> None:
        """Learn that a job of this kind ran so long."""
        self._distributions.learn(kind, run_s)

    def length_s(self, kind: Kind) -> float:
        """Return the length in seconds by which jobs of a kind are ordered."""
        return weighted_length_s(self._likely(kind), kind.requested_s or inf)

    def median_s(self, kind: Kind) -> float:
        """Return the median of the expected run time, seconds: for people."""
        reached = np.cumsum(self._likely(kind))
        middle = float(MIDDLES_S[int(np.searchsorted(reached, reached[-1] / 2.0))])
        return min(middle, kind.requested_s or inf)

    def _likely(self, kind: Kind) -> Floats:
        """Return (bins,) probabilities; they sum to 1."""
        if self._distributions.learned_n >= WARM_UP_JOBS:
            found = self._distributions.predict(kind)
        else:
            found = np.where(max(kind.requested_s or inf, SHORTEST_S) >= MIDDLES_S, 1.0, 0.0)
        likely: Floats = found / found.sum()
        return likely

    def save(self) -> dict[str, Any]:
        """Return what was learned, as plain data."""
        return self._distributions.save()

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned. Raises `ValueError` if it does not fit."""
        self._distributions.restore(saved)
