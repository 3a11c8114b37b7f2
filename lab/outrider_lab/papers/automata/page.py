"""The reproduction as an HTML page, from the output object alone."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from outrider.report.rendering import heading, table
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
from outrider_lab.papers.automata.nodes import BEST_OF_LRP
from outrider_lab.papers.automata.reproduction import Row
from outrider_lab.reporting.drawing import Series, bar_chart, line_chart
from outrider_lab.reporting.page import Drawing, PaperPage, shown

_FIGURES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    STATIONARY: (("p_best", "p(best)"), ("locked_ratio", "locked on a wrong one [ratio]")),
    GRID: (
        ("flowtime", "flowtime [mean work]"), ("makespan_ratio", "makespan [ratio]"),
        ("load_cov", "load, s.d. over mean"), ("capacity_correlation", "work with capacity"),
        ("queue", "queue [jobs]"), ("within_mean_ratio", "sent to short queues [ratio]"),
    ),
    DRIFT: (
        ("flowtime_before", "flowtime before [mean work]"), ("flowtime_after", "after"),
        ("makespan_ratio", "makespan [ratio]"),
    ),
    USERS: (
        ("wait", "wait [polls]"), ("wait_p95", "p95"), ("starvation", "longest starvation"),
        ("empty_ratio", "polls in vain [ratio]"),
        ("heavy_wait_ratio", "busiest users' wait [ratio]"),
    ),
}  # fmt: skip
_NAMES: Final = {
    STATIONARY: "A stationary environment",
    GRID: "Nodes of unlike capacity",
    DRIFT: "Nodes that change",
    USERS: "Users and polls",
}


def _how(settings: Mapping[str, Any]) -> Iterator[str]:
    yield (
        "The paper prints no experiment, so these are ours; each puts a sentence of it where it "
        f"can be measured. {len(settings['seeds'])} seeds; all schedulers of a seed meet the same "
        "arrivals. Figures are means over the seeds of each seed's own statistic; se is the "
        "standard error of the mean, worst the worst seed. A verdict is computed from the 95 % "
        "interval over the seeds (Student's t)."
    )
    yield (
        f"Grid: {settings['nodes']} nodes of capacity 1 to 10, each with a queue of its own, "
        f"{settings['jobs']} Poisson arrivals of exponential work at a load of .8, on the engine "
        "that also runs live. Times are in units of the mean work of a job. Random and round "
        "robin overload the slow nodes: their flowtime grows with the length of the run, so "
        "ratios to them hold for this length. Drift: half way the nodes swap capacities, "
        "unknown to the schedulers. Least loaded and the greedy rule know queue lengths and "
        "capacities; LAJS learns from queue lengths alone."
    )
    yield (
        f"Users: one user is asked at a time, {settings['polls']} polls. Stationary: the node "
        f"automaton alone, {settings['steps']} draws."
    )


def _table(experiment: str, rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    figures = _FIGURES[experiment]
    columns = [
        "scheduler",
        *(f"{word}{part}" for _, word in figures for part in ("", ", se", ", worst")),
    ]
    return columns, [
        [
            _name(row),
            *(shown(row[name][part]) for name, _ in figures for part in ("mean", "se", "worst")),
        ]
        for row in rows
    ]


def _name(row: Row) -> str:
    words = (row["scheme"], row["users"], row["poll"] and f"{row['poll']} a poll")
    return ", ".join(filter(None, words))


def _tables(result: Mapping[str, Any]) -> Iterator[Markup]:
    for experiment, name in _NAMES.items():
        rows = [row for row in result["rows"] if row["experiment"] == experiment]
        if rows:
            yield heading(name)
            yield table(*_table(experiment, rows))


PAGE: Final = PaperPage(
    title="Suganthi and Devi: learning automata, reproduced",
    cited='S. Suganthi and S. Nandhini Devi: "Two way proportional job scheduling in computational '
    'grids using learning automata", with LAJS, the method of J. Akbari Torkestani on which '
    "it builds.",
    quick="too small for verdicts",
    how=_how,
    drawings=lambda result: drawings(result["rows"]),
    tables=_tables,
)


# -- drawings --------------------------------------------------------------------------------------
# The charts of the report, from the rows alone.

_OVER_TIME = (CAPACITY_RANDOM, LEAST_LOADED, LAJS, LAJS_EP, LAJS_I, TWO_WAY)


def drawings(rows: Sequence[Row]) -> Iterator[Drawing]:
    """Return every chart whose rows are there."""
    yield from _of_stationary([row for row in rows if row["experiment"] == STATIONARY])
    yield from _of_grid([row for row in rows if row["experiment"] == GRID])
    yield from _of_drift([row for row in rows if row["experiment"] == DRIFT])
    yield from _of_users([row for row in rows if row["experiment"] == USERS])


def _curves(rows: Iterable[Row], name: str, step: float) -> list[Series]:
    """Return a line for each row, its points `step` apart."""
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
            "Flowtime by arrival; half way the nodes swap their capacities, unknown to the "
            "schedulers. Capacity random keeps the old ones.",
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
    """Return a bar for each pattern by scheme; a scheme that lacks a pattern is left out."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["scheme"], {})[row["users"]] = row[name]["mean"]
    return {
        scheme: [of_pattern[pattern] for pattern in PATTERNS]
        for scheme, of_pattern in found.items()
        if set(of_pattern) == set(PATTERNS)
    }
