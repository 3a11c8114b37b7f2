"""Rows of the output: figures of a treatment over the seeds."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from outrider_lab.papers.vengerov.grid import ZERO, Treatment
from outrider_lab.reporting.claims import standard_error

Report = Mapping[str, Any]
Seed = Mapping[Treatment, Report]
"""What the treatments brought with one seed."""


def row_of(treatment: Treatment, runs: Mapping[int, Report]) -> dict[str, Any]:
    """A treatment's row in the report, and beside it productivity, windows and what the rules say.

    Args:
        treatment: what ran.
        runs: by seed, at least one.
    """
    reports = list(runs.values())
    row: dict[str, Any] = {"variant": str(treatment), "label": treatment.label}
    row |= treatment.scene._asdict() | {"policy": treatment.policy} | treatment.deeds._asdict()
    row |= {"inputs": treatment.inputs or None, "start": treatment.start}
    row |= {"beyond": treatment.beyond, "runs": len(reports)}
    is_linear = treatment.scene.shape == "linear"
    row["plain"] = treatment.start == ZERO and is_linear and not treatment.beyond
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
