"""Rewards by name: each is the change of a figure that reports publish, so that their sum is it."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from outrider.engine.accounting.report import energy_wh
from outrider.formats.workload import Workload
from outrider.model.errors import ConfigurationError, nearest
from outrider.replay.run import TraceRun
from outrider.replay.traces import Trace

Figure = Callable[[TraceRun, int], float]
"""The figure until now, of a run whose trace has so many jobs."""


class Reward(NamedTuple):
    """One kind of reward.

    Attributes:
        sign: 1 where more is better, -1 where less is.
        until_now: the figure while the run goes on.
        published: the figure in the report of the finished run; None where it is unknown.
        words: what the rewards of an episode sum up to.
    """

    sign: float
    until_now: Figure
    published: Callable[[Mapping[str, Any], int], float | None]
    words: str


def _slowdown(run: TraceRun, jobs_n: int) -> float:
    return run.accounting.slowdown.total / jobs_n


def _wait_s(run: TraceRun, jobs_n: int) -> float:
    return sum(waits.total for waits in run.accounting.waits.values()) / jobs_n


def _utilisation(run: TraceRun, jobs_n: int) -> float:
    site, accounting = run.site, run.accounting
    cpu_s = (site.now - (accounting.begin_s or 0.0)) * sum(site.cpus)
    return (accounting.goodput_s + accounting.badput_s) / cpu_s if cpu_s > 0.0 else 0.0


def _energy_wh(run: TraceRun, jobs_n: int) -> float:
    return sum(wh or 0.0 for wh in energy_wh(run.accounting, run.site).values())


def _utility(run: TraceRun, jobs_n: int) -> float:
    return run.accounting.utility.total


def _mean_over(jobs_n: int, summary: Mapping[str, Any]) -> float:
    """The published mean; of jobs that have none yet, 0."""
    mean: float | None = summary["mean"]
    return 0.0 if mean is None else mean * summary["n"] / jobs_n


def _published_energy_wh(report: Mapping[str, Any], jobs_n: int) -> float | None:
    wh = list(report["energy_wh"].values())
    return None if None in wh else sum(wh)


REWARDS: Final[Mapping[str, Reward]] = {
    "bounded_slowdown": Reward(
        -1.0, _slowdown, lambda told, n: _mean_over(n, told["bounded_slowdown"]["all"]),
        "minus the mean bounded slowdown",
    ),
    "wait": Reward(
        -1.0, _wait_s, lambda told, n: _mean_over(n, told["wait_s"]["all"]),
        "minus the mean wait, seconds",
    ),
    "utilisation": Reward(
        1.0, _utilisation, lambda told, n: told["utilisation_ratio"] or 0.0,
        "the utilisation, 0 to 1",
    ),
    "energy": Reward(
        -1.0, _energy_wh, _published_energy_wh, "minus the energy of all purposes, watt-hours",
    ),
    "utility": Reward(
        1.0, _utility, lambda told, n: told["utility"]["total"],
        "the utility of completed jobs, CPU-seconds",
    ),
}  # fmt: skip
"""By name. Means are over all jobs of the episode's trace: in an episode that is cut off, jobs that
did not get so far count 0."""


def reward_named(name: str) -> Reward:
    """The reward. Raises `ConfigurationError`."""
    if name not in REWARDS:
        raise ConfigurationError(f'reward "{name}": {nearest(name, REWARDS)}')
    return REWARDS[name]


def check_known(name: str, trace: Trace, label: str) -> None:
    """Whether a trace tells what a reward needs. Raises `ConfigurationError`."""
    if name != "energy":
        return
    if isinstance(trace, Workload):
        known = all(machine.active_w is not None for machine in trace.machines)
    else:
        known = not np.isnan(trace.active_w).any()
    if not known:
        raise ConfigurationError(
            f'reward "energy": {label} does not tell what its machines draw; right would be a '
            "campus with watts in machines.csv, or another reward"
        )
