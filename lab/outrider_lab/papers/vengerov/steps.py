"""One run of the paper's simulator: the engine joined to one machine, in whole steps or not."""

import heapq
from collections.abc import Mapping
from math import ceil
from typing import Final

from outrider.api.policy import Policy
from outrider.engine import PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.formats.workload import Workload
from outrider.model.events import COMPLETED
from outrider.model.localtime import TraceTime
from outrider.model.utility import TimeUtility
from outrider.replay.keeping import ReplayDecisionLog, keep_nothing
from outrider.replay.run import TraceRun
from outrider.simulation.grid_site import GridSite, Run

_ROUNDING_S: Final = 1e-7
_RECONSIDER_S: Final = 3600.0


class WholeStepGrid(GridSite):
    """A grid on which runs end at whole steps: a step of which a part was needed is used up."""

    def _set_cpus(self, job: int, run: Run, cpus: int) -> None:
        super()._set_cpus(job, run, cpus)
        rate = self._work_rate(job, run)
        if rate > 0.0:
            end_s = self.now + max(0.0, run.left_s) / rate
            self._schedules += 1
            run.number = self._schedules  # the end that was put down before is void now
            whole_s = float(ceil(end_s - _ROUNDING_S))
            heapq.heappush(self._heap, (whole_s, COMPLETED, job, run.number, None))


class StepRun(TraceRun):
    """A run of one policy on one machine.

    Args:
        workload: the trace.
        policy: decides.
        until_s: stop after this second.
        utilities: time utility functions by job class.
        whole_steps: runs end at whole steps.
    """

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        until_s: float,
        utilities: Mapping[str, TimeUtility],
        whole_steps: bool,
    ) -> None:
        clock = TraceTime(workload.start)
        grid = (WholeStepGrid if whole_steps else GridSite)(workload, until_s, utilities)
        site = Site(clock, [], utilities=utilities)
        accounting = Accounting(clock, {}, False, utilities=utilities)
        runners = [PolicyRunner(policy, True, _RECONSIDER_S, exact=False)]
        super().__init__(grid, site, accounting, runners, ReplayDecisionLog(keep_nothing))
