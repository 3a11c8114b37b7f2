"""The whole reproduction: every trial side by side, rows and claims."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from outrider.lab.automata.claims import judged
from outrider.lab.automata.node_trial import play_on_nodes
from outrider.lab.automata.polling import play_polls
from outrider.lab.automata.rows import row_of
from outrider.lab.automata.stationary import play_stationary
from outrider.lab.automata.trials import (
    STATIONARY,
    USERS,
    Figures,
    Key,
    Measured,
    Size,
    Trial,
    plan,
)
from outrider.lab.workers import side_by_side
from outrider.plugins.making import make_policy


def play(trial: Trial) -> Figures:
    """Run one trial in this process. Raises `OutriderError`."""
    if trial.experiment == STATIONARY:
        return play_stationary(trial)
    return play_polls(trial) if trial.experiment == USERS else play_on_nodes(trial)


def check(size: Size) -> None:
    """Raises `OutriderError` where a policy is not there or a setting is wrong."""
    for trial in plan(size, [0]):
        _settings(trial)


def reproduce(
    size: Size,
    seeds: Sequence[int],
    workers: int,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Run every trial and sum up.

    Args:
        size: `outrider.lab.automata.trials.FULL` or `QUICK`.
        seeds: 0 or more; of arrivals and of the schedulers' chance.
        workers: processes.
        progress: called with the ratio of trials done.

    Returns:
        FORMATS' object (paper, settings, rows, claims), and `failed`: trials that failed, each
        with its error. A row has the seeds that did not fail.
    """
    trials = plan(size, seeds)
    measured: defaultdict[Key, dict[int, Figures]] = defaultdict(dict)
    failed: list[dict[str, str]] = []
    for done, end in enumerate(side_by_side(trials, play, workers), 1):
        trial = trials[end.number]
        if end.error is None:
            measured[trial.row][trial.seed] = end.result
        else:
            failed.append({"cell": str(trial), "error": end.error})
        if progress is not None:
            progress(done / len(trials))
    return summed_up(size, seeds, measured, failed)


def summed_up(
    size: Size, seeds: Sequence[int], measured: Measured, failed: list[dict[str, str]]
) -> dict[str, Any]:
    """Rows and claims from what was measured."""
    rows = []
    for trial in plan(size, seeds[:1]):
        runs = [measured[trial.row][seed] for seed in sorted(measured.get(trial.row, {}))]
        if runs:
            rows.append(row_of(trial, _settings(trial), runs))
    return {
        "paper": "automata",
        "settings": {"seeds": list(seeds), **size._asdict()},
        "rows": rows,
        "claims": judged(size.quick, seeds, measured),
        "failed": sorted(failed, key=lambda failure: failure["cell"]),
    }


def _settings(trial: Trial) -> dict[str, Any]:
    variant = trial.variant
    policy = make_policy(
        variant.policy, dict(variant.settings), 0, str(trial), preset=variant.preset
    )
    settings: dict[str, Any] = msgspec.to_builtins(policy.settings)
    return settings
