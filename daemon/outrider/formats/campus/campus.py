"""A campus as data: machines, owner sessions and jobs of one trace, in columns."""

import datetime as dt
from dataclasses import dataclass, field
from math import inf, isnan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.model.machines import ClusterSpec, Resources

# -- amounts ---------------------------------------------------------------------------------------
# Amounts of CPUs, memory and GPUs in columns: what machines have, and what jobs request.


@dataclass(slots=True)
class Amounts:
    """Optional columns of ``machines.csv`` or ``jobs.csv``; a row is a machine or a job.

    Attributes:
        cpus: (rows,) CPUs, at least 1.
        memory_mib, gpus: (rows,) memory in MiB, and GPUs; nan: the machine does not declare it,
            so that it is not checked there, or the job does not request it.
    """

    cpus: NDArray[np.int32]
    memory_mib: NDArray[np.float64]
    gpus: NDArray[np.float64]

    @property
    def is_plain(self) -> bool:
        """True if every row has one CPU and declares nothing else, as without these columns."""
        return bool((self.cpus == 1).all() and np.isnan((self.memory_mib, self.gpus)).all())

    @property
    def is_wide(self) -> bool:
        """True if any row has several CPUs."""
        return bool((self.cpus > 1).any())

    def rows(self, order: Any) -> "Amounts":
        """Return some rows, in an order."""
        return Amounts(self.cpus[order], self.memory_mib[order], self.gpus[order])

    def declared(self, row: int) -> Resources | None:
        """Return what a machine declares besides its CPUs; None: nothing."""
        return _resources(float(self.memory_mib[row]), float(self.gpus[row]))

    def requested(self, row: int) -> Resources | None:
        """Return what a job requests besides CPUs; 0 is nothing."""
        return _resources(float(self.memory_mib[row]) or np.nan, float(self.gpus[row]) or np.nan)


def _resources(memory_mib: float, gpus: float) -> Resources | None:
    if isnan(memory_mib) and isnan(gpus):
        return None
    return Resources(
        None if isnan(memory_mib) else memory_mib, None if isnan(gpus) else gpus
    )  # fmt: skip


# -- campus ----------------------------------------------------------------------------------------

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
LATEST_S: Final = 1e9
"""Longest trace: 31 years. A later time is an error, most often a Unix time."""
ONLY_SEPARATOR: Final = "+"
"""Separator between the names of clusters in the column ``only``."""


class RunRules(NamedTuple):
    """Costs of a run other than its work, and how much of it survives a log-in.

    The defaults are those of McGough and Forshaw: no costs, and evictions lose everything.

    Attributes:
        wake_s: seconds a job waits for its machine if it had to be woken.
        wake_j: joules of waking a machine for a job.
        transfer_s: seconds a job copies its data at every start, before it works.
        suspend_s: seconds a job stays suspended after a log-in before it is evicted.
        checkpoint_every_s: seconds of work between two checkpoints of a run.
    """

    wake_s: float = 0.0
    wake_j: float = 0.0
    transfer_s: float = 0.0
    suspend_s: float = 0.0
    checkpoint_every_s: float = inf


PLAIN_RUNS: Final = RunRules()


@dataclass(slots=True)
class Campus:
    """The three tables of a campus and its ``site.toml``, checked, in columns.

    Machine, job and cluster numbers are positions in these columns.

    Attributes:
        name: for reports.
        start: local wall clock of second 0.
        reboot_s: second of the day of the nightly reboot, None for none.
        idle_before_job_open_s, idle_before_job_closed_s: delay between a log-out or reboot and
            the time from which jobs may use the machine, by whether its cluster is then open.
        reconsider_s: the site's decision epoch, seconds.
        clusters: in the order of ``site.toml``, then those that only machines name.
        machine_names: (machines,) host names.
        machine_cluster: (machines,) cluster number.
        active_w, idle_w, sleep_w: (machines,) watts; nan where unknown.
        session_machine, login_s, logout_s: (sessions,) owner sessions, sorted by log-in.
        job_names: (jobs,) names; jobs are sorted by submission.
        submit_s: (jobs,) seconds.
        run_s: (jobs,) true run time in seconds; nan = never ends by itself.
        kill_s: (jobs,) second of the trace at which the job is removed; nan = never.
        user, vo: (jobs,) index into `user_names`, `vo_names`.
        skipped: number of rows left out under ``--skip-bad``, by reason.
        run_rules: costs of runs and what survives evictions.
        end_s: the trace lasts at least until this second.
        capacities: what machines have; None: one CPU each, and nothing else declared.
        requests: what jobs request; None: one CPU each.
        only: (jobs,) names of the clusters where each may run, joined by ``+``; empty: anywhere.
            None: no job is restricted.
        estimate_s: (jobs,) run time requested by the user, seconds; nan: not given. None: never
            given.
    """

    name: str
    start: dt.datetime
    reboot_s: float | None
    idle_before_job_open_s: float
    idle_before_job_closed_s: float
    reconsider_s: float
    clusters: list[ClusterSpec]
    machine_names: list[str]
    machine_cluster: Ints
    active_w: Floats
    idle_w: Floats
    sleep_w: Floats
    session_machine: Ints
    login_s: Floats
    logout_s: Floats
    job_names: list[str]
    submit_s: Floats
    run_s: Floats
    kill_s: Floats
    user: Ints
    vo: Ints
    user_names: list[str]
    vo_names: list[str]
    skipped: dict[str, int] = field(default_factory=dict)
    run_rules: RunRules = PLAIN_RUNS
    end_s: float = 0.0
    capacities: Amounts | None = None
    requests: Amounts | None = None
    only: list[str] | None = None
    estimate_s: Floats | None = None

    @property
    def shares_machines(self) -> bool:
        """True if several jobs may run on a machine together."""
        return self.capacities is not None and self.capacities.is_wide

    @property
    def is_narrow(self) -> bool:
        """True if every job requests one CPU of any machine."""
        return self.requests is None and self.only is None

    def members_of(self, only: str) -> list[int]:
        """Return the numbers of the machines of some clusters, their names joined by ``+``."""
        names = set(only.split(ONLY_SEPARATOR))
        numbers = [n for n, spec in enumerate(self.clusters) if spec.name in names]
        members: list[int] = np.flatnonzero(np.isin(self.machine_cluster, numbers)).tolist()
        return members

    @property
    def span_s(self) -> float:
        """Length of the trace, seconds: `end_s` or its last event, whichever is later."""
        last = [self.end_s]
        for column in (self.logout_s, self.submit_s, self.kill_s):
            known = column[~np.isnan(column)]
            if known.size:
                last.append(float(known.max()))
        return max(last)
