"""A workload: jobs with one or many CPUs, and the machines they are meant for. Truth included.

What a Standard Workload Format file or a generator gives. `outrider.simulation.grid_site` plays it.
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
from outrider.model.machines import MachineSpec
from outrider.model.resources import Resources

Floats = NDArray[np.float64]

INTERACTIVE: Final = "interactive"
BATCH: Final = "batch"
INTERACTIVE_BELOW_S: Final = 900.0
"""A job that runs strictly shorter is interactive, where nobody says what its user meant."""

DEFAULT_VO: Final = "all"

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a local wall clock, as in a campus


class SpeedChange(NamedTuple):
    """From a moment on a machine works at another speed, and nobody is told."""

    time_s: float
    machine: int
    speed: float


class GridRules(Struct, frozen=True):
    """How runs behave on a grid beyond the plain.

    Attributes:
        drop_hopeless: a waiting job that could not earn any utility even if it started at once
            is withdrawn by its user.
        node_queues: a machine takes every job it is sent and works them off one after the other,
            as a grid node behind a broker does; a job sent there counts as started.
    """

    drop_hopeless: bool = False
    node_queues: bool = False


@dataclass
class Workload:
    """Jobs in the order of their submission, and machines. Columns have one value per job.

    Attributes:
        name: of the trace.
        job_names: names, by job number.
        submit_s: seconds from the start of the trace, ascending.
        run_s: the truth: run time on all CPUs asked for, at speed 1; seconds, > 0.
        cpus: CPUs asked for, >= 1.
        requested_s: what its user asked for, seconds; nan where nobody said.
        wait_s: the wait the trace's own scheduler made, seconds; nan where the trace has none.
        estimate_s: what policies are told of the run time; nan for nothing.
        user, vo, job_class: by job.
        machine_names, machines: by machine number.
        shares: fair shares by VO that a generator intends; empty: nothing is said.
        resources, eligible: by job what it asks for besides CPUs, and its class of machines; empty:
            nothing, and any machine.
        classes: machines of each class, by its name.
        start: local wall clock at second 0.
        rules: see `GridRules`.
        speed_changes: by time.
        skipped: jobs of the file that were left out, by reason.
        notes: what its reader did to it that people should know.
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
    skipped: dict[str, int] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def is_parallel(self) -> bool:
        """Whether some job asks for more than one CPU."""
        return bool((self.cpus > 1).any())

    def spec(self, job: int) -> JobSpec:
        """What is told of a job when it is submitted."""
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
    """Names and specifications of `n` alike machines with one CPU each."""
    width = len(str(max(n - 1, 0)))
    names = [f"node-{number:0{width}d}" for number in range(n)]
    return names, [MachineSpec(cluster=cluster)] * n


def one_pool(cpus: int, cluster: str = "grid") -> tuple[list[str], list[MachineSpec]]:
    """Name and specification of one machine with all the CPUs: a pool for parallel jobs."""
    return ["pool"], [MachineSpec(cluster=cluster, cpus=cpus)]


def classes_of(run_s: Floats, interactive_below_s: float = INTERACTIVE_BELOW_S) -> list[str]:
    """The class of each job by its run time: `INTERACTIVE` strictly below the limit."""
    short = (run_s < interactive_below_s).tolist()
    return [INTERACTIVE if is_short else BATCH for is_short in short]
