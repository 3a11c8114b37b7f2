"""Invariants of a daemon's core between two batches, computed from scratch."""

from collections import Counter
from collections.abc import Iterator

from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.engine.scheduling.queue_passes import QueuePass
from outrider.engine.state.machines import FREE, SHUT, TAKEN
from outrider.engine.state.site import JobCounts
from outrider.model.jobs import HELD_STATE, QUEUED, RUNNING, SUSPENDED_STATE
from outrider.service.core.core import Core
from outrider.service.views import explanation, status
from outrider.service.web.endpoints.jobs import jobs
from outrider.service.web.endpoints.machines import machines


def contradictions(core: Core, ask_why: bool = False) -> list[str]:
    """Every place where two figures that must agree do not; empty when all is well.

    Args:
        core: the daemon's.
        ask_why: policies explain some jobs, too; a policy may bring what it knows up to date
            for that, and is then no longer, to the bit, one that was never asked.
    """
    asked = _explanations(core) if ask_why else ()
    counted = (
        *_jobs(core),
        *_kept_counts(core),
        *_machines(core),
        *_totals(core),
        *_runners(core),
        *_views(core),
    )
    return [*counted, *asked]


def _jobs(core: Core) -> Iterator[str]:
    site, normaliser = core.site, core.merger.normaliser
    histories = {history.number: (name, history) for name, history in normaliser.jobs.items()}
    if histories.keys() != site.jobs.keys():
        alone = histories.keys() ^ site.jobs.keys()
        yield f"jobs of the normaliser alone or the engine alone: {alone}"
    for number, job in site.jobs.items():
        name, history = histories.get(number, ("", None))
        if history is None:
            continue
        told = (QUEUED, -1) if normaliser.waits_for_slot(name) else (history.state, history.machine)
        if (job.state, job.machine) != told:
            yield f"{name}: {job.state, job.machine}, the normaliser has {told}"
        if (job.machine >= 0) != (job.state in (RUNNING, SUSPENDED_STATE)):
            yield f"{name}: in state {job.state} on machine {job.machine}"
        own = normaliser.job_names.get(number, "")
        if own.partition("#")[0] != name or normaliser.known_by(own) is not history:
            yield f"{name}: named {own!r}"


def _kept_counts(core: Core) -> Iterator[str]:
    kept, counted = core.site.job_counts, JobCounts(core.site.jobs.values())
    for name, right in vars(counted).items():
        if getattr(kept, name) != right:
            yield f"kept counts of jobs, {name}: {getattr(kept, name)}, there are {right}"


def _machines(core: Core) -> Iterator[str]:
    yield from _cpus(core)
    yield from _places(core)
    yield from _free(core)


def _cpus(core: Core) -> Iterator[str]:
    site = core.site
    busy: Counter[int] = Counter()
    running: Counter[int] = Counter()
    for job in site.jobs.values():
        if job.machine >= 0:
            busy[job.machine] += job.cpus
        if job.state == RUNNING:
            running[job.machine] += job.cpus
    for m in range(len(site.specs)):
        if site.busy[m] != busy[m] or site.busy[m] < 0:
            yield f"machine {m}: {site.busy[m]} CPUs busy, runs have {busy[m]}"
        if core.accounting.energy.machine(m).busy != running[m]:
            yield f"machine {m}: {running[m]} CPUs at work, energy says otherwise"


def _places(core: Core) -> Iterator[str]:
    site = core.site
    for m, spec in enumerate(site.specs):
        state = site.state[m]
        if state not in (SHUT, FREE, TAKEN):
            yield f"machine {m}: in state {state} outside of a scheduling pass"
        if spec is None and state != SHUT:
            yield f"machine {m}: gone, and open to jobs"
        if state != SHUT and (state == FREE) != (site.busy[m] < site.cpus[m]):
            yield f"machine {m}: state {state} with {site.busy[m]} of {site.cpus[m]} CPUs busy"
        member = [c for c, members in enumerate(site.members) if m in members]
        if member != ([] if spec is None else [site.machine_cluster[m]]):
            yield f"machine {m}: member of {member}, of cluster {site.machine_cluster[m]}"


def _free(core: Core) -> Iterator[str]:
    site = core.site
    free = [m for m, state in enumerate(site.state) if state == FREE]
    counted = [sum(site.machine_cluster[m] == c for m in free) for c in range(len(site.free_n))]
    if site.free_n != counted or site.free_total != len(free) or set(site.free_since) != set(free):
        yield f"free {free}, counted {site.free_n}, {site.free_total}, {list(site.free_since)}"
    open_cpus = sum(site.cpus[m] for m, state in enumerate(site.state) if state != SHUT)
    if site.open_cpus != open_cpus:
        yield f"{open_cpus} CPUs are open, counted {site.open_cpus}"
    if site.runs is not None:
        there = {job.number for job in site.runs}
        if there != {number for number, job in site.jobs.items() if job.machine >= 0}:
            yield f"runs that are indexed: {there}"


def _totals(core: Core) -> Iterator[str]:
    site, accounting = core.site, core.accounting
    here = len(site.jobs)
    submitted, left = accounting.submitted, accounting.completed + accounting.removed
    if submitted != left + here:
        yield f"{submitted} submitted, {left} completed or removed, {here} here"
    open_n = sum(job.machine >= 0 for job in site.jobs.values())
    ended = accounting.completed + sum(accounting.evictions.values())
    if accounting.starts != ended + open_n:
        yield f"{accounting.starts} starts, {ended} ends of runs, {open_n} runs"
    by_vo: Counter[str] = Counter()
    for job in site.jobs.values():
        if job.state == RUNNING:
            by_vo[job.spec.vo] += job.cpus
    counted = dict(
        zip(accounting.fairness.save()["vos"], accounting.fairness.save()["running"], strict=True)
    )
    if {vo: n for vo, n in counted.items() if n} != dict(by_vo):
        yield f"CPUs by VO: {counted}, runs have {dict(by_vo)}"
    if (
        accounting.goodput_s < 0
        or accounting.badput_s < 0
        or any(w.total < 0 for w in accounting.waits.values())
    ):
        yield f"below 0: goodput {accounting.goodput_s}, badput {accounting.badput_s}, or a wait"
    if core.merger.set_aside["fault"]:
        yield f"faults: {[event.detail for event in core.merger.newly_set_aside]}"


def _runners(core: Core) -> Iterator[str]:
    jobs = core.site.jobs
    queued = {number for number, job in jobs.items() if job.state == QUEUED}
    for runner in core.runners:
        if runner.broken:
            yield f"{runner.name}: {runner.broken}"
            continue
        if runner.queue.waiting.keys() != queued:
            has = sorted(runner.queue.waiting)
            yield f"{runner.name}: {has} in its queue, {sorted(queued)} queued"
        runs = {number for number, job in jobs.items() if job.machine >= 0}
        if not runner.running.keys() <= runs:
            yield f"{runner.name}: remembers runs that ended: {runner.running.keys() - runs}"
        yield from _queue(runner, queued)


def _queue(runner: PolicyRunner, queued: set[int]) -> Iterator[str]:
    if isinstance(runner.scheduling_pass, QueuePass):
        rows = {job.number for job in runner.scheduling_pass.table.jobs}
        if not rows <= queued or len(rows) != len(runner.scheduling_pass.table.jobs):
            yield f"{runner.name}: rows {sorted(rows)}, queued {sorted(queued)}"


def _views(core: Core) -> Iterator[str]:
    site = core.site
    shown = status.status(core, {})
    counts = Counter(job.state for job in site.jobs.values())
    by_name = {"queued": QUEUED, "running": RUNNING, "suspended": SUSPENDED_STATE}
    for name, state in {**by_name, "held": HELD_STATE}.items():
        if shown["jobs"][name] != counts[state]:
            yield f"{name}: status says {shown['jobs'][name]}, there are {counts[state]}"
    if jobs(core, 5).total != len(site.jobs):
        yield "the list of jobs has another total"
    there = sum(spec is not None for spec in site.specs)
    if sum(shown["machines"].values()) != there or machines(core, 5).total != there:
        yield f"{there} machines, status says {shown['machines']}"


def _explanations(core: Core) -> Iterator[str]:
    normaliser = core.merger.normaliser
    for history in list(normaliser.jobs.values())[:2]:
        name = normaliser.job_names[history.number]
        said = explanation.explain(core, name, [])
        if said is None:
            yield f"{name}: cannot be explained"
            continue
        for policy in said["policies"]:
            if "could not explain this" in policy["explanation"]:
                yield f"{name}: {policy['explanation']}"
