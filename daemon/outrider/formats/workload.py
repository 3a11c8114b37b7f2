"""Workload: jobs with one or many CPUs and their true run times, and the machines for them.

Read from a Standard Workload Format file or generated; `outrider.simulation.grid_site` replays it.
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources

Floats = NDArray[np.float64]

INTERACTIVE: Final = "interactive"
BATCH: Final = "batch"
SHORT_BELOW_S: Final = 900.0
"""Seconds of true run time by which reports group waits by default; policies never see it."""

DECLARED: Final = "declared"
"""Source of the classes, or estimates, of a workload whose maker gave each job its own."""

DEFAULT_VO: Final = "all"

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a local wall clock, as in a campus


class SpeedChange(NamedTuple):
    """Change of a machine's speed from `time_s` on; policies are not informed."""

    time_s: float
    machine: int
    speed: float


class GridRules(Struct, frozen=True):
    """Special rules for runs on a grid.

    Attributes:
        drop_hopeless: a queued job that could not earn any utility even if it started immediately
            is withdrawn by its user.
        node_queues: a machine accepts every job and runs them one after the other, like a grid
            node behind a broker; a job counts as started once it is sent there.
    """

    drop_hopeless: bool = False
    node_queues: bool = False


@dataclass
class Workload:
    """Jobs in order of submission, and machines. Columns have one value per job.

    Attributes:
        name: of the trace.
        job_names: (jobs,) the trace's names.
        submit_s: (jobs,) seconds from the start of the trace, ascending.
        run_s: (jobs,) true run time on all requested CPUs at speed 1; seconds, > 0.
        cpus: (jobs,) requested CPUs, >= 1.
        requested_s: (jobs,) run time requested by the user, seconds; nan where not given.
        wait_s: (jobs,) wait under the trace's own scheduler, seconds; nan where not recorded.
        estimate_s: (jobs,) run time estimate given to policies, seconds; nan: none.
        user, vo, job_class: (jobs,) names.
        class_source: where the classes come from, as reports name it: the name of the rule of
            `outrider.formats.job_classes`, or `DECLARED`.
        estimate_source: where the estimates come from, as reports name it: the name of a rule of
            `outrider.simulation.estimates`, or `DECLARED`.
        vo_column: the column of the file that the VO was read from, as reports name it.
        group_vos_below: VOs that requested a smaller share than this were merged into one.
        machine_names, machines: by machine number.
        shares: target shares by VO intended by a generator; empty: none.
        resources, eligible: by job, the resources requested besides CPUs, and its class of
            machines; empty: none, and any machine.
        classes: machines of each class, by its name.
        start: local wall clock at second 0.
        rules: special rules for runs.
        speed_changes: sorted by time.
        skipped: number of jobs of the file that were left out, by reason.
        notes: changes made by the reader that users should know about.
    """

    name: str
    job_names: list[str]
    submit_s: Floats
    run_s: Floats
    cpus: NDArray[np.int64]
    requested_s: Floats
    wait_s: Floats
    estimate_s: Floats
    user: list[str]
    vo: list[str]
    job_class: list[str]
    machine_names: list[str]
    machines: list[MachineSpec]
    shares: Mapping[str, float] = field(default_factory=dict)
    resources: Sequence[Resources | None] = ()
    eligible: Sequence[str] = ()
    classes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    start: dt.datetime = EPOCH
    rules: GridRules = field(default_factory=GridRules)
    speed_changes: Sequence[SpeedChange] = ()
    class_source: str = DECLARED
    estimate_source: str = DECLARED
    vo_column: str = "group"
    group_vos_below: float = 0.0
    skipped: dict[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def is_parallel(self) -> bool:
        """True if any job requests more than one CPU."""
        return bool((self.cpus > 1).any())

    def spec(self, job: int) -> JobSpec:
        """Return the specification of a job as submitted, without its true run time."""
        estimate_s = float(self.estimate_s[job])
        return JobSpec(
            user=self.user[job],
            vo=self.vo[job],
            job_class=self.job_class[job],
            cpus=int(self.cpus[job]),
            estimate_s=None if isnan(estimate_s) else estimate_s,
            resources=self.resources[job] if self.resources else None,
            eligible=self.eligible[job] if self.eligible else "",
        )


def one_cpu_machines(n: int, cluster: str = "grid") -> tuple[list[str], list[MachineSpec]]:
    """Return names and specifications of `n` equal machines with one CPU each."""
    width = len(str(max(n - 1, 0)))
    names = [f"node-{number:0{width}d}" for number in range(n)]
    return names, [MachineSpec(cluster=cluster)] * n


def one_pool(cpus: int, cluster: str = "grid") -> tuple[list[str], list[MachineSpec]]:
    """Return name and specification of one machine with all the CPUs, for parallel jobs."""
    return ["pool"], [MachineSpec(cluster=cluster, cpus=cpus)]
