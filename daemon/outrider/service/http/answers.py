"""The shapes of all answers: the OpenAPI document is made from them, tests check against them.

Times are Unix seconds of event time, unless a name says otherwise. Null means unknown, never 0.
Answers may get further fields; a client ignores what it does not know.
"""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

Mode: TypeAlias = Literal["observe", "shadow", "canary", "active"]
MachineState: TypeAlias = Literal["busy", "free", "owner", "asleep", "closed"]
JobState: TypeAlias = Literal["queued", "running", "suspended", "held"]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Counts: TypeAlias = dict[str, Count]
Unknown: TypeAlias = float | None


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


class PolicyStatus(Struct):
    """What one policy chose since `since_s`, and how that compares with what was done."""

    name: str
    role: Literal["shadow", "acting"]
    description: str
    decisions: Count
    by_action: Counts
    agreed: Count
    disagreed: Count
    agreement_ratio: Unknown
    reward_mean: Unknown
    reward_n: Count
    longest_hold_s: Unknown
    reconsider_s: Unknown
    learned: Learned | None


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
    inferred: Annotated[
        bool,
        Meta(description="True: it never tells of machines; they are inferred from their jobs."),
    ]


class Gate(Struct):
    """What the gate would have let through and refused, by reason."""

    would_act: Count
    would_refuse: Counts


class LedgerStatus(Struct):
    """Whether the journal is being written."""

    recording: bool
    failure: str | None
    rows: Count
    last_seq: Count
    size_bytes: Count
    snapshot_age_s: Unknown


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
    power_source: Literal["table", "measured", "unknown"]
    goodput_s: float
    badput_s: float
    starts: Count
    evictions: Counts
    fairness: Fairness
    policies: list[PolicyStatus]
    saving: Saving
    adapters: list[AdapterStatus]
    repairs: Counts
    late: Count
    gate: Gate
    ledger: LedgerStatus
    notes: list[str]
    timezone: Annotated[str, Meta(description="The site's zone, an IANA name.")] = "UTC"


class Standing(Struct):
    """What a policy last chose for a job, and why."""

    action: str
    reason: str


class JobRow(Struct, rename={"class_": "class"}):
    """One job now."""

    job: str
    state: JobState
    user: str
    vo: str
    class_: str
    cpus: Count
    submit_s: Unknown
    waiting_s: Unknown
    machine: str | None
    run_s: Unknown
    runs: Count
    lost_s: Annotated[Unknown, Meta(description="Longest run that was thrown away so far.")]
    standing: dict[str, Standing]


class Jobs(Struct):
    """Jobs the daemon knows now; `total` counts those beyond the limit too."""

    mode: Mode
    now_s: float
    jobs: list[JobRow]
    total: Count


class MachineRow(Struct):
    """One machine now."""

    machine: str
    cluster: str
    state: MachineState
    cpus: Count
    busy_cpus: Count
    active_w: Unknown
    inferred: bool


class Machines(Struct):
    """Machines the daemon knows now; `total` counts those beyond the limit too."""

    mode: Mode
    now_s: float
    machines: list[MachineRow]
    total: Count


class DecisionRow(Struct):
    """One row of the ledger. Alike jobs share a row: `jobs` lists them."""

    time_s: float
    seq: Count
    job: str
    action: str
    machine: str | None
    cpus: int
    reason: str
    policy: str
    mode: Mode
    propensity: Unknown
    scores: dict[str, Unknown] | None
    input_age_s: Unknown
    input: str
    jobs: list[str] | None = None


class Decisions(Struct):
    """Rows of the ledger."""

    mode: Mode
    decisions: list[DecisionRow]


class PolicyView(Struct):
    """What one policy thinks of one job."""

    name: str
    action: str
    reason: str
    until_s: Annotated[Unknown, Meta(description="When it looks again; null: when asked.")]
    scores: dict[str, Unknown]
    propensity: Unknown
    explanation: str
    decided_s: Unknown
    seq: int | None


class Explanation(Struct):
    """Why a job is where it is."""

    job: str
    mode: Mode
    source: Literal["daemon", "ledger"]
    state: str
    sentence: str
    waiting_s: Unknown
    since_s: Unknown
    policies: list[PolicyView]
    decisions: list[DecisionRow]


class SiteUtility(Struct):
    """Four numbers from which a broker may tell whether to send work here."""

    free_machines: Count
    queued_jobs: Count
    mean_wait_s: Unknown
    fairness: Unknown


class Utility(Struct):
    """What the site is worth to a job now."""

    mode: Mode
    now_s: float
    site_utility: SiteUtility


class Health(Struct):
    """The process answers."""

    ok: Literal[True]


class Readiness(Struct):
    """Whether the daemon does its work, and if not, why."""

    ready: bool
    reasons: list[str]


class Failure(Struct):
    """Why there is no answer."""

    error: str


Document: TypeAlias = dict[str, Any]
"""A JSON object that describes itself, as the OpenAPI document does."""
