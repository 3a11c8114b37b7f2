"""Experiments of the reproduction, the treatments in each, and their size."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from outrider_lab.running.run_spec import PolicySpec

STATIONARY: Final = "stationary"
GRID: Final = "grid"
USERS: Final = "users"
DRIFT: Final = "drift"

RANDOM: Final = "random"
ROUND_ROBIN: Final = "round robin"
TURNS: Final = "round_robin"
"""The policy that polls users by turns, in the users' experiment."""
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
"""Reward steps besides the default, so that the choice of one can be checked."""


class Size(NamedTuple):
    """Sizes of the experiments.

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
    steps_of_a: tuple[float, ...]


FULL: Final = Size(False, 10_000, 20, 4000, 3, 10_000, STEPS)
QUICK: Final = Size(True, 500, 20, 300, 1, 600, (0.1,))


class Treatment(NamedTuple):
    """Scheduler of an experiment, with its settings.

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

    @property
    def policy_spec(self) -> PolicySpec:
        """The policy with its settings."""
        return PolicySpec(self.policy, self.settings, self.preset)


class Case(NamedTuple):
    """Subject of a row of the output; its runs differ only in the seed.

    Attributes:
        experiment: one of four.
        pattern, poll: of the users' experiment; else empty.
        treatment: who schedules.
    """

    experiment: str
    pattern: str
    poll: str
    treatment: Treatment

    @property
    def key(self) -> "Key":
        """Key by which claims name the case."""
        return self.experiment, self.pattern, self.poll, self.treatment.scheme


def _automata(name: str, preset: str | None = None, **settings: Any) -> Treatment:
    return Treatment(name, "automata", preset, tuple(settings.items()))


def _environment(name: str, **settings: Any) -> Treatment:
    """Return the node automaton alone, rewarded by endings."""
    settings |= {"level": "computer", "response": "ending", "floor_ratio": 0.0}
    return _automata(name, None, **settings)


BASELINES: Final = (
    Treatment(RANDOM, "random_match"),
    Treatment(ROUND_ROBIN, TURNS),
    Treatment(CAPACITY_RANDOM, "capacity_random"),
    Treatment(LEAST_LOADED, "least_loaded"),
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
    Treatment(ROUND_ROBIN, TURNS),
    _automata("L_R-P", scheme="L_R-P"),
    _automata("L_R-eP", scheme="L_R-eP"),
    _automata("L_R-I", scheme="L_R-I"),
    _automata(BY_JOBS, user_reward="jobs"),
    _automata(NO_FLOOR, floor_ratio=0.0),
)


def cases(size: Size) -> list[Case]:
    """Return every case; each has a row."""
    several = _automata(SEVERAL, "lajs")._replace(schedulers=4)
    by_step = [_automata(f"{LAJS}, a = {a:g}", "lajs", reward_step=a) for a in size.steps_of_a]
    return [
        *(Case(STATIONARY, "", "", one) for one in IN_STATIONARY),
        *(Case(GRID, "", "", one) for one in (*BASELINES, *LEARNERS, several, *by_step)),
        *(Case(DRIFT, "", "", one) for one in (*BASELINES, *LEARNERS)),
        *(
            Case(USERS, pattern, poll, one)
            for pattern in PATTERNS
            for poll in POLLS
            for one in POLLERS
        ),
    ]


Figures = Mapping[str, Any]
"""Measurements of a run: numbers by name, and lists for the charts."""

Key = tuple[str, str, str, str]
"""Key of a row: experiment, pattern of the users, what a poll takes, scheme."""
