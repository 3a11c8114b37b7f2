"""The states a machine could be in after forcing or squeezing a waiting job in (section 4.1)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider_policies.learners.machine_plan import MachinePlan, Run
from outrider_policies.learners.waiting_jobs import WaitingJobs

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

QMODE = "cpu"
QNORM = 1.0

def squash(q, plan, longest_s):
    if QMODE == "cpu": return np.minimum(q / (plan.cpus * QNORM), 1.0)
    if QMODE == "sat": return q / (q + plan.cpus * QNORM)
    raise SystemExit


class Alternatives(NamedTuple):
    """States that one more job would bring, one for each job that qualifies."""

    rows: Rows
    inputs: list[Floats]
    units: Floats
    preempted: Rows


def worth_of(plan, waiting, longest_s):
    """(n,) what each waiting job would bring if started now."""
    rows = np.arange(len(waiting.jobs))
    unit = waiting.units(rows, waiting.left_s / plan.speed)
    return unit * waiting.asked


def present(plan: MachinePlan, longest_s: float, inputs_n: int, queue: float) -> list[float]:
    busy = sum(run.cpus for run in plan.runs)
    x1 = sum(run.unit * run.cpus for run in plan.runs) / busy if busy else 0.0
    x2 = min([run.remaining_s for run in plan.runs], default=0.0) / longest_s
    x = [x1, min(x2, 1.0), plan.free / plan.cpus]
    if inputs_n == 5:
        asked = sum(run.asked for run in plan.runs)
        x += [1 - busy / asked if asked else 0.0, float(squash(queue, plan, longest_s))]
    return x


def forced(plan: MachinePlan, waiting: WaitingJobs, longest_s: float, inputs_n, qworth) -> Alternatives:
    ok = waiting.fitting(plan.machine) & (waiting.asked <= plan.cpus)
    rows = np.flatnonzero(ok)
    runs = sorted(plan.runs, key=lambda run: run.worth)
    worth = np.array([-np.inf] + [run.worth for run in runs])
    cpus = np.array([run.cpus for run in runs], float)
    freed = plan.free + np.concatenate(([0.0], np.cumsum(cpus)))
    remaining = waiting.left_s[rows] / plan.speed
    unit = waiting.units(rows, remaining)
    asked = waiting.asked[rows]
    k = np.searchsorted(freed, asked, side="left")   # number preempted
    okk = worth[k] <= unit / remaining
    rows, remaining, unit, asked, k = rows[okk], remaining[okk], unit[okk], asked[okk], k[okk]
    uc = np.array([r.unit * r.cpus for r in runs])
    rest_u = uc.sum() - np.concatenate(([0.0], np.cumsum(uc)))
    rest_c = cpus.sum() - np.concatenate(([0.0], np.cumsum(cpus)))
    rem = np.array([r.remaining_s for r in runs] + [np.inf])
    rest_min = np.minimum.accumulate(rem[::-1])[::-1]
    x1 = (rest_u[k] + unit * asked) / (rest_c[k] + asked)
    x2 = np.minimum(np.minimum(rest_min[k], remaining) / longest_s, 1.0)
    x3 = (freed[k] - asked) / plan.cpus
    x = [x1, x2, x3]
    if inputs_n == 5:
        ak = np.array([r.asked for r in runs], float)
        rest_a = ak.sum() - np.concatenate(([0.0], np.cumsum(ak)))
        x.append(1 - (rest_c[k] + asked) / (rest_a[k] + asked))
        back = np.concatenate(([0.0], np.cumsum([r.unit * r.asked for r in runs])))
        q = qworth[waiting.is_open].sum() - qworth[rows] + back[k]
        x.append(squash(q, plan, longest_s))
    return Alternatives(rows, x, unit, k)


def squeezed(plan: MachinePlan, waiting: WaitingJobs, longest_s: float, inputs_n, qworth) -> Alternatives:
    rows = np.flatnonzero(waiting.fitting(plan.machine))
    asked = waiting.asked[rows]
    cpus = np.minimum(asked, plan.free)
    remaining = waiting.left_s[rows] * asked / (cpus * plan.speed)
    unit = waiting.units(rows, remaining)
    busy = sum(r.cpus for r in plan.runs)
    x1 = (sum(r.unit * r.cpus for r in plan.runs) + unit * cpus) / (busy + cpus)
    rmin = min([r.remaining_s for r in plan.runs], default=np.inf)
    x2 = np.minimum(np.minimum(rmin, remaining) / longest_s, 1.0)
    x3 = (plan.free - cpus) / plan.cpus
    x = [x1, x2, x3]
    if inputs_n == 5:
        ra = sum(r.asked for r in plan.runs)
        x.append(1 - (busy + cpus) / (ra + asked))
        q = qworth[waiting.is_open].sum() - qworth[rows]
        x.append(squash(q, plan, longest_s))
    return Alternatives(rows, x, unit, cpus)
