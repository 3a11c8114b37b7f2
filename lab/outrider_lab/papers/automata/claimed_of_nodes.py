"""What the paper claims of node choice: sections 3.1.2, 3.1.3, 4 and 4.1.2."""

from collections.abc import Iterator

from outrider_lab.papers.automata.grid import (
    GREEDY,
    LAJS,
    LAJS_I,
    LEAST_LOADED,
    RANDOM,
    ROUND_ROBIN,
    SEVERAL,
    TWO_WAY,
)
from outrider_lab.papers.automata.measures import NO_FIGURE, Seed, in_drift, on_grid
from outrider_lab.reporting.claims import Claim
from outrider_lab.reporting.judging import Stated, ratio

_CORRELATED = 0.95
_MOSTLY = 0.95


def claims_of_nodes() -> Iterator[Stated[Seed]]:
    """LAJS beside simple rules, two-way beside LAJS, and what happens under change."""
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
