"""Energy of many machines between their recorded changes, computed in one batch.

A log is a flat list of three numbers per change: the machine, what changed, the time. What
changed is a state (GONE, IDLING, OWNED, ASLEEP: the part that runs no job enters it), or `worked`
or `rested` by a number of CPUs. Every change ends one stretch of its machine and begins the next.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.engine.accounting.machine_power import ASLEEP, IDLING, MachinePower
from outrider.model.localtime import LocalTime
from outrider.model.machines import NEVER_S, ClusterSpec

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

WORKED: Final = ASLEEP + 1
"""Code of work beginning, plus the number of CPUs; 0 CPUs only split a stretch in two."""
RESTED: Final = -1
"""Code of work ending, minus the number of CPUs that begin to rest."""


class Table(NamedTuple):
    """Machines' specifications by number, and their clusters' sleep delays, as columns.

    There are more rows than machines, so that most machines that join need no new table.
    """

    cluster: Numbers
    cpus: Floats
    active_w: Floats
    idle_w: Floats
    sleep_w: Floats
    hours: Numbers
    open_minutes: NDArray[np.bool_]
    sleep_after_open_s: Floats
    sleep_after_closed_s: Floats
    soonest_sleep_s: float

    @classmethod
    def of(cls, machines: Sequence[MachinePower], habits: Sequence[ClusterSpec]) -> "Table":
        """Return the table of machines and clusters in the order of their numbers."""
        open_s = np.array([spec.sleep_after_open_s for spec in habits], dtype=float)
        closed_s = np.array([spec.sleep_after_closed_s for spec in habits], dtype=float)
        distinct: dict[bytes, int] = {}
        hours = [distinct.setdefault(bytes(s.hours.minutes), len(distinct)) for s in habits]
        rows = 2 * len(machines)
        table = cls(
            np.zeros(rows, dtype=np.intp),
            np.full(rows, np.nan),
            np.full(rows, np.nan),
            np.full(rows, np.nan),
            np.full(rows, np.nan),
            np.array(hours, dtype=np.intp),
            np.array([np.frombuffer(minutes, dtype=bool) for minutes in distinct]),
            open_s,
            closed_s,
            float(np.minimum(open_s, closed_s).min(initial=NEVER_S)),
        )
        for m, machine in enumerate(machines):
            table.describe(m, machine)
        return table

    def describe(self, m: int, machine: MachinePower) -> None:
        """Store the specification of a machine that changed or joined."""
        self.cluster[m], self.cpus[m] = machine.cluster, machine.cpus
        self.active_w[m], self.idle_w[m] = machine.active_w, machine.idle_w
        self.sleep_w[m] = machine.sleep_w

    def sleep_after_s(self, cluster: Numbers, week_second: Floats) -> Floats:
        """Return the idle seconds until sleep, by when the idle time began."""
        is_open = self.open_minutes[self.hours[cluster], week_second.astype(np.intp) // 60]
        return np.where(
            is_open, self.sleep_after_open_s[cluster], self.sleep_after_closed_s[cluster]
        )


class Stretches(NamedTuple):
    """Stretches that the changes in a log ended, one per change, in its order.

    Attributes:
        cluster: of the machine.
        state: of the part that ran no job.
        counts: whether there was such a part, and any time.
        awake_j: joules it drew while awake, idle or under an owner.
        asleep_s: seconds (of the whole machine) that it slept.
        joules it drew in those seconds.
    """

    cluster: Numbers
    state: Floats
    counts: NDArray[np.bool_]
    awake_j: Floats
    asleep_s: Floats
    asleep_j: Floats


def work_out(
    log: Sequence[float], machines: Sequence[MachinePower], table: Table, local_time: LocalTime
) -> Stretches:
    """Return the stretches that changes ended; update the machines to their state after them.

    Args:
        log: the changes.
        machines: in their state before the first change.
        table: of the same machines.
        local_time: the site's wall clock.
    """
    rows = np.array(log, dtype=float).reshape(-1, 3)
    named, changed = np.unique(rows[:, 0].astype(np.intp), return_inverse=True)
    machines, n = [machines[m] for m in named.tolist()], len(named)  # the others do not change
    since = np.array([machine.since for machine in machines])
    # Each machine's initial state comes before its own changes; those stay in the order of the log.
    who = np.concatenate((np.arange(n), changed))
    order = who.astype(np.min_scalar_type(n)).argsort(kind="stable")  # narrow: sorted by radix
    who, is_initial = who[order], order < n
    when = np.concatenate((since, np.maximum(rows[:, 2], since[changed])))[order]
    change = np.concatenate(([machine.state for machine in machines], rows[:, 1]))[order]

    busy = np.maximum(change - WORKED, 0) + np.minimum(change - RESTED, 0)
    busy[is_initial] = [machine.busy for machine in machines]
    total = busy.cumsum()
    busy = total - (total - busy)[_latest(is_initial)]
    state = _states(change)
    idle_from = _latest(is_initial | (change == IDLING) | (change <= RESTED))

    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ends = place[n:]
    begins = ends - 1
    last = np.append(np.flatnonzero(is_initial)[1:], len(order)) - 1

    asked = np.zeros(len(order), dtype=bool)
    asked[last] = True
    asked[begins[when[ends] - when[begins] > table.soonest_sleep_s]] = True
    asked &= state == IDLING
    idler, began = who[asked], idle_from[asked]
    week_seconds = local_time.week_seconds(when[began])
    sleeps_at = np.full(len(order), NEVER_S)
    sleeps_at[asked] = np.where(
        is_initial[began],
        np.array([machine.sleeps_at for machine in machines])[idler],
        when[began] + table.sleep_after_s(table.cluster[named[idler]], week_seconds),
    )
    _store_states(machines, state[last], busy[last], when[last], sleeps_at[last])
    return _stretches(
        table,
        named[who[begins]],
        state[begins],
        busy[begins],
        when[begins],
        when[ends],
        sleeps_at[begins],
    )


def _latest(rows: NDArray[np.bool_]) -> Numbers:
    """Return for every position the last position up to it that is True."""
    return np.maximum.accumulate(np.where(rows, np.arange(len(rows)), 0))


def _states(change: Floats) -> Floats:
    """Return each machine's state after every change; CPUs that rest wake a sleeping machine."""
    state = change[_latest((change >= 0) & (change < WORKED))]
    woken = (state == ASLEEP) & (change <= RESTED)
    if not woken.any():
        return state
    return _states(np.where(woken, IDLING, change))


def _store_states(machines: Sequence[MachinePower], *columns: Floats) -> None:
    """Store the states of machines."""
    for machine, state, busy, since, sleeps_at in zip(
        machines, *(column.tolist() for column in columns), strict=True
    ):
        machine.state, machine.busy = int(state), int(busy)
        machine.since, machine.sleeps_at = since, sleeps_at


def _stretches(
    table: Table, who: Numbers, state: Floats, busy: Floats,
    begin_s: Floats, end_s: Floats, sleeps_at: Floats,
) -> Stretches:  # fmt: skip
    """Return the stretches of machines between two moments each."""
    rest = 1.0 - busy / table.cpus[who]
    seconds = rest * (end_s - begin_s)
    asleep_s = np.where(state == ASLEEP, seconds, 0.0)
    sleeps = (state == IDLING) & (busy == 0) & (end_s > sleeps_at)
    asleep_s[sleeps] = rest[sleeps] * (end_s - np.maximum(begin_s, sleeps_at))[sleeps]
    awake_w = np.where(state == IDLING, table.idle_w[who], table.active_w[who])
    return Stretches(
        table.cluster[who], state, (rest != 0.0) & (end_s > begin_s),
        (seconds - asleep_s) * awake_w, asleep_s, asleep_s * table.sleep_w[who],
    )  # fmt: skip
