"""The whole reproduction: every run, then rows and claims."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from outrider.lab.perez.calibration import Past, run_calibration
from outrider.lab.perez.claims import judged
from outrider.lab.perez.figures import RunFigures
from outrider.lab.perez.grid import (
    EXACT,
    WINDOW,
    Situation,
    Size,
    Trial,
    Variant,
    plan,
    situations,
    variants_of,
)
from outrider.lab.perez.measures import Unit
from outrider.lab.perez.rows import row_of
from outrider.lab.perez.trial import TrialResult, run_trial
from outrider.lab.workers import side_by_side

Results = Mapping[Trial, TrialResult]

_MOST_PASTS: Final = 4
"""Generated windows on which calibration is shown; of files all are."""


def reproduce(
    size: Size,
    seeds: range,
    workers: int,
    traces: tuple[str, ...] = (),
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Run every trial and sum up.

    Args:
        size: `outrider.lab.perez.grid.FULL` or `QUICK`.
        seeds: of the arrivals; the policies' chance has the same seed.
        workers: processes.
        traces: workload files that take the place of the generated windows of section VI.C.
        progress: called with the ratio of trials done.

    Returns:
        FORMATS' object (paper, settings, rows, claims), `calibration` (see
        `outrider.lab.perez.calibration`), and `failed`: trials that failed, each with its error.
        A row has the seeds that did not fail.
    """
    tasks: list[Trial | Past] = [*plan(size, seeds, traces), *_pasts(size, seeds, traces)]
    results: dict[Trial, TrialResult] = {}
    calibration: list[dict[str, Any]] = []
    failed: list[dict[str, str]] = []
    for done, end in enumerate(side_by_side(tasks, _run, workers, _arrivals_of), 1):
        task = tasks[end.number]
        if end.error is not None:
            failed.append({"cell": str(task), "error": end.error})
        elif isinstance(task, Past):
            calibration.append(end.result)
        else:
            results[task] = end.result
        if progress is not None:
            progress(done / len(tasks))
    calibration.sort(key=lambda one: (one["trace"] or "", one["seed"]))
    return summed_up(size, seeds, traces, results, failed) | {"calibration": calibration}


def _pasts(size: Size, seeds: range, traces: tuple[str, ...]) -> list[Past]:
    windows = [one for one in situations(size, traces) if one.row == WINDOW]
    drawn = seeds[:1] if traces else seeds[:_MOST_PASTS]
    return [Past(window, seed, size) for window in windows for seed in drawn]


def _run(task: Trial | Past) -> Any:
    return run_calibration(task) if isinstance(task, Past) else run_trial(task)


def _arrivals_of(task: Trial | Past) -> tuple[str, str, int]:
    """Runs on the same arrivals stay with a process, which keeps them."""
    return task.situation.row, task.situation.trace, task.seed


def summed_up(
    size: Size,
    seeds: Sequence[int],
    traces: tuple[str, ...],
    results: Results,
    failed: list[dict[str, str]],
) -> dict[str, Any]:
    """Rows and claims from the results of single runs."""
    figures: dict[Situation, dict[int, dict[Variant, RunFigures]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    settings: dict[Variant, dict[str, Any]] = {}
    for trial, result in results.items():
        figures[trial.situation][trial.seed][trial.variant] = result.figures
        settings.setdefault(trial.variant, result.settings)
    there = list(situations(size, traces))
    rows = [
        row_of(situation, variant, figures[situation], settings[variant])
        for situation in there
        for variant in variants_of(situation)
        if any(variant in seed for seed in figures[situation].values())
    ]
    of_rows, of_windows = _units(figures)
    window_targets = next(one.targets for one in there if one.row == WINDOW)
    return {
        "paper": "perez",
        "settings": {
            "quick": size.quick,
            "seeds": list(seeds),
            "jobs": size.jobs,
            "unreported": size.unreported,
            "windows": list(traces) or "generated",
        },
        "rows": rows,
        "claims": judged(size, of_rows, of_windows, window_targets),
        "failed": sorted(failed, key=lambda failure: failure["cell"]),
    }


def _units(
    figures: Mapping[Situation, Mapping[int, Mapping[Variant, RunFigures]]],
) -> tuple[dict[int, Unit], dict[str, Unit]]:
    """What claims are judged by: runs with exact estimates, by seed and by window."""
    seeds: dict[int, dict[tuple[str, str, Variant], RunFigures]] = defaultdict(dict)
    windows: dict[str, dict[tuple[str, str, Variant], RunFigures]] = defaultdict(dict)
    for situation, by_seed in figures.items():
        if situation.estimates != EXACT:
            continue
        for seed, by_variant in by_seed.items():
            is_window = situation.row == WINDOW
            unit = windows[situation.trace or str(seed)] if is_window else seeds[seed]
            for variant, found in by_variant.items():
                unit[situation.row, situation.targets, variant] = found
    return dict(seeds), dict(windows)
