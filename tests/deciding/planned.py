"""Workloads under the planning policies: what they did, and what it brought."""

from typing import Any, NamedTuple

from deciding.hand_workload import Asked, make_workload
from deciding.plays import chance
from outrider.api import Policy
from outrider.model.events import KIND_NAMES
from outrider.model.utility import Constant, Linear, TimeUtility
from outrider.replay.grid_run import GridRun
from outrider.virtual.workload import Workload

LINEAR: dict[str, TimeUtility] = {"batch": Linear(), "interactive": Constant()}
"""Vengerov's figure 1 for batch jobs; interactive ones stand for those that never lose worth."""


class Done(NamedTuple):
    """A run: decisions (second, job, action, CPUs, reason), job events by job, and the report."""

    rows: list[tuple[float, str, str, int, str]]
    told: dict[int, list[tuple[float, str, Any]]]
    report: dict[str, Any]

    def did(self, job: int, *actions: str) -> list[tuple[float, int]]:
        """When it did one of these with a job, and on how many CPUs."""
        name = f"j{job}"
        return [(t, cpus) for t, j, action, cpus, _ in self.rows if j == name and action in actions]

    def ended(self, job: int) -> float:
        """When a job completed."""
        return next(t for t, kind, _ in self.told[job] if kind == "completed")


def made(kind: type[Policy], **settings: Any) -> Policy:
    """A policy with its defaults but these."""
    return kind(kind.settings_type(**settings), chance(kind.name))


def played(
    policy: Policy,
    workload: Workload,
    utilities: dict[str, TimeUtility] | None = None,
    until_s: float | None = None,
) -> Done:
    """Let a policy act on a workload."""
    rows: list[tuple[float, str, str, int, str]] = []
    told: dict[int, list[tuple[float, str, Any]]] = {}

    def keep(time_s: float, job: str, action: str, machine: str | None, cpus: int,
             reason: str, *rest: Any) -> None:  # fmt: skip
        rows.append((time_s, job, action, cpus, reason))

    run = GridRun(workload, [policy], keep, until_s=until_s, utilities=utilities or LINEAR)
    for time_s, kind, subject, extra in run.stream():
        told.setdefault(subject, []).append((time_s, KIND_NAMES[kind], extra))
    return Done(rows, told, run.run())


def on_one_machine(policy: Policy, cpus: int, *jobs: Asked, **more: Any) -> Done:
    """The same for jobs written by hand, on one machine."""
    return played(policy, make_workload([cpus], jobs), **more)
