"""Run of a workload under one acting policy: the engine connected to a simulated grid."""

from collections.abc import Callable, Mapping, Sequence
from math import isinf
from typing import Any, Final

from outrider.api.estimator import RunTimeEstimator
from outrider.api.policy import Policy
from outrider.engine import PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.formats.workload import SHORT_BELOW_S, Workload
from outrider.model.decisions import START, Decision
from outrider.model.errors import PolicyError
from outrider.model.localtime import TraceTime
from outrider.model.modes import STRICT, Discipline
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility
from outrider.replay.job_table import waits_by_length
from outrider.replay.run import Keep, ReplayDecisionLog, TraceRun
from outrider.simulation.grid_site import STALLED_AFTER_S, GridSite
from outrider.simulation.recorded_site import NO_WAIT, RecordedSite

RECONSIDER_S = 3600.0
"""Decision epoch for policies that keep jobs queued by choice and have no epoch of their own."""


class WorkloadRun(TraceRun):
    """Run of a workload at its simulated or recorded site; the subclasses name the arguments."""

    def __init__(
        self, workload: Workload, simulation: GridSite | RecordedSite,
        runners: Sequence[PolicyRunner], keep: Keep, exact: bool,
        shares: Mapping[str, float] | None, utilities: Mapping[str, TimeUtility],
        estimator: RunTimeEstimator | None, short_below_s: float,
    ) -> None:  # fmt: skip
        clock = TraceTime(workload.start)
        self.workload = workload
        self._waits_s = simulation.waits_s
        self._short_below_s = short_below_s
        site = Site(clock, [], utilities=utilities)
        targets = workload.shares if shares is None else shares
        accounting = Accounting(clock, targets, exact, utilities=utilities)
        if len(workload.submit_s):  # a log's second 0 may be long before
            accounting.begin_s = float(workload.submit_s[0])
        super().__init__(simulation, site, accounting, runners, ReplayDecisionLog(keep), estimator)

    def _described(
        self, out: dict[str, Any], runner: PolicyRunner | None, end_s: float
    ) -> dict[str, Any]:
        out["jobs"]["skipped"] = dict(self.workload.skipped)
        out["wait_s"]["by_length"] = waits_by_length(
            self._waits_s(), self.workload.run_s, self._short_below_s
        )
        return out | {
            "machines": len(self.workload.machine_names),
            "owner_sessions": 0,
            "deferrals": None,
        }

    def _expected_end_s(self) -> float:
        return float(self.workload.submit_s[-1]) if len(self.workload.submit_s) else 1.0


class GridRun(WorkloadRun):
    """Run of a workload, until every job is done.

    Args:
        workload: the trace.
        policies: the first acts, the others are shadow candidates.
        keep: called for every decision of every runner.
        until_s: stop after this second.
        exact: keep every wait, for exact percentiles in the report.
        shares: fair shares by VO; None: those the workload intends; empty: equal.
        utilities: time utility functions by job class.
        discipline: the rule by which jobs may pass one that does not fit: `outrider.model.modes`.
        estimator: estimates run times in place of the trace; None: the trace's are used.
        short_below_s: the report groups waits by whether a job's true run time is strictly less.
    """

    def __init__(
        self,
        workload: Workload,
        policies: Sequence[Policy],
        keep: Keep,
        until_s: float | None = None,
        exact: bool = True,
        shares: Mapping[str, float] | None = None,
        utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES,
        discipline: Discipline = STRICT,
        estimator: RunTimeEstimator | None = None,
        short_below_s: float = SHORT_BELOW_S,
    ) -> None:
        self.grid = GridSite(workload, until_s, utilities)
        is_narrow = all(spec.cpus == 1 for spec in workload.machines) and not (
            any(workload.eligible) or any(workload.resources)
        )
        runners = [
            PolicyRunner(
                p, n == 0, RECONSIDER_S, exact=n == 0, discipline=discipline, is_narrow=is_narrow
            )
            for n, p in enumerate(policies)
        ]
        super().__init__(
            workload, self.grid, runners, keep, exact, shares, utilities, estimator, short_below_s
        )

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run to the end, like `TraceRun.run`.

        Raises:
            PolicyError: the policy never starts the remaining jobs.
        """
        out = super().run(progress)
        if self.grid.is_stalled:
            raise PolicyError(
                f'policy "{self.runners[0].name}" defers all remaining jobs and never starts them '
                f"({out['jobs']['unfinished']}): none came or ran for "
                f"{STALLED_AFTER_S / 86_400.0:g} days; expected max_defer_s, after which a "
                "job must start, or a second at which the run stops (until_s, --until)"
            )
        return out

    @property
    def end_s(self) -> float:
        """Second at which the last job ended, or the run stopped."""
        stopped = not self.grid.is_done and not isinf(self.grid.until_s)
        return self.grid.until_s if stopped else self.grid.now

    def _cpus(self) -> int:
        return sum(spec.cpus for spec in self.workload.machines)


# -- recorded run ----------------------------------------------------------------------------------
# Run under the trace's recorded decisions: same accounting, policies in shadow.

RECORDED: Final = "recorded"
"""Name of the pseudo-policy: the scheduler that produced the trace."""


class RecordedRun(WorkloadRun):
    """Run of a workload as it was recorded, until every job is done.

    Args:
        workload: the trace; its jobs without a recorded wait are left out and counted.
        policies: all in shadow: they decide, see the recorded decisions, and learn from them.
        keep: called for every start of the trace, as a decision of `RECORDED`, and for every
            decision of the runners.
        until_s: stop after this second.
        exact: keep every wait, for exact percentiles in the report.
        shares: fair shares by VO; None: those the workload intends; empty: equal.
        utilities: time utility functions by job class.
        estimator: estimates run times in place of the trace; None: the trace's are used.
        short_below_s: the report groups waits by whether a job's true run time is strictly less.

    Raises:
        TraceError: the trace records no waits.
    """

    def __init__(
        self,
        workload: Workload,
        policies: Sequence[Policy],
        keep: Keep,
        until_s: float | None = None,
        exact: bool = True,
        shares: Mapping[str, float] | None = None,
        utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES,
        estimator: RunTimeEstimator | None = None,
        short_below_s: float = SHORT_BELOW_S,
    ) -> None:
        self.recorded = RecordedSite(workload, self._started, until_s)
        self._keep = keep
        self._starts = 0
        runners = [
            PolicyRunner(policy, acting=False, reconsider_s=RECONSIDER_S) for policy in policies
        ]
        super().__init__(
            workload, self.recorded, runners, keep, exact, shares, utilities, estimator,
            short_below_s,
        )  # fmt: skip

    def run(self, progress: Callable[[float], None] | None = None) -> dict[str, Any]:
        """Run to the end; the report is about the recorded schedule, not the shadow policies."""
        return super().run(progress) | {"decisions": self._starts, "calibration": None}

    @property
    def end_s(self) -> float:
        """Second at which the last job ended, or the run stopped."""
        return self.recorded.now if self.recorded.is_done else self.recorded.until_s

    def _started(self, time_s: float, job: int, machine: int, cpus: int) -> None:
        self._starts += 1
        self._keep(Decision(time_s, job, START, machine, cpus, RECORDED, RECORDED))

    def _described(
        self, out: dict[str, Any], runner: PolicyRunner | None, end_s: float
    ) -> dict[str, Any]:
        out = super()._described(out, runner, end_s)
        if self.recorded.left_out:
            out["jobs"]["skipped"][NO_WAIT] = self.recorded.left_out
        return out | {"defer_s": {"max": None}, "overbooked": self.recorded.overbooked}
