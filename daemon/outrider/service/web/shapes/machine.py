"""The shape of what is told of one machine."""

from typing import Annotated

from msgspec import Meta, Struct

from outrider.service.web.shapes.values import Count, JobState, MachineState, Mode, Unknown


class MachineWatts(Struct):
    """What the machine draws: now, and by the table in each state."""

    now_w: Unknown
    is_measured: Annotated[bool, Meta(description="By its meter; else by the table.")]
    active_w: Unknown
    idle_w: Unknown
    sleep_w: Unknown


class JobOnMachine(Struct):
    """A job that has the machine now."""

    job: str
    state: JobState
    user: str
    vo: str
    cpus: Count
    start_s: float


class RunOnMachine(Struct):
    """A run that ended on the machine; `lost_because` is null where it completed its job."""

    job: str
    vo: str
    cpus: Count
    start_s: float
    end_s: float
    run_s: float
    lost_because: str | None


class FailedStartsThere(Struct):
    """Jobs that were tried on the machine lately, and those that failed within minutes.

    A black hole is a machine where, beyond chance, far more of them fail than the same users' jobs
    do elsewhere; `expected_ratio` is theirs, `low_ratio` the lower bound of the machine's own.
    """

    within_s: float
    tried: Count
    failed: Count
    is_black_hole: bool
    expected_ratio: Unknown
    low_ratio: Unknown


class OwnerWeek(Struct):
    """When the owner was there, by hour of the week of the site's clock."""

    since_s: float
    sessions: Count
    share: Annotated[
        list[list[Unknown]],
        Meta(description="Of the time, 0 to 1; from Monday, 24 hours each; null: not seen then."),
    ]


class OneMachine(Struct):
    """One machine now, and its history as far as the journal holds it.

    `since_s`: since when it is in its state; of a busy one, since the oldest of its runs began.
    `runs`: the last that ended there, the newest first; null where the journal is of a version that
    cannot be asked by machine. `owner_week` is null where no owner was ever seen to come.
    """

    mode: Mode
    now_s: float
    machine: str
    cluster: str
    state: MachineState
    since_s: Unknown
    cpus: Count
    busy_cpus: Count
    inferred: bool
    watts: MachineWatts
    jobs: list[JobOnMachine]
    jobs_total: Count
    runs: list[RunOnMachine] | None
    failed_starts: FailedStartsThere
    owner_week: OwnerWeek | None
