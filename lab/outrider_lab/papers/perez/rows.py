"""Rows from the figures of single runs: means over seeds, next to FIFO's."""

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean
from typing import Any, Final

import numpy as np

from outrider.simulation.generators.grids.workloads import PROXY
from outrider_lab.papers.perez.figures import CLASSES, PARTS, RunFigures
from outrider_lab.papers.perez.grid import FIFO, WINDOW, Situation
from outrider_lab.reporting.bootstrap import interval, resampled_means
from outrider_lab.reporting.claims import standard_error
from outrider_lab.running.run_spec import PolicySpec

Seed = Mapping[PolicySpec, RunFigures]
"""Figures of the policies on the same arrivals."""

_BOOTSTRAP_SEED: Final = 0
_INTERACTIVE, _BATCH = CLASSES
_AGAINST_FIFO: Final = ("collapsed", "gain_over_fifo", "batch_over_fifo", "batch_max_over_fifo")


def row_of(
    situation: Situation,
    policy: PolicySpec,
    seeds: Mapping[int, Seed],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a row of the output.

    Args:
        situation: in which it ran.
        policy: what ran.
        seeds: figures of all policies by seed; at least one seed has this policy.
        settings: as they took effect.

    Returns:
        Waits as means over the seeds of each seed's own statistic; in ``se`` and ``worst`` those
        of the mean, beside each object ``..._se`` and ``..._worst`` those of every part. What
        compares with FIFO (`collapsed`, `gain_over_fifo`, `batch_over_fifo`) is None for FIFO
        itself and where FIFO did not run.
    """
    ours = [seed[policy] for seed in seeds.values() if policy in seed]
    row: dict[str, Any] = {
        "row": situation.row,
        "trace": situation.trace or None,
        "targets": situation.targets,
        "estimates": situation.estimates,
        "class_source": PROXY.source,
        "variant": str(policy),
        "policy": policy.policy,
        "preset": policy.preset,
        "plain": not policy.settings and situation.row != WINDOW,
        "settings": dict(settings),
        "seeds": len(ours),
    }
    for name in CLASSES:
        row |= _waits(name, ours)
    row |= _overheads(ours)
    fairness = _known(ours, "fairness")
    row |= {
        "fairness": _mean(fairness),
        "fairness_se": standard_error(fairness),
        "fairness_worst": min(fairness, default=None),
        "work_weighted_wait_s": _mean(_known(ours, "work_weighted_wait")),
        "refused_ratio": _mean(_known(ours, "refused_ratio")),
        "decision_s": {part: _mean(_known(ours, f"decision_s.{part}")) for part in ("p50", "p99")},
        "cpu_s": _mean(_known(ours, "cpu_s")),
    }
    return row | _relative_to_fifo(policy, seeds) | {"curves": _curves(ours)}


def _waits(name: str, ours: Sequence[RunFigures]) -> dict[str, Any]:
    values = {part: _known(ours, f"{name}.{part}") for part in PARTS}
    means = {part: _mean(found) for part, found in values.items()}
    errors = {part: standard_error(found) for part, found in values.items()}
    worst = {part: max(found, default=None) for part, found in values.items()}
    return {
        f"{name}_wait_s": means | {"se": errors["mean"], "worst": worst["mean"]},
        f"{name}_wait_s_se": errors,
        f"{name}_wait_s_worst": worst,
    }


def _overheads(ours: Sequence[RunFigures]) -> dict[str, Any]:
    """Return overheads of interactive jobs, as the paper reports them, and by class."""
    le_1 = {name: _known(ours, f"{name}.le_1") for name in CLASSES}
    return {
        "overhead_le_1_ratio": _mean(le_1[_INTERACTIVE]),
        "overhead_le_1_ratio_se": standard_error(le_1[_INTERACTIVE]),
        "overhead_le_1_ratio_worst": min(le_1[_INTERACTIVE], default=None),
        "overhead_by_class": {
            name: {
                "le_1_ratio": _mean(le_1[name]),
                "mean": _mean(_known(ours, f"{name}.overhead")),
                "median": _mean(_known(ours, f"{name}.overhead_median")),
            }
            for name in CLASSES
        },
    }


def _relative_to_fifo(policy: PolicySpec, seeds: Mapping[int, Seed]) -> dict[str, Any]:
    """Return the runs that collapsed, and ratios of mean waits, on the same arrivals.

    A ratio is that of the means over all seeds, its interval from a paired bootstrap over the
    seeds; `worst` is the worst seed's own ratio.
    """
    both = [s for s in seeds.values() if policy in s and FIFO in s and policy != FIFO]
    if not both:
        return dict.fromkeys(_AGAINST_FIFO)

    def pairs(name: str) -> list[tuple[float, float]]:
        found = [(s[policy].scalars[name], s[FIFO].scalars[name]) for s in both]
        return [pair for pair in found if all(map(isfinite, pair))]

    interactive = pairs(f"{_INTERACTIVE}.mean")
    return {
        "collapsed": sum(ours >= theirs for ours, theirs in interactive),
        "gain_over_fifo": _compared([(theirs, ours) for ours, theirs in interactive], min),
        "batch_over_fifo": _compared(pairs(f"{_BATCH}.mean"), max),
        "batch_max_over_fifo": _compared(pairs(f"{_BATCH}.max"), max),
    }


def _compared(pairs: Sequence[tuple[float, float]], worst: Any) -> dict[str, Any] | None:
    """Return the ratio of two means, its interval, and the worst single ratio."""
    single = [above / below for above, below in pairs if below > 0]
    if not single:
        return None
    means = np.mean(pairs, axis=0)
    found: dict[str, Any] = {"ratio": float(means[0] / means[1]), "worst": worst(single)}
    resampled = resampled_means(pairs, _BOOTSTRAP_SEED)
    known = resampled[:, 1] > 0
    bounds = interval(resampled[known, 0] / resampled[known, 1]) if len(pairs) > 1 else None
    return found | {"interval": bounds}


def _curves(ours: Sequence[RunFigures]) -> dict[str, Any]:
    """Return means over the seeds for the drawings: quantiles, course of waits, fairness."""
    return {
        "wait_s": {name: _mean_curve([one.wait_s[name] for one in ours]) for name in CLASSES},
        "overhead": {name: _mean_curve([one.overhead[name] for one in ours]) for name in CLASSES},
        "course_s": {name: _mean_curve([one.course_s[name] for one in ours]) for name in CLASSES},
        "moments_s": _mean_curve([one.moments_s for one in ours]),
        "fairness": _mean_curve([one.fairness for one in ours]),
    }


def _mean_curve(curves: Sequence[Sequence[float]]) -> list[float | None]:
    """Point by point over the runs in which the point is known."""
    filled = [curve for curve in curves if curve]
    return [_mean([v for v in values if isfinite(v)]) for values in zip(*filled, strict=True)]


def _known(ours: Sequence[RunFigures], name: str) -> list[float]:
    values = [one.scalars.get(name, np.nan) for one in ours]
    return [value for value in values if isfinite(value)]


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
