"""Jobs now."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from outrider.model.jobs import JOB_STATE_NAMES, Job
from outrider.service.core import Core
from outrider.service.web.endpoint import Answer, Call, Endpoint
from outrider.service.web.query import Limit
from outrider.service.web.shapes.values import Count, JobState, Mode, Unknown


class JobsQuery(Struct, frozen=True):
    """Which jobs."""

    limit: Limit = 200
    state: Annotated[JobState | UnsetType, Meta(description="Only jobs in this state.")] = UNSET


class PendingDecision(Struct):
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
    lost_s: Annotated[float, Meta(ge=0, description="Of all runs thrown away so far, together.")]
    longest_lost_s: Annotated[float, Meta(ge=0, description="Longest run thrown away so far.")]
    pending: dict[str, PendingDecision]


class Jobs(Struct):
    """Jobs the daemon knows now; `total` counts those beyond the limit too."""

    mode: Mode
    now_s: float
    jobs: list[JobRow]
    total: Count


def jobs(core: Core, limit: int, state: str | None) -> Answer:
    """The first `limit` jobs, all or of one state."""
    normaliser, site = core.merger.normaliser, core.site
    rows: list[dict[str, Any]] = []
    total = 0
    for history in normaliser.jobs.values():
        job = site.jobs.get(history.number)
        if job is None or (state is not None and JOB_STATE_NAMES[job.state] != state):
            continue
        total += 1
        if len(rows) < limit:
            rows.append(_job_row(core, normaliser.job_names[history.number], job))
    return {"mode": core.config.mode, "now_s": core.now_s, "jobs": rows, "total": total}


def _job_row(core: Core, name: str, job: Job) -> dict[str, Any]:
    site, on = core.site, job.machine >= 0
    queued = JOB_STATE_NAMES[job.state] == "queued"
    return {
        "job": name,
        "state": JOB_STATE_NAMES[job.state],
        "user": job.spec.user,
        "vo": job.spec.vo,
        "class": job.spec.job_class,
        "cpus": job.spec.cpus,
        "submit_s": job.submit_s,
        "waiting_s": site.now - job.submit_s if queued and job.submit_s is not None else None,
        "machine": core.merger.normaliser.machine_names[job.machine] if on else None,
        "run_s": job.run_s(site.now) if on else None,
        "runs": job.runs,
        "lost_s": job.lost_s,
        "longest_lost_s": job.consumed_s,
        "pending": {
            runner.name: {"action": pending.action, "reason": pending.reason}
            for runner in core.runners
            if (pending := runner.queue.waiting.get(job.number)) is not None
        },
    }


async def handle(call: Call[JobsQuery]) -> Answer:
    """Answer from memory."""
    query = call.query
    return jobs(call.view.core, query.limit, None if query.state is UNSET else query.state)


ENDPOINT = Endpoint(
    name="jobs",
    path="/api/v1/jobs",
    summary="Jobs now.",
    handle=handle,
    query=JobsQuery,
    answer=Jobs,
)
