"""The whole reproduction: runs on all years, rows, choices and claims."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import fmean
from typing import Any, Final

from outrider_lab.papers.mcgough.claimed_of_levels import claims_of_levels
from outrider_lab.papers.mcgough.grid import (
    OPTIONS,
    RANDOM,
    SIGMA,
    Size,
    history,
    paper_bandit,
    policies,
    spec_of,
)
from outrider_lab.papers.mcgough.rows import (
    NO_EFFECT,
    POINTS,
    Choices,
    Report,
    Year,
    choose,
    of,
    row_of,
    share_of_random,
    year_figures,
)
from outrider_lab.reporting import claims
from outrider_lab.reporting.claims import Claim, Stated, counted, least, less, ratio
from outrider_lab.running.run_spec import PolicySpec, RunSpec

Reports = Mapping[PolicySpec, Mapping[int, Report]]
"""Run reports by policy and year."""


@dataclass(frozen=True)
class Reproduction:
    """A study, see `outrider_lab.running.run_all.Study`; a row is a policy.

    Args:
        size: `outrider_lab.papers.mcgough.grid.FULL` or `QUICK`.
        seeds: one a year; the policies' chance has the same seed.
    """

    size: Size
    seeds: Sequence[int]

    def points(self) -> list[tuple[PolicySpec, int]]:
        """Return every policy, year by year, random first."""
        return [(policy, seed) for seed in self.seeds for policy in policies(self.size)]

    def spec_of(self, row: PolicySpec, seed: int) -> RunSpec:
        """Return the run of a policy in a year."""
        return spec_of(row, self.size, seed)

    def sum_up(self, results: Reports) -> dict[str, Any]:
        """Return rows and claims; a row has the years that did not fail."""
        size, years = self.size, _years(results)
        rows = {}
        for policy in policies(size):
            of_years = [year[policy] for year in years.values() if policy in year]
            if of_years:
                report = next(iter(results[policy].values()))
                rows[policy] = row_of(policy, of_years, report)
        choices = choose(size, rows)
        claims = judged(size, choices, years)
        return {
            "paper": "mcgough",
            "settings": {
                "quick": size.quick,
                "seeds": list(self.seeds),
                "campus": dict(size.campus),
                "epsilons": size.epsilons,
                "sigmas": size.sigmas,
                "choices": _named(choices),
                "class_source": "none",
                "truth": [],
            },
            "rows": list(rows.values()),
            "claims": claims,
            "verdicts": counted(claims),
        }


def _years(results: Reports) -> dict[int, Year]:
    """Return figures by year, of years in which random ran: all others are held against it."""
    random = results.get(RANDOM, {})
    return {
        seed: {
            policy: year_figures(of_years[seed], random[seed])
            for policy, of_years in results.items()
            if seed in of_years
        }
        for seed in sorted(random)
    }


def _named(choices: Choices) -> dict[str, dict[str, float]]:
    """Return the epsilon chosen for every case and level."""
    return {
        case: {level: dict(policy.settings)["epsilon"] for level, policy in chosen.items()}
        for case, chosen in choices.items()
    }


# -- claims ----------------------------------------------------------------------------------------
# Every claim of the paper's section 7, judged.
#
# Its absolute figures cannot be compared: the year is generated. Everything else is a ratio or a
# difference within one year.

LEAST_WEEKS: Final = 26
"""Shorter runs decide nothing: the bandit has hardly begun to learn."""


def judged(size: Size, choices: Choices, years: Mapping[int, Year]) -> list[dict[str, Any]]:
    """Return every claim with what was measured and the verdict.

    Args:
        size: of the reproduction; one too small decides nothing.
        choices: which epsilon stands for a level.
        years: figures by seed. A year that lacks a claim's run does not count for that claim.
    """
    weeks = dict(size.campus).get("weeks", inf)
    too_small = None
    if weeks < LEAST_WEEKS:
        too_small = f"{weeks:g} weeks of a small pool are too short to learn; {LEAST_WEEKS} decide"
    stated = [*claims_of_epsilon(size), *claims_of_levels(choices), *claims_of_options(size)]
    return claims.judged(stated, years.values(), too_small)


# -- claimed of epsilon ----------------------------------------------------------------------------
# Sections 7 and 7.1: random as the point of reference, and the effect of epsilon and sigma.


def claims_of_epsilon(size: Size) -> Iterator[Stated[Year]]:
    """Return random as the point of reference, and the effect of epsilon and sigma."""
    absolute = "absolute figures of a generated campus say nothing about the paper's own"
    yield Stated(
        Claim(
            "random matching uses 121 MWh",
            "7",
            "121 MWh (37.4 good, 83.6 wasted)",
            "random: total MWh",
            incomparable=absolute,
        ),
        of(RANDOM, "total_mwh"),
    )
    yield Stated(
        Claim(
            "random matching has a mean overhead of 13.5 minutes",
            "7",
            "13.5 min",
            "random: mean overhead, minutes",
            incomparable=absolute,
        ),
        of(RANDOM, "overhead_min.mean"),
    )
    total, mean = "total_mwh", "overhead_min.mean"
    usual, no_sigma = paper_bandit(), paper_bandit(sigma=0.0)
    greedy, bold = paper_bandit(epsilon=0.01), paper_bandit(epsilon=0.6)
    greedy_no_sigma = paper_bandit(epsilon=0.01, sigma=0.0)
    yield Stated(
        Claim(
            "sigma has no apparent effect on the overhead",
            "7.1, figure 7",
            "none",
            "mean overhead at sigma .8 over that at 0, epsilon .1",
            1 - NO_EFFECT,
            1 + NO_EFFECT,
        ),
        ratio(of(usual, mean), of(no_sigma, mean)),
    )
    yield Stated(
        Claim(
            "an epsilon below .1 raises the overhead",
            "7.1, figure 7",
            "significant",
            "mean overhead at epsilon .01 over that at .1, sigma .8",
            1.0,
        ),
        ratio(of(greedy, mean), of(usual, mean)),
    )
    yield Stated(
        Claim(
            "above .1 epsilon hardly affects the overhead",
            "7.1, figure 7",
            "little if any",
            "mean overhead at epsilon .6 over that at .1, sigma .8",
            1 - NO_EFFECT,
            1 + NO_EFFECT,
        ),
        ratio(of(bold, mean), of(usual, mean)),
    )
    yield Stated(
        Claim(
            "beyond .6 the overhead rises",
            "7.1, figure 11",
            "rises",
            "mean overhead at epsilon .8 over that at .6, sigma .8",
            1.0,
        ),
        ratio(of(paper_bandit(epsilon=0.8), mean), of(bold, mean)),
    )
    yield Stated(
        Claim(
            "less epsilon, less energy, over the whole range",
            "7.1, figure 8",
            "graduated",
            "least ratio of the energy at an epsilon to that at the next smaller, sigma .8",
            1.0,
        ),
        least(
            ratio(of(paper_bandit(epsilon=more), total), of(paper_bandit(epsilon=fewer), total))
            for fewer, more in pairwise(size.epsilons)
        ),
    )
    yield Stated(
        Claim(
            "epsilon .1 saves 28 to 30 % of the energy",
            "7.1, figure 8; abstract",
            "28 % (7.1), 30 % (abstract)",
            "saving against random at epsilon .1, sigma .8",
            0.28 - POINTS,
        ),
        of(usual, "saving_ratio"),
    )
    yield Stated(
        Claim(
            "epsilon .01 saves 47 to 53 %",
            "7.1, figure 8; 7.2",
            "57 MWh called 53 % (7.1); 64 MWh, 53 % (7.2)",
            "saving against random at epsilon .01, sigma .8",
            57 / 121 - POINTS,
        ),
        of(greedy, "saving_ratio"),
    )
    good = "goodput_mwh"
    sigma_saves = share_of_random(less(of(no_sigma, good), of(usual, good)))
    yield Stated(
        Claim(
            "a large sigma saves useful energy",
            "7.1, figure 9",
            "7 MWh (6 %)",
            "useful energy at sigma 0 less that at .8, over random's total, epsilon .1",
            0.0,
        ),
        sigma_saves,
    )
    yield Stated(
        Claim(
            "sigma saves most useful energy at small epsilon",
            "7.1, figure 9",
            "7 MWh at small epsilon, 1 MWh at large",
            "that at epsilon .01, less that at .6",
            0.0,
        ),
        less(
            share_of_random(less(of(greedy_no_sigma, good), of(greedy, good))),
            share_of_random(less(of(paper_bandit(epsilon=0.6, sigma=0.0), good), of(bold, good))),
        ),
    )
    yield Stated(
        Claim(
            "the energy is least at sigma .8",
            "7.1, figure 9",
            "minimum at .8",
            "least energy at another sigma over that at .8, epsilon .1",
            1.0,
        ),
        least(
            ratio(of(paper_bandit(sigma=sigma), total), of(usual, total))
            for sigma in size.sigmas
            if sigma != SIGMA
        ),
    )
    yield Stated(
        Claim(
            "sigma has no effect on wasted energy",
            "7.1, figure 10",
            "none",
            "wasted energy at sigma .8 over that at 0, epsilon .1",
            1 - NO_EFFECT,
            1 + NO_EFFECT,
        ),
        ratio(of(usual, "badput_mwh"), of(no_sigma, "badput_mwh")),
    )
    yield Stated(
        Claim(
            "epsilon moves 39 % of random's energy into or out of waste",
            "7.1, figure 10",
            "47 MWh (39 %)",
            "wasted energy at the largest epsilon less that at .01, over random's total",
            0.39 - POINTS,
            0.39 + POINTS,
        ),
        share_of_random(
            less(
                of(paper_bandit(epsilon=size.epsilons[-1]), "badput_mwh"), of(greedy, "badput_mwh")
            )
        ),
    )


# -- claimed of options ----------------------------------------------------------------------------
# Section 7.5: history, initial and rising epsilon, and local knowledge.


def claims_of_options(size: Size) -> Iterator[Stated[Year]]:
    """Return history, initial and rising epsilon, and local knowledge."""
    whole = paper_bandit()
    total, mean = "total_mwh", "overhead_min.mean"
    shortest = history(size, "plain")[0]
    n = size.histories[0]
    yield Stated(
        Claim(
            "a short history saves overhead",
            "7.5.1, figure 18",
            "below 1",
            f"mean overhead with the last {n} rewards over that with all",
            high=1.0,
        ),
        ratio(of(shortest, mean), of(whole, mean)),
    )
    yield Stated(
        Claim(
            "a short history uses more energy",
            "7.5.1, figure 18",
            "above 1",
            f"energy with the last {n} rewards over that with all",
            1.0,
        ),
        ratio(of(shortest, total), of(whole, total)),
    )
    yield Stated(
        Claim(
            "plain weights use less energy than gaussian ones",
            "7.5.1, figure 19",
            "less",
            "mean over the histories of gaussian energy over plain",
            1.0,
        ),
        lambda year: fmean(
            of(gaussian, total)(year) / of(plain, total)(year)
            for plain, gaussian in zip(
                history(size, "plain"), history(size, "gaussian"), strict=True
            )
        ),
    )
    where = ("7.5.2", "7.5.2", "7.5.3", "7.5.4")
    for (name, settings), section in zip(OPTIONS.items(), where, strict=True):
        for figure, word in ((total, "energy"), (mean, "mean overhead")):
            yield Stated(
                Claim(
                    f"{name}: no effect on the {word}",
                    section,
                    "no statistical difference",
                    f"{word} with it over that without, epsilon .1, sigma .8",
                    1 - NO_EFFECT,
                    1 + NO_EFFECT,
                ),
                ratio(of(paper_bandit(**settings), figure), of(whole, figure)),
            )
