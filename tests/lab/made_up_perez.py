"""Invented figures of runs, in which every claim of Perez et al. holds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from outrider_lab.papers.perez.figures import MOMENTS, QUANTILES, STRETCHES, RunFigures
from outrider_lab.papers.perez.grid import (
    FULL,
    INFEASIBLE,
    NATIVE,
    UNTRAINED,
    WINDOW,
    Row,
    Situation,
    Size,
    points,
)
from outrider_lab.papers.perez.reproduction import Reproduction
from outrider_lab.running.run_spec import PolicySpec

Figures = tuple[float, float, float, float]
"""One class: mean, standard deviation, median and greatest wait in seconds."""
Both = tuple[Figures, Figures]
"""Figures of interactive jobs and of batch jobs."""


class Run(NamedTuple):
    """A policy in a situation with a seed."""

    situation: Situation
    policy: PolicySpec
    seed: int


FIFO_S: dict[str, Both] = {
    "0.2": ((923, 552, 800, 2361), (825, 539, 700, 2383)),
    "0.4": ((690, 321, 600, 1425), (642, 314, 600, 1426)),
    "0.5": ((740, 368, 650, 1577), (718, 360, 650, 1550)),
}
RL_S: dict[str, Both] = {
    "0.2": ((100, 123, 70, 975), (90, 112, 60, 1040)),
    "0.4": ((50, 58, 40, 597), (45.4, 49, 40, 515)),
    "0.5": ((38, 42, 30, 368), (34.3, 38, 30, 397)),
}
NATIVE_S: Both = ((5876, 10226, 531, 52692), (7695, 10619, 3214, 55376))
WINDOW_RL_S: Both = ((2163, 3914, 352, 20118), (1717, 3482, 200, 22947))
HOURS = {"0.2": 136, "0.4": 59, "0.5": 44, WINDOW: 228}


def as_the_paper(run: Run) -> RunFigures:
    """Return figures that the paper's section VI reports, or that agree with it."""
    row, learns = run.situation.row, run.policy.policy == "sarsa"
    if row == WINDOW:
        return _figures(run, WINDOW_RL_S if learns else NATIVE_S, learns)
    return _figures(run, (RL_S if learns else FIFO_S)[row], learns)


def nothing_helps(run: Run) -> RunFigures:
    """Every policy is as good as FIFO."""
    row = run.situation.row
    return _figures(run, NATIVE_S if row == WINDOW else FIFO_S[row], learns=False)


def results(
    world: Callable[[Run], RunFigures],
    seeds: range = range(1, 6),
    size: Size = FULL,
    traces: tuple[str, ...] = (),
) -> dict[Run, dict[str, Any]]:
    """Return figures of every run; seeds differ by a few parts in ten thousand."""
    runs = [
        Run(row.situation, row.policy, seed)
        for row, seed in points(size, seeds, traces)
        if row.policy is not None
    ]
    return {
        run: {
            "figures": msgspec.structs.asdict(world(run)),
            "settings": {**dict(run.policy.settings), "made": "up"},
        }
        for run in runs
    }


def summed_up(
    size: Size, seeds: range, traces: tuple[str, ...], runs: Mapping[Run, Any],
    failed: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:  # fmt: skip
    """The reproduction of these results."""
    by_row: dict[Row, dict[int, Any]] = {}
    for run, result in runs.items():
        by_row.setdefault(Row(run.situation, run.policy), {})[run.seed] = result
    return Reproduction(size, seeds, traces).sum_up(by_row) | {"failed": list(failed)}


def _figures(run: Run, waits: Both, learns: bool) -> RunFigures:
    near = 1 + 2e-4 * run.seed
    row = run.situation.row
    scalars: dict[str, float] = {}
    for name, of_class in zip(("interactive", "batch"), waits, strict=True):
        parts = dict(zip(("mean", "std", "median", "max"), of_class, strict=True))
        parts |= {"p90": parts["max"] * 0.8, "p95": parts["max"] * 0.9}
        scalars |= {f"{name}.{part}": value * near for part, value in parts.items()}
        more = {"le_1": 0.9 if learns else 0.3, "acceptable": 0.95 if learns else 0.1}
        if row == WINDOW:
            more["acceptable"] = 0.4 if learns else 0.35
        more |= {"overhead": 0.5, "overhead_median": 0.2}
        scalars |= {f"{name}.{part}": value * near for part, value in more.items()}
    fairness = _fairness(run, learns)
    scalars |= {
        "fairness": fairness * near,
        "fairness.early": 0.945 * near,
        "work_weighted_wait": waits[1][0] * near,
        "span_h": HOURS[row] * near,
        "decision_s.p50": 0.001,
        "decision_s.p99": 0.005 * near,
        "refused_ratio": 0.4 if run.policy == NATIVE else 0.0,
        "accepted.mean": 0.0 if run.policy == NATIVE else waits[0][0],
        "cpu_s": 1.0,
    }
    curve = [float(q) * waits[0][3] for q in QUANTILES]
    return RunFigures(
        scalars,
        {"interactive": curve, "batch": curve},
        {"interactive": [v / 500 for v in curve], "batch": [v / 5000 for v in curve]},
        {"interactive": _course(run, waits[0][0] * near, learns), "batch": [1.0] * STRETCHES},
        [3600.0 * n for n in range(MOMENTS)],
        [fairness] * MOMENTS,
    )


def _fairness(run: Run, learns: bool) -> float:
    if run.situation.targets == INFEASIBLE:
        return 0.62
    return 0.968 if learns else 0.971


def _course(run: Run, mean_s: float, learns: bool) -> list[float]:
    if run.policy == UNTRAINED:
        return [5 * mean_s] * (STRETCHES // 2) + [mean_s] * (STRETCHES // 2)
    if run.situation.row == WINDOW and learns:
        return [mean_s * 2] * (STRETCHES // 2) + [mean_s] * (STRETCHES // 2)
    return [mean_s] * STRETCHES


def row_of(result: dict[str, Any], **wanted: Any) -> dict[str, Any]:
    """The one row with these fields."""
    found: list[dict[str, Any]] = [
        row for row in result["rows"] if all(row[name] == wanted[name] for name in wanted)
    ]
    assert len(found) == 1, f"{len(found)} rows with {wanted}"
    return found[0]
