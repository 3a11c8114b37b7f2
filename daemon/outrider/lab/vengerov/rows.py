"""Rows of the output: figures of a variant over the seeds."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from outrider.lab.claims import standard_error
from outrider.lab.vengerov.grid import ZERO, Variant

Report = Mapping[str, Any]
Reports = Mapping[Variant, Mapping[int, Report]]
"""What each experiment brought, by variant and seed."""


def row_of(variant: Variant, runs: Mapping[int, Report]) -> dict[str, Any]:
    """FORMATS' row of a variant, and beside it productivity, windows and what the rules say.

    Args:
        variant: what ran.
        runs: by seed, at least one.
    """
    reports = list(runs.values())
    row: dict[str, Any] = {"variant": str(variant), "label": variant.label}
    row |= variant.scene._asdict() | {"policy": variant.policy} | variant.deeds._asdict()
    row |= {"inputs": variant.inputs or None, "start": variant.start}
    row |= {"beyond": variant.beyond, "runs": len(reports)}
    row["plain"] = variant.start == ZERO and variant.scene.shape == "linear" and not variant.beyond
    row["utility_k"] = _summed_up([report["utility_k"] for report in reports])
    for name in ("utilisation_ratio", "productivity", "completed"):
        row[name] = fmean(report[name] for report in reports)
    windows = zip(*(report["by_window"] for report in reports), strict=True)
    row["by_window"] = [fmean(values) for values in windows]
    outputs = [report["outputs"] for report in reports]
    trained = None not in outputs
    row["outputs"] = [fmean(o) for o in zip(*outputs, strict=True)] if trained else None
    return row


def _summed_up(values: Sequence[float]) -> dict[str, float | None]:
    return {
        "mean": fmean(values),
        "se": standard_error(values),
        "least": min(values),
        "most": max(values),
    }
