"""What is run: experiments, the variants in each, and how large they are."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

STATIONARY: Final = "stationary"
GRID: Final = "grid"
USERS: Final = "users"
DRIFT: Final = "drift"

RANDOM: Final = "random"
ROUND_ROBIN: Final = "round robin"
LEAST_LOADED: Final = "least loaded"
CAPACITY_RANDOM: Final = "capacity random"
LAJS: Final = "LAJS L_R-P"
LAJS_EP: Final = "LAJS L_R-eP"
LAJS_I: Final = "LAJS L_R-I"
SEVERAL: Final = "LAJS L_R-P, 4 schedulers"
TWO_WAY: Final = "two-way L_R-P"
GREEDY: Final = "two-way, greedy"
LARGE_STEP: Final = "L_R-I, a = .3"
BY_JOBS: Final = "L_R-P, eq. 4.1"
NO_FLOOR: Final = "L_R-P, no floor"

STEADY: Final = "steady"
BURSTY: Final = "bursty"
COME_AND_GO: Final = "come and go"
PATTERNS: Final = (STEADY, BURSTY, COME_AND_GO)
POLLS: Final = ("one", "backlog")
STEPS: Final = (0.01, 0.02, 0.1, 0.2)
"""Reward steps beside the default, so that nobody must believe in it."""


class Size(NamedTuple):
    """How large the experiments are.

    Attributes:
        quick: too small for verdicts.
        jobs, nodes: of the grid and the drift experiment.
        steps, repeats: of the stationary one: draws in a run, and runs a seed.
        polls: of the users' one.
        steps_of_a: reward steps tried on the grid.
    """

    quick: bool
    jobs: int
    nodes: int
    steps: int
    repeats: int
    polls: int
    steps_of_a: Sequence[float]


FULL: Final = Size(False, 10_000, 20, 4000, 3, 10_000, STEPS)
QUICK: Final = Size(True, 500, 20, 300, 1, 600, (0.1,))


class Variant(NamedTuple):
    """Who schedules.

    Attributes:
        scheme: the name in rows and figures.
        policy: of the plugin; ``round_robin`` polls by turns in the users' experiment.
        preset: of the policy, or None.
        settings: (name, value) beside the preset.
        schedulers: how many share the nodes, each with automata of its own.
    """

    scheme: str
    policy: str
    preset: str | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    schedulers: int = 1


class Trial(NamedTuple):
    """One run.

    Attributes:
        experiment: one of four.
        pattern, poll: of the users' experiment; else empty.
        variant: who schedules.
        seed: of the arrivals and of the scheduler's chance.
        size: how large.
    """

    experiment: str
    pattern: str
    poll: str
    variant: Variant
    seed: int
    size: Size

    @property
    def row(self) -> "Key":
        """Trials that differ only in the seed share it."""
        return self.experiment, self.pattern, self.poll, self.variant.scheme

    def __str__(self) -> str:
        words = (self.experiment, self.pattern, self.poll, self.variant.scheme)
        return f"{', '.join(filter(None, words))}, seed {self.seed}"


def _automata(name: str, preset: str | None = None, **settings: Any) -> Variant:
    return Variant(name, "automata", preset, tuple(settings.items()))


def _environment(name: str, **settings: Any) -> Variant:
    """The node automaton alone, rewarded by endings."""
    settings |= {"level": "computer", "response": "ending", "floor_ratio": 0.0}
    return _automata(name, None, **settings)


BASELINES: Final = (
    Variant(RANDOM, "random_match"),
    Variant(ROUND_ROBIN, "round_robin"),
    Variant(CAPACITY_RANDOM, "capacity_random"),
    Variant(LEAST_LOADED, "least_loaded"),
)
LEARNERS: Final = (
    _automata(LAJS, "lajs"),
    _automata(LAJS_EP, "lajs", scheme="L_R-eP"),
    _automata(LAJS_I, "lajs", scheme="L_R-I"),
    _automata(TWO_WAY, "two_way"),
    _automata(GREEDY, "literal"),
)
IN_STATIONARY: Final = (
    _environment("L_R-P", scheme="L_R-P"),
    _environment("L_R-eP", scheme="L_R-eP"),
    _environment("L_R-I", scheme="L_R-I"),
    _environment(LARGE_STEP, scheme="L_R-I", reward_step=0.3),
)
POLLERS: Final = (
    Variant(ROUND_ROBIN, "round_robin"),
    _automata("L_R-P", scheme="L_R-P"),
    _automata("L_R-eP", scheme="L_R-eP"),
    _automata("L_R-I", scheme="L_R-I"),
    _automata(BY_JOBS, user_reward="jobs"),
    _automata(NO_FLOOR, floor_ratio=0.0),
)


def variants(size: Size) -> list[tuple[str, str, str, Variant]]:
    """Experiment, pattern, poll and variant of every row."""
    several = _automata(SEVERAL, "lajs")._replace(schedulers=4)
    by_step = [_automata(f"{LAJS}, a = {a:g}", "lajs", reward_step=a) for a in size.steps_of_a]
    return [
        *((STATIONARY, "", "", v) for v in IN_STATIONARY),
        *((GRID, "", "", v) for v in (*BASELINES, *LEARNERS, several, *by_step)),
        *((DRIFT, "", "", v) for v in (*BASELINES, *LEARNERS)),
        *((USERS, pattern, poll, v) for pattern in PATTERNS for poll in POLLS for v in POLLERS),
    ]


def plan(size: Size, seeds: Sequence[int]) -> list[Trial]:
    """Every run, seed by seed."""
    return [Trial(*each, seed, size) for seed in seeds for each in variants(size)]


Figures = Mapping[str, Any]
"""What a trial measured: numbers by name, and lists for the charts."""

Key = tuple[str, str, str, str]
"""What makes a row: experiment, pattern of the users, what a poll takes, scheme."""

Measured = Mapping[Key, Mapping[int, Figures]]
"""What was measured, by row and seed."""
