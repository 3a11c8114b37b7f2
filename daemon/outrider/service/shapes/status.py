"""The shape of the status: all data of the status page.

It follows the rules of `outrider.service.shapes.values`.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from outrider.model.modes import Discipline
from outrider.service.shapes.values import (
    CommandRow,
    Count,
    Counts,
    Gaps,
    Mode,
    ModeLimit,
    StartsSummary,
    TrialShown,
    Unknown,
)
from outrider.twin.answer_file import Fidelity, Ratios, Window

# -- twin ------------------------------------------------------------------------------------------
# The shape of the shadow twin's last result, in the status.


class TwinShown(Struct):
    """The shadow twin's last result: the candidates' totals over the current scheduler's.

    `past` is the simulated past period `window`; `next` is a forecast of the next period. Each
    figure is a ratio with its interval; null: it is undefined.
    """

    asked_s: Annotated[float, Meta(description="Start of the twin run, Unix seconds.")]
    took_s: Unknown
    asking_since_s: Annotated[
        Unknown, Meta(description="Start of the current twin run; null: none is in progress.")
    ]
    stale: Annotated[bool, Meta(description="Older than [twin] stale_after_s.")]
    refused: Annotated[str | None, Meta(description="Why there is no result; null: there is one.")]
    incumbent: str | None
    window: Window | None
    past: dict[str, Ratios]
    next: dict[str, Ratios] | None
    next_weeks: Annotated[Unknown, Meta(description="Length of the forecast window, weeks.")]
    next_refused: str | None
    next_expired: Annotated[
        str | None,
        Meta(description="Why the forecast has expired: load or waste have changed."),
    ]
    candidates_refused: dict[str, str]
    other_settings: Annotated[
        list[str], Meta(description="Policies whose settings changed since, or that were removed.")
    ]
    fidelity: Fidelity | None
    summary: Annotated[str, Meta(description="What it covers, in sentences for people.")] = ""


# -- calibration -----------------------------------------------------------------------------------
# The shape of a policy's predictions and deferrals, compared with what happened.
#
# It follows the rules of `outrider.service.shapes.values`.


class Bin(Struct):
    """Runs with predictions in one range: means of predicted and observed values."""

    bin: str
    n: float
    predicted: Unknown
    observed: Unknown


class EvictionScore(Struct):
    """Predicted probabilities of eviction against the observed rate.

    The reference is the Brier score of always predicting the observed rate; skill is relative to
    it.
    """

    n: Annotated[float, Meta(description="Runs; of recent ones, the sum of their weights.")]
    predicted: Unknown
    observed: Unknown
    brier: Unknown
    reference: Unknown
    skill: Unknown
    bins: list[Bin]


class RunScore(Struct):
    """Predicted seconds of work against the actual ones, for completed runs."""

    n: float
    predicted: Unknown
    observed: Unknown
    mean_absolute_error: Unknown
    bins: list[Bin]


class EvictionScores(Struct):
    """Scores of predicted evictions: of all runs since the beginning, and of recent runs."""

    all: EvictionScore
    recent: EvictionScore


class RunScores(Struct):
    """Scores of predicted run times: of all runs since the beginning, and of recent runs."""

    all: RunScore
    recent: RunScore


class Calibration(Struct):
    """The accuracy of a policy's predictions of runs."""

    half_life_s: Annotated[float, Meta(description="Age at which a recent run counts half.")]
    open: Annotated[Count, Meta(description="Predicted runs that have not ended.")]
    neither: Annotated[
        Count, Meta(description="Predicted runs that a user or admin ended; they are not scored.")
    ]
    evictions: EvictionScores
    run_s: RunScores


class DeferredJobs(Struct):
    """Jobs that the policy deferred, or in shadow would have, by their later outcome."""

    jobs: Counts
    defer_s: dict[str, float]


# -- status ----------------------------------------------------------------------------------------


class Waits(Struct):
    """Seconds from submission to first start. In a daemon, only `mean` and `n` are known."""

    mean: Unknown
    std: Unknown
    median: Unknown
    p90: Unknown
    p95: Unknown
    p99: Unknown
    max: Unknown
    n: Count
    censored_n: Annotated[Count | None, Meta(description="Jobs that have never started.")]


class WaitTable(Struct):
    """Waits of all jobs, also by class and by VO."""

    all: Waits
    by_class: dict[str, Waits]
    by_vo: dict[str, Waits]


class JobCounts(Struct):
    """Jobs in each state now, and those submitted, completed and removed since `since_s`.

    While an adapter has no data, its part is as of `no_data`: nothing before its first answer.
    """

    queued: Count
    running: Count
    suspended: Count
    held: Count
    submitted: Count
    completed: Count
    removed: Count


class MachineCounts(Struct):
    """Machines in each state now. Closed: on, without owner, not open to jobs."""

    busy: Count
    free: Count
    owner: Count
    asleep: Count
    closed: Count


class Cluster(Struct):
    """The current state of one cluster."""

    name: str
    machines: Count
    free: Count
    busy: Count
    owner: Count
    active_w: Annotated[Unknown, Meta(description="Watts of a busy machine.")]


class Energy(Struct):
    """Watt-hours by purpose since `since_s`; open: runs that have not ended."""

    goodput: Unknown
    badput: Unknown
    open: Unknown
    idle: Unknown
    sleep: Unknown
    owner: Unknown


class JobUtility(Struct):
    """The utility of completed jobs to their users."""

    total: Annotated[float, Meta(description="Unit utility x requested CPUs x seconds of work.")]
    per_step: Annotated[float | None, Meta(description="Utility per second, since counting began.")]


class Fairness(Struct):
    """Fairness of VOs' shares of CPU-seconds, compared with their targets; 1 is on target."""

    utility: Unknown
    time_mean: Unknown
    windowed: Unknown
    share: dict[str, Unknown]
    target: dict[str, Unknown]


class LearnedRow(Struct):
    """One row of a policy's learned table."""

    label: str
    values: list[Unknown]


class Learned(Struct):
    """A policy's learned table of numbers, with a name for every row and column."""

    title: str
    columns: list[str]
    rows: list[LearnedRow]
    unit: str = ""


class Gate(Struct):
    """Actions that the gate would have allowed or refused, by reason; one budget per policy."""

    would_act: Count
    would_refuse: Counts


class PolicyStatus(Struct):
    """Decisions of one policy since `since_s`, compared with the current scheduler's."""

    name: str
    role: Literal["shadow", "acting"]
    description: str
    discipline: Annotated[
        Discipline | None,
        Meta(
            description="Which jobs may start before one that does not fit; null: the policy "
            "plans the whole queue."
        ),
    ]
    decisions: Count
    by_action: Counts
    agreed: Count
    disagreed: Count
    agreement_ratio: Unknown
    reward_mean: Unknown
    reward_n: Count
    longest_deferral_s: Unknown
    reconsider_s: Unknown
    learned: Learned | None
    broken: Annotated[
        str | None, Meta(description="Why the policy does not decide; null: it does.")
    ] = None
    calibration: Annotated[
        Calibration | None, Meta(description="Null: the policy predicts nothing.")
    ] = None
    deferred: DeferredJobs | None = None
    refused: Annotated[
        Counts,
        Meta(description="Starts that the policy chose and that were impossible, by cause."),
    ] = {}
    gate: Annotated[
        Gate | None, Meta(description="The gate's answers to this policy's decisions.")
    ] = None


class DisciplineInForce(Struct):
    """The active queue discipline: which jobs may start before one that does not fit now."""

    name: Discipline
    source: Literal["configuration", "adapter", "default"]
    why: Annotated[str, Meta(description="The source in words, with the adapters' proposals.")]


class Saving(Struct):
    """The acting policy's saving compared with the twin, in words and watt-hours."""

    text: str
    wh: Unknown


class AdapterStatus(Struct):
    """The state of one source of events."""

    label: str
    type: str
    up: bool
    input_age_s: Unknown
    events: Counts
    duplicates: Count
    rejected: Counts
    ignored: Counts
    note: str
    problem: Annotated[str, Meta(description="Why it is down; empty where it is up.")]
    silent: Annotated[
        dict[str, float],
        Meta(
            description="Logs without new records although jobs run: since when (Unix seconds), "
            "by their name in the settings."
        ),
    ]
    inferred: Annotated[
        bool,
        Meta(description="True: it never reports machines; they are inferred from their jobs."),
    ]


class LedgerStatus(Struct):
    """The state of the journal."""

    recording: bool
    failure: str | None
    rows: Count
    last_seq: Count
    size_bytes: Count
    budget_bytes: Annotated[int | None, Meta(description="Null: not checked yet.")]
    dropped_rows: Annotated[
        int, Meta(description="Rows dropped before their retention time, to keep the size limit.")
    ]
    snapshot_age_s: Unknown


class Publishing(Struct):
    """The state of MQTT publishing, with counts of published rows."""

    broker: str
    topic: Annotated[str, Meta(description="Prefix of every topic.")]
    connected: bool
    failure: str | None
    published: Annotated[
        Counts, Meta(description="Rows that the broker confirmed, by topic; repeats included.")
    ]
    last_seq: Annotated[Count, Meta(description="Everything up to here is published.")]
    behind: Annotated[Count, Meta(description="Sequence numbers that are not read yet.")]
    lost: Annotated[Count, Meta(description="Sequence numbers removed by retention unread.")]


class LeverStatus(Struct):
    """The state of one lever: changes in the batch system that expire by themselves."""

    adapter: Annotated[str, Meta(description="Label of the adapter whose lever it is.")]
    name: str
    actions: Annotated[list[str], Meta(description="Decisions that it applies.")]
    lease_s: Annotated[float, Meta(description="Seconds until a change expires if not renewed.")]
    standing: Annotated[Counts, Meta(description="Jobs with an active change, by action.")]
    changes: Annotated[Counts, Meta(description="Changed jobs by outcome; failed: calls.")]
    problem: Annotated[str, Meta(description="Why its last call was refused or failed; or empty.")]


class NamesFollowed(Struct):
    """Tracked names of one kind; those beyond the limit are counted as `other`."""

    named: Annotated[Count, Meta(description="Names tracked now.")]
    most: Annotated[Count, Meta(description="Limit of tracked names.")]
    folded: Annotated[Count, Meta(description="Events with a name beyond the limit.")]


class Status(Struct):
    """The status of the daemon: all data of the status page."""

    version: str
    mode: Mode
    since_s: Annotated[Unknown, Meta(description="When counting began; null: not yet.")]
    now_s: float
    own_clock: Annotated[bool, Meta(description="True: a simulated site on its own clock.")]
    sentence: str
    jobs: JobCounts
    wait_s: WaitTable
    wait_buckets_s: Annotated[
        list[tuple[Unknown, Count]],
        Meta(description="Upper bound in seconds (null: none) and jobs in this bucket only."),
    ]
    machines: MachineCounts
    clusters: list[Cluster]
    energy_wh: Energy
    energy_measured_wh: Annotated[
        Energy, Meta(description="Part of `energy_wh` that meters measured.")
    ]
    energy_measured_ratio: Annotated[
        Unknown, Meta(description="Ratio of the known energy that meters measured, 0 to 1.")
    ]
    power_source: Annotated[
        Literal["table", "measured", "mixed", "unknown"],
        Meta(description="Source of the jobs' energy: configured watts, meters, or both."),
    ]
    goodput_s: float
    badput_s: float
    utility: JobUtility
    starts: Count
    evictions: Counts
    fairness: Fairness
    discipline: DisciplineInForce
    policies: list[PolicyStatus]
    saving: Saving
    twin: Annotated[TwinShown | None, Meta(description="Null: the shadow twin has no result yet.")]
    adapters: list[AdapterStatus]
    repairs: Counts
    late: Count
    set_aside: Annotated[Counts, Meta(description="Events that could not be applied, by reason.")]
    names: Annotated[
        dict[str, NamesFollowed],
        Meta(description="By kind of name: user, vo, class, cluster, machine, eligible."),
    ]
    no_data: Gaps
    gate: Gate
    ledger: LedgerStatus
    notes: list[str]
    expected_starts: Annotated[
        StartsSummary | None,
        Meta(description="Expected starts of waiting jobs; GET /api/v1/jobs has each of them."),
    ] = None
    timezone: Annotated[str, Meta(description="The site's time zone, an IANA name.")] = "UTC"
    configured_mode: Annotated[
        Mode, Meta(description="Mode of the configuration: the ceiling of `mode`.")
    ] = "shadow"
    mode_since_s: Annotated[
        Unknown, Meta(description="Since when the mode is active, by the daemon's clock.")
    ] = None
    mode_limit: Annotated[
        ModeLimit | None, Meta(description="The limit that lowers the mode; null: there is none.")
    ] = None
    commands: Annotated[
        list[CommandRow], Meta(description="The last five commands, the newest first.")
    ] = []
    trial: Annotated[
        TrialShown | None, Meta(description="The last canary trial by days; null: there was none.")
    ] = None
    levers: Annotated[list[LeverStatus], Meta(description="Empty in a mode that never acts.")] = []
    mqtt: Annotated[Publishing | None, Meta(description="Null: nothing is published.")] = None
    users: Annotated[
        Literal["names", "pseudonyms"],
        Meta(description="How users are shown to this client: by names, or by pseudonyms."),
    ] = "pseudonyms"
    users_hint: Annotated[str, Meta(description="How to see names; empty: they are shown.")] = ""
    sign_in: Annotated[
        bool, Meta(description="True: GET /sign-in asks for the token that shows names.")
    ] = False
    code_labels: Annotated[
        dict[str, str], Meta(description="Labels of codes for people, by code.")
    ] = {}
