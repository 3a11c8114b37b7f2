"""Why a job waits, in a sentence: what the batch system says, then what Outrider knows."""

from typing import Any

from outrider.model.decisions import DEFER, IMPOSSIBLE, NO_MACHINE
from outrider.model.jobs import JOB_STATE_NAMES, Job
from outrider.service.core import Core
from outrider.service.views.acting import lease_in_words
from outrider.service.views.sentence import moment
from outrider.service.waiting_reasons import Said


def why_in_words(
    core: Core,
    name: str,
    job: Job,
    policies: list[dict[str, Any]],
    said: Said,
    lease: dict[str, Any] | None,
) -> str:
    """The batch system's own reason first; without it, what follows from what was told.

    Args:
        core: the daemon's.
        name: of the job.
        job: that waits, is held, or runs.
        policies: what each has decided about it.
        said: by the batch systems, a moment ago.
        lease: what stands for it in the batch system.
    """
    state = JOB_STATE_NAMES[job.state]
    if state == "held" and said.reason is not None:
        return f"{name} is kept back: {said.reason.sentence}."
    if state != "queued":
        where = ""
        if job.machine >= 0:
            where = f" on {core.merger.normaliser.machine_names[job.machine]}"
        return f"{name} is {state}{where}."
    if said.reason is not None:
        reason = said.reason.sentence
    elif core.site.free_total == 0:
        reason = "no machine is free that Outrider knows of"
    else:
        reason = f"{core.site.free_total} machines are free; the batch system has not started it"
    is_kept = lease is not None and lease["action"] == DEFER
    wishes = [wish for policy in policies if (wish := _wish(core, policy, is_kept))]
    thought = f" In {core.config.mode}: {'; '.join(wishes)}." if wishes else ""
    done = f" {lease_in_words(lease)}" if lease is not None else ""
    return f"{name} waits: {reason}.{thought}{done}"


def _wish(core: Core, policy: dict[str, Any], is_kept: bool) -> str:
    """What a policy wants of a job; empty where it has not been asked."""
    name = policy["name"]
    if policy["reason"] == NO_MACHINE:
        return f"{name} waits for a machine"
    if policy["reason"] == IMPOSSIBLE:
        return f"{name} knows of no machine that it fits on"
    if policy["action"] == DEFER:
        return f"{name} {'defers' if is_kept else 'would defer'} it{_until(core, policy)}"
    return f"{name} would start it on {policy['cluster']}" if policy["action"] else ""


def _until(core: Core, policy: dict[str, Any]) -> str:
    """Until when a job is deferred, why, and until when it may be at most."""
    until_s, latest_s = policy["until_s"], policy["latest_s"]
    until = "" if until_s is None else f" until {moment(core, until_s):%d %b %H:%M}"
    until += f" ({policy['reason']})"
    if latest_s is None or latest_s == until_s:
        return until
    return f"{until}, and no longer than until {moment(core, latest_s):%d %b %H:%M}"
