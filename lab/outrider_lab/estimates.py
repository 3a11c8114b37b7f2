"""Accuracy of run time estimates, and comparison of estimators."""

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from math import exp
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from outrider.api.estimator import RunTimeEstimator
from outrider.formats.workload import Floats, Workload
from outrider.model.errors import TraceError
from outrider.model.jobs import Job, JobSpec
from outrider_lab.comparison.difference import (
    TOO_SMALL,
    UNDECIDED,
    compared,
)
from outrider_lab.reporting.bootstrap import (
    DAY_S,
    Blocks,
    blocks_of_time,
    paired_interval,
)
from outrider_lab.reporting.claims import FEWEST_BLOCKS

# -- estimates -------------------------------------------------------------------------------------
# Estimates that estimators would have given for each job of a trace at its submission.


class Estimates(NamedTuple):
    """Estimates of each job at its submission.

    Attributes:
        quantiles: by estimator, (jobs, 3): low, median and high, seconds; nan: no opinion.
        waits: ``recorded`` by the trace, or ``fcfs``: made by first come, first served, because
            the trace has none.
    """

    quantiles: dict[str, Floats]
    waits: str


def collect_estimates(workload: Workload, estimators: Mapping[str, RunTimeEstimator]) -> Estimates:
    """Run estimators over a trace: they estimate at submissions and learn at job ends.

    No information is used early: jobs end after the wait that the trace recorded, and where
    an end and a submission fall together the end comes first.

    Args:
        workload: the trace.
        estimators: by name; they learn.
    """
    waits = "fcfs" if np.isnan(workload.wait_s).any() else "recorded"
    wait_s = workload.wait_s if waits == "recorded" else fcfs_waits(workload)
    jobs_n = len(workload.run_s)
    times = np.concatenate([workload.submit_s + wait_s + workload.run_s, workload.submit_s])
    is_submission = np.repeat([False, True], jobs_n)
    order = np.lexsort((is_submission, times))
    specs = _specs(workload)
    run_s = workload.run_s.tolist()
    quantiles = {}
    for name, estimator in estimators.items():
        estimated = np.full((jobs_n, 3), np.nan)
        specs_then = list(specs)
        for event, time_s in zip(order.tolist(), times[order].tolist(), strict=True):
            if event < jobs_n:
                job = Job(event, specs_then[event], workload.submit_s[event])
                estimator.learn(job, run_s[event], time_s)
                continue
            number = event - jobs_n
            estimate = estimator.estimate(specs[number], time_s)
            if estimate is not None:
                estimated[number] = estimate.low_s, estimate.median_s, estimate.high_s
                specs_then[number] = msgspec.structs.replace(
                    specs[number], estimate_s=estimate.median_s
                )
        quantiles[name] = estimated
    return Estimates(quantiles, waits)


def _specs(workload: Workload) -> list[JobSpec]:
    requested = [None if value != value else value for value in workload.requested_s.tolist()]
    return [
        JobSpec(user=user, vo=vo, job_class=job_class, cpus=cpus, estimate_s=requested_s)
        for user, vo, job_class, cpus, requested_s in zip(
            workload.user,
            workload.vo,
            workload.job_class,
            workload.cpus.tolist(),
            requested,
            strict=True,
        )
    ]


def fcfs_waits(workload: Workload) -> NDArray[np.float64]:
    """Return (jobs,) waits in seconds under first come, first served, on all CPUs as one pool."""
    free = sum(machine.cpus for machine in workload.machines)
    running: list[tuple[float, int]] = []
    now = 0.0
    waits = []
    for submit_s, run_s, cpus in zip(
        workload.submit_s.tolist(), workload.run_s.tolist(), workload.cpus.tolist(), strict=True
    ):
        now = max(now, submit_s)
        while running and (running[0][0] <= now or free < cpus):
            end_s, given_back = heappop(running)
            now, free = max(now, end_s), free + given_back
        heappush(running, (now + run_s, cpus))
        free -= cpus
        waits.append(now - submit_s)
    return np.array(waits)


# -- scores ----------------------------------------------------------------------------------------

QUANTILES: Final = (0.1, 0.5, 0.9)
PROMISED: Final = QUANTILES[-1] - QUANTILES[0]
"""Share of run times that should lie between the outer quantiles."""
WEEK_S: Final = 7 * DAY_S
_LEAST_A_WEEK: Final = 50
"""Jobs without which the coverage of a week says nothing."""

Table = NDArray[np.float64]


def pinball(observed: Floats, quantiles: Table) -> Table:
    """Return (jobs, 3) pinball losses, in the unit of the arguments (Koenker and Bassett 1978).

    The loss of a quantile q estimated for the level tau: tau (y - q) where it was too low,
    (1 - tau) (q - y) where it was too high. Its mean is least for the true quantile; at .5 it
    is half the absolute error.
    """
    short = observed[:, None] - quantiles
    levels = np.array(QUANTILES)
    losses: Table = np.maximum(levels * short, (levels - 1.0) * short)
    return losses


def score(workload: Workload, estimates: Estimates, seed: int = 0) -> dict[str, Any]:
    """Return scores of every estimator on a trace, and the first one's against each other's.

    All are scored on the same jobs: those of which each had an opinion. One that had none of any
    job is left out, and named.

    Args:
        workload: the trace.
        estimates: the result of `collect_estimates` for it.
        seed: of the resampling.

    Raises:
        TraceError: there is no job to score.
    """
    opinions = {name: np.isfinite(q).all(axis=1) for name, q in estimates.quantiles.items()}
    silent = sorted(name for name, known in opinions.items() if not known.any())
    names = [name for name in estimates.quantiles if name not in silent]
    scored = np.ones(len(workload.run_s), dtype=np.bool_)
    for name in names:
        scored &= opinions[name]
    if not names or not scored.any():
        raise TraceError(f"{workload.name}: no job of which every estimator had an opinion")
    block_s = _block_s(workload)
    blocks = {
        "time": blocks_of_time(workload.submit_s[scored], block_s),
        "users": _blocks_of_users(workload, scored),
    }
    weeks = blocks_of_time(workload.submit_s[scored], WEEK_S)
    marked = {name: _Marks(workload, estimates.quantiles[name], scored) for name in names}
    first = names[0]
    return {
        "trace": workload.name,
        "jobs": len(scored),
        "scored": int(scored.sum()),
        "waits": estimates.waits,
        "silent": silent,
        "block_s": block_s,
        "blocks": {by: int(block.max()) + 1 for by, block in blocks.items()},
        "first": first,
        "scores": {name: marks.summary(weeks) for name, marks in marked.items()},
        "against": {
            name: _against(marked[first], marks, blocks, seed)
            for name, marks in marked.items()
            if name != first
        },
    }


def _block_s(workload: Workload) -> float:
    """Return weeks, because their days are similar; days where there are too few weeks."""
    span_s = float(workload.submit_s[-1] - workload.submit_s[0])
    return WEEK_S if span_s >= FEWEST_BLOCKS * WEEK_S else DAY_S


def _blocks_of_users(workload: Workload, scored: NDArray[np.bool_]) -> Blocks:
    users = np.array(workload.user)[scored]
    blocks: Blocks = np.unique(users, return_inverse=True)[1].astype(np.int64)
    return blocks


class _Marks:
    """One estimator's losses, job by job."""

    def __init__(self, workload: Workload, quantiles: Table, scored: NDArray[np.bool_]) -> None:
        run_s, estimated = (
            np.maximum(workload.run_s[scored], 1.0),
            np.maximum(quantiles[scored], 1.0),
        )
        self.losses = {
            "seconds": pinball(run_s, estimated),
            "log_seconds": pinball(np.log(run_s), np.log(estimated)),
        }
        self._below = run_s[:, None] <= estimated
        self._covered = (run_s >= estimated[:, 0]) & (run_s <= estimated[:, 2])

    def summary(self, weeks: Blocks) -> dict[str, Any]:
        """Return means over jobs; coverage also by week, which shows drift."""
        out: dict[str, Any] = {
            f"pinball_{unit}": dict(
                zip(map(str, QUANTILES), losses.mean(axis=0).tolist(), strict=True)
            )
            for unit, losses in self.losses.items()
        }
        n = np.bincount(weeks)
        by_week = (np.bincount(weeks, weights=self._covered) / n)[n >= _LEAST_A_WEEK]
        return out | {
            "factor": exp(2.0 * self.losses["log_seconds"][:, 1].mean()),
            "coverage": float(self._covered.mean()),
            "coverage_by_week": None if not len(by_week) else {
                "n": len(by_week), "p10": float(np.quantile(by_week, 0.1)),
                "median": float(np.median(by_week)), "p90": float(np.quantile(by_week, 0.9)),
            },
            "below": dict(zip(map(str, QUANTILES), self._below.mean(axis=0).tolist(), strict=True)),
        }  # fmt: skip


def _against(
    ours: _Marks, theirs: _Marks, blocks: Mapping[str, Blocks], seed: int
) -> dict[str, Any]:
    """Mean difference of losses, ours less theirs: below 0 is better. At .5, and of all three."""
    out: dict[str, Any] = {}
    for unit in ours.losses:
        for what, pick in (("median", [1]), ("all", [0, 1, 2])):
            a, b = (m.losses[unit][:, pick].mean(axis=1) for m in (ours, theirs))
            intervals = {
                by: paired_interval(a, b, seed, block) if block.max() >= FEWEST_BLOCKS - 1 else None
                for by, block in blocks.items()
            }
            out[f"{what}_{unit}"] = {
                "difference": float((a - b).mean()),
                "ratio": float(a.mean() / b.mean()) if b.mean() else None,
                "interval": intervals,
                "verdict": _verdict(
                    compared(found, int(blocks[by].max()) + 1, FEWEST_BLOCKS)
                    for by, found in intervals.items()
                ),
            }
    return out


def _verdict(verdicts: Iterable[str]) -> str:
    """Return better or worse only where the intervals over time and over users agree."""
    found = set(verdicts)
    if TOO_SMALL in found:
        return TOO_SMALL
    return found.pop() if len(found) == 1 else UNDECIDED
