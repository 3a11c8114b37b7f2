"""The habits of a site from its journal: those on record, and the others as its events show."""

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from outrider.formats.campus.site_file import NO_REBOOT, SiteFile, SiteTable
from outrider.journal.site_facts import SiteFacts, facts_on_record
from outrider.model.errors import LedgerError
from outrider.model.localtime import day_second
from outrider.replay.recorded_campus import inferred_habits, utc_offset_s
from outrider.replay.site_record import SiteRecord

HOURS: Final = "hours"
"""Opening hours and sleep."""
DELAYS: Final = "delays"
"""From a log-out or reboot until jobs may use the machine."""
REBOOT: Final = "reboot"
HABITS: Final = frozenset({HOURS, DELAYS, REBOOT})


class RecordedHabits(NamedTuple):
    """The habits of a site.

    Attributes:
        site: for `outrider.replay.recorded_campus.recorded_campus`.
        inferred: which of `HABITS` are not on record: they are as events show them.
    """

    site: SiteFile
    inferred: frozenset[str]


def habits_of_ledger(path: Path, record: SiteRecord, zone: dt.tzinfo = dt.UTC) -> RecordedHabits:
    """The habits of the site of a journal.

    Args:
        path: the journal.
        record: made from it.
        zone: the site's time zone.

    Raises:
        LedgerError: it cannot be read.
    """
    inferred = inferred_habits(record, utc_offset_s(record.first_s, zone))
    facts = facts_on_record(path)
    if facts is None:
        return RecordedHabits(inferred, HABITS)
    told = facts.habits
    names = {field.name for field in msgspec.structs.fields(SiteTable)} - {"reboot"}
    known = {
        name: value
        for name, value in msgspec.structs.asdict(told).items()
        if name in names and value is not None
    }
    reboot_s = inferred.reboot_s if told.reboot is None else _reboot_s(told.reboot, path)
    table = msgspec.structs.replace(inferred.table, **known)
    return RecordedHabits(
        SiteFile(table, reboot_s, list(facts.clusters)), frozenset(_not_told(facts))
    )


def _not_told(facts: SiteFacts) -> Iterable[str]:
    told = facts.habits
    if not facts.clusters:
        yield HOURS
    if told.idle_before_job_open_s is None or told.idle_before_job_closed_s is None:
        yield DELAYS
    if told.reboot is None:
        yield REBOOT


def _reboot_s(text: str, path: Path) -> float | None:
    if text == NO_REBOOT:
        return None
    try:
        return day_second(text)
    except ValueError as error:
        raise LedgerError(f"{path}: the reboot of its site {error}") from error
