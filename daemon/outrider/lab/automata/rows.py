"""From trials to rows: means over the seeds, beside each its standard error and the worst seed."""

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean
from typing import Any, Final

from outrider.lab.automata.trials import Figures, Trial
from outrider.lab.claims import standard_error

Row = Mapping[str, Any]
_MORE_IS_BETTER: Final = {"p_best", "capacity_correlation", "within_mean_ratio"}


def row_of(trial: Trial, settings: Mapping[str, Any], runs: Sequence[Figures]) -> dict[str, Any]:
    """A row of the output.

    Args:
        trial: one of those that differ only in the seed.
        settings: of its policy, as they took effect.
        runs: what each seed's run measured, at least one.

    Returns:
        experiment, scheme, users (their pattern) and poll, policy, preset, schedulers, settings,
        runs; every figure as ``{"mean", "se", "worst"}``, curves as means over the seeds.
    """
    variant = trial.variant
    row: dict[str, Any] = {
        "experiment": trial.experiment,
        "scheme": variant.scheme,
        "users": trial.pattern or None,
        "poll": trial.poll or None,
        "policy": variant.policy,
        "preset": variant.preset,
        "schedulers": variant.schedulers,
        "settings": dict(settings),
        "runs": len(runs),
    }
    for name, first in runs[0].items():
        if isinstance(first, list):
            columns = zip(*(run[name] for run in runs), strict=True)
            row[name] = [fmean(column) for column in columns]
        else:
            row[name] = _summed_up(name, [run[name] for run in runs])
    return row


def _summed_up(name: str, values: Sequence[float]) -> dict[str, float | None]:
    known = [value for value in values if isfinite(value)]
    if not known:
        return {"mean": None, "se": None, "worst": None}
    worst = min if name in _MORE_IS_BETTER else max
    return {"mean": fmean(known), "se": standard_error(known), "worst": worst(known)}
