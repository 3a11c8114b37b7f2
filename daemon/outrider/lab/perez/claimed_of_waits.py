"""Sections III.C, V and VI.A: the workload, table II, figure 3, and what a decision costs."""

from collections.abc import Iterator
from math import isfinite, nan
from statistics import fmean
from typing import Final

from outrider.lab.claims import Claim
from outrider.lab.perez.figures import STRETCHES
from outrider.lab.perez.grid import (
    EDF,
    FEASIBLE,
    FIFO,
    LITERAL,
    ROWS,
    SARSA,
    SJF,
    UNTRAINED,
    Variant,
)
from outrider.lab.perez.measures import (
    A_QUARTER,
    Stated,
    Statistic,
    Unit,
    greatest,
    of,
    ratio,
    times,
    unmeasured,
)

_TABLE_I_H: Final = {"0.2": 136, "0.4": 59, "0.5": 44}
_FIFO_S: Final = {"0.2": (923, 825), "0.4": (690, 642), "0.5": (740, 718)}
_RL_INTERACTIVE_S: Final = {"0.2": 108, "0.4": 50, "0.5": 38}
_LEARNERS: Final = {"as printed": LITERAL, "sarsa's defaults": SARSA}
_LEAST_GAINS: Final = {
    "0.2": ("divided by more than 8", 8.0),
    "0.5": ("divided by nearly 20", 16.0),
}
_CONSERVED: Final = (
    "no order can do it: at full machines the wait weighted with run times is nearly conserved, "
    "so what interactive jobs gain, batch jobs pay"
)


def claims_of_waits() -> Iterator[Stated]:
    """Every claim about waits, overheads and the cost of a decision."""
    yield from _of_the_workload()
    yield from _of_interactive_waits()
    yield from _of_batch_waits()
    yield from _of_overheads()
    yield from _beside_classical_schedulers()
    yield from _of_the_learner()


def _of_the_workload() -> Iterator[Stated]:
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


def _of_interactive_waits() -> Iterator[Stated]:
    for words, learner in _LEARNERS.items():
        for row, printed_s in _RL_INTERACTIVE_S.items():
            yield Stated(
                Claim(
                    f"with RL interactive jobs wait {printed_s} s at row {row} ({words})",
                    "VI.A, table II",
                    f"{printed_s} s",
                    f"{learner}: mean interactive wait, seconds; at most a quarter above",
                    high=A_QUARTER * printed_s,
                ),
                of(row, learner, "interactive.mean"),
            )
        for row, (gain, least) in _LEAST_GAINS.items():
            yield Stated(
                Claim(
                    f"the interactive wait is {gain} at row {row} ({words})",
                    "VI.A",
                    gain,
                    f"FIFO's mean interactive wait over that of {learner}",
                    least,
                ),
                ratio(of(row, FIFO, "interactive.mean"), of(row, learner, "interactive.mean")),
            )
        yield Stated(
            Claim(
                f"at row 0.2 nine in ten interactive jobs wait at most 2 minutes ({words})",
                "VI.A, figure 3",
                "90 %",
                f"{learner}: ratio of interactive jobs that wait at most 120 s",
                0.9,
            ),
            of("0.2", learner, "interactive.acceptable"),
        )


def _of_batch_waits() -> Iterator[Stated]:
    for words, learner in _LEARNERS.items():
        for row, (gain, least) in _LEAST_GAINS.items():
            yield Stated(
                Claim(
                    f"the batch wait improves like the interactive one at row {row} ({words})",
                    "VI.A, table II",
                    gain,
                    f"FIFO's mean batch wait over that of {learner}",
                    least,
                ),
                ratio(of(row, FIFO, "batch.mean"), of(row, learner, "batch.mean")),
                _CONSERVED,
            )
        for name, word in (("std", "standard deviation"), ("max", "maximum")):
            yield Stated(
                Claim(
                    f"the {word} of batch waits is reduced: nobody starves ({words})",
                    "VI.A, table II",
                    "reduced at all rows",
                    f"greatest ratio of the batch {word} of {learner} to FIFO's over the rows",
                    high=1.0,
                ),
                greatest(
                    ratio(of(row, learner, f"batch.{name}"), of(row, FIFO, f"batch.{name}"))
                    for row in ROWS
                ),
            )
        yield Stated(
            Claim(
                f"all waits can be divided by 8 and more ({words})",
                "VI.A, table II",
                "both classes",
                f"wait weighted with run times, {learner} over FIFO, row 0.2",
                high=1 / 8,
            ),
            ratio(of("0.2", learner, "work_weighted_wait"), of("0.2", FIFO, "work_weighted_wait")),
            _CONSERVED,
        )
    for row, printed_s, meant_s in (("0.4", 454, 45.4), ("0.5", 343, 34.3)):
        yield Stated(
            Claim(
                f"with RL batch jobs wait {printed_s} s at row {row}",
                "VI.A, table II",
                f"{printed_s} s",
                "sarsa: mean batch wait, seconds",
                incomparable=f"surely a misprint of {meant_s} s: beside it stand a standard "
                "deviation below 50 s and, in the text, gains like those of interactive jobs",
            ),
            of(row, SARSA, "batch.mean"),
        )


def _of_overheads() -> Iterator[Stated]:
    for words, learner in _LEARNERS.items():
        yield Stated(
            Claim(
                f"with RL nine in ten interactive jobs wait no longer than they run ({words})",
                "VI.A, figure 3",
                "90 %",
                f"{learner}: ratio of interactive jobs with wait <= run time, row 0.2",
                0.85,
            ),
            of("0.2", learner, "interactive.le_1"),
        )
    yield Stated(
        Claim(
            "with FIFO three in ten interactive jobs wait no longer than they run",
            "VI.A, figure 3",
            "30 %",
            "FIFO: ratio of interactive jobs with wait <= run time, row 0.2",
            0.2,
            0.4,
        ),
        of("0.2", FIFO, "interactive.le_1"),
    )


def _beside_classical_schedulers() -> Iterator[Stated]:
    for rival, word in ((SJF, "shortest job first"), (EDF, "earliest deadline first")):
        for name in ("interactive", "batch"):
            yield Stated(
                Claim(
                    f"RL clearly outperforms classical schedulers: {word}, {name} jobs",
                    "abstract",
                    "clearly (only FIFO was compared)",
                    f"greatest ratio of the mean {name} wait of sarsa to that of {rival}, rows",
                    high=1.0,
                ),
                greatest(
                    ratio(of(row, SARSA, f"{name}.mean"), of(row, rival, f"{name}.mean"))
                    for row in ROWS
                ),
            )


def _of_the_learner() -> Iterator[Stated]:
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
            "-",
            incomparable="a misprint of 2^(1/beta) d, which is the printed 10 execution times",
        ),
        unmeasured,
    )


def _beginning(learner: Variant) -> Statistic:
    def statistic(unit: Unit) -> float:
        course = unit["0.2", FEASIBLE, learner].course_s["interactive"]
        known = [wait_s for wait_s in course[: STRETCHES // 4] if isfinite(wait_s)]
        return fmean(known) if known else nan

    return statistic
