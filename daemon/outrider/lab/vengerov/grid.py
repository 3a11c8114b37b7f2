"""Which experiments the reproduction consists of: every variant, on every seed."""

from collections.abc import Iterable
from itertools import product
from typing import Final, NamedTuple

import msgspec

INTEGER: Final = "integer"
CONTINUOUS: Final = "continuous"
STEPS: Final = (INTEGER, CONTINUOUS)

NONE: Final = "none"
AGGRESSIVE: Final = "aggressive"
LEARNED: Final = "learned"
REPLAN: Final = "replan"

ZERO: Final = "zero"
BAD: Final = "bad"
FROZEN: Final = "bad, frozen"


class Variant(NamedTuple):
    """One experiment; what a row of the output is about.

    Attributes:
        policy: `NONE`, `AGGRESSIVE`, `LEARNED` or `REPLAN`.
        over, preempt: whether jobs may be squeezed, and preempted.
        inputs: of the value function: 3 as in the paper, or 5; 0 where there is none.
        rate: mean arrivals a step.
        steps: ``integer`` or ``continuous``.
        shape: of the time utility function, by name.
        drop_hopeless: users withdraw jobs that could not earn anything any more.
        start: of the value function. `ZERO`: trained on other seeds from p = 0. `BAD`: not
            trained, and begins by preferring bad states; `FROZEN`: the same and never learns.
    """

    policy: str
    over: bool = False
    preempt: bool = False
    inputs: int = 0
    rate: float = 0.1
    steps: str = INTEGER
    shape: str = "linear"
    drop_hopeless: bool = False
    start: str = ZERO

    @property
    def label(self) -> str:
        """The policy in words, without where it runs: ``learned both, 5 inputs``."""
        deeds = {(True, True): " both", (True, False): " over", (False, True): " preempt"}
        words = self.policy + deeds.get((self.over, self.preempt), "")
        if self.policy == LEARNED:
            words += f", {self.inputs} inputs"
        return words if self.start == ZERO else f"{words}, start {self.start}"

    def __str__(self) -> str:
        """All of it in words: the key of its row."""
        more = ", hopeless jobs dropped" if self.drop_hopeless else ""
        return f"{self.label} at {self.rate:g}, {self.steps}, {self.shape}{more}"


def none(**where: float | str | bool) -> Variant:
    """Best fit alone."""
    return Variant(NONE)._replace(**where)


def replan(**where: float | str | bool) -> Variant:
    """All CPUs anew at every change, in the order of utility per CPU-second."""
    return Variant(REPLAN, True, True)._replace(**where)


def aggressive(over: bool = True, preempt: bool = True, **where: float | str | bool) -> Variant:
    """The smallest waiting job, whenever one waits."""
    return Variant(AGGRESSIVE, over, preempt)._replace(**where)


def learned(
    inputs: int, over: bool = True, preempt: bool = True, **where: float | str | bool
) -> Variant:
    """By the value of the machine's state."""
    return Variant(LEARNED, over, preempt, inputs)._replace(**where)


class Size(msgspec.Struct, frozen=True):
    """How large the reproduction is.

    Attributes:
        quick: too small for verdicts.
        train_steps: the value function learns on other seeds.
        test_steps: it is judged.
        rates: of the curve (figure 4), each with whole steps.
    """

    quick: bool
    train_steps: int
    test_steps: int
    rates: tuple[float, ...]


FULL: Final = Size(False, 25_000, 20_000, (0.05, 0.1, 0.15, 0.2, 0.25, 0.3))
QUICK: Final = Size(True, 1_500, 1_500, (0.1, 0.2, 0.3))

CELLS: Final = tuple(product((0.1, 0.2), STEPS))
"""Rate and steps of the full comparison: all kinds of policies."""
SHAPES: Final = ("concave", "linear", "convex")
ONE_OR_BOTH: Final = ((True, False), (False, True), (True, True))


def bars(rate: float, steps: str) -> list[Variant]:
    """Figures 2 and 3, and beside them 5 inputs and `replan`."""
    where = {"rate": rate, "steps": steps}
    return [
        none(**where),
        *(aggressive(over, preempt, **where) for over, preempt in ONE_OR_BOTH),
        *(learned(3, over, preempt, **where) for over, preempt in ONE_OR_BOTH),
        learned(5, **where),
        replan(**where),
    ]


def curves(size: Size) -> dict[str, list[Variant]]:
    """Figure 4: productivity by arrival rate, one line for each label."""
    at = [{"rate": rate} for rate in size.rates]
    dropping = [{"rate": rate, "drop_hopeless": True} for rate in size.rates]
    return {
        "none": [none(**where) for where in at],
        "aggressive both": [aggressive(**where) for where in at],
        "learned both, 3 inputs": [learned(3, **where) for where in at],
        "learned both, 5 inputs": [learned(5, **where) for where in at],
        "replan": [replan(**where) for where in at],
        "none, hopeless jobs dropped": [none(**where) for where in dropping],
    }


def by_shape() -> dict[str, list[Variant]]:
    """Figure 5: by the shape of the time utility function, and section 6's rising one."""
    shapes = (*SHAPES, "rising")
    return {
        "none": [none(shape=shape) for shape in shapes],
        "aggressive both": [aggressive(shape=shape) for shape in shapes],
        "learned both, 3 inputs": [learned(3, shape=shape) for shape in shapes],
    }


def recovery() -> list[Variant]:
    """Section 3.4: a value function that begins by preferring bad states."""
    where = {"rate": 0.2}
    return [learned(3, start=start, **where) for start in (BAD, FROZEN)]


def variants(size: Size) -> list[Variant]:
    """All of them, each once."""
    parts: list[Iterable[Variant]] = [bars(rate, steps) for rate, steps in CELLS]
    parts += [*curves(size).values(), *by_shape().values(), recovery()]
    return list(dict.fromkeys(variant for part in parts for variant in part))
