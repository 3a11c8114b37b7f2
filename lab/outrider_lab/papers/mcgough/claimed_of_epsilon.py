"""Sections 7 and 7.1: random as the point of reference, and the effect of epsilon and sigma."""

from collections.abc import Iterator
from itertools import pairwise

from outrider_lab.papers.mcgough.grid import RANDOM, SIGMA, Size, paper_bandit
from outrider_lab.papers.mcgough.rows import Year
from outrider_lab.papers.mcgough.year_statistics import NO_EFFECT, POINTS, of, share_of_random
from outrider_lab.reporting.claims import Claim
from outrider_lab.reporting.judging import Stated, least, less, ratio


def claims_of_epsilon(size: Size) -> Iterator[Stated[Year]]:
    """Random as the point of reference, and the effect of epsilon and sigma."""
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
