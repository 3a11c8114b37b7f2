"""The whole reproduction: experiments on all seeds, rows and claims."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from outrider.lab.vengerov.claims import judged
from outrider.lab.vengerov.experiment import Experiment, run_experiment
from outrider.lab.vengerov.grid import Size, Variant, variants
from outrider.lab.vengerov.rows import Report, row_of
from outrider.lab.workers import side_by_side


def plan(size: Size, seeds: Sequence[int]) -> list[Experiment]:
    """Every experiment, seed by seed."""
    return [Experiment(variant, size, seed) for seed in seeds for variant in variants(size)]


def reproduce(
    size: Size,
    seeds: Sequence[int],
    workers: int,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Run every experiment and sum up.

    Args:
        size: `outrider.lab.vengerov.grid.FULL` or `QUICK`.
        seeds: one a run, below 10,000; training takes those from 10,000 on.
        workers: processes.
        progress: called with the ratio of experiments done.

    Returns:
        FORMATS' object (paper, settings, rows, claims), and `failed`: experiments that failed,
        each with its error. A row has the seeds that did not fail.
    """
    planned = plan(size, seeds)
    reports: dict[Variant, dict[int, Report]] = defaultdict(dict)
    failed: list[dict[str, str]] = []
    for done, end in enumerate(side_by_side(planned, run_experiment, workers), 1):
        experiment = planned[end.number]
        if end.error is None:
            reports[experiment.variant][experiment.seed] = end.result
        else:
            failed.append({"cell": str(experiment), "error": end.error})
        if progress is not None:
            progress(done / len(planned))
    return summed_up(size, seeds, reports, failed)


def summed_up(
    size: Size,
    seeds: Sequence[int],
    reports: dict[Variant, dict[int, Report]],
    failed: list[dict[str, str]],
) -> dict[str, Any]:
    """Rows and claims from what the experiments brought."""
    return {
        "paper": "vengerov",
        "settings": {
            "quick": size.quick,
            "seeds": list(seeds),
            "rates": list(size.rates),
            "train_steps": size.train_steps,
            "test_steps": size.test_steps,
        },
        "rows": [
            row_of(variant, dict(sorted(reports[variant].items())))
            for variant in variants(size)
            if reports.get(variant)
        ],
        "claims": judged(size, seeds, reports),
        "failed": sorted(failed, key=lambda failure: failure["cell"]),
    }
