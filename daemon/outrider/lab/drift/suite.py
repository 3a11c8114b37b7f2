"""All worlds, all rivals, side by side; then each learner against its frozen self and the rules."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log
from statistics import fmean
from typing import Any, Final

from outrider.lab.claims import interval_of
from outrider.lab.comparison.difference import BETTER, NO_DIFFERENCE, TOO_SHORT, WORSE
from outrider.lab.drift.trial import (
    FROZEN,
    LEARNING,
    STOPPED,
    WINDOWS,
    Rival,
    Trial,
    rivals_of,
    run_trial,
)
from outrider.lab.drift.worlds import ORDERS, PLANS, WORLDS, Size
from outrider.lab.workers import side_by_side

FIGURES: Final = ("slowdown", "interactive_wait_s", "batch_wait_s", "utility")
_MORE_IS_BETTER: Final = frozenset({"utility"})
PRIMARY: Final = {ORDERS: "slowdown", PLANS: "utility"}
"""The one figure by which a verdict over all worlds of a kind is given; named before any run."""
FEWEST_SEEDS: Final = 5

Runs = Mapping[tuple[str, Rival], Mapping[int, Mapping[str, Mapping[str, float | None]]]]
"""Figures by (world, rival), then by seed, window and name."""


def run_suite(
    worlds: Sequence[str],
    seeds: Sequence[int],
    size: Size,
    learners: Sequence[str],
    workers: int,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Run every rival in every world with every seed.

    Args:
        worlds: names out of `WORLDS`.
        seeds: all rivals of a world meet the same arrivals with a seed.
        size: of the worlds.
        learners: policies to compare with their frozen selves; none: those installed.
        workers: processes.
        progress: called with the ratio that is done.

    Returns:
        settings; rows: world, policy, mode, and by window and figure the mean over seeds and its
        worst; comparisons: each learner against another in a world; verdicts: each learner
        against its frozen selves over all worlds that drift; failed: runs that did, and why.
    """
    rivals = {name: rivals_of(WORLDS[name].kind, learners) for name in worlds}
    trials = [
        Trial(world, seed, size, rival)
        for world in worlds
        for seed in seeds
        for rival in rivals[world]
    ]
    runs: dict[tuple[str, Rival], dict[int, Any]] = {}
    failed = []
    for done, finished in enumerate(
        side_by_side(trials, run_trial, workers, lambda trial: (trial.world, trial.seed))
    ):
        trial = trials[finished.number]
        if finished.error is not None:
            failed.append({"trial": str(trial), "error": finished.error})
        else:
            runs.setdefault((trial.world, trial.rival), {})[trial.seed] = finished.result
        if progress is not None:
            progress((done + 1) / len(trials))
    return {
        "settings": {
            "worlds": list(worlds),
            "seeds": list(seeds),
            "size": size._asdict(),
            "rivals": {name: [str(rival) for rival in here] for name, here in rivals.items()},
        },
        "rows": [_row(*key, runs[key]) for key in _in_order(rivals, runs)],
        "comparisons": list(_comparisons(rivals, runs)),
        "verdicts": list(_verdicts(rivals, runs)),
        "failed": failed,
    }


def _in_order(rivals: Mapping[str, Iterable[Rival]], runs: Runs) -> list[tuple[str, Rival]]:
    keys = [(world, rival) for world, here in rivals.items() for rival in here]
    return [key for key in keys if key in runs]


def _row(world: str, rival: Rival, by_seed: Mapping[int, Any]) -> dict[str, Any]:
    """Means over seeds of each seed's own mean; worst: of the seeds."""
    out: dict[str, Any] = {
        "world": world,
        "kind": WORLDS[world].kind,
        "changes": WORLDS[world].changes,
        "policy": rival.policy,
        "mode": rival.mode,
        "seeds": len(by_seed),
    }
    for window in WINDOWS:
        out[window] = {}
        for figure in FIGURES:
            values = [r[window][figure] for r in by_seed.values() if r[window][figure] is not None]
            worst = min if figure in _MORE_IS_BETTER else max
            out[window][figure] = (
                {"mean": fmean(values), "worst": worst(values)} if values else None
            )
    return out


# -- who is better ------------------------------------------------------------------------------


def _comparisons(rivals: Mapping[str, Sequence[Rival]], runs: Runs) -> Iterable[dict[str, Any]]:
    """Each learner against each other rival of the same world, after the change."""
    for world, here in rivals.items():
        for ours in here:
            if ours.mode != LEARNING:
                continue
            for theirs in here:
                if theirs == ours or not {(world, ours), (world, theirs)} <= runs.keys():
                    continue
                if theirs.policy != ours.policy and theirs.mode in (STOPPED, FROZEN):
                    continue  # another learner's frozen selves are that one's affair
                yield {
                    "world": world,
                    "policy": ours.policy,
                    "against": str(theirs),
                    "windows": {
                        window: {
                            figure: _difference(runs, world, ours, theirs, window, figure)
                            for figure in FIGURES
                        }
                        for window in WINDOWS
                    },
                }


def _pairs(
    runs: Runs, world: str, ours: Rival, theirs: Rival, window: str, figure: str
) -> dict[int, tuple[float, float]]:
    """The figure under both, by seed, where it is known of both."""
    first, second = runs.get((world, ours), {}), runs.get((world, theirs), {})
    found = {}
    for seed in first.keys() & second.keys():
        a, b = first[seed][window][figure], second[seed][window][figure]
        if a is not None and b is not None:
            found[seed] = (a, b)
    return dict(sorted(found.items()))


def _difference(
    runs: Runs, world: str, ours: Rival, theirs: Rival, window: str, figure: str
) -> dict[str, Any] | None:
    pairs = list(_pairs(runs, world, ours, theirs, window, figure).values())
    if not pairs:
        return None
    less = [a - b for a, b in pairs]
    whole = fmean(b for _, b in pairs)
    interval = interval_of(less)
    return {
        "difference": fmean(less),
        "interval": interval,
        "ratio": fmean(a for a, _ in pairs) / whole if whole else None,
        "seeds": len(pairs),
        "verdict": _verdict(interval, len(pairs), figure in _MORE_IS_BETTER),
    }


def _verdict(interval: tuple[float, float] | None, seeds: int, more_is_better: bool) -> str:
    if interval is None or seeds < FEWEST_SEEDS:
        return TOO_SHORT
    low, high = interval
    if low <= 0.0 <= high:
        return NO_DIFFERENCE
    return BETTER if (low > 0.0) == more_is_better else WORSE


def _verdicts(rivals: Mapping[str, Sequence[Rival]], runs: Runs) -> Iterable[dict[str, Any]]:
    """Does learning on line beat the frozen self under drift? One figure, all worlds that drift.

    Once a seed: the mean over worlds of the logarithm of ours over theirs, after the change. Its
    95 % interval over seeds (Student's t) is turned back into a ratio.
    """
    learners = dict.fromkeys(
        (WORLDS[world].kind, rival.policy)
        for world, here in rivals.items()
        for rival in here
        if rival.mode == LEARNING
    )
    for kind, policy in learners:
        worlds = [name for name in rivals if WORLDS[name].kind == kind and WORLDS[name].drifts]
        for mode in (STOPPED, FROZEN):
            yield {
                "kind": kind,
                "policy": policy,
                "against": mode,
                "figure": PRIMARY[kind],
                "worlds": worlds,
                **_over_worlds(runs, worlds, Rival(policy, LEARNING), Rival(policy, mode), kind),
            }


def _over_worlds(
    runs: Runs, worlds: Sequence[str], ours: Rival, theirs: Rival, kind: str
) -> dict[str, Any]:
    figure = PRIMARY[kind]
    by_world = [_pairs(runs, world, ours, theirs, "after", figure) for world in worlds]
    seeds = sorted(set.intersection(*(set(pairs) for pairs in by_world))) if by_world else []
    logs = [
        fmean(log(max(a, 1e-9) / max(b, 1e-9)) for a, b in (pairs[seed] for pairs in by_world))
        for seed in seeds
    ]
    interval = interval_of(logs)
    return {
        "seeds": len(seeds),
        "ratio": exp(fmean(logs)) if logs else None,
        "interval": None if interval is None else tuple(exp(end) for end in interval),
        "verdict": _verdict(interval, len(seeds), figure in _MORE_IS_BETTER),
    }
