"""A site view made by hand, and outcomes: what a policy learns from, without an engine."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf

from outrider.api import COMPLETED_RUN, Job, JobSpec, Outcome
from outrider.testing.fixtures import HandSite
from outrider_policies.bandits.bandit import Bandit
from tests.policies.unasked import Unasked


class HandView(Unasked):
    """A `SiteView` whose every answer is set by the test; machine c * 100 stands in cluster c."""

    def __init__(self, free_n: Sequence[int], watts: Sequence[float | None]) -> None:
        self.now = 0.0
        self.free_n = list(free_n)
        self.active_w = list(watts)
        self.cluster_names = [f"c{c}" for c in range(len(free_n))]
        self.stays: list[tuple[float, float]] = []

    @property
    def free_total(self) -> int:
        """Number of all free machines."""
        return sum(self.free_n)

    def hour_of_day(self) -> int:
        """Return the hour of day: event time counts from a midnight."""
        return int(self.now) // 3600 % 24

    def week_second(self) -> float:
        """Return the second of the week: event time counts from a Monday."""
        return self.now % 604_800.0

    def next_reboot_s(self) -> float:
        """Return infinity: there are no reboots."""
        return inf

    def is_free(self, machine: int) -> bool:
        """Return True while the machine's cluster has a free one."""
        return self.free_n[machine // 100] > 0

    def fitting(self, cpus: int) -> Sequence[int]:
        """Return the free machines, each of which has one CPU."""
        return [c * 100 for c, n in enumerate(self.free_n) if n and cpus == 1]

    @property
    def members(self) -> Sequence[Sequence[int]]:
        """One known machine a cluster."""
        return [[c * 100] for c in range(len(self.free_n))]

    @property
    def free_since(self) -> Mapping[int, float]:
        """Free since the beginning."""
        return {c * 100: 0.0 for c, n in enumerate(self.free_n) if n}

    def draw(self, rng: random.Random) -> int:
        """Fail: no bandit needs this."""
        raise AssertionError("a cluster is chosen, never the whole site")

    def draw_in(self, cluster: int, rng: random.Random) -> int:
        """Return the cluster's only known machine."""
        assert self.free_n[cluster], "a full cluster was chosen"
        return cluster * 100

    def longest_free(self) -> int:
        """Fail: no bandit needs this."""
        raise AssertionError

    def was_available(self, start_s: float, end_s: float) -> bool:
        """Return whether one of `stays` covers the stretch."""
        return any(start <= start_s and end_s <= end for start, end in self.stays)

    def watts_span(self) -> tuple[float, float]:
        """Least and most known watts."""
        known = [w for w in self.active_w if w is not None]
        return (min(known), max(known)) if known else (0.0, 0.0)

    def cluster_of(self, machine: int) -> int:
        """Machine c * 100 stands in cluster c."""
        return machine // 100


def waiting_job(number: int = 1, longest_lost_s: float = 0.0) -> Job:
    """Return a queued job whose longest wasted run took so long."""
    job = Job(number, JobSpec(), 0.0)
    job.consumed_s = longest_lost_s
    return job


def outcome(
    cluster: int, ending: str = COMPLETED_RUN, key: object = 0, job: int = 1, run_s: float = 100.0
) -> Outcome:
    """Return the end of a run on a machine of a cluster."""
    return Outcome(job, key, cluster * 100, cluster, 0.0, run_s, run_s, ending)


def chosen(policy: Bandit, view: HandView, may_defer: bool = True, n: int = 300) -> Counter[int]:
    """Return how often each machine is chosen for one job."""
    job = waiting_job()
    row = policy.evaluate_group(policy.group_key(job, view), view)
    return Counter(policy.choose(job, row, view, may_defer).machine for _ in range(n))


def reason_of(site: HandSite, job: int) -> str:
    """Return the reason of a job's start."""
    return next(str(row[5]) for row in site.decision_log.rows if row[1:3] == (job, "start"))
