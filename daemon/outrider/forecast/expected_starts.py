"""When waiting jobs will start: replicates of the scheduler's own rule, from the present state."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.forecast.closures import (
    NOTHING_CLOSED,
    Changes,
    ClosuresLately,
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
    """Return whether most of the 24 hours from then on are of a Saturday or Sunday of the site."""
    weekday = (week_second + DAY_S / 2) // DAY_S % 7  # Monday is 0
    is_weekend: NDArray[np.bool_] = weekday >= 5
    return is_weekend


def _nobody_passes(state: QueueState, arrivals: RecentArrivals) -> bool:
    """Return whether all jobs that wait or may come are of one width, so that none fits before another."""
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


# -- backfill kernel -------------------------------------------------------------------------------
# The disciplines `easy` and `first_fit`, run forward: later jobs may pass, and jobs keep coming.
#
# The rules are those of `outrider.engine.scheduling.reservations` on one machine that holds all
# CPUs: at every moment at which something ends or comes, the queue is gone through in its order.
# Under `easy` the first job that does not fit has a reservation (Lifka 1995), made anew each time.
#
# Jobs that wait are numbered in the order of the queue, and those of one width and estimate stand
# in a line of their own: of these only the first can be the next to start. So a look at the queue
# costs as many steps as it has kinds of jobs, not jobs. `heads` has the rows first and last of
# each line (-1: nobody), `table` the rows run time and follower by job number.

_KNOWN, _JOBS, _WANTED = 1, 2, 3  # of `n`, after RUNNING; jobs: numbers given
_FIRST, _LAST = 0, 1  # of `heads`
_RUN, _FOLLOWER = 0, 1  # of `table`


@compiled
def _enter(heads: Ints, table: Floats, n: Ints, line: int, run_s: float) -> None:
    """A job joins the end of the queue."""
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
    """The first job of a line starts."""
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
    """The line whose first job is the first in the queue that may start; -1: none.

    It fits, and beside the reservation or until it begins.
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
    """All jobs that may start do; returns the CPUs that are free then."""
    reserved_s, spare = -np.inf, np.inf
    while reserves and free > 0.0:  # those before the first that does not fit
        line = _next_line(now_s, np.inf, np.inf, np.inf, lines, heads)
        if line < 0:
            return free
        if lines[0, line] > free:
            reserved_s, spare = reserve(now_s, free, known, n[_KNOWN], lines[0, line])
            if reserved_s == np.inf:
                return free  # nobody passes a start that cannot be foreseen
            break
        _start(now_s, line, lines, heads, table, heap, known, n, first_wanted, starts_s)
        free -= lines[0, line]
    while free > 0.0:  # those that pass; who does not fit now will not later in this pass
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
    """The next arrival from (day, arrival) on: its moment, inf if none, with day and place.

    Day by day those of a past day are taken, moved on by `shifts_s[day]`; `arrival` is -1 where a
    day begins.
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
    """Run the site forward until every wanted job has started; fills the (wanted,) `starts_s`."""
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
    """(replicates, wanted) start of each waiting job from `first_wanted` on, seconds; inf: never.

    Args:
        now_s: the present moment.
        free_cpus: CPUs that nobody uses.
        total_cpus: of the site.
        since_s: (running,) when each began.
        cpus: (running + waiting,) of the jobs, those that wait in the order of the queue.
        run_s: (replicates, running + waiting) how long each runs.
        first_wanted: place in the queue of the first whose start is wanted.
        estimate_s: (running,) how long the scheduler expects each to run; inf: unknown.
        lines: (2, lines) CPUs, and estimate (inf: none), by which jobs that wait or come are
            alike; ascending in CPUs.
        line: (waiting,) the line of each; -1: it is too wide for the site, and never starts.
        arrival_submit_s: (arrivals,) when what came lately did, ascending.
        arrival_line: (arrivals,) the line of each.
        arrival_run_s: (arrivals,) how long each ran.
        arrival_job: (arrivals,) the column of `run_s` that holds in its place; -1: none.
        shifts_s: (replicates, days) by how much the arrivals that become those of each day to come
            are moved on.
        reserves: `easy`; else `first_fit`.
        change_s: (changes,) when the CPUs that jobs may use change, replicate after replicate.
        change_cpus: (changes,) by how many.
        change_first: (replicates + 1,) place of the first change of each replicate.
        ends_runs: where more go than are free, runs end; else the next ends pay for it.
    """
    replicates = len(run_s)
    running_n, waiting_n = len(since_s), len(line)
    starts_s = np.full((replicates, waiting_n - first_wanted), np.inf)
    room = running_n + int(total_cpus) + 1  # a job has a CPU at least
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
# The discipline `strict`, run forward: no job passes another.


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
    """(replicates, wanted) start of each waiting job from `first_wanted` on, seconds; inf: never.

    A job starts when it and all before it have their CPUs, so each end is looked at once.

    Args:
        now_s: the present moment.
        free_cpus: CPUs that nobody uses.
        total_cpus: of the site; a wider job never starts, and nobody waits behind it.
        since_s: (running,) when each began.
        cpus: (running + waiting,) of the jobs, those that wait in the order of the queue.
        run_s: (replicates, running + waiting) how long each runs.
        first_wanted: place in the queue of the first whose start is wanted.
        change_s: (changes,) when the CPUs that jobs may use change, replicate after replicate.
        change_cpus: (changes,) by how many.
        change_first: (replicates + 1,) place of the first change of each replicate.
        ends_runs: where more go than are free, runs end; else the next ends pay for it.
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
