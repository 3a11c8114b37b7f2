"""Replicates of the past: each runs every policy on the same arrivals and owners."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api.policy import Policy
from outrider.engine.scheduling.deferral_limit import HandBack
from outrider.formats.campus.campus import Campus
from outrider.model.errors import PolicyError
from outrider.replay.run import CampusRun, keep_nothing
from outrider.twin.tally import Mark, Tally
from outrider.twin.twin_site import TwinSite

Floats = NDArray[np.float64]


class Outcome(NamedTuple):
    """Result of one simulated run of the past.

    Attributes:
        marks: totals at the beginning of the first block and at the end of each.
        total: totals over the whole past.
        overhead_s: (completed,) of the jobs that completed, in that order, seconds.
        unfinished_s: (unfinished,) overhead so far of the others that would have, seconds.
        work_s: CPU-seconds in which jobs had the machine, by machine number of the campus.
        starts: by machine number.
        ran_s: seconds that each job ran, by job number.
        start_delay_s: mean seconds for which a job waited while its machine was free for it.
    """

    marks: list[Mark]
    total: Mark
    overhead_s: Floats
    unfinished_s: Floats
    work_s: Floats
    starts: Floats
    ran_s: Floats
    start_delay_s: float


PolicyMaker = Callable[[str, int], Policy]
"""Makes a policy of a name and a seed."""


class Pairs(NamedTuple):
    """Outcomes of every policy in each replicate, by policy.

    Attributes:
        fixed: where jobs are killed at their recorded times.
        by_clock: where they are killed by the clock of their users' patience; None: that makes no
            significant difference.
        failed: error of each policy that failed; it is in neither.
    """

    fixed: dict[str, list[Outcome]]
    by_clock: dict[str, list[Outcome]] | None
    failed: dict[str, str]


def simulate_pairs(
    site: TwinSite,
    policies: Sequence[str],
    make: PolicyMaker,
    replicates: int,
    seed: int,
    longest_deferral_s: float = inf,
    progress: Callable[[float], None] | None = None,
) -> Pairs:
    """Simulate the past under every policy, once in each replicate.

    Policies of one replicate have the same run times of pending jobs and the same seed.

    Args:
        site: the simulated site.
        policies: by name, the incumbent first; none twice.
        make: makes a new policy.
        replicates: number of replicates.
        seed: of all random draws.
        longest_deferral_s: for how long a candidate may keep a job in the queue: then the incumbent
            starts it. Infinite: without a bound.
        progress: called with the ratio that is done.

    Raises:
        PolicyError: the incumbent failed. A candidate that fails is left out.
    """
    failed: dict[str, str] = {}

    def simulated(on: Campus, name: str, policy_seed: int) -> Outcome:
        back = None
        if name != policies[0] and longest_deferral_s < inf:
            back = HandBack(longest_deferral_s, make(policies[0], policy_seed))
        return simulate(site, on, make(name, policy_seed), hand_back=back)

    fixed: dict[str, list[Outcome]] = {name: [] for name in policies}
    by_clock: dict[str, list[Outcome]] = {name: [] for name in policies}
    seeds = np.random.SeedSequence(seed).spawn(replicates)
    for number, sequence in enumerate(seeds):
        rng = np.random.default_rng(sequence)
        campus, policy_seed = site.drawn(rng), int(rng.integers(2**31))
        for at, name in enumerate(policies):
            if name not in failed:
                try:
                    outcome = simulated(campus, name, policy_seed)
                    fixed[name].append(outcome)
                    if site.clock is not None:
                        killed = site.killed_by_clock(campus, site.clock, outcome.ran_s)
                        by_clock[name].append(simulated(killed, name, policy_seed))
                except PolicyError as error:
                    if at == 0:
                        raise
                    failed[name] = str(error)
            if progress is not None:
                progress((number + (at + 1) / len(policies)) / replicates)
    for name in failed:
        del fixed[name], by_clock[name]
    return Pairs(fixed, None if site.clock is None else by_clock, failed)


def simulate(
    site: TwinSite,
    campus: Campus,
    policy: Policy,
    until_s: float | None = None,
    hand_back: HandBack | None = None,
) -> Outcome:
    """Simulate the past once under a policy.

    Args:
        site: the simulated site.
        campus: that of the site, with all run times drawn.
        policy: makes the decisions.
        until_s: second of the campus after which it stops; None: its last.
        hand_back: bounds for how long the policy keeps a job in the queue; None: no bounds.
    """
    run = CampusRun(campus, [policy], keep_nothing, until_s, discipline=site.discipline)
    run.runners[0].hand_back = hand_back
    tally = Tally(run.site, run.accounting, site.block_ends())
    run.engine.feed(tally.watch(run.simulation.events()))
    run.engine.finish(run.end_s)
    tally.close()
    jobs = run.site.jobs
    unfinished = [
        max(0.0, run.end_s - submit_s - run_s)
        for job, run_s in run.simulation.unfinished_run_s()
        if job in jobs and (submit_s := jobs[job].submit_s) is not None
    ]
    return Outcome(
        tally.marks,
        tally.total,
        tally.overhead_s,
        np.array(unfinished, dtype=np.float64),
        _column(tally.work_s, len(campus.machine_names)),
        _column(tally.starts, len(campus.machine_names)),
        _column(tally.ran_s, len(campus.job_names)),
        tally.mean_start_delay_s,
    )


def _column(counts: Mapping[int, float], n: int) -> Floats:
    return np.array([counts.get(number, 0.0) for number in range(n)], dtype=np.float64)
