"""Shapes of answers about jobs: the explanation of one, decisions, jobs over time.

They follow the rules of `outrider.service.shapes.values`.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from outrider.model.jobs import JobState
from outrider.model.machines import Clause
from outrider.service.shapes.values import (
    Count,
    Gaps,
    JobStart,
    Mode,
    Next,
    Unknown,
)

# -- explanation -----------------------------------------------------------------------------------


class Ambiguity(Struct):
    """A short form of a job's name that several jobs share, such as an array's."""

    error: str
    candidates: Annotated[list[str], Meta(description="Names of the first of these jobs.")]
    total: Count
    states: Annotated[
        dict[str, Count], Meta(description="Number of jobs by state; `left`: no longer here.")
    ]


class Alike(Struct):
    """Waiting jobs of the same user and VO with the same requests."""

    total: Annotated[Count, Meta(description="Number of these jobs, this one included.")]
    ahead: Annotated[Count, Meta(description="Number of them that were submitted before it.")]


class BatchSystem(Struct):
    """The batch system's own reason why a job is not running, with its words and numbers."""

    adapter: str
    code: Annotated[str, Meta(description="Its own word or number for the reason; may be empty.")]
    sentence: str
    never: Annotated[bool, Meta(description="The job can never start unless it is changed.")]
    remedies: Annotated[list[str], Meta(description="Suggestions, the most promising first.")]
    machines: Annotated[int | None, Meta(description="Number of machines that may run it at all.")]
    clauses: Annotated[
        list[Clause],
        Meta(
            description="The conditions that all have to be met: how many machines meet each, and "
            "how many would remain without it."
        ),
    ]
    expected_start_s: Annotated[
        Unknown, Meta(description="Start that the batch system itself expects.")
    ]
    ahead: Annotated[int | None, Meta(description="Waiting jobs before it, in its own order.")]
    removes_most: Annotated[
        str | None,
        Meta(
            description="The condition that alone excludes most machines; null: all machines meet "
            "each, or none is known."
        ),
    ] = None


class DecisionRow(Struct):
    """One decision in the journal. Similar jobs may share a row: `jobs` lists them."""

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
    gate: Annotated[
        str | None,
        Meta(
            description="The gate's answer: `act`, `would`, or `refused: ` with the reason; null "
            "if there was nothing to apply."
        ),
    ] = None
    jobs: list[str] | None = None


class Lease(Struct):
    """Outrider's change of a job in the batch system, which expires unless it is renewed."""

    lever: str
    action: Annotated[str | None, Meta(description="Null: it was refused.")]
    machine: Annotated[str | None, Meta(description="A machine of the group that it is for.")]
    decided_s: Unknown
    refused_because: str | None


class Left(Struct):
    """The end of a job that has left."""

    how: Literal["completed", "removed"]
    at_s: float
    reason: Annotated[str | None, Meta(description="Why it was removed; null: it completed.")]


class PolicyView(Struct):
    """One policy's decision for one job."""

    name: str
    action: Annotated[
        str | None, Meta(description="Its decision; null: it has not decided about this job.")
    ]
    reason: str | None
    cluster: Annotated[str | None, Meta(description="Cluster where it would start the job.")]
    until_s: Annotated[
        Unknown, Meta(description="When it reconsiders; null: when the scheduler asks it.")
    ]
    scores: dict[str, Unknown]
    propensity: Unknown
    explanation: str
    decided_s: Unknown
    seq: int | None
    latest_s: Annotated[
        Unknown,
        Meta(
            description="Latest time until which it may defer the job; null: it does not defer it, "
            "or without limit."
        ),
    ] = None
    text: Annotated[str, Meta(description="The decision as a sentence for people.")] = ""


class Run(Struct):
    """An ended run of the job."""

    machine: str
    cpus: int
    start_s: float
    end_s: float
    run_s: Annotated[float, Meta(description="Seconds of work in it.")]
    lost_because: Annotated[
        str | None, Meta(description="Why it was lost; null: it completed the job.")
    ]
    text: Annotated[str, Meta(description="The run as a sentence for people.")] = ""


class Explanation(Struct):
    """The explanation of a job's state."""

    job: str
    mode: Mode
    source: Literal["daemon", "ledger"]
    state: Annotated[JobState | None, Meta(description="Null: the job has left.")]
    sentence: str
    held_because: Annotated[
        str | None,
        Meta(
            description="Why it is held, in the batch system's words; null: it is not held, the "
            "reason is unknown, or `withheld`."
        ),
    ]
    batch_system: Annotated[
        BatchSystem | None,
        Meta(
            description="Live query, for queued or held jobs; null: there was no answer, or it is "
            "`withheld`."
        ),
    ]
    batch_system_errors: Annotated[
        list[str], Meta(description="Batch systems that did not answer, and why.")
    ]
    waiting_s: Unknown
    since_s: Unknown
    runs: Annotated[list[Run], Meta(description="Its last runs that have ended, oldest first.")]
    policies: list[PolicyView]
    decisions: list[DecisionRow]
    cause: Annotated[
        str, Meta(description="Cause of the job's state, without the policies' decisions.")
    ] = ""
    start_lines: Annotated[
        list[str], Meta(description="The expected start as lines of text for people.")
    ] = []
    policy_lines: Annotated[
        list[str], Meta(description="What the policies would do as lines of text for people.")
    ] = []
    timezone: Annotated[str, Meta(description="The site's time zone, an IANA name.")] = "UTC"
    now_s: Annotated[
        Unknown, Meta(description="Current time at the site; null: not from a running daemon.")
    ] = None
    expected_start: Annotated[
        JobStart | None,
        Meta(
            description="By the twin process; null: the job does not wait, or the answer is not "
            "from a running daemon. The batch system's own forecast is in `batch_system`."
        ),
    ] = None
    lease: Annotated[
        Lease | None, Meta(description="In the modes canary and active; null: no active change.")
    ] = None
    alike: Annotated[Alike | None, Meta(description="Null: the job does not wait.")] = None
    left: Annotated[
        Left | None, Meta(description="Null: the job is still here, or its end is not known.")
    ] = None
    remedies: Annotated[
        list[str],
        Meta(
            description="Suggestions from what Outrider itself knows, such as the end of owners' "
            "hours; those of the batch system are in `batch_system`."
        ),
    ] = []
    withheld: Annotated[
        str | None,
        Meta(
            description="What this client is not shown, because it may contain users' names, and "
            "how to see it; null: nothing."
        ),
    ] = None
    no_data: Gaps = []


class Decisions(Struct):
    """A page of decisions in the journal."""

    mode: Mode
    decisions: list[DecisionRow]
    next: Next = None


# -- jobs over time --------------------------------------------------------------------------------

Window: TypeAlias = Literal["1h", "24h", "7d", "all"]


class JobsOverTime(Struct):
    """Numbers of jobs in bins of equal length, from the recorded runs and the current jobs.

    `waiting` and `running` (suspended jobs included) are means over each bin, null before
    `known_from_s`. A held job counts as waiting. A job that was removed before it ever ran is not
    counted.
    """

    mode: Mode
    window: Window
    now_s: float
    begin_s: float
    step_s: float
    known_from_s: float
    waiting: list[Unknown]
    running: list[Unknown]
