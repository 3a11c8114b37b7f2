"""The reward of a run: user utility, in relation to its work, plus fairness of the site."""

from outrider.api import COMPLETED_RUN, Job, JobSpec, Outcome, SiteView
from outrider_policies.sarsa.experience import Decision
from outrider_policies.sarsa.mean_runs import MeanRuns
from outrider_policies.sarsa.settings import SarsaSettings
from outrider_policies.sarsa.site_state import fairness


def reward_of(
    decision: Decision, outcome: Outcome, runs: MeanRuns, settings: SarsaSettings, view: SiteView
) -> float:
    """Weighted fairness F, plus, if the run completed, its unit utility U or its density.

    The density is U m / (m + w), with w the work of the run and m that of a mean run, because a run
    keeps CPUs from queued jobs for as long as it works. With U alone, a batch job of a day that
    earns .9 comes before an interactive one that has waited and earns .5, which then loses more.
    The plain density U m / w is not bounded: a few runs of seconds would dominate training.
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
