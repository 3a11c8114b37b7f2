"""The whole reproduction: cells on all years, rows, choices and claims."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from outrider.lab.cells import Cell
from outrider.lab.kept_runs import KeptRuns
from outrider.lab.mcgough.choices import Choices, choose
from outrider.lab.mcgough.claims import judged
from outrider.lab.mcgough.grid import RANDOM, Size, Variant, cell_of, variants
from outrider.lab.mcgough.rows import Report, row_of, year_figures


def plan(size: Size, seeds: Sequence[int]) -> list[tuple[Variant, Cell]]:
    """Every run, year by year, random first."""
    return [(v, cell_of(v, size, seed)) for seed in seeds for v in variants(size)]


def reproduce(
    size: Size,
    seeds: Sequence[int],
    workers: int,
    progress: Callable[[float], None] | None = None,
    kept: KeptRuns | None = None,
) -> dict[str, Any]:
    """Run every cell and sum up.

    Args:
        size: `outrider.lab.mcgough.grid.FULL` or `QUICK`.
        seeds: one a year; the policies' chance has the same seed.
        workers: processes; each holds a year in memory (about 400 MB at full size).
        progress: called with the ratio of cells done.
        kept: runs that need not be made again, open; takes those that are.

    Returns:
        FORMATS' object (paper, settings, rows, claims), and `failed`: cells that failed, each
        with its error. A row has the years that did not fail.
    """
    planned = plan(size, seeds)
    cells = [cell for _, cell in planned]
    reports: dict[int, dict[Variant, Report]] = defaultdict(dict)
    failed: list[dict[str, str]] = []
    kept = kept or KeptRuns(None, resume=False)
    ends = kept.ends(cells, workers, lambda cell: cell.trace)
    for done, end in enumerate(ends, 1):
        variant, cell = planned[end.number]
        if end.error is None:
            reports[cell.seed][variant] = end.result
        else:
            failed.append({"cell": str(cell), "error": end.error})
        if progress is not None:
            progress(done / len(cells))
    return summed_up(size, seeds, dict(reports), failed)


def summed_up(
    size: Size,
    seeds: Sequence[int],
    reports: dict[int, dict[Variant, Report]],
    failed: list[dict[str, str]],
) -> dict[str, Any]:
    """Rows and claims from the run reports of each year."""
    years = {
        seed: {v: year_figures(reports[seed][v], reports[seed][RANDOM]) for v in variants(size)
               if v in reports[seed]}
        for seed in sorted(reports) if RANDOM in reports[seed]
    }  # fmt: skip
    rows = {}
    for variant in variants(size):
        of_years = [year[variant] for year in years.values() if variant in year]
        if of_years:
            report = next(r[variant] for r in reports.values() if variant in r)
            rows[variant] = row_of(variant, of_years, report)
    choices = choose(size, rows)
    return {
        "paper": "mcgough",
        "settings": {
            "quick": size.quick,
            "seeds": list(seeds),
            "campus": dict(size.campus),
            "epsilons": size.epsilons,
            "sigmas": size.sigmas,
            "choices": _named(choices),
        },
        "rows": list(rows.values()),
        "claims": judged(size, choices, years),
        "failed": sorted(failed, key=lambda failure: failure["cell"]),
    }


def _named(choices: Choices) -> dict[str, dict[str, float]]:
    """The epsilon chosen for every case and level."""
    return {
        case: {level: dict(variant.settings)["epsilon"] for level, variant in chosen.items()}
        for case, chosen in choices.items()
    }
