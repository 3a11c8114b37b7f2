"""All worlds, all treatments; then each learner against its frozen self and the rules."""

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log
from statistics import fmean
from typing import Any, Final

from outrider.simulation.estimates import EXACT
from outrider.simulation.generators.grids.perez import PROXY
from outrider.simulation.truth_told import truth_told
from outrider_lab.comparison.difference import compared
from outrider_lab.drift.world_run import (
    FROZEN,
    LEARNING,
    STOPPED,
    WINDOWS,
    Treatment,
    spec_of,
    treatments_of,
)
from outrider_lab.drift.worlds import ORDERS, PLANS, WORLDS, Size
from outrider_lab.reporting.claims import interval_of
from outrider_lab.running.run_spec import RunSpec

FIGURES: Final = ("slowdown", "interactive_wait_s", "batch_wait_s", "utility")
_MORE_IS_BETTER: Final = frozenset({"utility"})
PRIMARY: Final = {ORDERS: "slowdown", PLANS: "utility"}
"""The one figure by which a verdict over all worlds of a kind is given; named before any run."""
FEWEST_SEEDS: Final = 5

Row = tuple[str, Treatment]
"""A world and who acts there."""
Treatments = Mapping[str, Sequence[Treatment]]
"""By world, in the order of the rows."""
Runs = Mapping[Row, Mapping[int, Mapping[str, Mapping[str, float | None]]]]
"""Figures by row, then by seed, window and name."""


class DriftSuite:
    """A study, see `outrider_lab.running.study.Study`; a row is a treatment in a world.

    Args:
        worlds: names out of `WORLDS`.
        seeds: all treatments of a world meet the same arrivals with a seed.
        size: of the worlds.
        learners: policies to compare with their frozen selves; none: those installed.
    """

    def __init__(
        self, worlds: Sequence[str], seeds: Sequence[int], size: Size, learners: Sequence[str] = ()
    ) -> None:
        self.worlds = worlds
        self.seeds = seeds
        self.size = size
        self.treatments = {name: treatments_of(WORLDS[name].kind, learners) for name in worlds}

    def points(self) -> list[tuple[Row, int]]:
        """Every treatment, world by world and seed by seed."""
        return [
            ((world, treatment), seed)
            for world, here in self.treatments.items()
            for seed in self.seeds
            for treatment in here
        ]

    def spec_of(self, row: Row, seed: int) -> RunSpec:
        """The run of a treatment in a world with a seed."""
        return spec_of(*row, self.size, seed)

    def sum_up(self, results: Runs) -> dict[str, Any]:
        """What came of it.

        Returns:
            settings; rows: world, policy, mode, and by window and figure the mean over seeds and
            its worst; comparisons: each learner against another in a world; verdicts: each learner
            against its frozen selves over all worlds that drift.
        """
        return {
            "settings": {
                "worlds": list(self.worlds),
                "seeds": list(self.seeds),
                "size": self.size._asdict(),
                "class_source": {ORDERS: PROXY.source, PLANS: "none"},
                "truth": truth_told(PROXY.source, EXACT),
                "rivals": {
                    name: [str(treatment) for treatment in here]
                    for name, here in self.treatments.items()
                },
            },
            "rows": [_row(*key, results[key]) for key in _in_order(self.treatments, results)],
            "comparisons": list(_comparisons(self.treatments, results)),
            "verdicts": list(_verdicts(self.treatments, results)),
        }


def _in_order(treatments: Treatments, runs: Runs) -> list[Row]:
    keys = [(world, treatment) for world, here in treatments.items() for treatment in here]
    return [key for key in keys if key in runs]


def _row(world: str, treatment: Treatment, by_seed: Mapping[int, Any]) -> dict[str, Any]:
    """Means over seeds of each seed's own mean; worst: of the seeds."""
    out: dict[str, Any] = {
        "world": world,
        "kind": WORLDS[world].kind,
        "changes": WORLDS[world].changes,
        "policy": treatment.policy,
        "mode": treatment.mode,
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


def _comparisons(treatments: Treatments, runs: Runs) -> Iterable[dict[str, Any]]:
    """Each learner against each other treatment of the same world, after the change."""
    for world, here in treatments.items():
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
    runs: Runs, world: str, ours: Treatment, theirs: Treatment, window: str, figure: str
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
    runs: Runs, world: str, ours: Treatment, theirs: Treatment, window: str, figure: str
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
        "verdict": compared(interval, len(pairs), FEWEST_SEEDS, figure in _MORE_IS_BETTER),
    }


def _verdicts(treatments: Treatments, runs: Runs) -> Iterable[dict[str, Any]]:
    """Does learning on line beat the frozen self under drift? One figure, all worlds that drift.

    Once a seed: the mean over worlds of the logarithm of ours over theirs, after the change. Its
    95 % interval over seeds (Student's t) is turned back into a ratio.
    """
    learners = dict.fromkeys(
        (WORLDS[world].kind, treatment.policy)
        for world, here in treatments.items()
        for treatment in here
        if treatment.mode == LEARNING
    )
    for kind, policy in learners:
        worlds = [name for name in treatments if WORLDS[name].kind == kind and WORLDS[name].drifts]
        for mode in (STOPPED, FROZEN):
            yield {
                "kind": kind,
                "policy": policy,
                "against": mode,
                "figure": PRIMARY[kind],
                "worlds": worlds,
                **_over_worlds(
                    runs, worlds, Treatment(policy, LEARNING), Treatment(policy, mode), kind
                ),
            }


def _over_worlds(
    runs: Runs, worlds: Sequence[str], ours: Treatment, theirs: Treatment, kind: str
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
        "verdict": compared(interval, len(seeds), FEWEST_SEEDS, figure in _MORE_IS_BETTER),
    }
