"""Every claim of the paper, judged where it can be measured.

The paper prints no figure, so a claim holds or fails by its direction alone; what it says of
methods that it neither describes nor measures cannot be compared.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from outrider_lab.papers.automata.claimed_of_nodes import claims_of_nodes
from outrider_lab.papers.automata.claimed_of_users import claims_of_users
from outrider_lab.papers.automata.grid import LARGE_STEP, STATIONARY, Figures, Key
from outrider_lab.papers.automata.measures import NO_FIGURE, Seed, of
from outrider_lab.papers.automata.stationary import BEST_OF_LRP
from outrider_lab.reporting import judging
from outrider_lab.reporting.claims import Claim
from outrider_lab.reporting.judging import Stated, unmeasured

_TOO_SMALL: Final = "a quick run has few jobs, polls and steps: automata have hardly begun to learn"
_NEAR_THEORY: Final = 0.02
_NOT_BUILT: Final = "it is neither described here nor measured in the paper, which prints no figure"


def judged(quick: bool, seeds: Mapping[int, Mapping[Key, Figures]]) -> list[dict[str, Any]]:
    """Every claim with what was measured and the verdict.

    Args:
        quick: the run is too small for verdicts.
        seeds: what the runs measured, by seed.
    """
    stated = [*_of_schemes(), *claims_of_nodes(), *claims_of_users(), *_of_what_is_not_there()]
    units = [Seed(number, runs) for number, runs in seeds.items()]
    return judging.judged(stated, units, _TOO_SMALL if quick else None)


def _of_schemes() -> Iterator[Stated[Seed]]:
    """Section 1.2.2 names the families; what they come to is theory."""
    yield Stated(
        Claim(
            "L_R-P plays actions in inverse proportion to their penalties",
            "1.2.2 (theory)",
            f"{BEST_OF_LRP:.2f}",
            "p(best), penalties .8 .6 .4 .2",
            BEST_OF_LRP - _NEAR_THEORY,
            BEST_OF_LRP + _NEAR_THEORY,
        ),
        of(STATIONARY, "L_R-P", "p_best"),
    )
    for scheme, low, words in (
        ("L_R-eP", 0.85, "comes near to the best action"),
        ("L_R-I", 0.95, "finds the best action if its step is small"),
    ):
        yield Stated(
            Claim(f"{scheme} {words}", "1.2.2 (theory)", "near 1", "p(best)", low),
            of(STATIONARY, scheme, "p_best"),
        )
    yield Stated(
        Claim(
            "L_R-I locks on a wrong action in some runs if its step is large",
            "1.2.2 (theory)",
            "above 0",
            "ratio of runs that ended with less than 1/2 on the best action, a = .3",
            0.0,
        ),
        of(STATIONARY, LARGE_STEP, "locked_ratio"),
    )
    yield Stated(
        Claim(
            "equation 4.1, as printed, updates a probability vector: it sums to 1",
            "4.1.1",
            "1",
            "sum after 10 polls of users who each have one job, a = .1, uniform start",
            1.0 - 1e-9,
            1.0 + 1e-9,
        ),
        lambda seed: sum_as_printed(users=2 + seed.number % 20, polls=10),
    )


def sum_as_printed(users: int, polls: int, a: float = 0.1, n: int = 1) -> float:
    """What equation 4.1 makes of the sum of the probabilities, users polled in turns.

    ``p_i = (p_i + n a (1 - p_i)) / (k + 1)`` for the user polled at step k = 0, 1, ..., and
    ``p_j = (1 - a) p_j`` for the others. The policy does not use it: see its learner.
    """
    p = [1.0 / users] * users
    for k in range(polls):
        polled = k % users
        p = [
            (each + n * a * (1.0 - each)) / (k + 1) if user == polled else (1.0 - a) * each
            for user, each in enumerate(p)
        ]
    return sum(p)


def _of_what_is_not_there() -> Iterator[Stated[Seed]]:
    """Claims that nothing of ours can confirm or refute."""
    for claim, where, why in (
        ("LAJS improves makespan, flowtime and balance over FPSO and GJS", "3.1.3", _NOT_BUILT),
        ("two-way outperforms FPSO and GJS", "5", _NOT_BUILT),
        (
            "the processors are utilised fully",
            "4",
            "jobs arrive from outside: utilisation is the load, whoever schedules",
        ),
        (
            "other methods do not scale with the size of the grid, this one does",
            "abstract",
            "neither sizes nor times are given; a decision costs more with every node",
        ),
        (
            "Quad Tree-based k-means finds the best clusters",
            "2.1",
            "related work on software faults; it has no part in the method",
        ),
        (
            "the modules will be implemented in GridSim",
            "5.2",
            "future work: no implementation and no experiment is published",
        ),
    ):
        yield Stated(Claim(claim, where, NO_FIGURE, "nothing", incomparable=why), unmeasured)
