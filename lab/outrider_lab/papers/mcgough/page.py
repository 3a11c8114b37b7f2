"""The reproduction as an HTML page, from the output object alone."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from outrider_lab.papers.mcgough.grid import (
    COMPARED,
    EPSILON,
    FULL,
    LEVELS,
    QUICK,
    RANDOM,
    SIGMA,
    Size,
    epochs,
    history,
    paper_bandit,
)
from outrider_lab.papers.mcgough.rows import (
    CRITERIA,
    LOWEST_ENERGY,
    LOWEST_OVERHEAD,
    RANDOMS_OVERHEAD,
)
from outrider_lab.reporting.drawing import Series, bar_chart, line_chart, there
from outrider_lab.reporting.page import Drawing, PaperPage, all_rows, shown
from outrider_lab.running.run_spec import PolicySpec

# -- points ----------------------------------------------------------------------------------------
# Rows of the output as points of a chart.

Row = Mapping[str, Any]
Rows = Mapping[str, Row]
"""Rows by the policy's words."""

MEAN_OVERHEAD: Final = "mean overhead [minutes]"
OVERHEAD: Final = "mean overhead [% of random's]"
SAVING: Final = "energy saved against random [%]"
EPSILON_AXIS: Final = "epsilon [ratio of decisions]"


def series(
    label: str,
    points: Iterable[tuple[float, PolicySpec]],
    rows: Rows,
    y: Callable[[Row], float],
    error: Callable[[Row], float | None] = lambda row: None,
) -> Series:
    """Return a line of points (x, policy); one without a row is not drawn."""
    known = [(x, rows[str(policy)]) for x, policy in points if str(policy) in rows]
    return Series(
        label,
        [x for x, _ in known],
        [y(row) for _, row in known],
        [error(row) for _, row in known],
    )


def energy_series(
    label: str, points: Iterable[tuple[float, PolicySpec]], rows: Rows, name: str
) -> Series:
    """Return a line of one of the energies, MWh, with its standard errors."""
    return series(label, points, rows, lambda row: row[name], lambda row: row[f"{name}_se"])


def overhead_series(label: str, points: Iterable[tuple[float, PolicySpec]], rows: Rows) -> Series:
    """Return a line of mean overheads, minutes, with their standard errors."""
    return series(
        label,
        points,
        rows,
        lambda row: row["overhead_min"]["mean"],
        lambda row: row["overhead_min_se"]["mean"],
    )


def energy_by_overhead(label: str, policies: Sequence[PolicySpec], rows: Rows) -> Series:
    """Return points (mean overhead in minutes, energy in MWh)."""
    known = there(policies, rows)
    overheads = [row["overhead_min"]["mean"] for row in known]
    return Series(label, overheads, [row["total_mwh"] for row in known])


def percent_series(
    label: str, points: Iterable[tuple[float, PolicySpec]], rows: Rows, name: str
) -> Series:
    """Return a line of one of the ratios to random, in per cent, with its standard errors."""

    def error(row: Row) -> float | None:
        known: float | None = row[f"{name}_se"]
        return None if known is None else 100.0 * known

    return series(label, points, rows, lambda row: 100.0 * row[name], error)


def saving_by_overhead(label: str, policy: PolicySpec, rows: Rows) -> Series:
    """Return the point (overhead, saving) of one policy, both in per cent."""
    known = there([policy], rows)
    overheads = [100.0 * row["overhead_ratio"] for row in known]
    return Series(label, overheads, [100.0 * row["saving_ratio"] for row in known])


# -- page ------------------------------------------------------------------------------------------

_COLUMNS: Final = (
    "policy and settings", "decision epoch [min]", "years", "energy [MWh]", "useful [MWh]",
    "wasted [MWh]", "saving [%]", "worst year [%]", "overhead, mean [min]", "p95 [min]",
    "p99 [min]", "max [min]", "overhead [ratio]", "evictions", "unfinished",
)  # fmt: skip


def drawings(result: Mapping[str, Any]) -> list[Drawing]:
    """Return every figure of the page."""
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


# -- figures of epsilon ----------------------------------------------------------------------------
# Figures 7 to 11: what epsilon and sigma do at the cluster level.

_ERRORS = "bars are standard errors over the years"


def figures_of_epsilon(size: Size, rows: Rows) -> Iterator[Drawing]:
    """Return overhead and energies by epsilon and sigma, then one against the other."""
    random = rows[str(RANDOM)]
    points = {
        f"sigma {s:g}": [(e, paper_bandit(epsilon=e, sigma=s)) for e in size.epsilons]
        for s in size.sigmas
    }
    yield Drawing(
        "Figure 7: mean overhead by epsilon and sigma",
        f"Cluster level; {_ERRORS}.",
        line_chart(
            EPSILON_AXIS,
            MEAN_OVERHEAD,
            [overhead_series(label, its, rows) for label, its in points.items()],
            log_x=True,
            level=("random", random["overhead_min"]["mean"]),
        ),
    )
    energies = (("total_mwh", "total"), ("goodput_mwh", "useful"), ("badput_mwh", "wasted"))
    for number, (name, word) in enumerate(energies, 8):
        yield Drawing(
            f"Figure {number}: {word} energy by epsilon and sigma",
            f"Cluster level; energy of jobs only; {_ERRORS}.",
            line_chart(
                EPSILON_AXIS,
                f"{word} energy [MWh a run]",
                [energy_series(label, its, rows, name) for label, its in points.items()],
                log_x=True,
                level=("random", random[name]),
            ),
        )
    by_epsilon = {
        f"epsilon {e:g}": [paper_bandit(epsilon=e, sigma=s) for s in size.sigmas]
        for e in size.epsilons
    }
    yield Drawing(
        "Figure 11: overhead and energy compared",
        "Cluster level; a point for every sigma.",
        line_chart(
            MEAN_OVERHEAD,
            "total energy [MWh a run]",
            [
                energy_by_overhead(label, its, rows)
                for label, its in (by_epsilon | {"random": [RANDOM]}).items()
            ],
            joined=False,
        ),
    )


# -- figures of levels -----------------------------------------------------------------------------
# Figures 12 to 17: the four levels, over the whole year, by week and by month.

Epsilons = Mapping[str, Mapping[str, float]]
"""The epsilon chosen for a case and a level."""


def figures_of_levels(rows: Rows, epsilons: Epsilons) -> Iterator[Drawing]:
    """Return each level at the epsilon chosen for each case."""
    yield from _whole_year(rows, epsilons)
    chosen = {
        case: [paper_bandit(level, epsilon) for level, epsilon in by_level.items()]
        for case, by_level in epsilons.items()
    }
    yield _by_week(rows, chosen[RANDOMS_OVERHEAD])
    cases = (LOWEST_ENERGY, RANDOMS_OVERHEAD, LOWEST_OVERHEAD)
    for number, case in enumerate(cases, 15):
        yield _by_month(number, case, rows, chosen[case])


def _whole_year(rows: Rows, epsilons: Epsilons) -> Iterator[Drawing]:
    groups = list(CRITERIA)
    random = rows[str(RANDOM)]
    by_level = {
        level: [rows[str(paper_bandit(level, epsilons[case][level]))] for case in groups]
        for level in LEVELS
        if all(level in epsilons[case] for case in groups)
    }
    choices_text = "; ".join(
        f"{case}: " + ", ".join(f"{level} {e:g}" for level, e in epsilons[case].items())
        for case in groups
    )
    yield Drawing(
        "Figure 12: overhead of the four levels",
        f"Sigma {SIGMA:g}. Epsilon of each: {choices_text}.",
        bar_chart(
            "the epsilon that gives",
            MEAN_OVERHEAD,
            groups,
            {
                level: [row["overhead_min"]["mean"] for row in its]
                for level, its in by_level.items()
            },
            level=("random", random["overhead_min"]["mean"]),
        ),
    )
    flat = [
        (level, case, by_level[level][at]) for at, case in enumerate(groups) for level in by_level
    ]
    short = {LOWEST_OVERHEAD: "LO", LOWEST_ENERGY: "LE", RANDOMS_OVERHEAD: "RC"}
    yield Drawing(
        "Figure 13: energy of the four levels",
        "LO: lowest overhead; LE: lowest energy; RC: random's overhead, as in figure 12.",
        bar_chart(
            "level, and the epsilon that gives",
            "energy of jobs [MWh a run]",
            [f"{level} {short[case]}" for level, case, _ in flat],
            {
                "useful": [row["goodput_mwh"] for *_, row in flat],
                "wasted": [row["badput_mwh"] for *_, row in flat],
            },
            stacked=True,
            level=("random, both", random["total_mwh"]),
        ),
    )


def _by_week(rows: Rows, chosen: Sequence[PolicySpec]) -> Drawing:
    return Drawing(
        "Figure 14: evictions per week",
        "Runs evicted in a week over runs started in it; jobs that their users killed are not "
        "counted. Each level at the epsilon nearest to random's overhead.",
        line_chart(
            "week of the run [weeks from its start]",
            "runs evicted [% of starts]",
            [_stretches(policy, rows, "by_week", "evicted_ratio") for policy in (RANDOM, *chosen)],
        ),
    )


def _by_month(number: int, case: str, rows: Rows, chosen: Sequence[PolicySpec]) -> Drawing:
    return Drawing(
        f"Figure {number}: energy by month at {case}",
        "Energy of the runs that ended in a month, relative to random's in the same month and "
        "year; bars are standard errors over the years.",
        line_chart(
            "month of the run [months from its start]",
            "energy [% of random's]",
            [_stretches(policy, rows, "by_month", "energy_ratio") for policy in chosen],
            level=("random", 100.0),
        ),
    )


def _stretches(policy: PolicySpec, rows: Rows, which: str, name: str) -> Series:
    """Return a ratio of one policy, in per cent, by the number of the week or month."""
    row = rows.get(str(policy))
    numbered = enumerate([] if row is None else row[which], 1)
    known = [(number, one) for number, one in numbered if one[name] is not None]
    settings = dict(policy.settings)
    label = f"{settings['level']}, epsilon {settings['epsilon']:g}" if settings else "random"
    errors = [one[f"{name}_se"] for _, one in known]
    return Series(
        label,
        [number for number, _ in known],
        [100.0 * one[name] for _, one in known],
        [None if error is None else 100.0 * error for error in errors],
    )


# -- figures of options ----------------------------------------------------------------------------
# Figures 18 and 19, and two the paper does not have: the decision epoch and other policies.


def figures_of_options(size: Size, rows: Rows) -> Iterator[Drawing]:
    """Return how much history counts, how long the epoch is, and what else one could run."""
    yield _of_history(18, "plain", size, rows)
    yield _of_history(19, "gaussian", size, rows)
    yield from _of_epochs(size, rows)
    yield _compared(rows)


def _of_history(number: int, weights: str, size: Size, rows: Rows) -> Drawing:
    whole = rows[str(paper_bandit())]
    points = list(zip(size.histories, history(size, weights), strict=True))
    return Drawing(
        f"Figure {number}: the last n rewards, {weights} weights",
        f"Cluster level, epsilon {EPSILON:g}, sigma {SIGMA:g}; 1 is the run with all rewards.",
        line_chart(
            "n [rewards of a state and action]",
            "relative to all rewards [ratio]",
            [
                series("mean overhead", points, rows,
                       lambda row: row["overhead_min"]["mean"] / whole["overhead_min"]["mean"]),
                series("total energy", points, rows,
                       lambda row: row["total_mwh"] / whole["total_mwh"]),
            ],
            log_x=True,
            level=("all rewards", 1.0),
        ),
    )  # fmt: skip


def _of_epochs(size: Size, rows: Rows) -> Iterator[Drawing]:
    lines = {
        f"epsilon {epsilon:g}": sorted(
            (row["reconsider_s"] / 60.0, policy)
            for policy in (paper_bandit(epsilon=epsilon), *epochs(size))
            for row in there([policy], rows)
            if row["epsilon"] == epsilon
        )
        for epsilon in size.epoch_epsilons
    }
    figures = (("saving_ratio", "energy saved", SAVING), ("overhead_ratio", "overhead", OVERHEAD))
    for name, word, label in figures:
        yield Drawing(
            f"The decision epoch: {word}",
            f"Not in the paper. Cluster level, sigma {SIGMA:g}. Epsilon is spent per decision, so "
            "a longer epoch explores less, and holds jobs longer.",
            line_chart(
                "decision epoch [minutes]",
                label,
                [percent_series(epsilon, points, rows, name) for epsilon, points in lines.items()],
                log_x=True,
            ),
        )


def _compared(rows: Rows) -> Drawing:
    shown = [(str(policy), policy) for policy in (RANDOM, *COMPARED)]
    shown.append(("the paper's bandit", paper_bandit()))
    return Drawing(
        "Beside other policies",
        "Not in the paper. Static rules, other learners and bounds (clairvoyant: they know the "
        "truth), each with its own defaults.",
        line_chart(
            OVERHEAD,
            SAVING,
            [saving_by_overhead(label, policy, rows) for label, policy in shown],
            joined=False,
        ),
    )
