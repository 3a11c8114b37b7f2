"""Policy ``wsept``: the least expected run time for what a second of waiting costs comes first."""

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
    """Who may be passed for how long, and how much is remembered."""

    oldest_first_after_s: Annotated[
        float,
        Meta(
            gt=0,
            description="A job that has waited so long comes before all that have not, the oldest "
            "first. Less protects long jobs; more lets the mean slowdown be less.",
        ),
    ] = 604_800.0
    contexts: Annotated[
        int,
        Meta(ge=100, le=1_000_000, description="Most users, requests and so on remembered of each "
             "kind; less than 1 kB each in memory, in ten kinds."),
    ] = 4096  # fmt: skip


class Wsept(Ranks, Learns, Policy[WseptSettings]):
    """Weighted shortest expected processing time, with distributions of run times that are learned.

    Of every kind of job (class, VO, user, request, CPUs) it learns how long its jobs run, from
    those that ended, and puts the queue in order by `ExpectedLengths`. Jobs that wait are judged
    anew whenever a job of their user ends: what is learned while they wait counts for them, too. It
    needs no class and no request, and uses both where they are there.

    Where the site estimates run times (``--estimates learned``), these take the place of requests.
    """

    name = "wsept"
    description = "least expected run time for what waiting costs first, learned by kind of job"
    api_version = 1
    features = ("job_class", "user", "vo", "estimate_s", "cpus")

    def __init__(self, settings: WseptSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._expected = ExpectedLengths(settings.contexts)
        self._kinds: dict[int, tuple[JobSpec, Kind]] = {}  # of jobs that wait
        self._lengths: dict[str, dict[Kind, float]] = {}  # by user, until one of theirs ends

    # -- the queue ----------------------------------------------------------------------------

    def on_dequeue(self, job: Job, view: SiteView) -> None:
        """It waits no longer."""
        self._kinds.pop(job.number, None)

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """The expected length; below 0, by age, of those who have waited for too long."""
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
        if kind is None or spec is not job.spec:  # new, or somebody edited it
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
        """Its kind."""
        return _kind(job)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """Learn how long a job of a kind ran, whoever started it."""
        if outcome.ending == COMPLETED_RUN and isinstance(outcome.key, tuple) and outcome.key:
            kind = Kind(*outcome.key)
            self._expected.learn(kind, outcome.run_s)
            self._lengths.pop(kind.user, None)
        return ()

    def save(self, view: SiteView) -> dict[str, Any]:
        """The distributions, and the lengths that hold until a job of their user ends."""
        lengths = [
            [list(kind), length_s]
            for of_user in self._lengths.values()
            for kind, length_s in of_user.items()
        ]
        return self._expected.save() | {"lengths_s": lengths}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on from what `save` gave. Raises `ValueError` if it does not fit."""
        self._expected.restore(saved)
        self._kinds.clear()
        self._lengths.clear()
        for values, length_s in saved["lengths_s"]:
            kind = Kind(*values)
            self._lengths.setdefault(kind.user, {})[kind] = length_s

    # -- what is shown ------------------------------------------------------------------------

    def explain(self, job: Job, view: SiteView) -> str:
        """What is expected of jobs like this, and by what it is put in order."""
        settings: WseptSettings = self.settings
        wait_s = job.wait_s(view.now) or 0.0
        if wait_s > settings.oldest_first_after_s:
            days = settings.oldest_first_after_s / 86_400
            return f"it has waited for more than {days:.0f} days: only older jobs start before it"
        kind = _kind(job)
        length_s = self._expected.length_s(kind)
        return (
            f"half of the jobs like this are expected to run less than "
            f"{self._expected.median_s(kind) / 60:.1f} min; it is put in order as one of "
            f"{length_s / 60:.1f} min, and jobs of less start before it"
        )


def _kind(job: Job) -> Kind:
    return Kind.of(job.spec, job.spec.estimate_s)


# -- expected lengths ------------------------------------------------------------------------------
# One number for a distribution of run times: which of two jobs of unknown length goes first.

SHORTEST_S: Final = 10.0
"""Shorter runs cost no more by waiting: the bound of the bounded slowdown."""
WARM_UP_JOBS: Final = 10
"""Completions before anything is predicted from them."""


def weighted_length_s(likely: Floats, longest_s: float = inf) -> float:
    """The length of a distribution: see `ExpectedLengths`.

    Args:
        likely: (bins,) probabilities of the bins of `MIDDLES_S`, which sum to 1.
        longest_s: nothing runs longer.
    """
    runs_s = np.minimum(MIDDLES_S, longest_s)
    mean_s = float(likely @ runs_s)
    cost = float(likely @ (1.0 / np.maximum(runs_s, SHORTEST_S)))
    return sqrt(mean_s / cost)


class ExpectedLengths:
    """The length in seconds by which jobs of a kind are put in order, from all that ended so far.

    Where a second of waiting costs a job w, the order that costs least in expectation on one
    machine is that of the least E[run] / w (Rothkopf 1966, "Scheduling with random service times",
    Management Science 12(9)). For the mean slowdown w is E[1 / run]; so jobs go by

        length = sqrt(E[run] / E[1 / max(run, 10 s)]),

    which is the run time itself where that is known. Where it is not, a kind of which some end
    within a minute comes before one of the same mean of which none does.

    A job does not run beyond what its user requested, where the batch system holds users to it: the
    distribution ends there. Before ten jobs have ended all lengths up to the request are equally
    likely, on the logarithmic scale.

    Args:
        contexts: as of `RunTimeDistributions`.
    """

    def __init__(self, contexts: int) -> None:
        self._distributions = RunTimeDistributions(contexts)

    def learn(self, kind: Kind, run_s: float) -> None:
        """A job of this kind ran so long."""
        self._distributions.learn(kind, run_s)

    def length_s(self, kind: Kind) -> float:
        """By which its jobs are put in order, seconds."""
        return weighted_length_s(self._likely(kind), kind.requested_s or inf)

    def median_s(self, kind: Kind) -> float:
        """Half of its jobs are expected to run shorter, seconds: for people."""
        reached = np.cumsum(self._likely(kind))
        middle = float(MIDDLES_S[int(np.searchsorted(reached, reached[-1] / 2.0))])
        return min(middle, kind.requested_s or inf)

    def _likely(self, kind: Kind) -> Floats:
        """(bins,) probabilities; they sum to 1."""
        if self._distributions.learned_n >= WARM_UP_JOBS:
            found = self._distributions.predict(kind)
        else:
            found = np.where(max(kind.requested_s or inf, SHORTEST_S) >= MIDDLES_S, 1.0, 0.0)
        likely: Floats = found / found.sum()
        return likely

    def save(self) -> dict[str, Any]:
        """What was learned, as plain data."""
        return self._distributions.save()

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError` if it does not fit."""
        self._distributions.restore(saved)
