"""The node automaton alone, in an environment whose penalties never change."""

import random
from collections.abc import Sequence
from math import nan
from statistics import fmean
from typing import Any, Final, cast

from outrider.api.capabilities import Learns
from outrider.engine.state.site import Site
from outrider.model.jobs import Job, JobSpec
from outrider.model.localtime import ZoneTime
from outrider.model.machines import MachineSpec
from outrider.model.outcomes import COMPLETED_RUN, EVICTED_RUN, Outcome
from outrider.plugins.random_streams import stream
from outrider_lab.running.run_spec import RunSpec

PENALTIES: Final = (0.8, 0.6, 0.4, 0.2)
"""With which chance each node throws a job away; the last is the best."""
BEST_OF_LRP: Final = (1 / PENALTIES[-1]) / sum(1 / c for c in PENALTIES)
"""Theory: under L_R-P probabilities go towards 1 / c_i over the sum of them, as a goes to 0."""
_SAMPLES: Final = 100


def play_stationary(spec: RunSpec) -> dict[str, Any]:
    """p(best): averaged over the last half, and by step; over the runs of a seed.

    `locked_ratio`, for L_R-I, which rests only when it is certain: the share of runs that ended
    with less than 1/2 on the best node.
    """
    curves = [_run(spec, repeat) for repeat in range(spec.option("repeats"))]
    locked = fmean(curve[-1] < 0.5 for curve in curves)
    late = [curve[len(curve) // 2 :] for curve in curves]
    return {
        "p_best": fmean(map(fmean, late)),
        "locked_ratio": locked if spec.option("may_lock") else nan,
        "p_best_by_step": [fmean(points) for points in zip(*curves, strict=True)],
    }


def _run(spec: RunSpec, repeat: int) -> Sequence[float]:
    """p(best) at `_SAMPLES` moments of one run."""
    seed, steps = spec.seed * 1000 + repeat, spec.option("steps")
    policy = spec.policy.make(seed, str(spec))
    policy.wants_scores = True
    learner = cast(Learns, policy)  # a run spec of this experiment names one of the automata
    luck = random.Random(stream(seed, "automata:stationary").random())
    site = _site()
    best = f"nodes no. {len(PENALTIES) - 1}"
    every = max(1, steps // _SAMPLES)
    curve = []
    for number in range(steps):
        site.now += 1.0
        job = Job(number, JobSpec(), site.now)
        machine = policy.choose(job, None, site, False).machine
        ending = EVICTED_RUN if luck.random() < PENALTIES[machine] else COMPLETED_RUN
        key = policy.group_key(job, site)
        run = Outcome(number, key, machine, 0, site.now, site.now, 0.0, ending, "")
        learner.observe(run, site, True)
        if number % every == every - 1:
            curve.append(policy.scores(key, site)[best])
    return curve


def _site() -> Site:
    site = Site(ZoneTime("UTC"), [])
    for machine in range(len(PENALTIES)):
        site.join(machine, MachineSpec(cluster="nodes"))
        site.open_machine(machine)
    return site
