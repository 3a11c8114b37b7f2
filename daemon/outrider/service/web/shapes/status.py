"""The shape of the status: everything the page shows.

It follows the rules of `outrider.service.web.shapes.values`.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from outrider.model.modes import Discipline
from outrider.service.journal.trial_record import TrialShown
from outrider.service.web.shapes.values import (
    CommandRow,
    Count,
    Counts,
    Mode,
    ModeLimit,
    StartsSummary,
    Unknown,
)
from outrider.twin.answer_file import Fidelity, Ratios, Window

# -- twin ------------------------------------------------------------------------------------------
# The shape of what the shadow twin last answered, in the status.


class TwinShown(Struct):
    """What the shadow twin last answered: the candidates' totals over the incumbent's.

    `past` is what would have been in `window`; `next` is a forecast of the window to come. Each
    figure is a ratio with its interval; null: it is undefined.
    """

    asked_s: Annotated[float, Meta(description="When, Unix seconds.")]
    took_s: Unknown
    asking_since_s: Annotated[Unknown, Meta(description="Null: nobody asks it now.")]
    stale: Annotated[bool, Meta(description="Older than [twin] stale_after_s.")]
    refused: Annotated[str | None, Meta(description="Why there is no answer; null: there is.")]
    incumbent: str | None
    window: Window | None
    past: dict[str, Ratios]
    next: dict[str, Ratios] | None
    next_weeks: Annotated[Unknown, Meta(description="Length of the window that is forecast.")]
    next_refused: str | None
    next_expired: Annotated[
        str | None,
        Meta(description="Why the forecast holds no more: load or waste are others now."),
    ]
    candidates_refused: dict[str, str]
    other_settings: Annotated[
        list[str], Meta(description="Policies that are configured otherwise now, or not any more.")
    ]
    fidelity: Fidelity | None


# -- calibration -----------------------------------------------------------------------------------
# The shape of what a policy predicted, and deferred, beside what happened.
#
# It follows the rules of `outrider.service.web.shapes.values`.


class Bin(Struct):
    """Runs with predictions in one range: means of what was predicted and observed."""

    bin: str
    n: float
    predicted: Unknown
    observed: Unknown


class EvictionScore(Struct):
    """Predicted probabilities of eviction against the rate that was observed.

    The reference is the Brier score of always saying the observed rate; skill is relative to it.
    """

    n: Annotated[float, Meta(description="Runs; of recent ones, the sum of their weights.")]
    predicted: Unknown
    observed: Unknown
    brier: Unknown
    reference: Unknown
    skill: Unknown
    bins: list[Bin]


class RunScore(Struct):
    """Predicted seconds of work against the actual ones, of runs that completed."""

    n: float
    predicted: Unknown
    observed: Unknown
    mean_absolute_error: Unknown
    bins: list[Bin]


class EvictionScores(Struct):
    """Of all runs since the beginning, and of recent ones."""

    all: EvictionScore
    recent: EvictionScore


class RunScores(Struct):
    """Of all runs since the beginning, and of recent ones."""

    all: RunScore
    recent: RunScore


class Calibration(Struct):
    """How true a policy's predictions of runs were."""

    half_life_s: Annotated[float, Meta(description="After so long a recent run counts half.")]
    open: Annotated[Count, Meta(description="Predicted runs that are going on.")]
    neither: Annotated[
        Count, Meta(description="Predicted runs that somebody ended; they are not scored.")
    ]
    evictions: EvictionScores
    run_s: RunScores


class DeferredJobs(Struct):
    """Jobs that the policy deferred, or in shadow would have, by how they ended later."""

    jobs: Counts
    defer_s: dict[str, float]


# -- status ----------------------------------------------------------------------------------------


class Waits(Struct):
    """Seconds from submission to first start. Live, only `mean` and `n` are known."""

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
    """Waits of all jobs, by class and by VO."""

    all: Waits
    by_class: dict[str, Waits]
    by_vo: dict[str, Waits]


class JobCounts(Struct):
    """Jobs in each state now, and how many came and went since `since_s`."""

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
    """One cluster now."""

    name: str
    machines: Count
    free: Count
    busy: Count
    owner: Count
    active_w: Annotated[Unknown, Meta(description="Watts of a busy machine.")]


class Energy(Struct):
    """Watt-hours by purpose since `since_s`. Open: of runs that have not ended."""

    goodput: Unknown
    badput: Unknown
    open: Unknown
    idle: Unknown
    sleep: Unknown
    owner: Unknown


class JobUtility(Struct):
    """What completed jobs were worth to their users."""

    total: Annotated[float, Meta(description="Unit utility x CPUs asked for x seconds of work.")]
    per_step: Annotated[float | None, Meta(description="Of it in a second, since counting began.")]


class Fairness(Struct):
    """How near the VOs' shares of CPU-seconds are to their targets; 1 is at the targets."""

    utility: Unknown
    time_mean: Unknown
    windowed: Unknown
    share: dict[str, Unknown]
    target: dict[str, Unknown]


class LearnedRow(Struct):
    """One row of a learned table."""

    label: str
    values: list[Unknown]


class Learned(Struct):
    """What a policy has learned, as a table of numbers with a name for every row and column."""

    title: str
    columns: list[str]
    rows: list[LearnedRow]
    unit: str = ""


class Gate(Struct):
    """What the gate would have let through and refused, by reason; each policy has its budget."""

    would_act: Count
    would_refuse: Counts


class PolicyStatus(Struct):
    """What one policy chose since `since_s`, and how that compares with what was done."""

    name: str
    role: Literal["shadow", "acting"]
    description: str
    discipline: Annotated[
        Discipline | None,
        Meta(description="Who may start before a job that does not fit; null: it plans it all."),
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
        str | None, Meta(description="Why it is not asked, or not any more; null: it is.")
    ] = None
    calibration: Annotated[
        Calibration | None, Meta(description="Null: the policy predicts nothing.")
    ] = None
    deferred: DeferredJobs | None = None
    refused: Annotated[
        Counts,
        Meta(description="Starts that it chose and that were impossible, by why."),
    ] = {}
    gate: Annotated[
        Gate | None, Meta(description="The gate's answers to what this policy would have done.")
    ] = None


class DisciplineInForce(Struct):
    """The queue discipline: who may start before a job that does not fit now, and who says so."""

    name: Discipline
    source: Literal["configuration", "adapter", "default"]
    why: Annotated[str, Meta(description="The same in words, with what adapters propose.")]


class Saving(Struct):
    """What the acting policy saved against the twin, in words and watt-hours."""

    text: str
    wh: Unknown


class AdapterStatus(Struct):
    """One source of events."""

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
            description="Logs to which nothing is written though jobs run: since when (Unix "
            "seconds), by what the settings name them."
        ),
    ]
    inferred: Annotated[
        bool,
        Meta(description="True: it never tells of machines; they are inferred from their jobs."),
    ]


class LedgerStatus(Struct):
    """Whether the journal is being written."""

    recording: bool
    failure: str | None
    rows: Count
    last_seq: Count
    size_bytes: Count
    budget_bytes: Annotated[int | None, Meta(description="Null: not checked yet.")]
    dropped_rows: Annotated[int, Meta(description="Dropped before their time, for the budget.")]
    snapshot_age_s: Unknown


class Publishing(Struct):
    """What was published over MQTT, and whether the broker is there."""

    broker: str
    topic: Annotated[str, Meta(description="What every topic begins with.")]
    connected: bool
    failure: str | None
    published: Annotated[
        Counts, Meta(description="Rows the broker confirmed, by topic; those sent again, too.")
    ]
    last_seq: Annotated[Count, Meta(description="Everything up to here is published.")]
    behind: Annotated[Count, Meta(description="Sequence numbers not looked through yet.")]
    lost: Annotated[Count, Meta(description="Of those, how many retention removed before.")]


class LeverStatus(Struct):
    """What is carried out by one lever: changes in the batch system that lapse by themselves."""

    adapter: Annotated[str, Meta(description="Label of the adapter whose lever it is.")]
    name: str
    actions: Annotated[list[str], Meta(description="The decisions that it carries out.")]
    lease_s: Annotated[float, Meta(description="How long a change lasts that is not renewed.")]
    standing: Annotated[Counts, Meta(description="Jobs for which a decision stands, by action.")]
    changes: Annotated[Counts, Meta(description="Jobs by outcome; of failed: calls.")]
    problem: Annotated[str, Meta(description="Why its last call was refused or failed; or empty.")]


class NamesFollowed(Struct):
    """Names of one kind. There is a bound; what comes beyond it is counted as `other`."""

    named: Annotated[Count, Meta(description="Names followed now.")]
    most: Annotated[Count, Meta(description="So many are followed at most.")]
    folded: Annotated[Count, Meta(description="How often a name beyond the bound was told.")]


class Status(Struct):
    """Everything the status page shows."""

    version: str
    mode: Mode
    since_s: float
    now_s: float
    own_clock: Annotated[bool, Meta(description="True: a simulated site on its own clock.")]
    sentence: str
    jobs: JobCounts
    wait_s: WaitTable
    wait_buckets_s: Annotated[
        list[tuple[Unknown, Count]],
        Meta(description="Upper bound in seconds (null: none) and jobs of this bucket alone."),
    ]
    machines: MachineCounts
    clusters: list[Cluster]
    energy_wh: Energy
    energy_measured_wh: Annotated[
        Energy, Meta(description="The part of `energy_wh` that meters measured.")
    ]
    energy_measured_ratio: Annotated[
        Unknown, Meta(description="How much of the energy that is known was measured, 0 to 1.")
    ]
    power_source: Annotated[
        Literal["table", "measured", "mixed", "unknown"],
        Meta(description="Where jobs' energy comes from: the watts declared, meters, both."),
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
    twin: Annotated[
        TwinShown | None, Meta(description="Null: the shadow twin has not answered yet.")
    ]
    adapters: list[AdapterStatus]
    repairs: Counts
    late: Count
    set_aside: Annotated[Counts, Meta(description="Events that could not be applied, by reason.")]
    names: Annotated[
        dict[str, NamesFollowed],
        Meta(description="By what is named: user, vo, class, cluster, machine, eligible."),
    ]
    gate: Gate
    ledger: LedgerStatus
    notes: list[str]
    expected_starts: Annotated[
        StartsSummary | None,
        Meta(description="When waiting jobs will start; each is among `jobs`."),
    ] = None
    timezone: Annotated[str, Meta(description="The site's zone, an IANA name.")] = "UTC"
    configured_mode: Annotated[Mode, Meta(description="The configuration's: the ceiling.")] = (
        "shadow"
    )
    mode_since_s: Annotated[
        Unknown, Meta(description="Since when the mode is in force, by the daemon's clock.")
    ] = None
    mode_limit: Annotated[
        ModeLimit | None, Meta(description="What lowers the mode; null: nothing does.")
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
        Meta(description="How this client is shown users: by their names, or by pseudonyms."),
    ] = "pseudonyms"
    users_hint: Annotated[str, Meta(description="How to be shown names; empty: they are.")] = ""
    sign_in: Annotated[
        bool, Meta(description="True: GET /sign-in asks for the token that shows names.")
    ] = False
    code_labels: Annotated[
        dict[str, str], Meta(description="Labels of codes for people, by code.")
    ] = {}
