"""When waiting jobs will start: replicates of the scheduler's own rule, from the present state."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.model.disciplines import EASY, FIRST_FIT, STRICT, Discipline
from outrider.model.errors import ConfigurationError, nearest
from outrider.model.localtime import DAY_S
from outrider.twin.starts.backfill_kernel import backfill_starts
from outrider.twin.starts.closures_ahead import (
    NOTHING_CLOSED,
    Changes,
    ClosuresLately,
    draw_changes,
    no_changes,
)
from outrider.twin.starts.queue_state import Floats, Ints, QueueState, RecentArrivals
from outrider.twin.starts.run_time_draws import draw_run_times
from outrider.twin.starts.run_time_history import RunTimeHistory
from outrider.twin.starts.strict_kernel import strict_starts

DAYS_BACK: Final = 14
"""From how many past days those to come are drawn."""
DAYS_AHEAD: Final = 28
"""For how many days jobs keep coming; after them the queue runs empty."""
ENOUGH_DAYS: Final = 3
"""Of so many days of a kind such days are drawn."""
KNOWN_DISCIPLINES: Final = (STRICT, EASY, FIRST_FIT)


def expected_starts(
    state: QueueState,
    history: RunTimeHistory,
    arrivals: RecentArrivals,
    discipline: Discipline,
    replicates: int,
    rng: np.random.Generator,
    first_wanted: int = 0,
    closures: ClosuresLately = NOTHING_CLOSED,
) -> Floats:
    """(replicates, wanted) when each waiting job starts, seconds; inf: never.

    Each replicate draws how long every job will run, and under a discipline that lets jobs pass,
    or where owners take machines back, also which days of the recent past come again; then the
    rule is carried out to the start of the last job. So one replicate gives every job's start, and
    starts of one replicate belong together.

    Args:
        state: the site now. What could start at once starts at `state.now_s`.
        history: run times of jobs that have ended.
        arrivals: what came lately; `NO_ARRIVALS` is enough for ``strict``.
        discipline: ``strict``, ``easy`` or ``first_fit``.
        replicates: how many; their spread is the uncertainty, 100 give fair tails.
        rng: chance.
        first_wanted: place in the queue of the first job whose start is wanted.
        closures: when machines were closed to jobs lately.

    Raises:
        ConfigurationError: another discipline.
    """
    return drawn_starts(
        state, history, arrivals, discipline, replicates, rng, first_wanted, closures
    )[1]


def drawn_starts(
    state: QueueState,
    history: RunTimeHistory,
    arrivals: RecentArrivals,
    discipline: Discipline,
    replicates: int,
    rng: np.random.Generator,
    first_wanted: int,
    closures: ClosuresLately,
) -> tuple[Floats, Floats]:
    """The same, and (replicates, running + waiting) how long jobs run in each replicate, first."""
    run_s = draw_run_times(state, history, replicates, rng)
    since_s = min(arrivals.since_s, closures.since_s)
    shifts_s = draw_days(state, since_s, replicates, rng)
    changes = draw_changes(state.now_s, closures, shifts_s, rng)
    starts_s = simulated_starts(state, run_s, arrivals, shifts_s, discipline, first_wanted, changes)
    return run_s, starts_s


def simulated_starts(
    state: QueueState,
    run_s: Floats,
    arrivals: RecentArrivals,
    shifts_s: Floats,
    discipline: Discipline,
    first_wanted: int = 0,
    changes: Changes | None = None,
) -> Floats:
    """(replicates, wanted) the starts if the jobs run for so long and such days come.

    Args:
        state: the site now.
        run_s: (replicates, running + waiting) whole run times.
        arrivals: what came lately.
        shifts_s: (replicates, days) which past days come: `draw_days`.
        discipline: ``strict``, ``easy`` or ``first_fit``.
        first_wanted: place in the queue of the first job whose start is wanted.
        changes: by how much the CPUs that jobs may use change; None: not at all.

    Raises:
        ConfigurationError: another discipline.
    """
    changes = no_changes(len(run_s)) if changes is None else changes
    if discipline not in KNOWN_DISCIPLINES:
        raise ConfigurationError(
            f"discipline {discipline}: starts are not forecast under it; "
            f"{nearest(discipline, KNOWN_DISCIPLINES)}"
        )
    running, waiting = state.running, state.waiting
    cpus = np.concatenate([running.cpus, waiting.cpus]).astype(float)
    rule = (state.now_s, float(state.free_cpus), float(state.total_cpus), state.since_s, cpus)
    if discipline == STRICT or _nobody_passes(state, arrivals):
        return strict_starts(*rule, run_s, first_wanted, *changes)
    reserves = discipline == EASY
    estimate_s = _known(running.estimate_s) if reserves else np.full(len(running), np.inf)
    lines, line = _lines(state, arrivals, reserves)
    return backfill_starts(
        *rule, run_s, first_wanted, estimate_s, lines, line[: len(waiting)],
        arrivals.submit_s, line[len(waiting) :], arrivals.run_s, arrivals.job, shifts_s,
        reserves, *changes,
    )  # fmt: skip


def draw_days(
    state: QueueState, since_s: float, replicates: int, rng: np.random.Generator
) -> Floats:
    """(replicates, days) By how much what came on a past day is moved on to come again.

    Whole days, so that nights stay nights; for a working day a working day is drawn, and for a day
    of the weekend such a one, where there were `ENOUGH_DAYS` of them. No columns if not a whole day
    is known.

    Args:
        state: the site now, of which only the time counts.
        since_s: from when on it is known what came, seconds.
        replicates: how many are drawn.
        rng: draws.
    """
    known = 0
    if since_s < state.now_s:
        known = min(DAYS_BACK, int((state.now_s - since_s) // DAY_S))
    if known < 1:
        return np.empty((replicates, 0))
    past, ahead = np.arange(1, known + 1), np.arange(DAYS_AHEAD)
    was_weekend = _is_weekend(state.week_second - past * DAY_S)
    back = np.empty((replicates, DAYS_AHEAD))
    for day, is_weekend in enumerate(_is_weekend(state.week_second + ahead * DAY_S)):
        alike = past[was_weekend == is_weekend]
        back[:, day] = rng.choice(alike if len(alike) >= ENOUGH_DAYS else past, replicates)
    return (back + ahead) * DAY_S


def _is_weekend(week_second: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Whether most of the 24 hours from then on are of a Saturday or Sunday of the site."""
    weekday = (week_second + DAY_S / 2) // DAY_S % 7  # Monday is 0
    is_weekend: NDArray[np.bool_] = weekday >= 5
    return is_weekend


def _nobody_passes(state: QueueState, arrivals: RecentArrivals) -> bool:
    """Whether all jobs that wait or may come are of one width, so that none fits before another."""
    widths = np.concatenate([state.waiting.cpus, arrivals.cpus])
    return len(widths) == 0 or bool((widths == widths[0]).all())


def _lines(state: QueueState, arrivals: RecentArrivals, by_estimate: bool) -> tuple[Floats, Ints]:
    """(2, lines) CPUs and estimate of jobs that are alike to the rule, and the line of each job.

    The lines ascend in CPUs; -1: wider than the site.
    """
    widths = np.concatenate([state.waiting.cpus, arrivals.cpus])
    kinds = np.full(len(widths), complex(0.0, np.inf))  # sorted by the real part
    kinds.real = widths
    if by_estimate:
        kinds.imag = _known(np.concatenate([state.waiting.estimate_s, arrivals.estimate_s]))
    lines, line = np.unique(kinds, return_inverse=True)
    line[widths > state.total_cpus] = -1
    return np.stack([lines.real, lines.imag]), line


def _known(estimate_s: Floats) -> Floats:
    return np.where(np.isnan(estimate_s), np.inf, estimate_s)
