"""Which runs the reproduction consists of: every variant, in every situation, with every seed."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Final, NamedTuple

import msgspec

from outrider.simulation.generators.grids import perez

ROWS: Final = ("0.2", "0.4", "0.5")
"""Table I, by the share of interactive jobs."""
FEASIBLE: Final = "feasible"
INFEASIBLE: Final = "infeasible"
TARGETS: Final = {FEASIBLE: perez.FEASIBLE, INFEASIBLE: perez.INFEASIBLE}
"""The shares that VOs are promised (VI.A, VI.B); what they submit is always the feasible ones."""
EXACT: Final = "exact"
ESTIMATES: Final = (EXACT, "lognormal:0.5", "lognormal:1.0")
WINDOW: Final = "egee"
"""The row of the windows of a real, or a like, EGEE site (VI.C)."""


class Variant(NamedTuple):
    """A policy with given settings; what a row of the output is about."""

    policy: str
    preset: str | None = None
    settings: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        """In words: ``sarsa literal``, ``sarsa learn=False``."""
        words = [self.policy, *([self.preset] if self.preset else [])]
        return " ".join((*words, *(f"{name}={value}" for name, value in self.settings)))


FIFO: Final = Variant("fifo")
SJF: Final = Variant("sjf")
EDF: Final = Variant("edf")
NATIVE: Final = Variant("sdj")
SARSA: Final = Variant("sarsa")
LITERAL: Final = Variant("sarsa", "literal")
FROZEN: Final = Variant("sarsa", None, (("learn", False),))
UNTRAINED: Final = Variant("sarsa", None, (("start", "none"),))

COMPARED: Final = (FIFO, SJF, EDF, SARSA, LITERAL, FROZEN, NATIVE)


class Situation(NamedTuple):
    """What jobs come, what their VOs are promised, and what policies know of run times.

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
        """In words: ``row 0.2, feasible, exact``."""
        place = self.trace or (self.row if self.row == WINDOW else f"row {self.row}")
        return f"{place}, {self.targets}, {self.estimates}"


class Size(msgspec.Struct, frozen=True):
    """How large the reproduction is.

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


class Trial(msgspec.Struct, frozen=True):
    """One run; picklable."""

    situation: Situation
    variant: Variant
    seed: int
    size: Size

    def __str__(self) -> str:
        """In words: ``sarsa literal, seed 3, row 0.2, feasible, exact``."""
        return f"{self.variant}, seed {self.seed}, {self.situation}"


def variants_of(situation: Situation) -> tuple[Variant, ...]:
    """What runs there. The learner without a start runs where its learning curve is drawn."""
    is_plain = situation.targets == FEASIBLE and situation.estimates == EXACT
    return (*COMPARED, UNTRAINED) if is_plain else COMPARED


def situations(size: Size, traces: tuple[str, ...] = ()) -> Iterator[Situation]:
    """All of them; the generated windows unless the user has given traces."""
    for row, targets, estimates in product(ROWS, TARGETS, size.estimates):
        yield Situation(row, targets, estimates)
    if not traces:
        yield Situation(WINDOW, "intended")
    for trace in traces:
        yield Situation(WINDOW, "equal", EXACT, trace)


def plan(size: Size, seeds: range, traces: tuple[str, ...] = ()) -> list[Trial]:
    """Every run, seed by seed, FIFO first in each situation; a file once, with the first seed."""
    return [
        Trial(situation, variant, seed, size)
        for seed in seeds
        for situation in situations(size, traces)
        for variant in variants_of(situation)
        if seed == seeds[0] or not situation.trace
    ]
