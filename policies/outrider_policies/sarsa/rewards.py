"""What a run earns: the utility of its user, by the work it took, and the fairness of the site."""

from outrider.api import COMPLETED_RUN, Job, JobSpec, Outcome, SiteView
from outrider_policies.sarsa.experience import Decision
from outrider_policies.sarsa.mean_runs import MeanRuns
from outrider_policies.sarsa.settings import SarsaSettings
from outrider_policies.sarsa.site_state import fairness


def reward_of(
    decision: Decision, outcome: Outcome, runs: MeanRuns, settings: SarsaSettings, view: SiteView
) -> float:
    """Fairness F by its weight; and of a run that completed its unit utility U, or its density.

    The density is U m / (m + w), w the work of the run and m that of a mean one: a start takes CPUs
    from those that wait for as long as it works. Where utilities alone are summed, a batch job of a
    day that earns .9 comes before an interactive one that has waited and earns .5, and it waits on
    and is worth less and less. The order is that of U m / w among jobs of a class, but bounded:
    there a few runs of seconds are all that a net learns from.
    """
    reward = settings.fairness_weight * fairness(view.vo_shares())
    if outcome.ending != COMPLETED_RUN:
        return reward
    job = Job(outcome.job, JobSpec(job_class=decision.job_class), decision.submit_s)
    turnaround_s = outcome.end_s - decision.submit_s
    utility = float(view.utility(job).unit(turnaround_s, outcome.run_s))
    if settings.reward == "utility":
        return reward + utility
    return reward + utility * runs.work_s / (runs.work_s + outcome.run_s * decision.cpus)
