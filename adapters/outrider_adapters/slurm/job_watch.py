"""Watcher of a Slurm's jobs: events from successive looks at its queue."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from outrider.api import JobSpec, NamedEvent, PlannedStarts, Resources, UndoLog, events
from outrider_adapters.readers.slurm.record_events import first_host
from outrider_adapters.slurm.acting.controller import DEFERRED, as_its_user_left_it
from outrider_adapters.slurm.eligibility import Eligibility, JobKind, kind_of
from outrider_adapters.slurm.job_steps import (
    ENDED,
    HELD,
    WAITING,
    SeenJob,
    is_another,
    is_between_runs,
    is_blocked,
    is_waiting,
    seen,
    steps,
)
from outrider_adapters.slurm.queue_rows import QueueRow, row_of

_EDITABLE: Final = ("user", "vo", "cpus", "estimate_s", "resources", "eligible")
_EDITABLE_TIMES: Final = ("eligible_s",)
"""Slurm moves it when a job is requeued; the wait for its first run does not change."""


class _Line(NamedTuple):
    """Line of ``squeue``, with its request; its jobs share one object."""

    row: QueueRow
    kind: JobKind
    spec: JobSpec


class _Known(NamedTuple):
    """State of a job at the last look; `line` is None if that was before a restart."""

    seen: SeenJob
    line: _Line | None


class JobWatch:
    """Watcher of the jobs of a queue: compares two looks and returns the events between them.

    Args:
        cluster: the cluster of the jobs.
        eligibility: names the class of nodes that jobs of a kind may use.
        undo_log: values that Outrider replaced.

    Attributes:
        cluster: as above.
        rejected: rows of the last look that could not be parsed, by reason.
    """

    def __init__(self, cluster: str, eligibility: Eligibility, undo_log: UndoLog) -> None:
        self.cluster = cluster
        self._eligibility = eligibility
        self._undo_log = undo_log
        self._known: dict[str, _Known] = {}
        self._lines: dict[str, _Line] = {}
        self._jobs: dict[str, _Line] = {}
        self.rejected: dict[str, int] = {}

    def name_of(self, job: str) -> str:
        """Return the name of a job, from its id: every cluster counts its jobs from 1."""
        return f"{self.cluster}:{job}"

    # -- state --------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return the reported jobs that have not been forgotten, by their ids."""
        return {job: msgspec.to_builtins(known.seen) for job, known in self._known.items()}

    def restore(self, saved: Any) -> None:
        """Restore what `save` returned. Raises `msgspec.ValidationError` if it is invalid."""
        jobs = msgspec.convert(saved, dict[str, SeenJob])
        self._known = {job: _Known(one, None) for job, one in jobs.items()}

    # -- looking ------------------------------------------------------------------------------

    def look(
        self,
        lines: Iterable[str],
        excluded: Mapping[str, str],
        now_s: float,
        ended_of: Callable[[list[str]], list[NamedEvent]],
        *,
        leaves_out_ended: bool,
        gapless: bool,
    ) -> list[NamedEvent]:
        """Return the events of jobs since the last look; the events of each job are in order.

        Args:
            lines: of ``squeue``.
            excluded: nodes that users exclude, by job number.
            now_s: time of the query.
            ended_of: returns the end events of jobs (their ids) that are no longer in the queue.
            leaves_out_ended: omit jobs that had ended before they were first seen.
            gapless: every job that has ended since the last look is still in the queue.

        Raises:
            CommandError: as `ended_of`; the next look then returns all events.
        """
        jobs = self._read(lines, excluded)
        missing = {
            job: one.seen
            for job, one in self._known.items()
            if job not in jobs and one.seen.status != ENDED
        }
        # a task that is cancelled before it is split off leaves its array without a trace, while
        # one that ran would still be shown
        cancelled = {job for job, one in missing.items() if gapless and not one.runs}
        gone = [job for job in missing if job not in cancelled]
        found = ended_of(gone) if gone else []  # may fail; nothing is forgotten then
        found += [
            (now_s, events.REMOVED, self.name_of(job), "removed") for job in sorted(cancelled)
        ]
        noted = self._undo_log.entries
        self._undo_log.forget(noted.keys() - {self.name_of(job) for job in jobs} if noted else ())
        known, self._known, self._jobs = self._known, {}, jobs
        for job, line in self._jobs.items():
            before = known.pop(job, None)
            if before is not None and before.line is line and _is_as_before(before, now_s):
                self._known[job] = before
            else:
                found += self._take(job, line, before, now_s, leaves_out_ended)
        return found

    def as_its_user_left_it(self, row: QueueRow) -> QueueRow:
        """Return a row without Outrider's changes."""
        if not (noted := self._undo_log.entries):
            return row
        return as_its_user_left_it(row, lambda job: noted.get(self.name_of(job)))

    def planned_starts(self, now_s: float) -> PlannedStarts:
        """Return when Slurm itself expects to start the jobs of the last look.

        Of an array with tasks in the same state, only the first has a time. The time of a job that
        is blocked is not a plan, nor is a time that Outrider gave it.
        """
        starts_s = {
            self.name_of(line.row.jobs[0]): line.row.start_s
            for line in self._lines.values()
            if line.row.start_s is not None
            and is_waiting(line.row)
            and not is_blocked(line.row, now_s)
            and not line.row.reason.startswith(DEFERRED)
        }
        return PlannedStarts(now_s, starts_s)

    def kind(self, job: str) -> JobKind | None:
        """Return the kind of a job, by its id; None for one that is not in the queue."""
        line = self._jobs.get(job)
        return None if line is None else line.kind

    def was_waiting(self, job: str) -> bool:
        """Return whether a job waited at the last look."""
        known = self._known.get(job)
        return known is not None and known.seen.status in (WAITING, HELD)

    def kinds(self) -> set[JobKind]:
        """Return the kinds of the jobs of the last look."""
        return {line.kind for line in self._lines.values()}

    def _take(
        self, job: str, line: _Line, before: _Known | None, now_s: float, leaves_out_ended: bool
    ) -> list[NamedEvent]:
        """Return the events of a job from its line, and remember the job."""
        found: list[NamedEvent] = []
        if is_between_runs(line.row, before.seen if before else None):
            if before is not None:
                self._known[job] = before
            return found
        name, now = self.name_of(job), seen(line.row, now_s)
        if line.row.state == "CONFIGURING" and self._eligibility.is_off(first_host(line.row.hosts)):
            now = msgspec.structs.replace(now, boots=True)
        self._known[job] = _Known(now, line)
        if before is not None and before.seen.status == ENDED:
            if now.status == ENDED:
                return found
            before = None  # requeued after its end, or its number was reused
        elif before is not None and is_another(before.seen, line.row):
            # a controller that lost its state counts from the beginning
            found.append((line.row.submit_s, events.REMOVED, name, "unknown"))
            before = None
        if before is None and leaves_out_ended and now.status == ENDED:
            return found
        known = before.line if before is not None else None
        if known is not None and before is not None and not before.seen.runs:
            changes = _edited(known.spec, line.spec, _may_change(now))
            changed_s = min(now_s, now.start_s or now_s)
            found += [(changed_s, events.CHANGED, name, changes)] if changes else []
        return found + steps(name, before.seen if before else None, line.row, line.spec, now_s)

    def _read(self, lines: Iterable[str], excluded: Mapping[str, str]) -> dict[str, _Line]:
        """Parse lines into jobs by id; an unchanged line is not parsed again."""
        self.rejected = {}
        before, self._lines = self._lines, {}
        jobs: dict[str, _Line] = {}
        for text in filter(None, lines):
            line = before.get(text)
            try:
                row = self.as_its_user_left_it(row_of(text)) if line is None else line.row
            except ValueError:
                self.rejected["row"] = self.rejected.get("row", 0) + 1
                continue
            # the tasks of an array exclude the same nodes
            without = excluded.get(row.jobs[0].partition("_")[0], "")
            if line is None or line.kind.excluded != without:
                kind = kind_of(row, without)
                line = _Line(row, kind, _spec_of(row, self._eligibility.class_of(kind)))
            self._lines[text] = line
            for job in row.jobs:
                jobs[job] = line
        return jobs


def _is_as_before(before: _Known, now_s: float) -> bool:
    """Return whether a job with an unchanged line is in the same state, e.g. not yet eligible."""
    if before.seen.status != HELD or before.line is None:
        return True
    return seen(before.line.row, now_s) == before.seen


def _spec_of(row: QueueRow, eligible: str) -> JobSpec:
    eligible_s = row.eligible_s
    return JobSpec(
        user=row.user,
        vo=row.vo,
        cpus=row.cpus,
        estimate_s=row.limit_s,
        eligible_s=eligible_s if eligible_s and eligible_s > row.submit_s else None,
        resources=Resources(memory_mib=row.amount("mem"), gpus=row.amount("gres/gpu")),
        eligible=eligible,
    )


def _may_change(now: SeenJob) -> tuple[str, ...]:
    """Return the fields whose change is an edit: not those that a job is given when it starts."""
    what = _EDITABLE if now.status in (WAITING, HELD) else ()
    return what if now.restarts else (*what, *_EDITABLE_TIMES)


def _edited(before: JobSpec, after: JobSpec, fields: tuple[str, ...]) -> dict[str, Any]:
    """Return which of these fields were edited, with their new values."""
    return {
        field: getattr(after, field)
        for field in fields
        if getattr(after, field) != getattr(before, field)
    }
