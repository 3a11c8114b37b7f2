"""The charts of the report, from the rows alone."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from outrider_lab.papers.automata.grid import (
    CAPACITY_RANDOM,
    DRIFT,
    GRID,
    LAJS,
    LAJS_EP,
    LAJS_I,
    LEAST_LOADED,
    PATTERNS,
    POLLS,
    STATIONARY,
    TWO_WAY,
    USERS,
)
from outrider_lab.papers.automata.rows import Row
from outrider_lab.papers.automata.stationary import BEST_OF_LRP
from outrider_lab.reporting.drawing import Series, bar_chart, line_chart
from outrider_lab.reporting.page import Drawing

_OVER_TIME = (CAPACITY_RANDOM, LEAST_LOADED, LAJS, LAJS_EP, LAJS_I, TWO_WAY)


def drawings(rows: Sequence[Row]) -> Iterator[Drawing]:
    """Every chart whose rows are there."""
    yield from _of_stationary([row for row in rows if row["experiment"] == STATIONARY])
    yield from _of_grid([row for row in rows if row["experiment"] == GRID])
    yield from _of_drift([row for row in rows if row["experiment"] == DRIFT])
    yield from _of_users([row for row in rows if row["experiment"] == USERS])


def _curves(rows: Iterable[Row], name: str, step: float) -> list[Series]:
    """A line for each row, its points `step` apart."""
    return [
        Series(row["scheme"], [step * (n + 1) for n in range(len(row[name]))], row[name])
        for row in rows
    ]


def _means(rows: Sequence[Row], name: str) -> list[float]:
    return [row[name]["mean"] for row in rows]


def _of_stationary(rows: Sequence[Row]) -> Iterator[Drawing]:
    if rows:
        yield Drawing(
            "A stationary environment",
            "Probability of the best of four actions with penalties .8 .6 .4 .2, mean over the "
            "runs. L_R-P settles in inverse proportion to the penalties; L_R-I with a large step "
            "locks on a wrong action in some runs.",
            line_chart(
                "progress [% of the run]", "p(best) [probability]",
                _curves(rows, "p_best_by_step", 100.0 / len(rows[0]["p_best_by_step"])),
                level=("L_R-P in theory", BEST_OF_LRP),
            ),
        )  # fmt: skip


def _of_grid(rows: Sequence[Row]) -> Iterator[Drawing]:
    if not rows:
        return
    names = [row["scheme"] for row in rows]
    for name, word, axis in (
        ("flowtime", "Flowtime", "flowtime [mean work of a job]"),
        ("makespan_ratio", "Makespan", "makespan [ratio to the last arrival]"),
        ("load_cov", "Balance", "work over capacity [s.d. over mean of the nodes]"),
    ):
        yield Drawing(
            f"{word} by scheduler",
            "Nodes of capacity 1 to 10 at a load of .8; mean over the seeds.",
            bar_chart("scheduler [name]", axis, names, {"mean": _means(rows, name)}),
        )
    shown = [row for row in rows if row["scheme"] in _OVER_TIME]
    yield Drawing(
        "The dynamic average queue length",
        "Jobs at a node, mean over all nodes and seeds, over time. Random and round robin are "
        "left out: theirs grow to the end.",
        _over_time(shown, "queue_by_time", "queue [jobs at a node]"),
    )


def _of_drift(rows: Sequence[Row]) -> Iterator[Drawing]:
    shown = [row for row in rows if row["scheme"] in _OVER_TIME]
    if shown:
        yield Drawing(
            "After all capacities changed",
            "Flowtime by arrival; half way the nodes swap their capacities and nobody is told. "
            "Capacity random goes on with the old ones.",
            _over_time(shown, "flowtime_by_arrival", "flowtime [mean work of a job]"),
        )


def _over_time(rows: Sequence[Row], name: str, axis: str) -> str:
    step = 100.0 / len(rows[0][name]) if rows else 1.0
    return line_chart("progress [% of the arrivals]", axis, _curves(rows, name, step))


def _of_users(rows: Sequence[Row]) -> Iterator[Drawing]:
    takes = {"one": "one job", "backlog": "the whole backlog"}
    for poll in POLLS:
        for name, word in (("wait", "Mean wait"), ("starvation", "Longest starvation")):
            bars = _by_pattern([row for row in rows if row["poll"] == poll], name)
            if bars:
                yield Drawing(
                    f"{word} where a poll takes {takes[poll]}",
                    "Twenty users whose rates fall as 1 / rank, .6 jobs a poll; mean over seeds.",
                    bar_chart("users [pattern]", f"{word.lower()} [polls]", PATTERNS, bars),
                )


def _by_pattern(rows: Sequence[Row], name: str) -> dict[str, list[float]]:
    """By scheme, a bar for each pattern; a scheme that lacks a pattern is left out."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["scheme"], {})[row["users"]] = row[name]["mean"]
    return {
        scheme: [of_pattern[pattern] for pattern in PATTERNS]
        for scheme, of_pattern in found.items()
        if set(of_pattern) == set(PATTERNS)
    }
