"""State of the site as Perez et al. describe it (section III.B), updated event by event."""

from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Any, NamedTuple

from outrider.api import SiteView
from outrider_policies.sarsa.job_features import JobProperties

Shares = Mapping[str, tuple[float, float]]


class SiteState(NamedTuple):
    """State of the site at a decision.

    Attributes:
        next_end_s: expected seconds until a run ends; 0 if one is overdue or none runs.
        idle_n: number of machines on which a job may start.
        machines_n: number of machines.
        backlog_s: expected work of all queued jobs, CPU-seconds.
        cpus_n: CPUs that jobs may use.
        mean_utility: mean expected utility of the running jobs; 1 if none runs.
        shares: present and target share of each VO.
    """

    next_end_s: float
    idle_n: int
    machines_n: int
    backlog_s: float
    cpus_n: int
    mean_utility: float
    shares: Shares


def fairness(shares: Shares) -> float:
    """Return 1 - D / M (Perez et al., eq. 4).

    D is the largest deficit of a VO, M the largest target.
    """
    max_target = max((target for _, target in shares.values()), default=0.0)
    if max_target <= 0.0:
        return 1.0
    deficit = max(max(target - share, 0.0) for share, target in shares.values())
    return 1.0 - deficit / max_target


class _Run(NamedTuple):
    end_s: float
    utility: float


class SiteStatistics:
    """Running totals over queued and running jobs, for `SiteState`."""

    def __init__(self) -> None:
        self.queued: dict[int, tuple[JobProperties, float]] = {}
        self._runs: dict[int, _Run] = {}
        self._ends: list[tuple[float, int]] = []
        self._backlog_s = 0.0
        self._utility_sum = 0.0
        self._cpus_n: int | None = None

    def enter(self, number: int, properties: JobProperties, work_s: float) -> None:
        """Add a job that was enqueued; `work_s`: its expected work, CPU-seconds."""
        self.leave(number)
        self.queued[number] = (properties, work_s)
        self._backlog_s += work_s

    def leave(self, number: int) -> None:
        """Remove a job that left the queue; do nothing if it was not in it."""
        left = self.queued.pop(number, None)
        if left is not None:
            self._backlog_s = self._backlog_s - left[1] if self.queued else 0.0

    def start(self, number: int, end_s: float, utility: float) -> None:
        """Add a job that started; `end_s` and `utility` are expected values."""
        self.end(number)
        self._runs[number] = _Run(end_s, utility)
        self._utility_sum += utility
        insort(self._ends, (end_s, number))

    def end(self, number: int) -> None:
        """Remove a run that ended; do nothing if it was not known."""
        run = self._runs.pop(number, None)
        if run is not None:
            del self._ends[bisect_left(self._ends, (run.end_s, number))]
            self._utility_sum = self._utility_sum - run.utility if self._runs else 0.0

    def recount_cpus(self) -> None:
        """Recount CPUs when they are next needed: machines joined, left or changed."""
        self._cpus_n = None

    def state(self, view: SiteView) -> SiteState:
        """Return the state now."""
        n = len(self._runs)
        return SiteState(
            max(0.0, self._next_end_s(view.now) - view.now),
            view.free_total,
            view.machines_n,
            self._backlog_s,
            self._cpus(view),
            self._utility_sum / n if n else 1.0,
            view.vo_shares(),
        )

    def drain_s(self, view: SiteView) -> float:
        """Return the expected seconds to work off the queue on all CPUs."""
        return self._backlog_s / max(self._cpus(view), 1)

    def _cpus(self, view: SiteView) -> int:
        if self._cpus_n is None:
            self._cpus_n = sum(view.cpus_of(machine) for machine in range(view.machines_n))
        return self._cpus_n

    def _next_end_s(self, now: float) -> float:
        """Return the earliest expected end of a run; `now` if none runs."""
        return self._ends[0][0] if self._ends else now

    def save(self) -> dict[str, Any]:
        """Return the state with its sums, which would differ in the last digit if recomputed."""
        return {
            "waiting": [
                [number, list(properties), work]
                for number, (properties, work) in self.queued.items()
            ],
            "runs": [[number, *run] for number, run in self._runs.items()],
            "backlog_s": self._backlog_s,
            "utility_sum": self._utility_sum,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self.queued = {
            number: (JobProperties(*properties), work)
            for number, properties, work in saved["waiting"]
        }
        self._runs = {number: _Run(*run) for number, *run in saved["runs"]}
        self._ends = sorted((run.end_s, number) for number, run in self._runs.items())
        self._backlog_s = saved["backlog_s"]
        self._utility_sum = saved["utility_sum"]
        self._cpus_n = None
