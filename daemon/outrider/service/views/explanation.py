"""Why is this job waiting? Answered from what stands now and from the job's ledger rows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

import msgspec

from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.ledger.job_ends import JobEnd
from outrider.model.decisions import NOWHERE
from outrider.model.job_names import stands_for
from outrider.model.jobs import HELD_STATE, JOB_STATE_NAMES, QUEUED, Job
from outrider.service.config.declarations import Config
from outrider.service.core import Core
from outrider.service.views.expected_starts import ExpectedStarts
from outrider.service.views.job_runs import end_row, how_it_left
from outrider.service.views.owner_hours import owner_hours_that_end
from outrider.service.views.why_it_waits import why_in_words
from outrider.service.waiting_reasons import NOBODY_ASKED, Said


def jobs_meant(core: Core, short: str) -> list[str]:
    """Names of the jobs here that a short form can mean."""
    normaliser = core.merger.normaliser
    names = (normaliser.job_names[history.number] for history in normaliser.jobs.values())
    return [name for name in names if stands_for(short, name)]


def states_of(core: Core, names: Iterable[str]) -> dict[str, int]:
    """How many of these jobs are in which state, those with most jobs first; `left`: not here."""
    counts = Counter(_state_of(core, name) for name in names)
    return dict(counts.most_common())


def _state_of(core: Core, name: str) -> str:
    history = core.merger.normaliser.known_by(name)
    job = None if history is None else core.site.jobs.get(history.number)
    return "left" if job is None else JOB_STATE_NAMES[job.state]


def is_waiting(core: Core, name: str) -> bool:
    """Whether a job is queued or held now."""
    history = core.merger.normaliser.known_by(name)
    job = None if history is None else core.site.jobs.get(history.number)
    return job is not None and job.state in (QUEUED, HELD_STATE)


def explain(
    core: Core,
    name: str,
    rows: list[dict[str, Any]],
    said: Said = NOBODY_ASKED,
    runs: Sequence[Mapping[str, Any]] = (),
    lease: dict[str, Any] | None = None,
    starts: ExpectedStarts | None = None,
) -> dict[str, Any] | None:
    """The object of ``/api/v1/explain/JOB``; None for a job that is not at the site now.

    Args:
        core: the daemon's.
        name: the job.
        rows: its ledger rows, oldest first. Scores, propensities and sequence numbers are theirs.
        said: by the batch systems, a moment ago.
        runs: of it that have ended, oldest first.
        lease: what stands for it in the batch system (`lease_of`).
        starts: when jobs that wait are expected to start, as it is said now.
    """
    history = core.merger.normaliser.known_by(name)
    job = None if history is None else core.site.jobs.get(history.number)
    if job is None:
        return None
    latest = {row["policy"]: row for row in rows}
    policies = [
        _pending_decision(core, runner, job, latest.get(runner.name, {}))
        for runner in core.runners
        if not runner.broken
    ]
    return {
        "job": name,
        "mode": core.config.mode,
        "now_s": core.now_s,
        "source": "daemon",
        "state": JOB_STATE_NAMES[job.state],
        "sentence": why_in_words(core, name, job, policies, said, lease),
        "held_because": job.held_because or None,
        "batch_system": _batch_system(said),
        "batch_system_errors": list(said.unanswered),
        "expected_start": starts.explained(name) if starts and job.state == QUEUED else None,
        "remedies": owner_hours_that_end(core, job) if job.state == QUEUED else [],
        "lease": lease,
        "timezone": core.config.timezone,
        "alike": _alike(core, job) if job.state == QUEUED else None,
        "waiting_s": job.wait_s(core.site.now) if job.state == QUEUED else None,
        "since_s": job.submit_s,
        "runs": list(runs),
        "left": None,
        "policies": policies,
        "decisions": rows,
    }


def explain_from_rows(
    config: Config,
    name: str,
    rows: list[dict[str, Any]],
    runs: Sequence[Mapping[str, Any]] = (),
    end: JobEnd | None = None,
) -> dict[str, Any]:
    """The same for a job that has left, from its ledger rows, runs (each oldest first) and end."""
    left = how_it_left(runs, end, config.timezone)
    known = [left] if left else []
    if rows:
        last = rows[-1]
        decided = f"{last['policy']}: {last['action']} ({last['reason']})"
        known.append(f"the last decision about it was {decided}")
    return {
        "job": name,
        "mode": config.mode,
        "timezone": config.timezone,
        "source": "ledger",
        "state": None,
        "sentence": f"{name} is not in the queue any more; {'; '.join(known)}.",
        "held_because": None,
        "batch_system": None,
        "batch_system_errors": [],
        "expected_start": None,
        "remedies": [],
        "lease": None,
        "alike": None,
        "waiting_s": None,
        "since_s": None,
        "runs": list(runs),
        "left": end_row(end),
        "policies": [],
        "decisions": rows,
    }


def _alike(core: Core, job: Job) -> dict[str, int]:
    """How many jobs wait that are asked for alike, and how many of them came before this one.

    Of the same user and VO, for as many CPUs, on the same machines, with the same resources.
    """

    def asked_for(one: Job) -> tuple[Any, ...]:
        spec = one.spec
        return spec.user, spec.vo, spec.cpus, spec.eligible, spec.resources

    asked = asked_for(job)
    waiting = [
        one for one in core.site.jobs.values() if one.state == QUEUED and asked_for(one) == asked
    ]

    def place_of(one: Job) -> tuple[float, int]:
        return -inf if one.submit_s is None else one.submit_s, one.number

    place = place_of(job)
    return {"total": len(waiting), "ahead": sum(1 for one in waiting if place_of(one) < place)}


def _batch_system(said: Said) -> dict[str, Any] | None:
    if said.reason is None:
        return None
    built: dict[str, Any] = msgspec.to_builtins(said.reason)
    return {"adapter": said.adapter, **built}


def _pending_decision(
    core: Core, runner: PolicyRunner, job: Job, row: dict[str, Any]
) -> dict[str, Any]:
    pending = runner.queue.waiting.get(job.number)
    place = NOWHERE if pending is None else pending.cluster
    return {
        "name": runner.name,
        "action": None if pending is None else pending.action or None,
        "reason": None if pending is None else pending.reason or None,
        "cluster": None if place == NOWHERE else core.site.cluster_names[place],
        "until_s": runner.next_look_s(job.number),
        "latest_s": runner.latest_start_s(job.number),
        "decided_s": row.get("time_s"),
        "seq": row.get("seq"),
        "scores": row.get("scores") or {},
        "propensity": row.get("propensity"),
        "explanation": runner.explain(job, core.site),
    }
