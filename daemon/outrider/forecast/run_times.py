"""Run times of jobs: a history of ended ones, and draws for those that have not ended."""

from collections.abc import Hashable
from math import isnan, log2
from typing import Final

import numpy as np

from outrider.forecast.queue_state import Floats, Ints, QueueState
from outrider.forecast.running import compiled

# -- run time history ------------------------------------------------------------------------------
# Run times of jobs that have ended, by user and request: the others' are drawn from these.

GROUP_LEVELS: Final = 5
"""Levels: user with request and size; user with request; user; class of request; all jobs."""
KEPT: Final = 256
"""Run times kept of a group: the last ones."""
MAX_GROUPS: Final = 1 << 16
"""Maximal number of groups (134 MB); beyond it a job uses the next wider group."""
_OVERRUNS_KEPT: Final = 1000
_OVERRUN_RATIO: Final = 0.02


class RunTimeHistory:
    """The last run times of each group of similar jobs, on five levels.

    Attributes:
        values_s: (groups, KEPT) run times; the newest of a group is at ``(total - 1) % KEPT``.
        totals: (groups,) number of run times that each group ever had.
    """

    def __init__(self) -> None:
        self.values_s: Floats = np.empty((64, KEPT))
        self.totals: Ints = np.zeros(64, np.int64)
        self._numbers: dict[Hashable, int] = {}
        self._over: Floats = np.zeros(_OVERRUNS_KEPT)
        self._requests_n = 0

    def groups_of(self, user: str, request_s: float, job_class: str, cpus: int) -> list[int]:
        """Return (levels,) the groups that a job belongs to, the narrowest first.

        Args:
            user: name of the user.
            request_s: requested run time, seconds; nan: none.
            job_class: any other declaration of its length, such as a queue.
            cpus: requested CPUs.
        """
        request: tuple[Hashable, ...] = (None if isnan(request_s) else request_s, job_class)
        kind = (None if isnan(request_s) else round(2.0 * log2(max(1.0, request_s))), job_class)
        keys: list[Hashable] = [
            (0, user, request, cpus), (1, user, request), (2, user), (3, kind), (4,)
        ]  # fmt: skip
        if len(self._numbers) + GROUP_LEVELS <= MAX_GROUPS:
            return [self._number(key) for key in keys]
        groups = [0]
        for key in reversed(keys):
            groups.append(self._numbers.get(key, groups[-1]))
        return groups[:0:-1]

    def _number(self, key: Hashable) -> int:
        number = self._numbers.setdefault(key, len(self._numbers))
        if number == len(self.totals):
            self.values_s = np.concatenate([self.values_s, np.empty_like(self.values_s)])
            self.totals = np.concatenate([self.totals, np.zeros_like(self.totals)])
        return number

    def add(self, groups: Ints, run_s: float, request_s: float) -> None:
        """Add the run time of a job that has ended.

        Args:
            groups: (levels,) of `groups_of`.
            run_s: its run time, seconds.
            request_s: its requested run time, seconds; nan: not known.
        """
        self.values_s[groups, self.totals[groups] % KEPT] = run_s
        self.totals[groups] += 1
        if not isnan(request_s):
            over = run_s > 1.1 * request_s + 300.0
            self._over[self._requests_n % _OVERRUNS_KEPT] = over
            self._requests_n += 1

    @property
    def kills_at_request(self) -> bool:
        """True if jobs are apparently killed at their requested time: few ever ran longer."""
        n = min(self._requests_n, _OVERRUNS_KEPT)
        return n > 0 and float(self._over[:n].mean()) <= _OVERRUN_RATIO


# -- run time draws --------------------------------------------------------------------------------
# Run times of jobs that have not ended, drawn from those of similar jobs.
#
# Each replicate takes, for each kind of job (user, request and size), one level of the history and
# one *contiguous block* of run times there: jobs of a batch have similar lengths, so their sum
# varies far more than that of independent draws. The level is drawn as in a hierarchical Dirichlet
# process (Teh et al. 2006): a group of n run times is kept with probability n / (n + c), else the
# next wider one is tried. A kind for which none of its user's own requests was kept is new; in half
# of the replicates all its jobs have the same length: the common shock of a burst.
#
# Among recently started jobs only short ones have ended. So running jobs count too, each with the
# run time that it was drawn in the same replicate, in the order of their starts. The longest
# running one passes its weight on to longer run times only (redistribution to the right: Efron
# 1967, the Kaplan-Meier estimate).

CONCENTRATION: Final = 10.0
"""c above: number of run times at which a group has the same weight as all wider ones."""
SHOCK_RATIO: Final = 0.5
"""Share of replicates in which all jobs of a new kind have the same length."""
_NEW: Final = 2
"""First level that is wider than the user's own earlier requests."""
_OVER_S: Final = 60.0


@compiled
def _longer(values_s: Floats, totals: Ints, groups: Ints, elapsed_s: Floats) -> Ints:
    """Return (jobs, levels) the number of run times longer than the job's elapsed time."""
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
    """Return the level to draw from; -1: no level has a run time long enough."""
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
    """Return the run time at `step` of a block, or the next longer than `elapsed_s`; its step.

    Ended ones come by age, then running ones; the first follows the last.
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
        if run_s > elapsed_s or elapsed_s <= 0.0:  # a waiting job takes any, even one of 0 s
            return run_s, step
        step += 1
    return elapsed_s + _OVER_S, step  # not reached: `longer` counted at least one


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
    """Draw (replicates, jobs) run times in seconds, each longer than its job's elapsed time.

    Args:
        values_s: of `RunTimeHistory`.
        totals: of `RunTimeHistory`.
        groups: (jobs, levels) of each job; running jobs come first, by their starts.
        kinds: (jobs,) number of its kind, from 0.
        mates: (levels, running) running jobs, by group and then by start.
        first_mate: (jobs, levels) index in `mates` of the first one of its group.
        mates_n: (jobs, levels) their number; for a running job, of those that began before it; for
            one that lost a run, of those that have run for as long.
        elapsed_s: (jobs,) time that it has run, or ran before it lost that run; 0: it never did.
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
            if level < 0:  # none ran for so long: twice the time has a probability of one half
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
    """Return `mates`, `first_mate` and `mates_n` of `drawn_run_times`.

    Args:
        running: (running, levels) groups of running jobs, by their starts.
        groups: (jobs, levels) groups of all jobs, running ones first.
        elapsed_s: (jobs,) as in `drawn_run_times`.
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
    """Draw (replicates, running + waiting) run times of the present jobs, seconds."""
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
