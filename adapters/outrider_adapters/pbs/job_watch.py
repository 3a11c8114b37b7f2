"""Watcher of a PBS server's jobs: events from successive looks at its queue."""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from outrider.api import NamedEvent, PlannedStarts, UndoLog, events
from outrider_adapters.pbs.job_rows import (
    ENDED,
    HELD,
    RUNNING,
    SUSPENDED,
    WAITING,
    JobRow,
    as_its_user_left_it,
    row_of,
)
from outrider_adapters.polling.adapter import in_order
from outrider_adapters.readers.pbs.exits import fate_of
from outrider_adapters.readers.pbs.specs import UNKNOWN_HOST

_ARRAY: str = "[]"
"""Part of the name of an array, which never runs itself."""

_EDITABLE = ("user", "vo", "cpus", "estimate_s", "resources")


class SeenJob(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """State of a job at the last look.

    Attributes:
        status: as in `JobRow`.
        submit_s: when it was created.
        start_s: start of the present run; 0: none.
    """

    status: int
    submit_s: float
    start_s: float = 0.0

    @property
    def runs(self) -> bool:
        """True if it had a machine."""
        return self.status in (RUNNING, SUSPENDED)


class JobWatch:
    """Watcher of the jobs of a server: compares two looks and returns the events between them.

    Args:
        zone: of the server's clock.
        is_torque: whether exit codes are Torque's.
        undo_log: values that Outrider replaced.

    Attributes:
        rejected: jobs of the last look that could not be parsed, by reason.
        unknown_n: jobs that left with an unknown end since the adapter was started.
    """

    def __init__(self, zone: dt.tzinfo, is_torque: bool, undo_log: UndoLog) -> None:
        self._zone = zone
        self._is_torque = is_torque
        self._undo_log = undo_log
        self._known: dict[str, SeenJob] = {}
        self._rows: dict[str, JobRow] = {}
        self.rejected: dict[str, int] = {}
        self.unknown_n = 0

    def save(self) -> dict[str, Any]:
        """Return the state to remember, as JSON types."""
        built: dict[str, Any] = msgspec.to_builtins(self._known)
        return built

    def restore(self, saved: Any) -> None:
        """Restore what `save` returned. Raises `msgspec.ValidationError` if it is invalid."""
        self._known = msgspec.convert(saved, dict[str, SeenJob])

    def as_its_user_left_it(self, job: str, ad: Mapping[str, str]) -> Mapping[str, str]:
        """Return attributes of a job without Outrider's changes."""
        return as_its_user_left_it(ad, self._undo_log.entries.get(job), self._zone)

    def row(self, job: str) -> JobRow | None:
        """Return a job's row of the last look; None if it was not in the queue."""
        return self._rows.get(job)

    def planned_starts(self, now_s: float) -> PlannedStarts:
        """Return when PBS itself expects to start the jobs of the last look."""
        planned = {job: row.planned_s for job, row in self._rows.items()}
        return PlannedStarts(now_s, {job: at for job, at in planned.items() if at is not None})

    def look(
        self,
        shown: Mapping[str, Mapping[str, str]],
        unreadable: list[str],
        now_s: float,
        ended_of: Callable[[list[str]], Mapping[str, Mapping[str, str]]],
        *,
        leaves_out_ended: bool,
    ) -> list[NamedEvent]:
        """Return the events since the last look; the events of each job are in order.

        Args:
            shown: the attributes of all jobs, by name.
            unreadable: names of jobs with invalid attributes: their state is kept.
            now_s: time of the query.
            ended_of: returns the known attributes of jobs that are no longer in the queue.
            leaves_out_ended: omit jobs that had ended before they were first seen.

        Raises:
            CommandError: as `ended_of`; the next look then returns all events.
        """
        rows = self._read(shown, unreadable)
        stay = set(rows) | set(unreadable)
        self._undo_log.forget(self._undo_log.entries.keys() - stay)
        gone = [job for job, was in self._known.items() if job not in stay and was.status != ENDED]
        left = self._read_left(ended_of(gone)) if gone else {}
        found: list[NamedEvent] = []
        for job in gone:
            found += self._gone(job, left.get(job), now_s)
        known = self._known
        self._known = {job: known[job] for job in unreadable if job in known}
        for job, row in rows.items():
            before = known.get(job)
            self._known[job] = _seen(row)
            if before is None and leaves_out_ended and row.status == ENDED:
                continue
            found += self._steps(job, before, row, self._rows.get(job), now_s)
        self._rows = rows
        return found

    def _read(
        self, shown: Mapping[str, Mapping[str, str]], unreadable: list[str]
    ) -> dict[str, JobRow]:
        self.rejected = {"twice": len(unreadable)} if unreadable else {}
        rows: dict[str, JobRow] = {}
        for job, ad in shown.items():
            if _ARRAY in job:
                continue
            try:
                rows[job] = row_of(self.as_its_user_left_it(job, ad), self._zone)
            except ValueError:
                self.rejected["job"] = self.rejected.get("job", 0) + 1
                unreadable.append(job)
        return rows

    def _read_left(self, found: Mapping[str, Mapping[str, str]]) -> dict[str, JobRow]:
        rows: dict[str, JobRow] = {}
        for job, ad in found.items():
            try:
                rows[job] = row_of(ad, self._zone)
            except ValueError:
                continue  # its end counts as unknown
        return rows

    def _gone(self, job: str, row: JobRow | None, now_s: float) -> list[NamedEvent]:
        """Return the events of a job that is no longer in the queue."""
        if row is not None and row.status == ENDED:
            return self._steps(job, self._known[job], row, None, now_s)
        self.unknown_n += 1
        return [(now_s, events.REMOVED, job, "unknown")]

    def _steps(
        self, job: str, before: SeenJob | None, row: JobRow, was: JobRow | None, now_s: float
    ) -> list[NamedEvent]:
        """Return the events of one job, in order."""
        found: list[NamedEvent] = []
        if before is not None and before.submit_s != row.submit_s:
            # a server that lost its state reuses its numbers
            found += [] if before.status == ENDED else [(now_s, events.REMOVED, job, "unknown")]
            before = None
        if before is None:
            found.append((row.submit_s, events.SUBMITTED, job, row.spec))
            before = SeenJob(WAITING, row.submit_s)
            now_s = row.submit_s if row.status == HELD else now_s
        elif before.status == ENDED:
            return found
        elif was is not None and row.status in (WAITING, HELD) and not before.runs:
            changes = {f: getattr(row.spec, f) for f in _EDITABLE
                       if getattr(row.spec, f) != getattr(was.spec, f)}  # fmt: skip
            found += [(now_s, events.CHANGED, job, changes)] if changes else []
        is_new_run = row.start_s is not None and row.start_s != before.start_s
        if before.runs and (is_new_run or row.status in (WAITING, HELD)):
            at_s = now_s if row.start_s is None else min(row.start_s, now_s)
            found.append((max(at_s, before.start_s), events.EVICTED, job, "unknown"))
        if before.status == HELD and (is_new_run or row.status not in (HELD, ENDED)):
            found.append((_released_s(row, now_s), events.RELEASED, job, None))
        if is_new_run and row.start_s is not None:
            place = (row.machine or UNKNOWN_HOST, row.cpus)
            found.append((row.start_s, events.STARTED, job, place))
        if row.status == HELD and (before.status != HELD or before.runs):
            found.append((now_s, events.HELD, job, row.held_because or None))
        elif row.status == SUSPENDED and (before.status != SUSPENDED or is_new_run):
            found.append((now_s, events.SUSPENDED, job, None))
        elif row.status == RUNNING and before.status == SUSPENDED and not is_new_run:
            found.append((now_s, events.RESUMED, job, None))
        elif row.status == ENDED:
            found.append(self._ended(job, row, before.runs or is_new_run, now_s))
        return in_order(found)

    def _ended(self, job: str, row: JobRow, ran: bool, now_s: float) -> NamedEvent:
        """Return the last event of a job, by its exit status."""
        end_s = min(row.end_s or now_s, now_s)
        if row.moved:
            return end_s, events.REMOVED, job, "removed"
        if not ran:
            return end_s, events.REMOVED, job, "removed"
        if row.exit_status is None:
            return end_s, events.REMOVED, job, "unknown"
        reason = fate_of(row.exit_status, self._is_torque).reason
        return (
            (end_s, events.REMOVED, job, reason) if reason else (end_s, events.COMPLETED, job, None)
        )


def _seen(row: JobRow) -> SeenJob:
    has_run = row.status not in (WAITING, HELD)
    return SeenJob(row.status, row.submit_s, (row.start_s or 0.0) if has_run else 0.0)


def _released_s(row: JobRow, now_s: float) -> float:
    """Return when a hold ended: when the job became eligible, at the latest when it started."""
    latest_s = row.start_s or now_s
    return min(row.spec.eligible_s or latest_s, latest_s)
