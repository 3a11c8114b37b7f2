"""Figures 7 to 11: what epsilon and sigma do at the cluster level."""

from collections.abc import Iterator

from outrider_lab.papers.mcgough.grid import RANDOM, Size, paper_bandit
from outrider_lab.papers.mcgough.points import (
    EPSILON_AXIS,
    MEAN_OVERHEAD,
    Rows,
    energy_by_overhead,
    energy_series,
    overhead_series,
)
from outrider_lab.reporting.drawing import line_chart
from outrider_lab.reporting.page import Drawing

_ERRORS = "bars are standard errors over the years"


def figures_of_epsilon(size: Size, rows: Rows) -> Iterator[Drawing]:
    """Overhead and energies by epsilon and sigma, then one against the other."""
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
