"""Start times of waiting jobs: replicates of the scheduler's rule, from the present state."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.forecast.closures import (
    NOTHING_CLOSED,
    Changes,
    ClosureHistory,
    draw_changes,
    no_changes,
)
from outrider.forecast.queue_state import Floats, Ints, QueueState, RecentArrivals
from outrider.forecast.run_times import RunTimeHistory, draw_run_times
from outrider.forecast.running import RUNNING, begin, compiled, end_first, evict, pop, push, reserve
from outrider.model.errors import ConfigurationError, nearest
from outrider.model.localtime import DAY_S
from outrider.model.modes import EASY, FIRST_FIT, STRICT, Discipline

DAYS_BACK: Final = 14
"""Number of past days that coming days are drawn from."""
DAYS_AHEAD: Final = 28
"""Days for which jobs keep arriving; after them the queue runs empty."""
MIN_DAYS: Final = 3
"""Minimal number of past days of a kind (weekend or not) to draw from these alone."""
KNOWN_DISCIPLINES: Final = (STRICT, EASY, FIRST_FIT)


def expected_starts(
    state: QueueState,
    history: RunTimeHistory,
    arrivals: RecentArrivals,
    discipline: Discipline,
    replicates: int,
    rng: np.random.Generator,
    first_wanted: int = 0,
    closures: ClosureHistory = NOTHING_CLOSED,
) -> Floats:
    """Return (replicates, wanted) the start of each waiting job, seconds; inf: never.

    Each replicate draws the run time of every job. Under a discipline that lets jobs pass, or where
    owners close machines, it also draws which days of the recent past recur. Then the rule is
    simulated until the last job has started. So one replicate gives every job's start, and starts
    of one replicate belong together.

    Args:
        state: the site now. Jobs that can start immediately start at `state.now_s`.
        history: run times of jobs that have ended.
        arrivals: recent arrivals; `NO_ARRIVALS` is enough for ``strict``.
        discipline: ``strict``, ``easy`` or ``first_fit``.
        replicates: number; their spread is the uncertainty, 100 give fair tails.
        rng: for the draws.
        first_wanted: index in the queue of the first job whose start is wanted.
        closures: recent closures of machines.

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
    closures: ClosureHistory,
) -> tuple[Floats, Floats]:
    """Return (replicates, running + waiting) run times, and the result of `expected_starts`."""
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
    """Return (replicates, wanted) the starts for given run times and coming days.

    Args:
        state: the site now.
        run_s: (replicates, running + waiting) whole run times.
        arrivals: recent arrivals.
        shifts_s: (replicates, days) which past days recur: `draw_days`.
        discipline: ``strict``, ``easy`` or ``first_fit``.
        first_wanted: index in the queue of the first job whose start is wanted.
        changes: of the number of usable CPUs; None: none.

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
    if discipline == STRICT or _no_job_passes(state, arrivals):
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
    """Return (replicates, days) the shift in time from a past day to each coming day.

    Days are drawn as a whole, so that nights stay nights. Working days come from working days and
    days of the weekend from such days, where there are `MIN_DAYS` of them. There are no columns if
    not even one whole day is known.

    Args:
        state: the site now, of which only the time is used.
        since_s: begin of the known period, seconds.
        replicates: number of draws.
        rng: for the draws.
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
        same_kind = past[was_weekend == is_weekend]
        back[:, day] = rng.choice(same_kind if len(same_kind) >= MIN_DAYS else past, replicates)
    return (back + ahead) * DAY_S


def _is_weekend(week_second: NDArray[np.floating[Any]]) -> NDArray[np.bool_]:
    """Return whether most of the 24 hours from then on are on a weekend of the site."""
    weekday = (week_second + DAY_S / 2) // DAY_S % 7  # Monday is 0
    is_weekend: NDArray[np.bool_] = weekday >= 5
    return is_weekend


def _no_job_passes(state: QueueState, arrivals: RecentArrivals) -> bool:
    """Return whether all jobs have the same width, so that none fits before another."""
    widths = np.concatenate([state.waiting.cpus, arrivals.cpus])
    return len(widths) == 0 or bool((widths == widths[0]).all())


def _lines(state: QueueState, arrivals: RecentArrivals, by_estimate: bool) -> tuple[Floats, Ints]:
    """Return (2, lines) CPUs and estimate of each line of equal jobs, and each job's line.

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


# -- backfill kernel -------------------------------------------------------------------------------
# The disciplines `easy` and `first_fit`, simulated forward: later jobs may pass, and jobs arrive.
#
# The rules are those of `outrider.engine.scheduling.reservations` on one machine that holds all
# CPUs: at every end and every arrival, the queue is scanned in its order. Under `easy` the first
# job that does not fit has a reservation (Lifka 1995), computed again each time.
#
# Waiting jobs are numbered in the order of the queue, and those of one width and estimate form a
# separate line, of which only the first can be the next to start. So a scan of the queue takes as
# many steps as it has kinds of jobs, not jobs. `heads` has the rows first and last of each line
# (-1: empty), `table` the rows run time and follower by job number.

_KNOWN, _JOBS, _WANTED = 1, 2, 3  # of `n`, after RUNNING; jobs: numbers given
_FIRST, _LAST = 0, 1  # of `heads`
_RUN, _FOLLOWER = 0, 1  # of `table`


@compiled
def _enter(heads: Ints, table: Floats, n: Ints, line: int, run_s: float) -> None:
    """Add a job at the end of the queue."""
    job = n[_JOBS]
    n[_JOBS] += 1
    table[_RUN, job], table[_FOLLOWER, job] = run_s, -1.0
    if heads[_FIRST, line] < 0:
        heads[_FIRST, line] = job
    else:
        table[_FOLLOWER, heads[_LAST, line]] = job
    heads[_LAST, line] = job


@compiled
def _start(
    now_s: float, line: int, lines: Floats, heads: Ints, table: Floats, heap: Floats,
    known: Floats, n: Ints, first_wanted: int, starts_s: Floats,
) -> None:  # fmt: skip
    """Start the first job of a line."""
    job = heads[_FIRST, line]
    heads[_FIRST, line] = int(table[_FOLLOWER, job])
    begin(heap, known, n, now_s + table[_RUN, job], now_s + lines[1, line], lines[0, line])
    if first_wanted <= job < first_wanted + len(starts_s):
        starts_s[job - first_wanted] = now_s
        n[_WANTED] -= 1


@compiled
def _next_line(
    now_s: float, free: float, reserved_s: float, spare: float, lines: Floats, heads: Ints
) -> int:
    """Return the line whose first job is the first in the queue that may start; -1: none.

    It may start if it fits, and either fits next to the reservation or ends before it begins.
    """
    line = -1
    for other in range(lines.shape[1]):
        if lines[0, other] > free:
            break
        job = heads[_FIRST, other]
        if job < 0 or (line >= 0 and job > heads[_FIRST, line]):
            continue
        if lines[0, other] <= spare or now_s + lines[1, other] <= reserved_s:
            line = other
    return line


@compiled
def _pass(
    now_s: float, free: float, reserves: bool, lines: Floats, heads: Ints, table: Floats,
    heap: Floats, known: Floats, n: Ints, first_wanted: int, starts_s: Floats,
) -> float:  # fmt: skip
    """Start all jobs that may start; return the CPUs that are free then."""
    reserved_s, spare = -np.inf, np.inf
    while reserves and free > 0.0:  # those before the first that does not fit
        line = _next_line(now_s, np.inf, np.inf, np.inf, lines, heads)
        if line < 0:
            return free
        if lines[0, line] > free:
            reserved_s, spare = reserve(now_s, free, known, n[_KNOWN], lines[0, line])
            if reserved_s == np.inf:
                return free  # no job passes a start that cannot be predicted
            break
        _start(now_s, line, lines, heads, table, heap, known, n, first_wanted, starts_s)
        free -= lines[0, line]
    while free > 0.0:  # passing jobs; one that does not fit now will not later in this pass
        line = _next_line(now_s, free, reserved_s, spare, lines, heads)
        if line < 0:
            return free
        _start(now_s, line, lines, heads, table, heap, known, n, first_wanted, starts_s)
        free -= lines[0, line]
        if now_s + lines[1, line] > reserved_s:
            spare -= lines[0, line]
    return free


@compiled
def _next_arrival(
    submit_s: Floats, shifts_s: Floats, now_s: float, day: int, arrival: int
) -> tuple[float, int, int]:
    """Return the next arrival from (day, arrival) on: time, inf if none, with day and index.

    For each coming day the arrivals of a past day are used, shifted by `shifts_s[day]`; `arrival`
    is -1 where a day begins.
    """
    while day < len(shifts_s):
        begin_s = now_s + 86400.0 * day
        if arrival < 0:
            arrival = int(np.searchsorted(submit_s, begin_s - shifts_s[day], "right"))
        if arrival < len(submit_s):
            at_s = submit_s[arrival] + shifts_s[day]
            if at_s <= begin_s + 86400.0:
                return at_s, day, arrival
        day, arrival = day + 1, -1
    return np.inf, day, -1


@compiled
def _one_replicate(
    now_s: float, free: float, reserves: bool, lines: Floats, heads: Ints, table: Floats,
    heap: Floats, known: Floats, n: Ints, first_wanted: int, starts_s: Floats,
    arrival_submit_s: Floats, arrival_line: Ints, arrival_run_s: Floats, arrival_job: Ints,
    drawn_s: Floats, shifts_s: Floats, change_s: Floats, change_cpus: Floats,
    ends_runs: bool,
) -> None:  # fmt: skip
    """Simulate until every wanted job has started; fill the (wanted,) `starts_s`."""
    time_s, change = now_s, 0
    next_s, day, arrival = _next_arrival(arrival_submit_s, shifts_s, now_s, 0, -1)
    while True:
        if free > 0.0:
            free = _pass(
                time_s, free, reserves, lines, heads, table, heap, known, n, first_wanted, starts_s
            )
        time_s = min(heap[0, 0] if n[RUNNING] else np.inf, next_s)
        if change < len(change_s):
            time_s = min(time_s, change_s[change])
        if n[_WANTED] <= 0 or time_s == np.inf:
            return
        while n[RUNNING] and heap[0, 0] <= time_s:
            free += end_first(heap, known, n)
        while change < len(change_s) and change_s[change] <= time_s:
            free += change_cpus[change]
            change += 1
            while ends_runs and free < 0.0 and n[RUNNING]:
                free += evict(heap, known, n)
        while next_s <= time_s:
            if arrival_line[arrival] >= 0:
                if n[_JOBS] == table.shape[1]:
                    more = np.empty((2, 2 * table.shape[1]))
                    more[:, : n[_JOBS]] = table
                    table = more
                job = arrival_job[arrival]
                run_s = arrival_run_s[arrival] if job < 0 else drawn_s[job]
                _enter(heads, table, n, arrival_line[arrival], run_s)
            next_s, day, arrival = _next_arrival(
                arrival_submit_s, shifts_s, now_s, day, arrival + 1
            )


@compiled
def backfill_starts(
    now_s: float, free_cpus: float, total_cpus: float, since_s: Floats, cpus: Floats,
    run_s: Floats, first_wanted: int, estimate_s: Floats, lines: Floats, line: Ints,
    arrival_submit_s: Floats, arrival_line: Ints, arrival_run_s: Floats, arrival_job: Ints,
    shifts_s: Floats, reserves: bool, change_s: Floats, change_cpus: Floats, change_first: Ints,
    ends_runs: bool,
) -> Floats:  # fmt: skip
    """Return (replicates, wanted) starts of waiting jobs from `first_wanted` on; inf: never.

    Args:
        now_s: the present moment.
        free_cpus: number of free CPUs.
        total_cpus: of the site.
        since_s: (running,) start of each.
        cpus: (running + waiting,) of the jobs, waiting ones in the order of the queue.
        run_s: (replicates, running + waiting) run times.
        first_wanted: index in the queue of the first whose start is wanted.
        estimate_s: (running,) run time that the scheduler expects; inf: unknown.
        lines: (2, lines) CPUs, and estimate (inf: none), that the waiting and coming jobs of a line
            have in common; ascending in CPUs.
        line: (waiting,) the line of each; -1: it is too wide for the site, and never starts.
        arrival_submit_s: (arrivals,) times of recent arrivals, ascending.
        arrival_line: (arrivals,) the line of each.
        arrival_run_s: (arrivals,) run time of each.
        arrival_job: (arrivals,) the column of `run_s` that is used instead; -1: none.
        shifts_s: (replicates, days) shift in time from the past day to each coming day.
        reserves: `easy`; else `first_fit`.
        change_s: (changes,) times of changes of usable CPUs, one replicate after another.
        change_cpus: (changes,) amounts.
        change_first: (replicates + 1,) index of the first change of each replicate.
        ends_runs: if more CPUs close than are free, runs end; else the next ends provide them.
    """
    replicates = len(run_s)
    running_n, waiting_n = len(since_s), len(line)
    starts_s = np.full((replicates, waiting_n - first_wanted), np.inf)
    room = running_n + int(total_cpus) + 1  # rows: a job has at least one CPU
    heap, known = np.empty((room, 3)), np.empty((2, room))
    for replicate in range(replicates):
        heads = np.full((2, lines.shape[1]), -1)
        table = np.empty((2, waiting_n + 256))
        n = np.zeros(4, np.int64)
        for job in range(running_n):
            end_s = max(now_s, since_s[job] + run_s[replicate, job])
            begin(heap, known, n, end_s, since_s[job] + estimate_s[job], cpus[job])
        for job in range(waiting_n):
            if line[job] >= 0:
                _enter(heads, table, n, line[job], run_s[replicate, running_n + job])
                n[_WANTED] += job >= first_wanted
            else:
                n[_JOBS] += 1
        _one_replicate(
            now_s, free_cpus, reserves, lines, heads, table, heap, known, n, first_wanted,
            starts_s[replicate], arrival_submit_s, arrival_line, arrival_run_s, arrival_job,
            run_s[replicate], shifts_s[replicate],
            change_s[change_first[replicate] : change_first[replicate + 1]],
            change_cpus[change_first[replicate] : change_first[replicate + 1]], ends_runs,
        )  # fmt: skip
    return starts_s


# -- strict kernel ---------------------------------------------------------------------------------
# The discipline `strict`, simulated forward: no job passes another.


@compiled
def strict_starts(
    now_s: float,
    free_cpus: float,
    total_cpus: float,
    since_s: Floats,
    cpus: Floats,
    run_s: Floats,
    first_wanted: int,
    change_s: Floats,
    change_cpus: Floats,
    change_first: Ints,
    ends_runs: bool,
) -> Floats:
    """Return (replicates, wanted) starts of waiting jobs from `first_wanted` on; inf: never.

    A job starts when it and all before it have their CPUs, so each end is handled once.

    Args:
        now_s: the present moment.
        free_cpus: number of free CPUs.
        total_cpus: of the site; a wider job never starts, and no job waits behind it.
        since_s: (running,) start of each.
        cpus: (running + waiting,) of the jobs, waiting ones in the order of the queue.
        run_s: (replicates, running + waiting) run times.
        first_wanted: index in the queue of the first whose start is wanted.
        change_s: (changes,) times of changes of usable CPUs, one replicate after another.
        change_cpus: (changes,) amounts.
        change_first: (replicates + 1,) index of the first change of each replicate.
        ends_runs: if more CPUs close than are free, runs end; else the next ends provide them.
    """
    replicates, jobs_n = run_s.shape
    running_n = len(since_s)
    first = running_n + first_wanted
    starts_s = np.full((replicates, jobs_n - first), np.inf)
    heap = np.empty((jobs_n + 1, 3))
    for replicate in range(replicates):
        n, free, time_s = 0, free_cpus, now_s
        change, changes_end = change_first[replicate], change_first[replicate + 1]
        for job in range(running_n):
            end_s = max(now_s, since_s[job] + run_s[replicate, job])
            n = push(heap, n, end_s, cpus[job], np.inf)
        for job in range(running_n, jobs_n):
            if cpus[job] > total_cpus:
                continue
            while free < cpus[job] and (n or change < changes_end):
                if change < changes_end and (n == 0 or change_s[change] <= heap[0, 0]):
                    time_s = max(time_s, change_s[change])
                    free += change_cpus[change]
                    change += 1
                    while ends_runs and free < 0.0 and n:
                        n -= 1  # of the heap: any of those that do not end next
                        free += heap[n, 1]
                else:
                    time_s = max(time_s, heap[0, 0])
                    free += heap[0, 1]
                    n = pop(heap, n)
            if free < cpus[job]:
                break
            free -= cpus[job]
            if job >= first:
                starts_s[replicate, job - first] = time_s
            n = push(heap, n, time_s + run_s[replicate, job], cpus[job], np.inf)
    return starts_s
