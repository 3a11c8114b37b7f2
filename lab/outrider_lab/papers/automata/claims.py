"""Every claim of the paper, judged where it can be measured.

The paper prints no figure, so a claim holds or fails by its direction alone; what it says of
methods that it neither describes nor measures cannot be compared.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from outrider_lab.papers.automata.grid import (
    BURSTY,
    BY_JOBS,
    COME_AND_GO,
    DRIFT,
    GREEDY,
    GRID,
    LAJS,
    LAJS_I,
    LARGE_STEP,
    LEAST_LOADED,
    NO_FLOOR,
    PATTERNS,
    POLLS,
    RANDOM,
    ROUND_ROBIN,
    SEVERAL,
    STATIONARY,
    STEADY,
    TWO_WAY,
    USERS,
    Figures,
    Key,
)
from outrider_lab.papers.automata.nodes import BEST_OF_LRP
from outrider_lab.reporting import claims
from outrider_lab.reporting.claims import Claim, Stated, Statistic, ratio, unmeasured

# -- measures --------------------------------------------------------------------------------------
# Figures of one seed, by which claims are judged.

NO_FIGURE: Final = "stated, no figure"


class Seed(NamedTuple):
    """A seed, and what every run with it measured."""

    number: int
    runs: Mapping[Key, Figures]


def of(
    experiment: str, scheme: str, figure: str, pattern: str = "", poll: str = ""
) -> Statistic[Seed]:
    """Return a figure of one run."""
    key = (experiment, pattern, poll, scheme)
    return lambda seed: float(seed.runs[key][figure])


def on_grid(scheme: str, figure: str) -> Statistic[Seed]:
    """Return a figure of the grid."""
    return of(GRID, scheme, figure)


def in_drift(scheme: str, figure: str) -> Statistic[Seed]:
    """Return a figure of the grid whose capacities change."""
    return of(DRIFT, scheme, figure)


def of_users(scheme: str, figure: str, pattern: str, poll: str) -> Statistic[Seed]:
    """Return a figure of polling."""
    return of(USERS, scheme, figure, pattern, poll)


# -- claims ----------------------------------------------------------------------------------------

_TOO_SMALL: Final = "a quick run has few jobs, polls and steps: automata have hardly begun to learn"
_NEAR_THEORY: Final = 0.02
_NOT_BUILT: Final = "it is neither described here nor measured in the paper, which prints no figure"


def judged(quick: bool, seeds: Mapping[int, Mapping[Key, Figures]]) -> list[dict[str, Any]]:
    """Return every claim with what was measured and the verdict.

    Args:
        quick: the run is too small for verdicts.
        seeds: what the runs measured, by seed.
    """
    stated = [*_of_schemes(), *claims_of_nodes(), *claims_of_users(), *_of_what_is_not_there()]
    units = [Seed(number, runs) for number, runs in seeds.items()]
    return claims.judged(stated, units, _TOO_SMALL if quick else None)


def _of_schemes() -> Iterator[Stated[Seed]]:
    """Yield claims of section 1.2.2, which names the families; their limits are theory."""
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
    """Return the sum of the probabilities under equation 4.1, users polled in turns.

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
    """Yield claims that nothing here can confirm or refute."""
    for claim, where, why in (
        ("LAJS improves makespan, flowtime and balance over FPSO and GJS", "3.1.3", _NOT_BUILT),
        ("two-way outperforms FPSO and GJS", "5", _NOT_BUILT),
        (
            "the processors are utilised fully",
            "4",
            "jobs arrive from outside: utilisation is the load under any scheduler",
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


# -- claimed of nodes ------------------------------------------------------------------------------
# What the paper claims of node choice: sections 3.1.2, 3.1.3, 4 and 4.1.2.

_CORRELATED = 0.95
_MOSTLY = 0.95


def claims_of_nodes() -> Iterator[Stated[Seed]]:
    """Yield claims on LAJS against simple rules, two-way against LAJS, and changes."""
    yield from _of_lajs()
    yield from _of_two_way()
    yield from _of_change()


def _of_lajs() -> Iterator[Stated[Seed]]:
    figures = (("flowtime", "flowtime"), ("makespan_ratio", "makespan"), ("load_cov", "imbalance"))
    for name, word in figures:
        for other in (RANDOM, ROUND_ROBIN, LEAST_LOADED):
            yield Stated(
                Claim(
                    f"LAJS improves {word}: beside {other}",
                    "3, 3.1.3",
                    NO_FIGURE,
                    f"{word} of LAJS (L_R-P) over that of {other}",
                    high=1.0,
                ),
                ratio(on_grid(LAJS, name), on_grid(other, name)),
            )
    yield Stated(
        Claim(
            "queue length is kept below the dynamic average length",
            "3.1.3",
            NO_FIGURE,
            "ratio of jobs that LAJS sends to a node with no more jobs than the mean node",
            low=_MOSTLY,
        ),
        on_grid(LAJS, "within_mean_ratio"),
    )
    yield Stated(
        Claim(
            "several schedulers may share the nodes (many-to-many)",
            "3",
            NO_FIGURE,
            "flowtime of four LAJS schedulers over that of random",
            high=1.0,
        ),
        ratio(on_grid(SEVERAL, "flowtime"), on_grid(RANDOM, "flowtime")),
    )


def _of_two_way() -> Iterator[Stated[Seed]]:
    for scheme, words in ((TWO_WAY, "drawn by the automaton"), (GREEDY, "the highest ratio")):
        yield Stated(
            Claim(
                f"the workload of a node is proportional to its capacity: {words}",
                "abstract, 4, 4.1.2",
                NO_FIGURE,
                f"correlation of work and capacity over the nodes, {scheme}",
                low=_CORRELATED,
            ),
            on_grid(scheme, "capacity_correlation"),
        )
        for name, word in (("flowtime", "flowtime"), ("makespan_ratio", "makespan"),
                           ("load_cov", "imbalance")):  # fmt: skip
            yield Stated(
                Claim(
                    f"two-way is an improvement over LAJS in {word}: {words}",
                    "4, 5",
                    NO_FIGURE,
                    f"{word} of {scheme} over that of LAJS (L_R-P)",
                    high=1.0,
                ),
                ratio(on_grid(scheme, name), on_grid(LAJS, name)),
            )


def _of_change() -> Iterator[Stated[Seed]]:
    yield Stated(
        Claim(
            "the scheduling adapts when conditions change",
            "abstract, 1.1.2",
            NO_FIGURE,
            "flowtime of LAJS (L_R-P) after all capacities changed over that of random",
            high=1.0,
        ),
        ratio(in_drift(LAJS, "flowtime_after"), in_drift(RANDOM, "flowtime_after")),
    )
    yield Stated(
        Claim(
            "under change L_R-P recovers and L_R-I does not",
            "1.2.2 (what the families are for)",
            "not stated",
            "flowtime after the change, L_R-P over L_R-I",
            high=1.0,
        ),
        ratio(in_drift(LAJS, "flowtime_after"), in_drift(LAJS_I, "flowtime_after")),
    )


# -- claimed of users ------------------------------------------------------------------------------
# What the paper claims of polling: sections 3.1.1, 3.1.3, 4.1.1 and 5.2.

_WHERE = {STEADY: "3.1.3", BURSTY: "5.2", COME_AND_GO: "5.2"}
_TAKES = {"one": "a poll takes one job", "backlog": "a poll takes the whole backlog"}


def claims_of_users() -> Iterator[Stated[Seed]]:
    """Yield claims on the automaton against round robin, the reward by jobs, and the floor."""
    for poll in POLLS:
        yield Stated(
            Claim(
                f"a user is polled more probably only when there is a job; {_TAKES[poll]}",
                "3.1.1",
                NO_FIGURE,
                "polls in vain, automaton (L_R-P) over round robin",
                high=1.0,
            ),
            _relative_to_turns("empty_ratio", STEADY, poll),
        )
        for pattern in PATTERNS:
            yield Stated(
                Claim(
                    f"users are served as they need; {pattern} users, {_TAKES[poll]}",
                    _WHERE[pattern],
                    NO_FIGURE if pattern == STEADY else "future work",
                    "mean wait, automaton (L_R-P) over round robin",
                    high=1.0,
                ),
                _relative_to_turns("wait", pattern, poll),
            )
    heavy = "heavy_wait_ratio"
    yield Stated(
        Claim(
            "users who submit more jobs are preferred by equation 4.1 (corrected)",
            "4.1.1",
            NO_FIGURE,
            "wait of the busiest quarter over that of the others, with it over without",
            high=1.0,
        ),
        ratio(of_users(BY_JOBS, heavy, STEADY, "one"), of_users("L_R-P", heavy, STEADY, "one")),
    )
    yield Stated(
        Claim(
            "a floor under the draws shortens the longest starvation",
            "not in the paper: ours",
            "not stated",
            "longest starvation with the floor over that without, bursty users, one job a poll",
            high=1.0,
        ),
        ratio(
            of_users("L_R-P", "starvation", BURSTY, "one"),
            of_users(NO_FLOOR, "starvation", BURSTY, "one"),
        ),
    )


def _relative_to_turns(figure: str, pattern: str, poll: str) -> Statistic[Seed]:
    return ratio(
        of_users("L_R-P", figure, pattern, poll), of_users(ROUND_ROBIN, figure, pattern, poll)
    )
