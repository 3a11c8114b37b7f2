"""A machine as its value function sees it: three or five inputs between 0 and 1."""

from collections.abc import Sequence
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider_policies.planning.forcing import Candidates, by_remaining_utility
from outrider_policies.planning.machine_plan import MachinePlan, Run
from outrider_policies.planning.queued_jobs import WaitingJobs

Floats = NDArray[np.float64]

INPUTS: Final = (
    "unit utility expected of the runs",
    "time until the next completion",
    "idle CPUs",
    "how far runs are shrunk",
    "what the queue is worth",
)


class MachineState:
    """The inputs of section 3.3, now and as they would be after a candidate got its place.

    1. Average unit utility expected of the runs, weighted by the CPUs each has.
    2. Time until any of them completes, over the longest length of a job (1 if it is longer).
    3. Idle CPUs over all CPUs.
    4. How far the runs are shrunk: CPUs they lack over CPUs they ask for.
    5. What the queue is worth: CPUs that waiting jobs ask for, each job's weighted by its unit
       utility if it started now on all of them, over all CPUs (1 if it is more).

    A machine on which nothing runs has 0 for 1, 2 and 4. The last two are not in the paper: it
    mentions the fourth for machines whose jobs slow each other down.
    """

    def __init__(
        self, plan: MachinePlan, waiting: WaitingJobs, longest_s: float, inputs_n: int
    ) -> None:
        self._plan = plan
        self._longest_s = longest_s
        self._inputs_n = inputs_n
        if inputs_n > 3:
            rows = np.arange(len(waiting.jobs))
            self._worth = waiting.units(rows, waiting.left_s / plan.speed) * waiting.asked
            self._asked = waiting.asked
            self._queue = float(self._worth[waiting.is_open].sum())

    def now(self) -> list[float]:
        """(inputs,) as the plan has it."""
        plan = self._plan
        busy = sum(run.cpus for run in plan.runs)
        unit = sum(run.unit * run.cpus for run in plan.runs) / busy if busy else 0.0
        next_s = min((run.remaining_s for run in plan.runs), default=0.0)
        inputs = [unit, min(next_s / self._longest_s, 1.0), plan.free / plan.cpus]
        if self._inputs_n > 3:
            asked = sum(run.asked for run in plan.runs)
            inputs.append(1.0 - busy / asked if asked else 0.0)
            inputs.append(min(self._queue / plan.cpus, 1.0))
        return inputs

    def after(self, candidates: Candidates) -> list[Floats]:
        """(inputs,) columns with one state for each candidate."""
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
            asked = [run.asked for run in runs]
            will_ask = _left_after(asked)[out_n] + self._asked[candidates.rows]
            inputs.append(1.0 - busy / will_ask)
            worth = [run.unit * run.asked for run in runs]
            back = sum(worth) - _left_after(worth)[out_n]
            queue = self._queue - self._worth[candidates.rows] + back
            inputs.append(np.minimum(queue / plan.cpus, 1.0))
        return inputs


def _left_after(values: Sequence[float]) -> Floats:
    """(n + 1,) sums of what is left of them when the first 0, 1, ... n are gone."""
    return np.append(np.cumsum(values[::-1])[::-1], 0.0)


def _next_s(runs: list[Run]) -> Floats:
    """(n + 1,) the next completion when the first 0, 1, ... n runs are gone."""
    return np.minimum.accumulate([inf, *(run.remaining_s for run in runs[::-1])])[::-1]
