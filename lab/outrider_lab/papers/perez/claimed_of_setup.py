"""Sections III.C, IV.A and V: the workload and FIFO on it, how it learns, what a decision costs."""

from collections.abc import Iterator
from math import isfinite, nan
from statistics import fmean
from typing import Final

from outrider_lab.papers.perez.figures import STRETCHES
from outrider_lab.papers.perez.grid import FEASIBLE, FIFO, ROWS, SARSA, UNTRAINED
from outrider_lab.papers.perez.measures import Unit, of
from outrider_lab.reporting.claims import Claim
from outrider_lab.reporting.judging import Stated, Statistic, greatest, ratio, times, unmeasured
from outrider_lab.running.run_spec import PolicySpec

_TABLE_I_H: Final = {"0.2": 136, "0.4": 59, "0.5": 44}
_FIFO_S: Final = {"0.2": (923, 825), "0.4": (690, 642), "0.5": (740, 718)}


def claims_of_setup() -> Iterator[Stated[Unit]]:
    """Every claim about the workloads, the learner itself and the cost of a decision."""
    yield from _of_the_workload()
    yield from _of_the_learner()


def _of_the_workload() -> Iterator[Stated[Unit]]:
    for row, hours in _TABLE_I_H.items():
        yield Stated(
            Claim(
                f"row {row} of table I takes {hours} hours to arrive",
                "V.B, table I",
                f"{hours} h",
                "last submission over the printed hours",
                0.95,
                1.05,
            ),
            times(of(row, FIFO, "span_h"), 1 / hours),
        )
    unsteady = (
        "one run of the paper; it never becomes stationary, and from seed to seed FIFO's mean "
        "wait differs by about seven tenths of itself"
    )
    for row, (interactive_s, batch_s) in _FIFO_S.items():
        for name, printed_s in (("interactive", interactive_s), ("batch", batch_s)):
            yield Stated(
                Claim(
                    f"FIFO lets {name} jobs wait {printed_s} s at row {row}",
                    "VI.A, table II",
                    f"{printed_s} s",
                    f"FIFO: mean {name} wait, seconds",
                    incomparable=unsteady,
                ),
                of(row, FIFO, f"{name}.mean"),
            )


def _of_the_learner() -> Iterator[Stated[Unit]]:
    yield Stated(
        Claim(
            "a decision takes 1 to 10 ms, so RL is realistic",
            "V.C",
            "1 to 10 ms (MATLAB)",
            "sarsa: greatest of the rows' 99th percentiles of a decision, ms",
            high=10.0,
        ),
        times(greatest(of(row, SARSA, "decision_s.p99") for row in ROWS), 1000.0),
    )
    yield Stated(
        Claim(
            "untrained, the network decides extremely badly in the beginning",
            "III.C",
            "extremely bad decisions",
            "mean interactive wait of the first quarter of the jobs, sarsa without a start over "
            "with it, row 0.2",
            1.0,
        ),
        ratio(_beginning(UNTRAINED), _beginning(SARSA)),
    )
    yield Stated(
        Claim(
            "the utility of a batch job is halved at u = a + 2^-beta d",
            "IV.A",
            "2^-beta d",
            "not measured",
            incomparable="a misprint of 2^(1/beta) d, which is the printed 10 execution times",
        ),
        unmeasured,
    )


def _beginning(learner: PolicySpec) -> Statistic[Unit]:
    def statistic(unit: Unit) -> float:
        course = unit["0.2", FEASIBLE, learner].course_s["interactive"]
        known = [wait_s for wait_s in course[: STRETCHES // 4] if isfinite(wait_s)]
        return fmean(known) if known else nan

    return statistic
