"""A policy that follows a script of moves, and what a workload looks like under it."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deciding.hand_workload import Asked, make_workload
from outrider.api import Move, Policy, Queue, SiteView
from outrider.model.events import KIND_NAMES
from outrider.model.utility import DEFAULT_UTILITIES, TimeUtility
from outrider.replay.grid_run import GridRun
from outrider.virtual.workload import GridRules, SpeedChange, Workload

Script = Mapping[float, Sequence[tuple[str, int, int]]]
"""At a second of event time: (action, job, CPUs), all on machine 0."""


class Scripted(Policy):
    """Makes the moves of its script, each in the first round at or after its second."""

    name = "scripted"
    description = "for tests: follows a script"

    def __init__(self, script: Script) -> None:
        super().__init__(self.settings_type(), random.Random(0))
        self._left = dict(script)

    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """The moves that are due."""
        for at_s, moves in list(self._left.items()):
            if at_s <= view.now:
                del self._left[at_s]
                yield from (Move(action, job, 0, cpus, "script") for action, job, cpus in moves)


class Told(GridRun):
    """A run under a script; `told` is what happened to each job: (second, kind, extra)."""

    def __init__(
        self, workload: Workload, policy: Policy, utilities: Mapping[str, TimeUtility]
    ) -> None:
        self.rows: list[tuple[Any, ...]] = []
        keep = self.rows.append
        super().__init__(workload, [policy], lambda *row: keep(row[:5]), utilities=utilities)
        self.told: dict[int, list[tuple[float, str, Any]]] = {}
        for time_s, kind, subject, extra in self.stream():
            name = KIND_NAMES[kind]
            if name not in ("joined", "tick", "submitted"):
                self.told.setdefault(subject, []).append((time_s, name, extra))
        self.report = self.run()  # nothing is left to happen: the report alone


def told(
    jobs: Sequence[Asked],
    script: Script,
    cpus: int = 4,
    rules: GridRules | None = None,
    speed_changes: Sequence[SpeedChange] = (),
    utilities: Mapping[str, TimeUtility] = DEFAULT_UTILITIES,
) -> Told:
    """Play jobs on one machine under a script."""
    workload = make_workload([cpus], jobs)
    workload.rules = rules or GridRules()
    workload.speed_changes = speed_changes
    return Told(workload, Scripted(script), utilities)
