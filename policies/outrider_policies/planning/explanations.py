"""Explanations of what a job waits for and what its run is expected to earn."""

from outrider.api import SUSPENDED_STATE, Job, SiteView
from outrider_policies.planning.run_lengths import RunLengths
from outrider_policies.planning.work_left import work_left_s


def what_it_waits_for(job: Job, view: SiteView) -> str:
    """One sentence: the CPUs it needs on one machine, and the most that are free on one."""
    wait = "it was preempted and waits" if job.state == SUSPENDED_STATE else "it waits"
    most = max((view.cpus_left(machine) for machine in range(view.machines_n)), default=0)
    return (
        f"{wait} for {job.spec.cpus} CPUs on one machine; the most that are free on one is {most}"
    )


def what_its_run_brings(job: Job, view: SiteView, lengths: RunLengths) -> str:
    """One sentence: when its run is expected to end, and with what utility."""
    ideal_s = lengths.ideal_s(job)
    rate = view.speed_of(job.machine) * job.cpus / job.spec.cpus
    remaining_s = work_left_s(job, ideal_s, view.now) / rate
    submit_s = job.start_s if job.submit_s is None else job.submit_s
    unit = float(view.utility(job).unit(view.now + remaining_s - submit_s, ideal_s))
    return (
        f"it runs on {job.cpus} of {job.spec.cpus} CPUs and is expected to end in "
        f"{remaining_s:.0f} s with {unit:.0%} of its utility"
    )
