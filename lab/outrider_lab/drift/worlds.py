"""Worlds that change at a moment that is unknown to the policies."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from outrider.formats.workload import Floats, GridRules, SpeedChange, Workload
from outrider.model.utility import DEFAULT_UTILITIES, Linear, TimeUtility
from outrider.simulation.generators.grids import perez_grid, vengerov_grid

ORDERS: Final = "orders"
"""One-CPU jobs of four VOs on fifty machines (Perez et al. 2008): who is next in line."""
PLANS: Final = "plans"
"""Parallel jobs on one machine (Vengerov 2005): who is shrunk or preempted for whom."""

_LATER: Final = 2500
"""Added to a seed for each later part of a world: seeds below 2,500 judge."""
_ROW: Final = 0.4
_LOAD: Final = 0.97
_RATE: Final = 0.15
_GUEST: Final = "5"


class Size(NamedTuple):
    """Sizes of the worlds, in jobs or steps.

    Attributes:
        jobs: of a world of `ORDERS`.
        steps: seconds in which jobs come, in a world of `PLANS`.
    """

    jobs: int
    steps: float


FULL: Final = Size(jobs=6000, steps=12_000.0)
QUICK: Final = Size(jobs=900, steps=3000.0)


class Changing(NamedTuple):
    """A workload, and when it changes (in a world that does not: its middle)."""

    workload: Workload
    change_s: float


class World(NamedTuple):
    """One way in which a world may change.

    Attributes:
        kind: `ORDERS` or `PLANS`.
        changes: what, in words.
        drifts: False for those that stand still, to compare with.
        make: (seed, size) to the workload; every policy meets the same.
        utilities: what completing a job is worth, by class.
    """

    kind: str
    changes: str
    drifts: bool
    make: Callable[[int, Size], Changing]
    utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES


# -- jobs with one CPU --------------------------------------------------------------------------


def _orders(seed: int, size: Size, parts: Sequence[tuple[float, float]]) -> Changing:
    """Return parts after each other, each with a row of Table I and a load."""
    jobs = size.jobs // len(parts)
    made = [
        perez_grid(row, seed + number * _LATER, jobs=jobs, load=load)
        for number, (row, load) in enumerate(parts)
    ]
    return _one_after_the_other(made)


def _one_after_the_other(parts: Sequence[Workload]) -> Changing:
    """Return the parts' jobs, those of each coming when the last of the part before has come."""
    shifts = np.concatenate([[0.0], np.cumsum([part.submit_s[-1] for part in parts])])

    def column(name: str) -> Floats:
        return np.concatenate([getattr(part, name) for part in parts])

    def names(name: str) -> list[str]:
        return [one for part in parts for one in getattr(part, name)]

    whole = dataclasses.replace(
        parts[0],
        job_names=[str(number) for number in range(1, len(names("vo")) + 1)],
        submit_s=column("submit_s") + np.repeat(shifts[:-1], [len(part.vo) for part in parts]),
        run_s=column("run_s"),
        cpus=column("cpus").astype(np.int64),
        requested_s=column("requested_s"),
        wait_s=column("wait_s"),
        estimate_s=column("estimate_s"),
        user=names("user"),
        vo=names("vo"),
        job_class=names("job_class"),
    )
    return Changing(whole, float(shifts[1]))


def _steady(seed: int, size: Size) -> Changing:
    return _orders(seed, size, [(_ROW, _LOAD), (_ROW, _LOAD)])


def _load_step(seed: int, size: Size) -> Changing:
    return _orders(seed, size, [(_ROW, 0.85), (_ROW, 1.15)])


def _mix(seed: int, size: Size) -> Changing:
    return _orders(seed, size, [(0.2, _LOAD), (0.5, _LOAD)])


def _run_times(seed: int, size: Size) -> Changing:
    """Return a world where interactive jobs of ten minutes later take thirty; classes stay."""
    before, after = (
        perez_grid(_ROW, seed + number * _LATER, jobs=size.jobs // 2, load=_LOAD)
        for number in range(2)
    )
    return _one_after_the_other([before, _stretched(after, 3.0)])


def _stretched(workload: Workload, factor: float) -> Workload:
    """Return a world with longer runs that come less often: the load stays."""
    return dataclasses.replace(
        workload,
        submit_s=workload.submit_s * factor,
        run_s=workload.run_s * factor,
        estimate_s=workload.estimate_s * factor,
    )


def _guest_vo(seed: int, size: Size) -> Changing:
    """Return a world where a VO without jobs brings three of ten in the middle part."""
    changing = _orders(seed, size, [(_ROW, _LOAD)] * 3)
    workload = changing.workload
    third = len(workload.vo) // 3
    rng = np.random.default_rng([seed, third])
    vo = list(workload.vo)
    for job in (third + np.flatnonzero(rng.random(third) < 0.3)).tolist():
        vo[job] = _GUEST
    shares = {"1": 0.55, "2": 0.2, "3": 0.05, "4": 0.05, _GUEST: 0.15}
    return changing._replace(workload=dataclasses.replace(workload, vo=vo, shares=shares))


def _slow_nodes(seed: int, size: Size) -> Changing:
    """Return a world where half of the machines, with their runs, slow to half speed."""
    changing = _orders(seed, size, [(_ROW, 0.75), (_ROW, 0.75)])
    slowed = range(len(changing.workload.machines) // 2)
    changes = [SpeedChange(changing.change_s, machine, 0.5) for machine in slowed]
    return changing._replace(workload=dataclasses.replace(changing.workload, speed_changes=changes))


def _mixed_speeds(seed: int, size: Size) -> Changing:
    """Return a world without change: speeds of half to one and a half, known from the start."""
    changing = _steady(seed, size)
    workload = changing.workload
    speeds: Floats = np.linspace(0.5, 1.5, len(workload.machines))
    machines = [
        type(spec)(cluster=spec.cluster, cpus=spec.cpus, speed=speed)
        for spec, speed in zip(workload.machines, speeds.tolist(), strict=True)
    ]
    return changing._replace(workload=dataclasses.replace(workload, machines=machines))


# -- parallel jobs ------------------------------------------------------------------------------


def _plans(seed: int, size: Size, rates: tuple[float, float]) -> tuple[Workload, Workload]:
    """Return a world of two halves; users remove jobs that can earn nothing any more."""
    before, after = (
        dataclasses.replace(
            vengerov_grid(
                rate, seed + number * _LATER, steps="continuous", length_s=size.steps / 2
            ),
            rules=GridRules(drop_hopeless=True),
        )
        for number, rate in enumerate(rates)
    )
    return before, after


def _plans_steady(seed: int, size: Size) -> Changing:
    return _one_after_the_other(_plans(seed, size, (_RATE, _RATE)))


def _plans_load_step(seed: int, size: Size) -> Changing:
    return _one_after_the_other(_plans(seed, size, (0.1, 0.25)))


def _plans_mix(seed: int, size: Size) -> Changing:
    """Return a world where jobs of half the CPUs come twice as often."""
    before, after = _plans(seed, size, (_RATE, 2.0 * _RATE))
    narrow = dataclasses.replace(after, cpus=np.maximum(after.cpus // 2, 2))
    return _one_after_the_other([before, narrow])


def _plans_run_times(seed: int, size: Size) -> Changing:
    before, after = _plans(seed, size, (_RATE, _RATE))
    return _one_after_the_other([before, _stretched(after, 4.0)])


def _plans_slow_nodes(seed: int, size: Size) -> Changing:
    changing = _plans_steady(seed, size)
    changes = [SpeedChange(changing.change_s, 0, 0.6)]
    return changing._replace(workload=dataclasses.replace(changing.workload, speed_changes=changes))


_LINEAR: Final[Mapping[str, TimeUtility]] = {"batch": Linear()}

WORLDS: Final[Mapping[str, World]] = {
    "steady": World(ORDERS, "nothing", False, _steady),
    "mixed speeds": World(ORDERS, "nothing; machines differ", False, _mixed_speeds),
    "load step": World(ORDERS, "load .85 to 1.15", True, _load_step),
    "mix": World(ORDERS, "interactive jobs from 20 to 50 %", True, _mix),
    "run times": World(ORDERS, "every class takes three times as long", True, _run_times),
    "guest VO": World(ORDERS, "a VO joins with 30 % of the jobs, and leaves", True, _guest_vo),
    "slow nodes": World(ORDERS, "half of the machines at half speed", True, _slow_nodes),
    "plans: steady": World(PLANS, "nothing", False, _plans_steady, _LINEAR),
    "plans: load step": World(PLANS, "rate .1 to .25", True, _plans_load_step, _LINEAR),
    "plans: mix": World(PLANS, "half the CPUs, twice as often", True, _plans_mix, _LINEAR),
    "plans: run times": World(PLANS, "four times as long", True, _plans_run_times, _LINEAR),
    "plans: slow node": World(PLANS, "the machine at .6 speed", True, _plans_slow_nodes, _LINEAR),
}
