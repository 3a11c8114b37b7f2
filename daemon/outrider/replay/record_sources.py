"""Records of a site from the journal of a daemon, or from the logs of a batch system."""

import datetime as dt
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import numpy as np

from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import clock_text
from outrider.journal import Journal
from outrider.journal.journal_events import JournalEvents
from outrider.model.errors import TraceError
from outrider.model.localtime import DAY_S
from outrider.replay.log_files import Ingestion, LogFile
from outrider.replay.recorded_campus import (
    DELAYS,
    HOURS,
    REBOOT,
    inferred_habits,
    possible_jobs,
    recorded_only,
    utc_offset_s,
)
from outrider.replay.site_record import SiteRecord


def record_of_ledger(path: Path) -> SiteRecord:
    """Return the record of a daemon's journal, through an event merger like its own.

    Raises:
        LedgerError: the file cannot be read.
        TraceError: it holds no events.
    """
    with Journal(path, read_only=True) as journal:
        events = JournalEvents()
        record = SiteRecord(events.merger.normaliser)
        record.take_all(events.all_of(journal))
    if not record.machines and not record.jobs:
        raise TraceError(
            f"{path}: holds no events of a site; expected the journal of a daemon (what a "
            "replay writes are decisions only)"
        )
    record.close(events.seen_s)
    return record


def record_of_logs(
    files: Sequence[LogFile], progress: Callable[[float], None] | None = None
) -> SiteRecord:
    """Return the record of a batch system's logs, merged by time.

    Raises:
        TraceError: a file cannot be read to its end, or none contains a job.
    """
    ingestion = Ingestion(files)
    record = SiteRecord(ingestion.merger.normaliser)
    record.take_all(ingestion.events(progress))
    if not record.jobs:
        names = ", ".join(str(file.path) for file in files)
        raise TraceError(f"{names}: no job found; expected a log of a batch system")
    record.close()
    for file in files:
        record.warnings += [f"{file.path}: {text}" for text in dict.fromkeys(file.counts.warnings)]
        record.warnings += [
            f"{file.path}: {n} records were rejected: {reason}"
            for reason, n in file.counts.rejected.items()
        ]
    return record


# -- record notes ----------------------------------------------------------------------------------
# Limits of a campus made from a record: its assumptions and omissions.


def notes_on(
    record: SiteRecord, campus: Campus, zone: dt.tzinfo, inferred: Collection[str]
) -> Iterator[str]:
    """Yield a note for each assumption and omission of the campus.

    Args:
        record: what was recorded of the site.
        campus: the campus made from it.
        zone: the site's time zone.
        inferred: those of `outrider.replay.recorded_campus.HABITS` that were not declared, but
            inferred from the record.
    """
    yield from record.warnings
    yield from _notes_on_habits(record, utc_offset_s(record.first_s, zone), inferred)
    yield from _notes_on_machines(record)
    yield from _notes_on_jobs(record, campus)
    killed = int((~np.isnan(campus.kill_s)).sum())
    if killed:
        yield (
            f"{killed} jobs were removed before they completed: how long they would have run is "
            "unknown; in the campus they never end and are killed when they were"
        )
    if unfinished := record.unfinished_n():
        yield f"{unfinished} jobs had not ended when the record did; in the campus they never end"
    for what, n in record.left_out.items():
        yield f"{n} {what}: a campus has no place for that"
    for what, n in record.repairs.items():
        yield f"{n} gaps in the record were filled: {what}"
    for day, hours in _clock_changes(record, zone):
        yield (
            f"clocks changed by {hours:+g} h on {day}: a campus counts elapsed seconds, so after "
            f"that its opening hours and reboot fall {abs(hours):g} h "
            f"{'late' if hours > 0 else 'early'} by the site's wall clock"
        )


def _notes_on_habits(
    record: SiteRecord, offset_s: float, inferred: Collection[str]
) -> Iterator[str]:
    habits = inferred_habits(record, offset_s)
    if HOURS in inferred:
        yield (
            "opening hours and sleep are not recorded: clusters never close and machines never "
            "sleep; --site names a file with these rules"
        )
    delay_s, delays = habits.table.idle_before_job_open_s, record.delays
    if DELAYS in inferred:
        yield (
            f"idle before job {delay_s:g} s: {delays[round(delay_s)]} of {delays.total()} log-outs "
            "and reboots show it"
        )
    if REBOOT in inferred:
        total = record.reboots.total()
        yield f"reboot {clock_text(habits.reboot_s)}: at the most common time of {total} reboots"


def _notes_on_machines(record: SiteRecord) -> Iterator[str]:
    machines = record.machines.values()
    if inferred := sum(machine.spec.inferred for machine in machines):
        yield (
            f"{inferred} machines are known only from their jobs: no watts, and no owner sessions "
            "(an eviction does not show who came, nor for how long)"
        )


def _notes_on_jobs(record: SiteRecord, campus: Campus) -> Iterator[str]:
    only = recorded_only(record, [spec.name for spec in campus.clusters])
    if wide := len(record.jobs) - len(possible_jobs(record, only)):
        yield (
            f"{wide} jobs ask for more CPUs than any machine has where they may run, and are left "
            "out"
        )
    if anywhere := sum(only.get(job.spec.eligible, "") is None for job in record.jobs):
        yield (
            f"{anywhere} jobs may use machines that are unknown or not whole clusters; in the "
            "campus they may run anywhere"
        )
    if named := sum(bool(job.spec.resources and job.spec.resources.named) for job in record.jobs):
        yield (
            f"{named} jobs ask for resources other than CPUs, memory and GPUs: a campus has no "
            "place for that"
        )


def _clock_changes(record: SiteRecord, zone: dt.tzinfo) -> Iterator[tuple[dt.date, float]]:
    """Yield days within the record on which the zone's UTC offset changes, with the hours."""
    before_s = utc_offset_s(record.first_s, zone)
    for time_s in (*np.arange(record.first_s, record.last_s, DAY_S).tolist(), record.last_s):
        offset_s = utc_offset_s(time_s, zone)
        if offset_s != before_s:
            day = dt.datetime.fromtimestamp(time_s, zone).date()
            yield day, (offset_s - before_s) / 3600
        before_s = offset_s
