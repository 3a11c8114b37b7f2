"""Figures 12 to 17: the four levels, over the whole year, by week and by month."""

from collections.abc import Iterator, Mapping, Sequence

from outrider_lab.papers.mcgough.choices import (
    CRITERIA,
    LOWEST_ENERGY,
    LOWEST_OVERHEAD,
    RANDOMS_OVERHEAD,
)
from outrider_lab.papers.mcgough.grid import LEVELS, RANDOM, SIGMA, paper_bandit
from outrider_lab.papers.mcgough.points import MEAN_OVERHEAD, Rows
from outrider_lab.reporting.drawing import Series, bar_chart, line_chart
from outrider_lab.reporting.page import Drawing
from outrider_lab.running.run_spec import PolicySpec

Epsilons = Mapping[str, Mapping[str, float]]
"""The epsilon chosen for a case and a level."""


def figures_of_levels(rows: Rows, epsilons: Epsilons) -> Iterator[Drawing]:
    """Each level at the epsilon chosen for each case."""
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
    told = "; ".join(
        f"{case}: " + ", ".join(f"{level} {e:g}" for level, e in epsilons[case].items())
        for case in groups
    )
    yield Drawing(
        "Figure 12: overhead of the four levels",
        f"Sigma {SIGMA:g}. Epsilon of each: {told}.",
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
    """A ratio of one policy, in per cent, by the number of the week or month."""
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
