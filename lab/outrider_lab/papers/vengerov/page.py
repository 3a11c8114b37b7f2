"""The reproduction as an HTML page, from the output object alone."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from outrider.simulation.estimates import in_words
from outrider_lab.papers.vengerov.grid import (
    BUSY,
    CELLS,
    FULL,
    QUICK,
    SHAPES,
    Size,
    Treatment,
    bars,
    by_shape,
    curves,
    learned,
    recovery,
)
from outrider_lab.papers.vengerov.machine_run import WINDOWS
from outrider_lab.reporting.drawing import Series, bar_chart, line_chart
from outrider_lab.reporting.page import Drawing, PaperPage, all_rows, shown

_UTILITY: Final = "utility [thousand CPU-seconds]"
_COLUMNS: Final = (
    "policy", "rate [jobs a step]", "steps", "utility function", "hopeless jobs", "runs",
    "utility [k]", "standard error", "least", "utilisation", "productivity",
)  # fmt: skip

Row = Mapping[str, Any]
Rows = Mapping[str, Row]


def drawings(result: Mapping[str, Any]) -> list[Drawing]:
    """Return every figure of the page."""
    settings = result["settings"]
    size = QUICK if settings["quick"] else FULL
    rows: Rows = {row["variant"]: row for row in result["rows"]}
    return [*_bars(rows), _curve(size, rows), _shapes(rows), _recovery(rows, settings)]


def _bars(rows: Rows) -> Iterator[Drawing]:
    cells = [
        (f"{scene.rate:g} {scene.steps}", [v for v in bars(scene) if str(v) in rows])
        for scene in CELLS
    ]
    kinds = (
        ("Figure 2: productivity by policy", "utility_k", _UTILITY),
        ("Figure 3: utilisation by policy", "utilisation_ratio", "busy CPUs [ratio]"),
    )
    labels = dict.fromkeys(treatment.label for _, known in cells for treatment in known)
    for title, name, axis in kinds:
        heights = {
            label: [_height(rows, known, label, name) for _, known in cells] for label in labels
        }
        yield Drawing(
            title,
            "By arrival rate, in whole steps and in real-valued time.",
            bar_chart("arrivals [jobs a step]", axis, [cell for cell, _ in cells], heights),
        )


def _height(rows: Rows, treatments: Sequence[Treatment], label: str, name: str) -> float:
    for treatment in treatments:
        if treatment.label == label:
            value = rows[str(treatment)][name]
            return float(value["mean"] if isinstance(value, Mapping) else value)
    return 0.0


def _curve(size: Size, rows: Rows) -> Drawing:
    series = [_series(label, its, rows, [v.scene.rate for v in its])
              for label, its in curves(size).items()]  # fmt: skip
    return Drawing(
        "Figure 4: productivity by arrival rate",
        "Whole steps; bars are standard errors. Dropped: users withdraw what can earn nothing.",
        line_chart("arrivals [jobs a step]", _UTILITY, series),
    )


def _shapes(rows: Rows) -> Drawing:
    series = [
        _series(label, its[: len(SHAPES)], rows, list(range(len(SHAPES))))
        for label, its in by_shape().items()
    ]
    return Drawing(
        "Figure 5: productivity by the shape of the utility function",
        "Arrival rate .1, whole steps. 0: concave (square root), 1: linear, 2: convex (square).",
        line_chart("shape [0 concave, 1 linear, 2 convex]", _UTILITY, series),
    )


def _series(
    label: str, treatments: Sequence[Treatment], rows: Rows, places: Sequence[float]
) -> Series:
    known = [(x, rows[str(v)]["utility_k"]) for x, v in zip(places, treatments, strict=True)
             if str(v) in rows]  # fmt: skip
    return Series(
        label,
        [x for x, _ in known],
        [value["mean"] for _, value in known],
        [value["se"] for _, value in known],
    )


def _recovery(rows: Rows, settings: Mapping[str, Any]) -> Drawing:
    steps = settings["test_steps"]
    middles = [(n + 0.5) * steps / WINDOWS for n in range(WINDOWS)]
    shown_treatments = [learned(3, BUSY), *recovery()]
    series = [
        Series(treatment.label, middles, rows[str(treatment)]["by_window"])
        for treatment in shown_treatments
        if str(treatment) in rows
    ]
    return Drawing(
        "Recovery from a bad start",
        "Arrival rate .2, whole steps; the value function begins by preferring low utility and "
        "idle CPUs.",
        line_chart("time [steps]", "utility a step [CPU-seconds]", series),
    )


def _how(settings: Mapping[str, Any]) -> Iterator[str]:
    seeds = settings["seeds"]
    yield in_words(settings["truth"]) + ", as in the paper."
    yield (
        f"{len(seeds)} runs of {settings['test_steps']:,} steps (seeds {seeds[0]} to {seeds[-1]}) "
        "on one machine of 24 CPUs; all policies meet the same arrivals of a seed, and ratios are "
        f"taken seed by seed. Learned policies start from p = 0 and learn for "
        f"{settings['train_steps']:,} steps on other seeds first. In whole steps jobs come, and "
        "runs end, at steps only; the paper does not say which it took. A verdict is computed from "
        "the 95 % interval over the seeds (Student's t). Hopeless jobs stay in the queue unless "
        "a row says otherwise: that rule, which the paper does not state, decides whether best fit "
        "alone falls at high loads."
    )


def _cells(row: Row) -> list[str]:
    utility = row["utility_k"]
    return [
        row["label"],
        f"{row['rate']:g}",
        row["steps"],
        row["shape"],
        "dropped" if row["drop_hopeless"] else "stay",
        str(row["runs"]),
        *(shown(utility[name]) for name in ("mean", "se", "least")),
        shown(row["utilisation_ratio"]),
        shown(row["productivity"]),
    ]


def _tables(result: Mapping[str, Any]) -> Iterator[Markup]:
    return all_rows(_COLUMNS, map(_cells, result["rows"]))


PAGE: Final = PaperPage(
    title="Vengerov (2005), reproduced",
    cited='D. Vengerov: "A Reinforcement Learning Framework for Utility-Based Scheduling in '
    'Resource-Constrained Systems", Sun Microsystems Laboratories, 2005.',
    quick="few steps, too small for verdicts",
    how=_how,
    drawings=drawings,
    tables=_tables,
)
