"""Simulated site of a twin, built from the record and fitted to it."""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import SiteTable
from outrider.model.modes import FIRST_FIT, Discipline
from outrider.replay.recorded_campus import (
    DELAYS,
    habits_of_ledger,
    possible_jobs,
    recorded_campus,
    recorded_only,
)
from outrider.replay.site_record import RecordedJob, SiteRecord
from outrider.twin.kill_clock import KillClock, kills_by_clock
from outrider.twin.observed import Observed

# -- pending ---------------------------------------------------------------------------------------
# Run times of jobs that had not ended at the end of the record.

Floats = NDArray[np.float64]

MIN_OF_USER: Final = 5
"""Number of resolved jobs of a user from which its pending jobs are drawn from these alone."""


class Pending:
    """Draws the run times of pending jobs, given the hours that each has run without a break.

    Two risks compete: a job completes after its run time, or it never ends by itself and is killed.
    So a job whose longest run lasted L is drawn from the resolved jobs that ran longer than L
    without a break. One that completed gives its run time, one that was killed gives "never". A job
    that ran longer than all of them gets "never", too.

    Args:
        jobs: of the campus, in its order.

    Attributes:
        at: (pending,) their positions.
    """

    def __init__(self, jobs: Sequence[RecordedJob]) -> None:
        completed = np.array([not np.isnan(job.run_s) for job in jobs], dtype=bool)
        killed = np.array([not np.isnan(job.kill_s) for job in jobs], dtype=bool)
        self.at: NDArray[np.intp] = np.flatnonzero(~completed & ~killed)
        by_user: dict[str, list[RecordedJob]] = {}
        for n in np.flatnonzero(completed | killed).tolist():
            by_user.setdefault(jobs[n].spec.user, []).append(jobs[n])
        all_users = _Lengths(job for of_user in by_user.values() for job in of_user)
        users = {user: _Lengths(of_user) for user, of_user in by_user.items()}
        self._choices: list[Floats] = []
        for n in self.at.tolist():
            job = jobs[n]
            own = users.get(job.spec.user, all_users).longer_than(job.longest_s)
            enough = len(own) >= MIN_OF_USER
            choices = own if enough else all_users.longer_than(job.longest_s)
            self._choices.append(choices if len(choices) else np.array([nan]))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw (pending,) run times in seconds; nan: it never ends by itself."""
        return np.array([rng.choice(choices) for choices in self._choices], dtype=np.float64)


class _Lengths:
    """Resolved jobs by their time without a break."""

    def __init__(self, jobs: Iterable[RecordedJob]) -> None:
        rows = [
            (job.longest_s, nan) if np.isnan(job.run_s) else (job.run_s, job.run_s) for job in jobs
        ]
        ordered = np.array(sorted(rows, key=lambda row: row[0]), dtype=np.float64).reshape(-1, 2)
        self._went_s, self._run_s = ordered.T

    def longer_than(self, seconds: float) -> Floats:
        """Return the run times of those that ran longer; nan for those that never ended."""
        return self._run_s[np.searchsorted(self._went_s, seconds, side="right") :]


# -- twin site -------------------------------------------------------------------------------------

BLOCK_S: Final = 14 * 86_400.0
"""Length of the blocks of the past that give the spread for a forecast, seconds."""
_SAME_S: Final = 5.0
"""Maximal difference of equal delays, seconds: sources are read periodically."""
_MIN_DELAYS: Final = 100
ROUNDING_S: Final = 3_600.0
"""Seconds that a past may lack of whole blocks: its first and last hours may be quiet."""


class TwinSite(NamedTuple):
    """Simulated site of a twin.

    Attributes:
        campus: machines, owners and arrivals as recorded.
        pending: draws the run times that were not seen.
        discipline: of the site.
        begin_s: second of the campus at which the record begins.
        jobs: (jobs,) as recorded.
        clock: by which users kill jobs, where it is uneven for jobs that wait; else None.
    """

    campus: Campus
    pending: Pending
    discipline: Discipline
    begin_s: float
    jobs: Sequence[RecordedJob] = ()
    clock: KillClock | None = None

    def block_ends(self) -> list[float]:
        """Return the begin of the first whole block, and the end of each, seconds of the campus.

        Blocks are counted from the end of the record; the remainder at its beginning belongs to
        none. The end of the last is the end of the record, and not in the list.
        """
        end_s = self.campus.span_s
        whole = int((end_s - self.begin_s + ROUNDING_S) // BLOCK_S)
        return [end_s - n * BLOCK_S for n in range(whole, 0, -1)]

    def drawn(self, rng: np.random.Generator) -> Campus:
        """Return the campus with a run time drawn for every pending job."""
        run_s = self.campus.run_s.copy()
        run_s[self.pending.at] = self.pending.draw(rng)
        return replace(self.campus, run_s=run_s)

    def killed_by_clock(self, campus: Campus, clock: KillClock, ran_s: Floats) -> Campus:
        """Return the campus with kills by users' clock; `ran_s` is from a simulated run."""
        kill_s = kills_by_clock(clock, self.jobs, campus.submit_s, campus.kill_s, ran_s)
        return replace(campus, kill_s=kill_s)

    def without(self, machines: Iterable[int]) -> "TwinSite":
        """Return the site with machines that are never free."""
        gone = np.array(sorted(machines), dtype=np.int32)
        campus = self.campus
        return self._replace(
            campus=replace(
                campus,
                session_machine=np.concatenate([gone, campus.session_machine]),
                login_s=np.concatenate([np.zeros(len(gone)), campus.login_s]),
                logout_s=np.concatenate([np.full(len(gone), campus.span_s), campus.logout_s]),
            )
        )


class Fitted(NamedTuple):
    """Parameters fitted to the record, because they were not declared or differ from it.

    Attributes:
        watts: factors on the watts of machine groups, by name: what meters measured of runs, over
            what the table gives for them. Groups without meters are not in it.
        idle_before_job_s: seconds from a log-out to the use of a machine, where the record
            differs from the declared delays; else None.
    """

    watts: dict[str, float]
    idle_before_job_s: float | None


class Built(NamedTuple):
    """Simulated site of a twin, with results of building it.

    Attributes:
        site: the site.
        work_s, starts: recorded work and starts on each machine of its campus.
        fitted: what was fitted.
        unplaced: number of jobs that the campus cannot place as they asked.
    """

    site: TwinSite
    work_s: Floats
    starts: Floats
    fitted: Fitted
    unplaced: int


def build_site(seen: Observed, zone: dt.tzinfo) -> Built:
    """Build the simulated site from the record.

    Raises:
        LedgerError: the journal cannot be read.
    """
    record, facts = seen.record, seen.facts
    habits, inferred = habits_of_ledger(seen.path, record, zone)
    delay_s = None if DELAYS in inferred else _other_delay_s(record, habits.table)
    if delay_s is not None:
        table = msgspec.structs.replace(
            habits.table, idle_before_job_open_s=delay_s, idle_before_job_closed_s=delay_s
        )
        habits = habits._replace(table=table)
    campus = recorded_campus(record, seen.path.stem, zone, habits, absences=True)
    only = recorded_only(record, [spec.name for spec in campus.clusters])
    jobs = possible_jobs(record, only)
    lost = {name for name, text in only.items() if text is None}
    unplaced = len(record.jobs) - len(jobs) + sum(job.spec.eligible in lost for job in jobs)
    numbers = sorted(record.machines)
    work_s, starts = _of(seen.tally.work_s, numbers), _of(seen.tally.starts, numbers)
    watts = _watt_factors(seen, campus, work_s)
    factors = np.array([watts.get(spec.name, 1.0) for spec in campus.clusters])
    campus = replace(campus, active_w=campus.active_w * factors[campus.machine_cluster])
    discipline = FIRST_FIT if facts is None else facts.discipline
    begin_s = campus.span_s - seen.span_s
    clock = seen.kill_clock if seen.kill_clock is not None and seen.kill_clock.is_uneven else None
    site = TwinSite(campus, Pending(jobs), discipline, begin_s, jobs, clock)
    return Built(site, work_s, starts, Fitted(watts, delay_s), unplaced)


def _of(counts: Mapping[int, float], numbers: list[int]) -> Floats:
    return np.array([counts.get(number, 0.0) for number in numbers], dtype=np.float64)


def _other_delay_s(record: SiteRecord, table: SiteTable) -> float | None:
    """Return the most frequent delay on record, if most differ from the declared ones."""
    declared = (table.idle_before_job_open_s, table.idle_before_job_closed_s)
    as_declared = sum(
        n
        for delay_s, n in record.delays.items()
        if any(abs(delay_s - other_s) <= _SAME_S for other_s in declared)
    )
    if record.delays.total() < _MIN_DELAYS or as_declared > record.delays.total() / 2:
        return None
    return float(record.delays.most_common(1)[0][0])


def _watt_factors(seen: Observed, campus: Campus, work_s: Floats) -> dict[str, float]:
    """Return measured over declared joules of the runs, for each group with meters."""
    cpus = 1 if campus.capacities is None else campus.capacities.cpus
    table_j = np.bincount(
        campus.machine_cluster, weights=campus.active_w * work_s / cpus,
        minlength=len(campus.clusters),
    )  # fmt: skip
    booked_j, measured_j = seen.tally.total.energy_j, seen.tally.measured_j
    return {
        spec.name: booked_j[spec.name] / table
        for spec, table in zip(campus.clusters, table_j.tolist(), strict=True)
        if measured_j.get(spec.name, 0.0) > 0.0 and table > 0.0
    }
