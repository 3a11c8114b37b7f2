"""From runs to rows: means over the seeds, beside each its standard error and the worst seed."""

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean
from typing import Any, Final

from outrider_lab.papers.automata.grid import Case, Figures
from outrider_lab.reporting.claims import standard_error

Row = Mapping[str, Any]
_MORE_IS_BETTER: Final = {"p_best", "capacity_correlation", "within_mean_ratio"}


def row_of(case: Case, settings: Mapping[str, Any], runs: Sequence[Figures]) -> dict[str, Any]:
    """A row of the output.

    Args:
        case: what ran.
        settings: of its policy, as they took effect.
        runs: what each seed's run measured, at least one.

    Returns:
        experiment, scheme, users (their pattern) and poll, policy, preset, schedulers, settings,
        runs; every figure as ``{"mean", "se", "worst"}``, curves as means over the seeds.
    """
    treatment = case.treatment
    out: dict[str, Any] = {
        "experiment": case.experiment,
        "scheme": treatment.scheme,
        "users": case.pattern or None,
        "poll": case.poll or None,
        "policy": treatment.policy,
        "preset": treatment.preset,
        "schedulers": treatment.schedulers,
        "settings": dict(settings),
        "runs": len(runs),
    }
    for name, first in runs[0].items():
        if isinstance(first, list):
            columns = zip(*(run[name] for run in runs), strict=True)
            out[name] = [fmean(column) for column in columns]
        else:
            out[name] = _summed_up(name, [run[name] for run in runs])
    return out


def _summed_up(name: str, values: Sequence[float]) -> dict[str, float | None]:
    known = [value for value in values if isfinite(value)]
    if not known:
        return {"mean": None, "se": None, "worst": None}
    worst = min if name in _MORE_IS_BETTER else max
    return {"mean": fmean(known), "se": standard_error(known), "worst": worst(known)}
