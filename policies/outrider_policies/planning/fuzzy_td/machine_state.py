"""State of a machine as inputs of its value function: three or five numbers in [0, 1]."""

from collections.abc import Sequence
from itertools import accumulate
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider_policies.planning.machine_plan import (
    Candidates,
    MachinePlan,
    Run,
    by_remaining_utility,
)
from outrider_policies.planning.queued_jobs import QueuedJobs

Floats = NDArray[np.float64]

INPUTS: Final = (
    "unit utility expected of the runs",
    "time until the next completion",
    "idle CPUs",
    "shrinkage of the runs",
    "utility of the queue",
)


class MachineState:
    """Inputs of the value function (section 3.3), in the plan and with each candidate placed.

    1. Average expected unit utility of the runs, weighted by their CPUs.
    2. Time until the next completion, over the longest job length; at most 1.
    3. Idle CPUs over all CPUs.
    4. Shrinkage of the runs: CPUs they lack over CPUs they request.
    5. Utility of the queue: CPUs requested by queued jobs, weighted by each job's unit utility if
       it started now on all of them, over all CPUs; at most 1.

    A machine on which nothing runs has 0 for 1, 2 and 4. The last two are not in the paper, which
    mentions the fourth for machines whose jobs slow each other down.
    """

    def __init__(
        self, plan: MachinePlan, queued: QueuedJobs, longest_s: float, inputs_n: int
    ) -> None:
        self._plan = plan
        self._longest_s = longest_s
        self._inputs_n = inputs_n
        if inputs_n > 3:
            _, units = queued.at_speed(plan.speed)
            self._utilities = units * queued.requested
            self._requested = queued.requested
            self._queue = float(self._utilities[queued.is_open].sum())

    def now(self) -> list[float]:
        """Return (inputs,) the inputs of the plan."""
        plan = self._plan
        busy = sum(run.cpus for run in plan.runs)
        unit = sum(run.unit * run.cpus for run in plan.runs) / busy if busy else 0.0
        next_s = min((run.remaining_s for run in plan.runs), default=0.0)
        inputs = [unit, min(next_s / self._longest_s, 1.0), plan.free / plan.cpus]
        if self._inputs_n > 3:
            requested = sum(run.requested for run in plan.runs)
            inputs.append(1.0 - busy / requested if requested else 0.0)
            inputs.append(min(self._queue / plan.cpus, 1.0))
        return inputs

    def after_each(self, candidates: Candidates) -> list[Floats]:
        """Return one (candidates,) column per input: the state with each candidate placed."""
        plan = self._plan
        runs = by_remaining_utility(plan)
        out_n, cpus = candidates.preempted_n, candidates.cpus
        stay_cpus = _left_after([run.cpus for run in runs])[out_n]
        stay_units = _left_after([run.unit * run.cpus for run in runs])[out_n]
        next_s = np.minimum(_next_s(runs)[out_n], candidates.remaining_s)
        idle = plan.free + sum(run.cpus for run in runs) - stay_cpus - cpus
        busy = stay_cpus + cpus
        inputs = [
            (stay_units + candidates.units * cpus) / busy,
            np.minimum(next_s / self._longest_s, 1.0),
            idle / plan.cpus,
        ]
        if self._inputs_n > 3:
            requested = [run.requested for run in runs]
            will_request = _left_after(requested)[out_n] + self._requested[candidates.rows]
            inputs.append(1.0 - busy / will_request)
            utilities = [run.unit * run.requested for run in runs]
            back = sum(utilities) - _left_after(utilities)[out_n]
            queue = self._queue - self._utilities[candidates.rows] + back
            inputs.append(np.minimum(queue / plan.cpus, 1.0))
        return inputs


def _left_after(values: Sequence[float]) -> Floats:
    """Return (n + 1,) sums without the first 0, 1, ... n values."""
    return np.array([*[*accumulate(values[::-1])][::-1], 0.0])


def _next_s(runs: list[Run]) -> Floats:
    """Return (n + 1,) seconds to the next completion without the first 0, 1, ... n runs."""
    return np.array([*accumulate((run.remaining_s for run in runs[::-1]), min, initial=inf)][::-1])
