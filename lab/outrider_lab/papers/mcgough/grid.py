"""Runs of the reproduction: every policy, on every year."""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final

import msgspec

from outrider_lab.running.campus_run import campus_spec
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import GeneratedCampus

LEVELS: Final = ("computer", "cluster", "cluster_week", "system")
SIGMA: Final = 0.8
"""The weight of energy the paper settles on (7.1); the other experiments keep to it."""
EPSILON: Final = 0.1
"""The exploration the paper settles on (7.1)."""


def paper_bandit(
    level: str = "cluster", epsilon: float = EPSILON, sigma: float = SIGMA, **more: Any
) -> PolicySpec:
    """Return the paper's bandit as printed (no starvation guard), at one of its four levels."""
    settings = {"level": level, "epsilon": epsilon, "sigma": sigma, **more}
    return PolicySpec("bandit", tuple(sorted(settings.items())), "literal")


RANDOM: Final = PolicySpec("random_match")
COMPARED: Final = tuple(
    PolicySpec(name)
    for name in (
        "lowest_watts", "watts_hold", "bandit", "thompson", "ucb", "survival",
        "clairvoyant_jobs", "clairvoyant",
    )
)  # fmt: skip
"""Policies that are not in the paper: static rules, learners and bounds, by their defaults."""

OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "a high epsilon for a state's first 50 rewards": {"first_n": 50},
    "a high epsilon for a state's first 1000 rewards": {"first_n": 1000},
    "a higher epsilon while rewards diverge": {"divergence_ratio": 0.5},
    "local knowledge of the reboot": {"avoid_reboot": True},
}
"""The paper's 7.5.2 to 7.5.4. Neither the high epsilon nor the ratio is printed there."""


class Size(msgspec.Struct, frozen=True):
    """Sizes of the reproduction.

    Attributes:
        quick: too small for verdicts.
        campus: (name, value) of the generator's options.
        epsilons, sigmas: the sweeps of figures 7 to 11; `epsilons` also of the four levels.
        histories: last rewards that count, figures 18 and 19.
        epochs_s: decision epochs beside the site's own.
        epoch_epsilons: with which they are tried.
    """

    quick: bool
    campus: tuple[tuple[str, Any], ...]
    epsilons: tuple[float, ...]
    sigmas: tuple[float, ...]
    histories: tuple[int, ...]
    epochs_s: tuple[float, ...]
    epoch_epsilons: tuple[float, ...]


FULL: Final = Size(
    quick=False,
    campus=(),
    epsilons=(0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8),
    sigmas=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    histories=(5, 20, 100, 500, 1000),
    epochs_s=(300.0, 900.0, 14_400.0),
    epoch_epsilons=(0.01, 0.05, 0.1),
)
QUICK: Final = Size(
    quick=True,
    campus=(("weeks", 6.0), ("machines", 100), ("clusters", 5)),
    epsilons=(0.01, 0.1, 0.6),
    sigmas=(0.0, 0.8),
    histories=(20, 100),
    epochs_s=(900.0, 14_400.0),
    epoch_epsilons=(0.1,),
)


def sweep(size: Size) -> list[PolicySpec]:
    """Return figures 7 to 11: the cluster level, epsilon by sigma."""
    return [paper_bandit(epsilon=e, sigma=s) for e, s in product(size.epsilons, size.sigmas)]


def at_level(size: Size, level: str) -> list[PolicySpec]:
    """Return figures 12 to 17: one level, by epsilon."""
    return [paper_bandit(level, epsilon) for epsilon in size.epsilons]


def history(size: Size, weights: str) -> list[PolicySpec]:
    """Return figures 18 and 19: the last n rewards, weighted alike (``plain``) or ``gaussian``."""
    return [paper_bandit(history_n=n, history_weights=weights) for n in size.histories]


def epochs(size: Size) -> list[PolicySpec]:
    """Return the bandit at several decision epochs of a queued job; not in the paper."""
    pairs = product(size.epoch_epsilons, size.epochs_s)
    return [paper_bandit(epsilon=e, reconsider_s=s) for e, s in pairs]


def options() -> list[PolicySpec]:
    """Return the three further options of section 7.5."""
    return [paper_bandit(**more) for more in OPTIONS.values()]


def policies(size: Size) -> list[PolicySpec]:
    """Return all policies, each once; random first."""
    parts: list[Iterable[PolicySpec]] = [[RANDOM], sweep(size)]
    parts += [at_level(size, level) for level in LEVELS]
    parts += [history(size, "plain"), history(size, "gaussian"), options(), epochs(size), COMPARED]
    return list(dict.fromkeys(policy for part in parts for policy in part))


def spec_of(policy: PolicySpec, size: Size, seed: int) -> RunSpec:
    """Return one run: the seed makes the year, and is the policy's too."""
    return campus_spec(GeneratedCampus(seed, size.campus), policy, seed)
