"""The reproduction as an HTML page, from the output object alone."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup

from outrider_lab.papers.mcgough.figures_of_epsilon import figures_of_epsilon
from outrider_lab.papers.mcgough.figures_of_levels import figures_of_levels
from outrider_lab.papers.mcgough.figures_of_options import figures_of_options
from outrider_lab.papers.mcgough.grid import FULL, QUICK, RANDOM
from outrider_lab.papers.mcgough.points import Row, Rows
from outrider_lab.reporting.page import Drawing, all_rows, shown
from outrider_lab.reporting.paper_page import PaperPage

_COLUMNS: Final = (
    "policy and settings", "decision epoch [min]", "years", "energy [MWh]", "useful [MWh]",
    "wasted [MWh]", "saving [%]", "worst year [%]", "overhead, mean [min]", "p95 [min]",
    "p99 [min]", "max [min]", "overhead [ratio]", "evictions", "unfinished",
)  # fmt: skip


def drawings(result: Mapping[str, Any]) -> list[Drawing]:
    """Every figure of the page."""
    size = QUICK if result["settings"]["quick"] else FULL
    rows: Rows = {row["variant"]: row for row in result["rows"]}
    return [
        *figures_of_epsilon(size, rows),
        *figures_of_levels(rows, result["settings"]["choices"]),
        *figures_of_options(size, rows),
    ]


def _how(settings: Mapping[str, Any]) -> Iterator[str]:
    seeds = ", ".join(map(str, settings["seeds"]))
    yield (
        f"{len(settings['seeds'])} generated years (seeds {seeds})"
        f"{_campus_in_words(settings['campus'])}, each run once under every policy and setting; "
        "all policies meet the same owners and jobs in a year. Figures are means over the years "
        "of each year's own statistic. Energy is that of jobs: good (runs that completed their "
        "job) and wasted (all others). The overhead of a job is completion less submission less "
        "run time; jobs unfinished at the end are in it. Savings and ratios are against random "
        "matching in the same year. The paper's bandit runs as printed: without a starvation "
        "guard, unless a row says otherwise."
    )
    yield (
        "The paper's traces are not public and the years are generated to its published "
        "statistics, so ratios can be compared and absolute MWh cannot. A verdict is computed "
        "from the 95 % interval over the years (Student's t). A ratio within 5 % of 1 counts as "
        "no effect; a saving is met from 5 percentage points below what the paper prints, and "
        "exceeded by more; the paper contradicts itself by 2 (28 % in 7.1, 30 % in the abstract) "
        "and by 6 (57 of 121 MWh is called 53 %)."
    )


def _campus_in_words(campus: Mapping[str, Any]) -> str:
    if not campus:
        return " of the paper's size"
    return " with " + ", ".join(f"{name} = {value:g}" for name, value in campus.items())


def _cells(row: Row) -> list[str]:
    epoch_s = row["reconsider_s"]
    overhead = row["overhead_min"]
    return [
        row["variant"] + (" (the point of reference)" if row["variant"] == str(RANDOM) else ""),
        "-" if epoch_s is None else f"{epoch_s / 60:g}",
        str(row["years"]),
        *(shown(row[name]) for name in ("total_mwh", "goodput_mwh", "badput_mwh")),
        shown(100 * row["saving_ratio"]),
        shown(100 * row["saving_ratio_worst"]),
        *(shown(overhead[name]) for name in ("mean", "p95", "p99", "max")),
        shown(row["overhead_ratio"]),
        shown(row["evictions"]),
        shown(row["unfinished"]),
    ]


def _tables(result: Mapping[str, Any]) -> Iterator[Markup]:
    return all_rows(_COLUMNS, map(_cells, result["rows"]))


PAGE: Final = PaperPage(
    title="McGough and Forshaw (2015), reproduced",
    cited='M. Forshaw and A. S. McGough: "Reduction of wasted energy in a volunteer computing '
    'system through Reinforcement Learning", CS-TR-1451, Newcastle University, 2015.',
    quick="a small pool over a few weeks, too small for verdicts",
    how=_how,
    drawings=drawings,
    tables=_tables,
)
