"""Lists of jobs and machines, and the one line a broker asks for."""

from typing import Any

from outrider.engine.accounting.report import report
from outrider.model.jobs import JOB_STATE_NAMES, Job
from outrider.service.core import Core
from outrider.service.faces import job_counts
from outrider.service.machines_shown import machine_state


def jobs(core: Core, limit: int, state: str | None) -> dict[str, Any]:
    """The object of ``/api/v1/jobs``."""
    tracker, site = core.intake.tracker, core.site
    rows: list[dict[str, Any]] = []
    total = 0
    for track in tracker.jobs.values():
        job = site.jobs.get(track.number)
        if job is None or (state is not None and JOB_STATE_NAMES[job.state] != state):
            continue
        total += 1
        if len(rows) < limit:
            rows.append(_job_row(core, tracker.job_names[track.number], job))
    return {"mode": core.config.mode, "now_s": site.now, "jobs": rows, "total": total}


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
        "machine": core.intake.tracker.machine_names[job.machine] if on else None,
        "run_s": job.run_s(site.now) if on else None,
        "runs": job.runs,
        "lost_s": job.consumed_s,
        "standing": {
            seat.name: {"action": standing.action, "reason": standing.reason}
            for seat in core.seats
            if (standing := seat.line.waiting.get(job.number)) is not None
        },
    }


def machines(core: Core, limit: int) -> dict[str, Any]:
    """The object of ``/api/v1/machines``."""
    site, names = core.site, core.intake.tracker.machine_names
    rows = [
        {
            "machine": names[m],
            "cluster": site.cluster_names[site.machine_cluster[m]],
            "state": machine_state(core, m),
            "cpus": site.cpus[m],
            "busy_cpus": site.busy[m],
            "active_w": spec.active_w,
            "inferred": spec.inferred,
        }
        for m, spec in enumerate(site.specs)
        if spec is not None
    ]
    return {
        "mode": core.config.mode,
        "now_s": site.now,
        "machines": rows[:limit],
        "total": len(rows),
    }


def utility(core: Core) -> dict[str, Any]:
    """The object of ``/api/v1/utility``: what a broker ranks sites by."""
    figures = report(core.site, core.accounting, None)
    return {
        "mode": core.config.mode,
        "now_s": core.site.now,
        "site_utility": {
            "free_machines": core.site.free_total,
            "queued_jobs": job_counts(core)["queued"],
            "mean_wait_s": figures["wait_s"]["all"]["mean"],
            "fairness": figures["fairness"]["windowed"],
            "energy_wh": figures["energy_wh"],
            "energy_measured_wh": figures["energy_measured_wh"],
        },
    }
