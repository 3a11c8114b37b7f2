"""The shapes of all answers: the OpenAPI document is made from them, tests check against them.

Times are Unix seconds of event time, unless a name says otherwise. Null means unknown, never 0.
Answers may get further fields; a client ignores what it does not know.
"""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct

from outrider.service.http.status import Energy, Status
from outrider.service.http.values import Count, JobState, MachineState, Mode, Unknown

__all__ = [
    "Ambiguity",
    "Decisions",
    "Document",
    "Explanation",
    "Failure",
    "Health",
    "Jobs",
    "Machines",
    "Readiness",
    "Status",
    "Utility",
]


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
    action: Annotated[str | None, Meta(description="What it would do; null: it was not asked.")]
    reason: str | None
    cluster: Annotated[str | None, Meta(description="Where it would start the job.")]
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
    state: Annotated[JobState | None, Meta(description="Null: it is not here any more.")]
    sentence: str
    waiting_s: Unknown
    since_s: Unknown
    policies: list[PolicyView]
    decisions: list[DecisionRow]


class SiteUtility(Struct):
    """What lets a broker tell whether to send work here."""

    free_machines: Count
    queued_jobs: Count
    mean_wait_s: Unknown
    fairness: Unknown
    energy_wh: Energy
    energy_measured_wh: Annotated[
        Energy, Meta(description="The part of `energy_wh` that meters measured.")
    ]


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


class Ambiguity(Struct):
    """A short form of a job's name that several jobs here have."""

    error: str
    candidates: list[str]


Document: TypeAlias = dict[str, Any]
"""A JSON object that describes itself, as the OpenAPI document does."""
