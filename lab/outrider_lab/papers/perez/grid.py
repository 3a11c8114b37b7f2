"""Runs of the reproduction: every policy, in every situation, with every seed."""

from collections.abc import Iterator
from itertools import product
from typing import Final, NamedTuple

import msgspec

from outrider.simulation.generators.grids import workloads
from outrider_lab.running.run_spec import PolicySpec

ROWS: Final = ("0.2", "0.4", "0.5")
"""Table I, by the share of interactive jobs."""
FEASIBLE: Final = "feasible"
INFEASIBLE: Final = "infeasible"
TARGETS: Final = {FEASIBLE: workloads.FEASIBLE, INFEASIBLE: workloads.INFEASIBLE}
"""The shares that VOs are promised (VI.A, VI.B); what they submit is always the feasible ones."""
EXACT: Final = "exact"
ESTIMATES: Final = (EXACT, "lognormal:0.5", "lognormal:1.0")
WINDOW: Final = "egee"
"""The row of the windows of a real, or a like, EGEE site (VI.C)."""


FIFO: Final = PolicySpec("fifo")
SJF: Final = PolicySpec("sjf")
EDF: Final = PolicySpec("edf")
NATIVE: Final = PolicySpec("sdj")
SARSA: Final = PolicySpec("sarsa")
LITERAL: Final = PolicySpec("sarsa", preset="literal")
FROZEN: Final = PolicySpec("sarsa", (("learn", False),))
UNTRAINED: Final = PolicySpec("sarsa", (("start", "none"),))

COMPARED: Final = (FIFO, SJF, EDF, SARSA, LITERAL, FROZEN, NATIVE)


class Situation(NamedTuple):
    """Arrivals of jobs, target shares of their VOs, and policies' knowledge of run times.

    Attributes:
        row: of Table I, or `WINDOW`.
        targets: `FEASIBLE` or `INFEASIBLE`; of a window ``intended`` (by its generator) or
            ``equal`` (nobody said).
        estimates: as of ``outrider replay --estimates``.
        trace: of a window the file; empty: it is generated.
    """

    row: str
    targets: str = FEASIBLE
    estimates: str = EXACT
    trace: str = ""

    def __str__(self) -> str:
        """Describe the situation in words: ``row 0.2, feasible, exact``."""
        place = self.trace or (self.row if self.row == WINDOW else f"row {self.row}")
        return f"{place}, {self.targets}, {self.estimates}"


class Size(msgspec.Struct, frozen=True):
    """Sizes of the reproduction.

    Attributes:
        quick: too small for verdicts.
        jobs: of each run of Table I.
        skipped_first: arrivals before fairness is drawn: a few jobs have no shares.
        unreported: last arrivals of a run of Table I whose waits do not count, for the queue
            drains then.
        window_jobs: of each generated window.
        estimates: those tried.
    """

    quick: bool
    jobs: int
    skipped_first: int
    unreported: int
    window_jobs: int
    estimates: tuple[str, ...]


FULL: Final = Size(False, 6000, 500, 500, 6000, ESTIMATES)
QUICK: Final = Size(True, 600, 50, 50, 600, (EXACT, "lognormal:1.0"))


class Row(NamedTuple):
    """Subject of a row of the output; its runs differ only in the seed.

    Attributes:
        situation: in which the policy is tried.
        policy: who decides; None: calibration by the situation's own past (see `calibration`).
    """

    situation: Situation
    policy: PolicySpec | None


def policies_of(situation: Situation) -> tuple[PolicySpec, ...]:
    """Return the policies of a situation.

    The learner without a start runs where its learning curve is drawn.
    """
    is_plain = situation.targets == FEASIBLE and situation.estimates == EXACT
    return (*COMPARED, UNTRAINED) if is_plain else COMPARED


def situations(size: Size, traces: tuple[str, ...] = ()) -> Iterator[Situation]:
    """Return all situations; the generated windows unless the user has given traces."""
    for row, targets, estimates in product(ROWS, TARGETS, size.estimates):
        yield Situation(row, targets, estimates)
    if not traces:
        yield Situation(WINDOW, "intended")
    for trace in traces:
        yield Situation(WINDOW, "equal", EXACT, trace)


def points(size: Size, seeds: range, traces: tuple[str, ...] = ()) -> list[tuple[Row, int]]:
    """Yield every row with every seed, FIFO first in each situation; a file with one seed."""
    return [
        (Row(situation, policy), seed)
        for seed in seeds
        for situation in situations(size, traces)
        for policy in policies_of(situation)
        if seed == seeds[0] or not situation.trace
    ]
