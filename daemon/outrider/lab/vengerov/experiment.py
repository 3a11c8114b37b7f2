"""One experiment: a policy, trained if it learns, on one stream of arrivals."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy as np

from outrider.api.policy import Policy
from outrider.formats.workload import GridRules, Workload
from outrider.lab.vengerov.grid import (
    AGGRESSIVE,
    BAD,
    INTEGER,
    LEARNED,
    REPLAN,
    ZERO,
    Size,
    Variant,
)
from outrider.lab.vengerov.steps import StepRun
from outrider.model.events import COMPLETED, RESIZED, RESUMED, STARTED, SUSPENDED, Event
from outrider.model.utility import Rising, TimeUtility, make_utility
from outrider.plugins.making import make_policy
from outrider.simulation.generators.grids.vengerov import CPUS, LONGEST_S, vengerov_grid

TRAINING_SEEDS: Final = 10_000
"""Added to a seed to train on: no arrivals that judge are ever learned from."""
WINDOWS: Final = 20
"""Stretches of equal length over which productivity is followed."""
BAD_OUTPUTS: Final = (1.0, 3.0, 1.0, 3.0, -3.0, -1.0, -3.0, -1.0)
"""A value function that likes low utility and idle CPUs: the opposite of what it would learn."""
RISING: Final = Rising(least=0.5, full_s=20.0)
"""Section 6 names no figures: half at once, all after waiting twice the longest job."""


class Experiment(msgspec.Struct, frozen=True):
    """A variant on a seed; picklable."""

    variant: Variant
    size: Size
    seed: int

    def __str__(self) -> str:
        """In words."""
        return f"{self.variant}, seed {self.seed}"

    def make_policy(self) -> Policy:
        """The policy, untrained. Raises `ConfigurationError`, `PluginError`."""
        variant = self.variant
        name = variant.policy if variant.policy in (AGGRESSIVE, REPLAN) else "fuzzy_td"
        settings: dict[str, Any] = {}
        if name != REPLAN:
            settings = {
                "preempt": variant.deeds.preempt,
                "oversubscribe": variant.deeds.over,
            }
        if variant.policy == LEARNED:
            settings |= {"inputs": variant.inputs, "longest_s": float(LONGEST_S)}
        if variant.beyond:
            settings |= {"skip_hopeless": True, "weigh_replan": True}
        if variant.start != ZERO:
            settings |= {"first_outputs": BAD_OUTPUTS, "learn": variant.start == BAD}
        policy = make_policy(name, settings, self.seed, str(self))
        policy.wants_scores = False
        return policy


def run_experiment(experiment: Experiment) -> dict[str, Any]:
    """Train if there is something to train, then measure.

    Returns:
        `utility_k` (thousands of unit utility x CPU-seconds), `utilisation_ratio` (equation 7: busy
        CPU-seconds over all), `productivity` (equation 8), `by_window` (utility a step in each
        stretch), `completed`, `outputs` (what each rule says at the end; None for who does not
        learn).

    Raises:
        OutriderError: the policy is not installed or failed.
    """
    variant, size = experiment.variant, experiment.size
    policy = experiment.make_policy()
    if variant.policy == LEARNED and variant.start == ZERO:
        seed = experiment.seed + TRAINING_SEEDS
        lesson = _workload(variant, seed, size.train_steps)
        run = _run(lesson, policy, variant, size.train_steps)
        for _ in run.stream():
            pass
        memory = policy.save(run.site)
        policy = experiment.make_policy()
        policy.restore(_without_course(memory), run.site)
    workload = _workload(variant, experiment.seed, size.test_steps)
    run = _run(workload, policy, variant, size.test_steps)
    figures = _measured(run.stream(), workload, _utility(variant), size.test_steps)
    rules = policy.scores((), run.site).values() if variant.policy == LEARNED else ()
    return figures | {"outputs": list(rules) or None}


def _without_course(memory: Mapping[str, Any]) -> dict[str, Any]:
    """What was learned, without where the machine stood: the next run begins empty."""
    return {**memory, "transitions": [], "planned_s": None, "has_news": True}


def _workload(variant: Variant, seed: int, steps: int) -> Workload:
    scene = variant.scene
    workload = vengerov_grid(scene.rate, seed, steps=scene.steps, length_s=float(steps))
    workload.rules = GridRules(drop_hopeless=scene.drop_hopeless)
    return workload


def _utility(variant: Variant) -> TimeUtility:
    if variant.scene.shape == "rising":
        return RISING
    return make_utility({"shape": variant.scene.shape}, str(variant))


def _run(workload: Workload, policy: Policy, variant: Variant, steps: int) -> StepRun:
    utilities = {"batch": _utility(variant)}
    return StepRun(workload, policy, float(steps), utilities, variant.scene.steps == INTEGER)


def _measured(
    events: Iterator[Event], workload: Workload, utility: TimeUtility, steps: int
) -> dict[str, Any]:
    """What the run brought, from its events and the truth alone."""
    cpus: dict[int, int] = {}
    busy = busy_s = since_s = 0.0
    ends: list[tuple[float, int]] = []
    for time_s, kind, subject, extra in events:
        before = cpus.get(subject, 0) if kind in _CHANGES else 0
        if kind == COMPLETED:
            ends.append((time_s, subject))
        if kind in _CHANGES:
            busy_s += busy * (time_s - since_s)
            since_s = time_s
            cpus[subject] = _cpus_after(kind, extra)
            busy += cpus[subject] - before
    busy_s += busy * (steps - since_s)
    end_s, jobs = np.array([end for end, _ in ends]), np.array([job for _, job in ends], dtype=int)
    ideal_s = workload.run_s[jobs]
    unit = utility.unit(end_s - workload.submit_s[jobs], ideal_s)
    worth = unit * ideal_s * workload.cpus[jobs]
    window = np.minimum(end_s * WINDOWS / steps, WINDOWS - 1).astype(int)
    return {
        "utility_k": float(worth.sum()) / 1000.0,
        "utilisation_ratio": busy_s / (CPUS * steps),
        "productivity": float(worth.sum()) / (CPUS * steps),
        "by_window": (np.bincount(window, worth, WINDOWS) * WINDOWS / steps).tolist(),
        "completed": len(jobs),
    }


_CHANGES: Final = frozenset({STARTED, RESIZED, RESUMED, SUSPENDED, COMPLETED})


def _cpus_after(kind: int, extra: Any) -> int:
    """CPUs of a job after an event about its run."""
    if kind in (STARTED, RESUMED):
        return int(extra[1])
    return int(extra) if kind == RESIZED else 0
