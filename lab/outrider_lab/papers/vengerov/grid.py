"""Experiments of the reproduction: every treatment, on every seed."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from outrider.simulation.generators.grids.workloads import Steps

INTEGER: Final = "integer"
CONTINUOUS: Final = "continuous"
STEPS: Final[tuple[Steps, ...]] = (INTEGER, CONTINUOUS)

NONE: Final = "none"
AGGRESSIVE: Final = "aggressive"
LEARNED: Final = "learned"
REPLAN: Final = "replan"

ZERO: Final = "zero"
BAD: Final = "bad"
FROZEN: Final = "bad, frozen"


class Scene(NamedTuple):
    """Setting of an experiment.

    Attributes:
        rate: mean arrivals a step.
        steps: `INTEGER` or `CONTINUOUS`.
        shape: of the time utility function, by name.
        drop_hopeless: users withdraw jobs that could not earn anything any more.
    """

    rate: float = 0.1
    steps: Steps = INTEGER
    shape: str = "linear"
    drop_hopeless: bool = False


BASE: Final = Scene()
"""The paper's base case."""


class Deeds(NamedTuple):
    """Permissions of a policy for jobs that do not fit: shrinking them, preempting others."""

    over: bool
    preempt: bool


OVER, PREEMPT, BOTH = Deeds(True, False), Deeds(False, True), Deeds(True, True)
NEITHER: Final = Deeds(False, False)
ONE_OR_BOTH: Final = {"over": OVER, "preempt": PREEMPT, "both": BOTH}


class Treatment(NamedTuple):
    """One experiment; what a row of the output is about.

    Attributes:
        policy: `NONE`, `AGGRESSIVE`, `LEARNED` or `REPLAN`.
        scene: where it is tried.
        deeds: what it may do.
        inputs: of the value function: 3 as in the paper, or 5; 0 where there is none.
        start: of the value function. `ZERO`: trained on other seeds from p = 0. `BAD`: not
            trained, and begins by preferring bad states; `FROZEN`: the same and never learns.
        beyond: it never starts what can earn nothing any more, and also weighs what `replan` would
            do; neither is in the paper.
    """

    policy: str
    scene: Scene = BASE
    deeds: Deeds = NEITHER
    inputs: int = 0
    start: str = ZERO
    beyond: bool = False

    @property
    def label(self) -> str:
        """The policy in words, without where it runs: ``learned both, 5 inputs``."""
        words = self.policy
        if self.policy in (AGGRESSIVE, LEARNED):
            words += "".join(
                f" {word}" for word, deeds in ONE_OR_BOTH.items() if deeds == self.deeds
            )
        if self.policy == LEARNED:
            words += f", {self.inputs} inputs"
        if self.beyond:
            words += ", beyond"
        return words if self.start == ZERO else f"{words}, start {self.start}"

    def __str__(self) -> str:
        """Return the treatment in words: the key of its row."""
        rate, steps, shape, drop_hopeless = self.scene
        more = ", hopeless jobs dropped" if drop_hopeless else ""
        return f"{self.label} at {rate:g}, {steps}, {shape}{more}"


def none(scene: Scene = BASE) -> Treatment:
    """Return the treatment of best fit alone."""
    return Treatment(NONE, scene)


def replan(scene: Scene = BASE) -> Treatment:
    """Return the treatment that reallocates all CPUs at every change, by utility per CPU-second."""
    return Treatment(REPLAN, scene, BOTH)


def aggressive(scene: Scene = BASE, deeds: Deeds = BOTH) -> Treatment:
    """Return the treatment that serves the smallest waiting job, whenever one waits."""
    return Treatment(AGGRESSIVE, scene, deeds)


def learned(inputs: int, scene: Scene = BASE, deeds: Deeds = BOTH, start: str = ZERO) -> Treatment:
    """Return the treatment that decides by the value of the machine's state."""
    return Treatment(LEARNED, scene, deeds, inputs, start)


def beyond(scene: Scene = BASE) -> Treatment:
    """Return the treatment beyond the paper.

    It has 5 inputs, no CPU for jobs that can earn nothing any more, and weighs `replan` too.
    """
    return learned(5, scene)._replace(beyond=True)


class Size(msgspec.Struct, frozen=True):
    """Sizes of the reproduction.

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

CELLS: Final = tuple(Scene(rate, steps) for rate in (0.1, 0.2) for steps in STEPS)
"""The full comparison: all kinds of policies."""
BUSY: Final = Scene(rate=0.2)
SHAPES: Final = ("concave", "linear", "convex")


def bars(scene: Scene) -> list[Treatment]:
    """Return figures 2 and 3, and beside them 5 inputs, beyond the paper, and `replan`."""
    return [
        none(scene),
        *(aggressive(scene, deeds) for deeds in ONE_OR_BOTH.values()),
        *(learned(3, scene, deeds) for deeds in ONE_OR_BOTH.values()),
        learned(5, scene),
        beyond(scene),
        replan(scene),
    ]


def curves(size: Size) -> dict[str, list[Treatment]]:
    """Return figure 4: productivity by arrival rate, one line for each label."""
    scenes = [Scene(rate=rate) for rate in size.rates]
    return {
        "none": [none(scene) for scene in scenes],
        "aggressive both": [aggressive(scene) for scene in scenes],
        "learned both, 3 inputs": [learned(3, scene) for scene in scenes],
        "learned both, 5 inputs": [learned(5, scene) for scene in scenes],
        "replan": [replan(scene) for scene in scenes],
        "none, hopeless jobs dropped": [
            none(Scene(rate=rate, drop_hopeless=True)) for rate in size.rates
        ],
    }


def by_shape() -> dict[str, list[Treatment]]:
    """Return figure 5: by the shape of the time utility function, and section 6's rising one."""
    scenes = [Scene(shape=shape) for shape in (*SHAPES, "rising")]
    return {
        "none": [none(scene) for scene in scenes],
        "aggressive both": [aggressive(scene) for scene in scenes],
        "learned both, 3 inputs": [learned(3, scene) for scene in scenes],
    }


def recovery() -> list[Treatment]:
    """Return section 3.4: a value function that begins by preferring bad states."""
    return [learned(3, BUSY, start=start) for start in (BAD, FROZEN)]


def treatments(size: Size) -> list[Treatment]:
    """Return all treatments, each once."""
    parts: list[Iterable[Treatment]] = [bars(scene) for scene in CELLS]
    parts += [*curves(size).values(), *by_shape().values(), recovery()]
    return list(dict.fromkeys(treatment for part in parts for treatment in part))
