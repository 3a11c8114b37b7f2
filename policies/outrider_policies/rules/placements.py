"""Rules that start the oldest job and choose its machine."""

import random
from math import inf
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import NO_MACHINE, NOWHERE, Choice, Job, Policy, PolicySettings, SiteView

# -- places ----------------------------------------------------------------------------------------
# Helpers shared by several orders: positions in the queue, and machines chosen without a rank.

LAST: Final = 1e300
"""Position of jobs after all others; finite, so that jobs of one position are ordered by age."""


def longest_free(job: Job, view: SiteView, reason: str) -> Choice:
    """Choose the machine free for the longest time; for several CPUs the one they fit tightest.

    `NOWHERE` if the job fits on no free machine, else a start with the given reason.
    """
    cpus = job.spec.cpus
    machine = view.longest_free() if cpus == 1 else view.tightest(cpus)
    if machine == NOWHERE:
        return Choice(NOWHERE, NO_MACHINE, 1.0)
    return Choice(machine, reason, 1.0)


def any_free(view: SiteView, rng: random.Random) -> Choice:
    """Draw a free machine uniformly over the site; the propensity is that of its cluster."""
    machine = view.draw(rng)
    cluster = view.cluster_of(machine)
    return Choice(machine, "random", view.free_n[cluster] / view.free_total)


def places_by(*keys: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return positions from 0: by the first key, equals by the next, and so on; then by age.

    Args:
        keys: (jobs,) each; the least comes first.
    """
    in_order = np.lexsort(keys[::-1])
    places = np.empty(len(in_order))
    places[in_order] = np.arange(len(in_order))
    return places


def cpus_of_site(view: SiteView) -> int:
    """Return the CPUs of all open machines, free or not; at least one."""
    return max(1, view.open_cpus)


# -- fifo ------------------------------------------------------------------------------------------
# First in, first out (FCFS): the oldest job goes to the machine that has been free the longest.


class Fifo(Policy):
    """Rule that takes jobs in order of submission, machines in the order in which they freed."""

    name = "fifo"
    description = "oldest job first, on the machine that has been free the longest"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose the longest-free machine with enough CPUs; never defer a job."""
        return longest_free(job, view, "longest_free")

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe why a job waits under this rule."""
        return "jobs start in order of arrival; this one starts when a machine frees"


# -- random match ----------------------------------------------------------------------------------
# Random matching: what HTCondor does where no rank is configured.


class RandomMatch(Policy):
    """Rule that starts the oldest job on a free machine drawn uniformly over the whole site."""

    name = "random_match"
    description = "oldest job first, on any free machine: HTCondor's default"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Draw any free machine; the propensity is that of the machine's cluster."""
        return any_free(view, self.rng)

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe why a job waits under this rule."""
        return "it starts on any free machine, as soon as it is the oldest job and a machine frees"


# -- best fit --------------------------------------------------------------------------------------
# Best fit: each job where it leaves the fewest CPUs unused.


class BestFit(Policy):
    """Rule that starts the oldest job that fits, on the machine with the fewest CPUs left for it.

    This keeps wide machines free for wide jobs. The queue discipline decides which jobs may start
    before one that fits nowhere now; under `first_fit` a wide job can wait long at a busy site.
    """

    name = "best_fit"
    description = "oldest job that fits, on the free machine that it fills best"
    api_version = 1
    features = ("cpus",)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose the tightest machine that is left in this pass."""
        machine = view.tightest(job.spec.cpus)
        return Choice(machine, "best_fit" if machine != NOWHERE else NO_MACHINE, 1.0)

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the CPUs that a job waits for."""
        wide = len(view.fitting(job.spec.cpus))
        return f"it needs {job.spec.cpus} CPUs on one machine; {wide} free machines have them now"


# -- least loaded ----------------------------------------------------------------------------------
# Least loaded: the machine with the least work in relation to its capacity.


class LeastLoaded(Policy):
    """Rule that starts the oldest job on the machine of least load.

    Load is used CPUs over CPUs x speed; for machines with local queues, queue length over speed.
    Ties are drawn. It reads every free machine for every job, and knows the true speeds and
    queues: a baseline for learners that know neither.
    """

    name = "least_loaded"
    description = "oldest job first, on the machine of least load for its capacity"
    api_version = 1
    features = ("cpus",)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose one of the machines of least load that have enough CPUs left."""
        cpus, least = job.spec.cpus, inf
        ties: list[int] = []
        for machine in view.free_since:
            left = view.cpus_left(machine)
            if left < cpus:
                continue
            load = _load(machine, left, view)
            if load < least:
                least, ties = load, [machine]
            elif load == least:
                ties.append(machine)
        if not ties:
            return Choice(NOWHERE, NO_MACHINE)
        machine = ties[int(self.rng.random() * len(ties))]
        cluster = view.cluster_of(machine)
        here = sum(view.cluster_of(each) == cluster for each in ties)
        return Choice(machine, "least_loaded", here / len(ties))

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the least load now."""
        cpus = job.spec.cpus
        loads = [
            _load(machine, view.cpus_left(machine), view)
            for machine in view.free_since
            if view.cpus_left(machine) >= cpus
        ]
        if not loads:
            return f"no machine has {cpus} CPUs left"
        return f"it goes to the machine of least load: {min(loads):.3g} CPUs in use per capacity"


def _load(machine: int, left: int, view: SiteView) -> float:
    cpus = view.cpus_of(machine)
    return (cpus - left) / (cpus * view.speed_of(machine))


# -- capacity random -------------------------------------------------------------------------------
# Random in proportion to capacity: a baseline that knows CPUs and speeds only.


class CapacityRandom(Policy):
    """Rule that starts the oldest job on a free machine drawn in proportion to its capacity.

    Capacity is CPUs x speed. In the long run every machine gets work in proportion, regardless of
    its queue now: a baseline for schedulers that learn capacities from experience.
    """

    name = "capacity_random"
    description = "oldest job first, on a free machine drawn in proportion to its capacity"
    api_version = 1
    features = ("cpus",)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Draw a machine with enough CPUs left; the propensity is that of its cluster."""
        cpus = job.spec.cpus
        machines = [machine for machine in view.free_since if view.cpus_left(machine) >= cpus]
        if not machines:
            return Choice(NOWHERE, NO_MACHINE)
        capacities = np.array([view.cpus_of(m) * view.speed_of(m) for m in machines])
        sums = np.cumsum(capacities)
        at = int(np.searchsorted(sums, self.rng.random() * sums[-1], side="right"))
        machine = machines[min(at, len(machines) - 1)]
        cluster = view.cluster_of(machine)
        here = [view.cluster_of(each) == cluster for each in machines]
        return Choice(machine, "capacity", float(capacities[here].sum() / sums[-1]))

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe how the machine is chosen."""
        return "a free machine is drawn at random, in proportion to its CPUs x speed"


# -- round robin -----------------------------------------------------------------------------------
# Round robin: machines take jobs in turn.


class RoundRobin(Policy):
    """Rule that starts the oldest job on the next machine, by number, after the last job's.

    Machines that cannot take the job are skipped. It ignores speed and load: a baseline.
    """

    name = "round_robin"
    description = "oldest job first, on every machine in its turn"
    api_version = 1

    def __init__(self, settings: Any, rng: Any) -> None:
        super().__init__(settings, rng)
        self._last = -1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose the next machine with enough CPUs left."""
        n, cpus = view.machines_n, job.spec.cpus
        for step in range(1, n + 1):
            machine = (self._last + step) % n
            if view.cpus_left(machine) >= cpus:
                self._last = machine
                return Choice(machine, "turn", 1.0)
        return Choice(NOWHERE, NO_MACHINE)

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe where the search continues."""
        return f"machines take jobs in turns; the search continues after machine no. {self._last}"

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the machine of the last job."""
        return {"last": self._last}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned."""
        self._last = saved["last"]


# -- lowest watts ----------------------------------------------------------------------------------
# Lowest watts: the static rule ``RANK = -watts``, without learning.

_UNKNOWN_W = float("inf")


class LowestWatts(Policy):
    """Rule that starts the oldest job on a free machine of the cluster of fewest watts.

    A baseline for McGough and Forshaw's learner, next to `random_match`. Clusters whose watts are
    unknown come last; ties are drawn in proportion to free machines, so that no cluster is
    preferred by its position.
    """

    name = "lowest_watts"
    description = "oldest job first, on the free machine that draws the least: RANK = -watts"
    api_version = 1

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose a free machine among the clusters of fewest active watts."""
        best, free_ties = _UNKNOWN_W, 0
        ties: list[int] = []
        for cluster, free in enumerate(view.free_n):
            if not free:
                continue
            watts = view.active_w[cluster]
            watts = _UNKNOWN_W if watts is None else watts
            if watts < best or not ties:
                best, ties, free_ties = watts, [cluster], free
            elif watts == best:
                ties.append(cluster)
                free_ties += free
        at = self.rng.random() * free_ties
        for cluster in ties:
            at -= view.free_n[cluster]
            if at < 0:
                break
        propensity = view.free_n[cluster] / free_ties
        return Choice(view.draw_in(cluster, self.rng), "lowest_watts", propensity)

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe why a job waits under this rule."""
        return "it starts on the free machine of fewest watts, as soon as one frees"


# -- watts hold ------------------------------------------------------------------------------------
# Two static rules: the machine of least watts, and deferral of jobs that lost many hours.

_HOUR_S = 3600.0


class WattsHoldSettings(PolicySettings, frozen=True):
    """Settings of the deferral: lost hours before it, and its longest time."""

    hold_after_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Hours lost in evicted runs after which a job is deferred. Less saves "
            "more energy and defers more jobs that would complete.",
        ),
    ] = 24.0
    max_defer_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Starvation guard: longest time a job is deferred, seconds.",
        ),
    ] = 604_800.0


class WattsHold(LowestWatts):
    """Rule like `LowestWatts` that defers a job that lost N hours in evicted runs.

    Such a job is broken, or needs a machine for longer than any is available. This rule is the
    baseline for a learner: it reaches most of the savings of the bandit of Forshaw and McGough
    (2015) without learning.
    """

    name = "watts_hold"
    description = "lowest watts; a job that lost many hours in evicted runs is deferred"
    api_version = 1
    settings_type = WattsHoldSettings
    features = ("lost_s",)

    def __init__(self, settings: WattsHoldSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.max_defer_s = settings.max_defer_s
        self._max_lost_s = settings.hold_after_h * _HOUR_S

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Defer a job that lost too many hours, else choose the machine of fewest watts."""
        if may_defer and job.lost_s >= self._max_lost_s:
            return Choice(NOWHERE, "lost_hours", 1.0)
        return super().choose(job, evaluation, view, may_defer)

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe whether and why the job is deferred."""
        lost_h = job.lost_s / _HOUR_S
        if job.lost_s < self._max_lost_s:
            return f"it lost {lost_h:.1f} h in evicted runs so far; {super().explain(job, view)}"
        return f"deferred: it lost {lost_h:.1f} h, at or above {self._max_lost_s / _HOUR_S:g} h"
