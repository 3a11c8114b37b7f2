"""Figures 18 and 19, and two the paper does not have: the decision epoch and other policies."""

from collections.abc import Iterator

from outrider_lab.papers.mcgough.grid import (
    COMPARED,
    EPSILON,
    RANDOM,
    SIGMA,
    Size,
    epochs,
    history,
    paper_bandit,
)
from outrider_lab.papers.mcgough.points import (
    OVERHEAD,
    SAVING,
    Rows,
    percent_series,
    saving_by_overhead,
    series,
)
from outrider_lab.reporting.drawing import line_chart, there
from outrider_lab.reporting.page import Drawing


def figures_of_options(size: Size, rows: Rows) -> Iterator[Drawing]:
    """How much history counts, how long the epoch is, and what else one could run."""
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
