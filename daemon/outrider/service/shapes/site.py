"""Shapes of answers about the site: machines, users, VOs, CPU use, its utility to a broker.

They follow the rules of `outrider.service.shapes.values`.
"""

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from outrider.model.jobs import JobState
from outrider.service.shapes.status import Energy
from outrider.service.shapes.values import (
    Count,
    Gaps,
    MachineState,
    Mode,
    Next,
    OutsideText,
    Unknown,
    UserName,
    VoName,
)

# -- machines --------------------------------------------------------------------------------------


Draining: TypeAlias = Annotated[
    bool, Meta(description="It runs jobs, but accepts no more: drained, or outside its hours.")
]
ClosedBecause: TypeAlias = Annotated[
    OutsideText | None,
    Meta(
        description="Why an administrator drains it, in the batch system's words; null: it is not "
        "drained, or no reason is known."
    ),
]


class MachineRow(Struct):
    """The current state of one machine."""

    machine: str
    cluster: str
    state: MachineState
    cpus: Count
    busy_cpus: Count
    active_w: Unknown
    inferred: bool
    draining: Draining = False
    closed_because: ClosedBecause = None


class Machines(Struct):
    """Machines that the daemon knows now; `total` includes those on other pages."""

    mode: Mode
    now_s: float
    machines: list[MachineRow]
    total: Count
    next: Next = None
    no_data: Gaps = []


class MachineWatts(Struct):
    """The machine's power: now, and as configured for each state."""

    now_w: Unknown
    is_measured: Annotated[
        bool, Meta(description="True: `now_w` is from its meter; else configured.")
    ]
    active_w: Unknown
    idle_w: Unknown
    sleep_w: Unknown


class JobOnMachine(Struct):
    """A job that is on the machine now."""

    job: str
    state: JobState
    user: UserName
    vo: VoName
    cpus: Count
    start_s: float


class RunOnMachine(Struct):
    """A run that ended on the machine; `lost_because` is null if it completed its job."""

    job: str
    vo: VoName
    cpus: Count
    start_s: float
    end_s: float
    run_s: float
    lost_because: str | None


class FailedStartsThere(Struct):
    """Recent starts on the machine, and those that failed within minutes.

    A black hole is a machine where significantly more of them fail than the same users' jobs do
    elsewhere. `expected_ratio` is the ratio elsewhere, `low_ratio` the lower bound of the machine's
    own ratio.
    """

    within_s: float
    tried: Count
    failed: Count
    is_black_hole: bool
    expected_ratio: Unknown
    low_ratio: Unknown


class OwnerWeek(Struct):
    """The owner's presence by hour of the week of the site's clock."""

    since_s: float
    sessions: Count
    share: Annotated[
        list[list[Unknown]],
        Meta(
            description="Share of the time with an owner, 0 to 1: from Monday, 24 hours each; "
            "null: never observed at that hour."
        ),
    ]


class OneMachine(Struct):
    """One machine now, with its history in the journal.

    `since_s`: since when it is in its state; for a busy one, the start of its oldest run. `runs`:
    the last that ended there, the newest first; null if the journal's version cannot be searched by
    machine. `owner_week` is null if no owner was ever seen.
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
    draining: Draining = False
    closed_because: ClosedBecause = None
    no_data: Gaps = []


# -- users and vos ---------------------------------------------------------------------------------


class UserRow(Struct):
    """One user in one VO, with counts of the current jobs."""

    user: UserName
    vo: VoName
    queued: Count
    running: Count
    suspended: Count
    held: Count
    busy_cpus: Count
    wait_p50_s: Unknown
    wait_p95_s: Unknown
    longest_wait_s: Unknown
    lost_s: float


class Users(Struct):
    """Users with the most CPUs in use first; `total` includes those on other pages.

    The cursor is a place in this order: a user whose place changes between two requests may be on
    both pages, or on none.

    `wait_p50_s`, `wait_p95_s` and `longest_wait_s`: median, 95th percentile and maximum of the
    waits of currently waiting jobs, null if none waits. `lost_s`: seconds of all wasted runs of
    these jobs.
    """

    mode: Mode
    now_s: float
    users: list[UserRow]
    total: Count
    next: Next = None
    no_data: Gaps = []


class WaitQuantile(Struct):
    """A quantile of waits in seconds, with bounds, since waits are counted in buckets.

    Above the last bound (a week) neither `about` nor `high` is known.
    """

    low: Annotated[float, Meta(ge=0, description="Lower bound of the bucket.")]
    about: Annotated[
        Unknown, Meta(description="Estimate that assumes evenly spread waits in the bucket.")
    ]
    high: Annotated[Unknown, Meta(description="Upper bound of the bucket.")]


class VoRow(Struct):
    """Figures of one VO since `since_s`."""

    vo: VoName
    share: Annotated[Unknown, Meta(description="Share of all delivered CPU-seconds, 0 to 1.")]
    target: Annotated[Unknown, Meta(description="Target share.")]
    started: Annotated[Count, Meta(description="Jobs that began their first run.")]
    wait_mean_s: Annotated[
        Unknown, Meta(description="Mean wait of these jobs, from submission to first start.")
    ]
    wait_p50_s: Annotated[
        WaitQuantile | None, Meta(description="Median of these waits; null: none started.")
    ]
    wait_p95_s: Annotated[
        WaitQuantile | None,
        Meta(description="95th percentile of these waits; null: none started."),
    ]
    kept_cpu_s: Annotated[float, Meta(description="CPU-seconds of runs that completed.")]
    thrown_away_cpu_s: Annotated[float, Meta(description="CPU-seconds of wasted runs.")]


class Vos(Struct):
    """VOs sorted by the names that this client sees; `total` includes those on other pages.

    The cursor is a place in this order.
    """

    mode: Mode
    now_s: float
    since_s: Annotated[Unknown, Meta(description="When counting began; null: not yet.")]
    vos: list[VoRow]
    total: Count
    next: Next = None


# -- use -------------------------------------------------------------------------------------------


class Cpus(Struct):
    """CPUs in use, as means over each bin, by the outcome of the run."""

    completed: list[float]
    thrown_away: list[float]
    open: Annotated[list[float], Meta(description="CPUs of runs that have not ended.")]


class TableWatts(Struct):
    """Configured watts of the runs, as means over each bin, by the outcome of the run."""

    completed: list[float]
    thrown_away: list[float]
    open: list[float]


class Use(Struct):
    """CPUs in use over time, of the runs in the journal and those that have not ended.

    `is_cut`: there were more runs than are read, so the period begins later than requested.
    `table_w` is an estimate: each CPU in use counts its share of the busy machine's configured
    watts, even if a meter measures. Machines that idle, sleep or are used by their owners are not
    included. `watts_known_ratio`: ratio of the CPU time on machines with configured watts; other
    machines are in no sum of watts.
    """

    mode: Mode
    window: str
    begin_s: float
    end_s: float
    is_cut: bool
    time_s: Annotated[list[float], Meta(description="Start of each bin; all have equal length.")]
    cpus: Cpus
    starts: Annotated[list[Count], Meta(description="Runs that began in each bin.")]
    table_w: TableWatts
    watts_known_ratio: Unknown


# -- utility ---------------------------------------------------------------------------------------


class SiteUtility(Struct):
    """Figures by which a broker decides whether to send work here."""

    free_machines: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Machines on which a job may start now: open, with a free CPU, awake or "
            "asleep. In the status, `free` counts only those on which nothing runs. Null: an "
            "adapter has no data now."
        ),
    ]
    queued_jobs: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="Null: an adapter has no data now.")
    ]
    mean_wait_s: Unknown
    fairness: Unknown
    energy_wh: Energy
    energy_measured_wh: Annotated[
        Energy, Meta(description="Part of `energy_wh` that meters measured.")
    ]


class WaitNow(Struct):
    """Seconds from now to the start: an 80 % interval and the median."""

    low: float
    median: float
    high: float


class KindNow(Struct, rename={"class_": "class"}):
    """One more job of a VO and a class, like the median such job of the last days."""

    vo: VoName
    class_: str
    cpus: Count
    estimate_s: Annotated[Unknown, Meta(description="Requested run time.")]
    n: Annotated[Count, Meta(description="Number of such jobs in the last days.")]
    wait_s: Annotated[
        WaitNow | None, Meta(description="Null: not known, or no machine could run it.")
    ]
    utility: Annotated[
        Unknown,
        Meta(
            description="Expected unit utility of completing it, 0 to 1, by the time utility "
            "function of its class; null: not known, or the class has none."
        ),
    ]


class OneMoreJob(Struct):
    """Forecasts for one more job, submitted now behind all waiting jobs; each kind separately."""

    asked_s: Annotated[Unknown, Meta(description="Time of the forecast, of the site's events.")]
    not_said: Annotated[
        str | None, Meta(description="Why there is no forecast; null: there is one.")
    ]
    kinds: Annotated[list[KindNow], Meta(description="Kinds of jobs, the most frequent first.")]


class Utility(Struct):
    """The current utility of the site to a job."""

    mode: Mode
    now_s: float
    site_utility: SiteUtility
    one_more_job: OneMoreJob | None = None
    no_data: Gaps = []
