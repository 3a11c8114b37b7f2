"""The shape of what is explained of a job."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from outrider.api.waiting_reason import Clause
from outrider.service.web.shapes.decisions import DecisionRow
from outrider.service.web.shapes.expected_start import JobStart
from outrider.service.web.shapes.values import Count, JobState, Mode, Unknown


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
    latest_s: Annotated[
        Unknown,
        Meta(
            description="Until when it may defer the job at most; null: it does not, or for ever."
        ),
    ] = None


class BatchSystem(Struct):
    """Why a job is not running, as its batch system says it, in its own terms and numbers."""

    adapter: str
    code: Annotated[str, Meta(description="Its own word or number for the reason; may be empty.")]
    sentence: str
    never: Annotated[bool, Meta(description="The job never starts as it stands.")]
    remedies: Annotated[
        list[str], Meta(description="What would change it, the most promising first.")
    ]
    machines: Annotated[int | None, Meta(description="How many machines may run it at all.")]
    clauses: Annotated[
        list[Clause],
        Meta(
            description="The conditions that all have to hold: how many machines meet each, and "
            "how many would be left without it."
        ),
    ]
    expected_start_s: Annotated[
        Unknown, Meta(description="When the batch system itself expects it to start.")
    ]
    ahead: Annotated[int | None, Meta(description="Waiting jobs before it, by its own order.")]
    removes_most: Annotated[
        str | None,
        Meta(
            description="The condition that by itself removes most machines; null: each is met by "
            "all machines, or none is known."
        ),
    ] = None


class Run(Struct):
    """A run of the job that has ended."""

    machine: str
    cpus: int
    start_s: float
    end_s: float
    run_s: Annotated[float, Meta(description="Seconds of work in it.")]
    lost_because: Annotated[
        str | None, Meta(description="Why it was lost; null: it completed the job.")
    ]


class Left(Struct):
    """How a job left."""

    how: Literal["completed", "removed"]
    at_s: float
    reason: Annotated[str | None, Meta(description="Why it was removed; null: it completed.")]


class Lease(Struct):
    """What Outrider has asked of the batch system for a job, for as long as it renews that."""

    lever: str
    action: Annotated[str | None, Meta(description="Null: it was refused.")]
    machine: Annotated[str | None, Meta(description="For whose group of machines.")]
    decided_s: Unknown
    refused_because: str | None


class Alike(Struct):
    """Jobs that wait, of the same user and VO, and ask for the same."""

    total: Annotated[Count, Meta(description="This one included.")]
    ahead: Annotated[Count, Meta(description="Of them, those that were submitted before it.")]


class Explanation(Struct):
    """Why a job is where it is."""

    job: str
    mode: Mode
    source: Literal["daemon", "ledger"]
    state: Annotated[JobState | None, Meta(description="Null: it is not here any more.")]
    sentence: str
    held_because: Annotated[
        str | None,
        Meta(
            description="Why it is held, as the batch system says it; null: it is not held, that "
            "is not known, or the client may not see users' names, which such words tell."
        ),
    ]
    batch_system: Annotated[
        BatchSystem | None,
        Meta(
            description="Asked now, of jobs that are queued or held; null: nothing was said, or "
            "the client may not see users' names, which such words tell."
        ),
    ]
    batch_system_errors: Annotated[
        list[str], Meta(description="Batch systems that were asked in vain, and why.")
    ]
    waiting_s: Unknown
    since_s: Unknown
    runs: Annotated[list[Run], Meta(description="Its last runs that have ended, oldest first.")]
    policies: list[PolicyView]
    decisions: list[DecisionRow]
    timezone: Annotated[str, Meta(description="The site's zone, an IANA name.")] = "UTC"
    now_s: Annotated[Unknown, Meta(description="The time at the site; null: it is not asked.")] = (
        None
    )
    expected_start: Annotated[
        JobStart | None,
        Meta(
            description="By the twin beside the daemon; null: it does not wait, or the daemon was "
            "not asked. What the batch system itself expects is in `batch_system`."
        ),
    ] = None
    lease: Annotated[
        Lease | None, Meta(description="In the modes canary and active. Null: nothing stands.")
    ] = None
    alike: Annotated[Alike | None, Meta(description="Null: it does not wait.")] = None
    left: Annotated[
        Left | None, Meta(description="Null: it is here, or how it left is not known.")
    ] = None
    remedies: Annotated[
        list[str],
        Meta(
            description="What would change it by what Outrider itself knows, such as the end of "
            "owners' hours; what the batch system says would is in `batch_system`."
        ),
    ] = []


class Ambiguity(Struct):
    """A short form of a job's name that several jobs here have, such as an array's."""

    error: str
    candidates: Annotated[list[str], Meta(description="Names of the first of these jobs.")]
    total: Count
    states: Annotated[
        dict[str, Count], Meta(description="How many are in which state; `left`: not here.")
    ]
