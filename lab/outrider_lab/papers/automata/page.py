"""The reproduction as an HTML page, from the output object alone."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup

from outrider.report.page import heading, table
from outrider_lab.papers.automata.drawings import drawings
from outrider_lab.papers.automata.grid import DRIFT, GRID, STATIONARY, USERS
from outrider_lab.papers.automata.rows import Row
from outrider_lab.reporting.page import shown
from outrider_lab.reporting.paper_page import PaperPage

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
        "ratios to them hold for this length. Drift: half way the nodes swap capacities and "
        "nobody is told. Least loaded and the greedy rule are told queue lengths and capacities; "
        "LAJS learns from queue lengths alone."
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
