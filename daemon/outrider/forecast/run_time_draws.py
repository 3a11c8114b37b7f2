"""Run times of jobs that have not ended, drawn from alike ones.

Each replicate takes, for each kind of job (user, request and size), one level of the history and
one *contiguous block* of run times there: jobs of a batch are of like length, so the sum of many
varies far more than independent draws say. The level is drawn as in a hierarchical Dirichlet
process (Teh et al. 2006): a group of n run times is kept with probability n / (n + c), else the
next wider one is asked. A kind that had to go beyond its user's own requests is new; in half of
the replicates all its jobs are of one length, whatever that is: the common shock of a new burst.

Of what began lately only short jobs have ended. So jobs that run count too, each with the run time
that it was drawn in the same replicate, those that began first before the others: what has run the
longest passes its weight on to longer run times only (redistribution to the right: Efron 1967, the
Kaplan-Meier estimate).
"""

from typing import Final

import numpy as np

from outrider.forecast.compiling import compiled
from outrider.forecast.queue_state import Floats, Ints, QueueState
from outrider.forecast.run_time_history import KEPT, RunTimeHistory

CONCENTRATION: Final = 10.0
"""c above: how many run times of its own make a group worth as much as all wider ones."""
SHOCK_RATIO: Final = 0.5
"""In how many replicates all jobs of a new kind are of one length."""
_NEW: Final = 2
"""Levels from here on are wider than what the user asked for before."""
_OVER_S: Final = 60.0


@compiled
def _longer(values_s: Floats, totals: Ints, groups: Ints, elapsed_s: Floats) -> Ints:
    """(jobs, levels) How many have ended that ran longer than a job has run already."""
    jobs_n, levels = groups.shape
    out = np.zeros((jobs_n, levels), np.int64)
    for job in range(jobs_n):
        for level in range(levels):
            group = groups[job, level]
            n = min(totals[group], KEPT)
            if elapsed_s[job] <= 0.0:
                out[job, level] = n
                continue
            for place in range(n):
                out[job, level] += values_s[group, place] > elapsed_s[job]
    return out


@compiled
def _level(longer: Ints, chance: float, concentration: float) -> int:
    """The level to draw from; -1: there is none with a run time long enough."""
    last = -1
    for level in range(len(longer)):
        if longer[level] == 0:
            continue
        last = level
        kept = longer[level] / (longer[level] + concentration)
        if chance < kept:
            return level
        chance = (chance - kept) / (1.0 - kept)
    return last


@compiled
def _value(
    values_s: Floats, total: int, mates: Ints, mates_n: int, drawn_s: Floats, elapsed_s: float,
    chance: float, step: int,
) -> tuple[float, int]:  # fmt: skip
    """The run time at `step` of a block, or the next that is longer than `elapsed_s`; its step.

    Ended ones come by age, then those that run; after the last comes the first.
    """
    ended = min(total, KEPT)
    n = ended + mates_n
    begin = int(chance * n)
    for _ in range(n):
        place = (begin + step) % n
        if place < ended:
            run_s = values_s[(total - ended + place) % KEPT]
        else:
            run_s = drawn_s[mates[place - ended]]
        if run_s > elapsed_s or elapsed_s <= 0.0:  # of one that waits any is: even one of 0 s
            return run_s, step
        step += 1
    return elapsed_s + _OVER_S, step  # `longer` says that there is one


@compiled
def drawn_run_times(
    values_s: Floats,
    totals: Ints,
    groups: Ints,
    kinds: Ints,
    mates: Ints,
    first_mate: Ints,
    mates_n: Ints,
    elapsed_s: Floats,
    limit_s: Floats,
    chances: Floats,
    concentration: float,
    shock_ratio: float,
) -> Floats:
    """(replicates, jobs) run times, each longer than what its job has run already, seconds.

    Args:
        values_s: of `RunTimeHistory`.
        totals: of `RunTimeHistory`.
        groups: (jobs, levels) of each job; those that run come first, by their starts.
        kinds: (jobs,) number of its kind, from 0.
        mates: (levels, running) those that run, by group and then by start.
        first_mate: (jobs, levels) where in `mates` those of its group begin.
        mates_n: (jobs, levels) how many there are; of a job that runs, how many began before it;
            of one that lost a run, how many have run for as long.
        elapsed_s: (jobs,) how long it has run, or ran before it lost that; 0: it never did.
        limit_s: (jobs,) run time at which it is killed; inf: it is not.
        chances: (replicates, kinds, 3) uniform from 0 to 1: for level, block and shock.
        concentration: `CONCENTRATION`.
        shock_ratio: `SHOCK_RATIO`.
    """
    replicates, kinds_n, _ = chances.shape
    jobs_n, levels = groups.shape
    longer = _longer(values_s, totals, groups, elapsed_s) + mates_n
    out = np.empty((replicates, jobs_n))
    steps = np.empty((kinds_n, levels), np.int64)
    for replicate in range(replicates):
        steps[:] = 0
        drawn_s = out[replicate]
        for job in range(jobs_n):
            kind = kinds[job]
            chance = chances[replicate, kind]
            level = _level(longer[job], chance[0], concentration)
            if level < 0:  # nobody ran for so long: as much again is as likely as not
                run_s = max(elapsed_s[job], _OVER_S) / max(chance[1], 0.01)
            else:
                group = groups[job, level]
                run_s, step = _value(
                    values_s[group], totals[group], mates[level, first_mate[job, level] :],
                    mates_n[job, level], drawn_s, elapsed_s[job], chance[1], steps[kind, level],
                )  # fmt: skip
                is_shared = level >= _NEW and chance[2] < shock_ratio
                steps[kind, level] = step + (0 if is_shared else 1)
            if run_s > limit_s[job]:
                run_s = max(limit_s[job], elapsed_s[job] + _OVER_S)
            drawn_s[job] = run_s
    return out


def _mates(running: Ints, groups: Ints, elapsed_s: Floats) -> tuple[Ints, Ints, Ints]:
    """`mates`, `first_mate` and `mates_n` of `drawn_run_times`.

    Args:
        running: (running, levels) groups of those that run, by their starts.
        groups: (jobs, levels) groups of all jobs, those that run first.
        elapsed_s: (jobs,) as there.
    """
    n, levels = running.shape
    mates = np.empty((levels, n), np.int64)
    first, count = np.empty_like(groups), np.empty_like(groups)
    for level in range(levels):
        order = running[:, level].argsort(kind="stable")
        in_order = running[order, level]
        mates[level] = order
        first[:, level] = np.searchsorted(in_order, groups[:, level])
        count[:, level] = np.searchsorted(in_order, groups[:, level], "right") - first[:, level]
        count[order, level] = np.arange(n) - first[order, level]
        for job in n + elapsed_s[n:].nonzero()[0]:  # of mates only those that ran for as long
            ran_s = elapsed_s[mates[level, first[job, level] :][: count[job, level]]]
            count[job, level] = np.searchsorted(-ran_s, -elapsed_s[job], "right")
    return mates, first, count


def draw_run_times(
    state: QueueState, history: RunTimeHistory, replicates: int, rng: np.random.Generator
) -> Floats:
    """(replicates, running + waiting) run times of the jobs that have not ended, seconds."""
    running, waiting = state.running, state.waiting
    by_start = state.since_s.argsort(kind="stable")
    order = np.concatenate([by_start, len(running) + np.arange(len(waiting))])
    groups = np.concatenate([running.groups, waiting.groups])[order]
    lost_s = state.lost_s if len(state.lost_s) else np.zeros(len(waiting))
    elapsed_s = np.concatenate([state.now_s - state.since_s, lost_s])
    limit_s = np.full(len(groups), np.inf)
    if history.kills_at_request:
        request_s = np.concatenate([running.request_s, waiting.request_s])
        limit_s = np.where(np.isnan(request_s), np.inf, request_s)
    _, kinds = np.unique(groups[:, 0], return_inverse=True)
    kinds_n = int(kinds.max()) + 1 if len(kinds) else 0
    chances = rng.random((replicates, kinds_n, 3))
    drawn_s = drawn_run_times(
        history.values_s, history.totals, groups, kinds,
        *_mates(groups[: len(running)], groups, elapsed_s[order]), elapsed_s[order],
        limit_s[order], chances, CONCENTRATION, SHOCK_RATIO,
    )  # fmt: skip
    out = np.empty_like(drawn_s)
    out[:, order] = drawn_s
    return out
