"""Machines that a pass leaves out are those on which a plan would change nothing."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from outrider.api import Policy
from outrider.formats.workload import Workload
from outrider.model import events as ev
from outrider.model.utility import Constant, Linear, Step, TimeUtility
from outrider.simulation.generators.grids.workloads import perez_grid
from outrider.testing.fixtures import HandSite, made, played
from outrider_policies.planning.baselines import Aggressive, Replan
from outrider_policies.planning.fuzzy_td import FuzzyTd
from outrider_policies.planning.open_machines import OpenMachines
from outrider_policies.planning.queued_jobs import QueuedJobs, RunLengths

KINDS: list[tuple[type[Policy], dict[str, Any]]] = [
    (Replan, {}),
    (Aggressive, {}),
    (Aggressive, {"preempt": False}),
    (FuzzyTd, {}),
    (FuzzyTd, {"oversubscribe": False}),
    (FuzzyTd, {"skip_hopeless": True, "weigh_replan": True}),
]
UTILITIES: list[dict[str, TimeUtility]] = [
    {"batch": Linear(), "interactive": Constant()},
    {"batch": Step(600.0), "interactive": Linear(3.0)},
]


def unlike_machines(seed: int, load: float) -> Workload:
    """Parallel jobs on eight machines of several sizes and speeds; some jobs fit on few of them."""
    jobs, machines = 120, 8
    grid, rng = perez_grid(0.4, seed, jobs=jobs, machines=machines), np.random.default_rng(seed)
    cpus = rng.integers(1, 7, jobs)
    sizes = zip(rng.integers(2, 9, machines), rng.choice([0.5, 1.0, 2.0], machines), strict=True)
    specs = [
        msgspec.structs.replace(spec, cpus=int(size), speed=float(speed))
        for spec, (size, speed) in zip(grid.machines, sizes, strict=True)
    ]
    power = sum(spec.cpus * spec.speed for spec in specs)
    drawn = float((grid.run_s * cpus).sum() / (grid.submit_s[-1] * power))
    estimate_s = np.where(rng.random(jobs) < 0.1, np.nan, grid.run_s * rng.uniform(0.5, 3.0, jobs))
    return dataclasses.replace(
        grid,
        submit_s=grid.submit_s * drawn / load,
        cpus=cpus,
        machines=specs,
        estimate_s=estimate_s,
    )


def every_one(self: OpenMachines, queued: QueuedJobs, could: Callable[[], Any]) -> Iterator[int]:
    return iter(self.machines)


@pytest.mark.parametrize("utilities", UTILITIES, ids=("linear", "step"))
@pytest.mark.parametrize(("kind", "settings"), KINDS)
def test_planning_every_machine_in_every_pass_decides_the_same(
    kind: type[Policy],
    settings: dict[str, Any],
    utilities: dict[str, TimeUtility],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workloads = [unlike_machines(1, 0.9), unlike_machines(2, 1.6)]
    some = [played(made(kind, **settings), one, utilities).rows for one in workloads]
    monkeypatch.setattr(OpenMachines, "_in_turn", every_one)
    assert [played(made(kind, **settings), one, utilities).rows for one in workloads] == some
    assert min(map(len, some)) > 120


def test_a_machine_with_a_run_that_is_suspended_there_is_planned() -> None:
    hand = HandSite(Replan)
    hand.machines(1, 1)
    hand.policy.rearrange = lambda queue, view: ()
    for job in (0, 1):
        hand.submit(job, estimate_s=2_000.0)
        hand.tell(ev.STARTED, job, (job, 1))
    hand.tell(ev.SUSPENDED, 1, None)
    machines = OpenMachines(hand.site, RunLengths(3_600.0, None))
    assert machines.is_irregular.tolist() == [False, True]
    assert machines.runs() == {0: {0: 1}, 1: {1: 1}}
