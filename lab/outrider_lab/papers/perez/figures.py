"""Figures of one run: waits, relative overheads and fairness, from its jobs' first starts."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import numpy as np

from outrider.formats.workload import Floats, Workload
from outrider.model.decisions import SHRINK, START, Decision
from outrider_lab.papers.perez.grid import FEASIBLE
from outrider_lab.reporting.claims import Statistic
from outrider_lab.running.run_spec import PolicySpec

CLASSES: Final = ("interactive", "batch")
PARTS: Final = ("mean", "std", "median", "p90", "p95", "max")
ACCEPTABLE_S: Final = 120.0
"""The paper calls a wait of two minutes acceptable for human interaction (VI.A)."""
EARLY_S: Final = 50_000.0
"""Time at which the paper reports how fast fairness converges (VI.A)."""
QUANTILES: Final = np.linspace(0.0, 1.0, 101)
"""Quantiles at which the distributions of a run are stored, for their curves."""
STRETCHES: Final = 12
"""Number of stretches of equally many arrivals for the course of the waits."""
REFUSED: Final = "refused"
"""Reason of `sdj` for an interactive job that it could not start immediately."""
_STARTS: Final = (START, SHRINK)
MOMENTS: Final = 60
"""Number of moments at which fairness is stored, over the part of the run that is drawn."""


class RunFigures(msgspec.Struct, frozen=True):
    """Figures of a run over the reported jobs.

    Attributes:
        scalars: by name: ``interactive.mean`` and so on for `PARTS` of the waits of `CLASSES`, in
            seconds, and what `_of_class` adds; ``fairness`` (F at the last submission),
            ``fairness.early``, ``work_weighted_wait``, ``span_h``; nan where there is none.
        wait_s, overhead: by class, at `QUANTILES`; the overhead is wait over run time.
        course_s: mean wait by class, in each of `STRETCHES`; nan where no such job arrived.
        moments_s, fairness: F at `MOMENTS` moments.
    """

    scalars: dict[str, float]
    wait_s: dict[str, list[float]]
    overhead: dict[str, list[float]]
    course_s: dict[str, list[float]]
    moments_s: list[float]
    fairness: list[float]


class FirstStarts:
    """First start of each job of a workload; pass `keep` to its run.

    Attributes:
        start_s: (jobs,) seconds; nan for one that did not.
        refused: jobs that were refused an immediate start and queued instead, by number.
    """

    def __init__(self, workload: Workload) -> None:
        self.start_s: Floats = np.full(len(workload.job_names), np.nan)
        self.refused: set[int] = set()

    def keep(self, decision: Decision) -> None:
        """Take a decision of the acting policy."""
        job = decision.job
        if decision.reason == REFUSED:
            self.refused.add(job)
        if decision.action in _STARTS and np.isnan(self.start_s[job]):
            self.start_s[job] = decision.time_s


def figures_of(
    workload: Workload,
    start_s: Floats,
    targets: Mapping[str, float],
    skipped_first: int = 0,
    unreported: int = 0,
) -> RunFigures:
    """Sum up a run in which every job started and ran to its end at speed 1.

    Args:
        workload: whose jobs ran, in the order of their arrival.
        start_s: (jobs,) first start of each, seconds.
        targets: the share of each VO.
        skipped_first: arrivals before the curve of the fairness begins.
        unreported: last arrivals whose waits do not count.
    """
    reported = slice(0, len(start_s) - unreported)
    wait_s = (start_s - workload.submit_s)[reported]
    run_s = workload.run_s[reported]
    job_class = np.array(workload.job_class)[reported]
    members = {name: job_class == name for name in CLASSES}
    last_s = float(workload.submit_s[-1])
    moments_s = np.linspace(workload.submit_s[skipped_first], last_s, MOMENTS)
    fairness = fairness_at(np.append(moments_s, EARLY_S), workload, start_s, targets)
    scalars = {
        "fairness": float(fairness[MOMENTS - 1]),
        "fairness.early": float(fairness[MOMENTS]) if last_s >= EARLY_S else np.nan,
        "work_weighted_wait": float(np.average(wait_s, weights=run_s)),
        "span_h": last_s / 3600.0,
    }
    for name, is_member in members.items():
        of_class = _of_class(wait_s[is_member], run_s[is_member])
        scalars |= {f"{name}.{part}": value for part, value in of_class.items()}
    return RunFigures(
        scalars,
        {name: _quantiles(wait_s[members[name]]) for name in CLASSES},
        {name: _quantiles((wait_s / run_s)[members[name]]) for name in CLASSES},
        {name: _course(wait_s, members[name]) for name in CLASSES},
        moments_s.tolist(),
        fairness[:MOMENTS].tolist(),
    )


def fairness_at(
    moments_s: Floats, workload: Workload, start_s: Floats, targets: Mapping[str, float]
) -> Floats:
    """Return F (equation 4) at each moment, from the CPU-seconds until then; nan before any."""
    of_vo = np.array(workload.vo)
    ran_s = np.clip(moments_s[:, None] - start_s, 0.0, workload.run_s)
    service = {vo: ran_s[:, of_vo == vo].sum(axis=1) for vo in (*targets, *sorted(set(of_vo)))}
    total = sum(service.values(), np.zeros(len(moments_s)))
    with np.errstate(invalid="ignore"):
        deficits = [share - service[vo] / total for vo, share in targets.items()]
    worst: Floats = np.max(deficits, axis=0)
    return 1.0 - np.maximum(worst, 0.0) / max(targets.values())


def _of_class(wait_s: Floats, run_s: Floats) -> dict[str, float]:
    """Return `PARTS` of the waits, and the paper's further measures.

    ``le_1``, ``acceptable``: ratios of jobs that waited no longer than they ran, and no longer
    than `ACCEPTABLE_S`; ``overhead``, ``overhead_median``: of wait over run time.
    """
    if not len(wait_s):
        return dict.fromkeys((*PARTS, "le_1", "acceptable", "overhead", "overhead_median"), np.nan)
    overhead = wait_s / run_s
    median, p90, p95 = np.percentile(wait_s, (50, 90, 95))
    found = {
        "mean": wait_s.mean(),
        "std": wait_s.std(),
        "median": median,
        "p90": p90,
        "p95": p95,
        "max": wait_s.max(),
        "le_1": (wait_s <= run_s).mean(),
        "acceptable": (wait_s <= ACCEPTABLE_S).mean(),
        "overhead": overhead.mean(),
        "overhead_median": np.median(overhead),
    }
    return {name: float(value) for name, value in found.items()}


def _quantiles(values: Floats) -> list[float]:
    return np.quantile(values, QUANTILES).tolist() if len(values) else []


def _course(wait_s: Floats, is_member: Any) -> list[float]:
    stretches = np.array_split(np.arange(len(wait_s)), STRETCHES)
    means = [wait_s[stretch][is_member[stretch]] for stretch in stretches]
    return [float(waits.mean()) if len(waits) else np.nan for waits in means]


# -- measures --------------------------------------------------------------------------------------
# Statistics of one seed (or one window), put together from its runs; claims are judged by them.

A_QUARTER: Final = 1.25
"""Tolerance of a wait: a quarter above what the paper prints of its one run."""
NO_EFFECT: Final = 0.05
"""A ratio of two runs shows no effect within so much of 1."""
Unit = Mapping[tuple[str, str, PolicySpec], RunFigures]
"""Runs on the same arrivals with exact estimates, by row, targets and policy."""


def of(row: str, policy: PolicySpec, name: str, targets: str = FEASIBLE) -> Statistic[Unit]:
    """Return a figure of one run."""
    return lambda unit: unit[row, targets, policy].scalars[name]
