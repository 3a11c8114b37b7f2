"""Recompute all derived state from the primary state after an internal error.

An event that raised half way may have left a machine's CPUs taken by no job, or a job in two
queues. The primary state is which jobs there are, where they run and what each machine is;
all else follows from that and is rebuilt here. It costs a walk over jobs and machines, and it is
called only after an error, so normal events pay nothing for it.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from outrider.engine.accounting.accounting import Accounting
from outrider.engine.scheduling.policy_runner import PolicyRunner
from outrider.engine.state.machines import FREE, SHUT, TAKEN
from outrider.engine.state.site import Site
from outrider.model.jobs import QUEUED, RUNNING, SUSPENDED_STATE, Job
from outrider.model.machines import MachineSpec


def realign(
    site: Site, accounting: Accounting, runners: Iterable[PolicyRunner], known: Collection[int]
) -> None:
    """Make site, accounting and runners agree with the jobs that are known.

    Args:
        site: its jobs, and whether its machines are shut, are trusted.
        accounting: what runs now is corrected; totals so far stay as they are.
        runners: those that receive events.
        known: numbers of the jobs that stay; every other job is removed entirely.
    """
    for number in [number for number in site.jobs if number not in known]:
        accounting.job_removed(site.jobs.pop(number))
    _count_machines(site)
    if site.runs is not None:
        site.index_runs()
    if site.kept_counts is not None:
        site.count_jobs()
    _count_work(site, accounting)
    for runner in runners:
        _align_queue(site, runner)


def _holds_cpus(job: Job) -> bool:
    return job.state == RUNNING or (job.state == SUSPENDED_STATE and not job.gave_back)


def _count_machines(site: Site) -> None:
    """Recount the CPUs in use, the machines of each cluster, and which machines are free."""
    busy: Counter[int] = Counter()
    for job in site.jobs.values():
        if _holds_cpus(job):
            busy[job.machine] += job.cpus
    for members in site.members:
        members.clear()
    for m, spec in enumerate(site.specs):
        site.busy[m] = busy[m]
        cluster = site.machine_cluster[m]
        was_open = site.state[m] != SHUT
        is_open = was_open and spec is not None and not site.owner[m]
        is_free = is_open and busy[m] < site.cpus[m]
        site.state[m] = (FREE if is_free else TAKEN) if is_open else SHUT
        site.availability.correct(m, is_open, site.now)
        if is_free:
            site.free_since.setdefault(m, site.now)
        else:
            site.free_since.pop(m, None)
        if spec is not None:
            site.members[cluster].append(m)
    site.recount()


def _count_work(site: Site, accounting: Accounting) -> None:
    """CPUs at work, by VO and by machine."""
    by_vo: Counter[str] = Counter()
    by_machine: Counter[int] = Counter()
    for job in site.jobs.values():
        if job.state == RUNNING:
            by_vo[job.spec.vo] += job.cpus
            by_machine[job.machine] += job.cpus
    accounting.fairness.correct(by_vo, site.now)
    for m, spec in enumerate(site.specs):
        cluster = site.machine_cluster[m]
        accounting.energy.correct(
            m, spec or MachineSpec(), cluster, site.cluster_specs[cluster], by_machine[m], site.now
        )


def _align_queue(site: Site, runner: PolicyRunner) -> None:
    """Each queue holds exactly the pending jobs, and only runs that go on are remembered."""
    if runner.broken:
        return
    waiting = {
        job.number
        for job in site.jobs.values()
        if job.state == QUEUED or (runner.plans and job.state == SUSPENDED_STATE and job.gave_back)
    }
    for number in [number for number in runner.queue.waiting if number not in waiting]:
        runner.dequeue(number, site)
    for number in sorted(waiting - runner.queue.waiting.keys()):
        runner.enqueue(number)
    runs = {number for number, job in site.jobs.items() if job.state in (RUNNING, SUSPENDED_STATE)}
    for number in runner.running.keys() - runs:
        del runner.running[number]
    if runner.predictions is not None:
        for number in runner.predictions.open.keys() - runs:
            del runner.predictions.open[number]
