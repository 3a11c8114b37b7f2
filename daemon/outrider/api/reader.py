"""Contract of a log reader, which turns text written by a batch system into events.

A reader is found by the entry point ``outrider.readers``. It does no I/O and never raises because
of its input: a record is an event, ignored (counted by kind) or rejected (counted by reason).
Duplicates are found later, by the event merger. The `logtail` adapter and ``outrider ingest`` feed
it.
"""

import datetime as dt
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import msgspec

from outrider.model.events import NamedEvent
from outrider.model.localtime import time_zone

_ADDED = re.compile(r"(?:\.(?:old|\d{1,4}|\d{8}(?:T\d{6})?)|-\d{8}(?:-?\d{6})?)?(?:\.gz)?")


def log_name_of(file_name: str) -> str:
    """Return the name of a log without what rotation added to it.

    >>> log_name_of("EventLog.old"), log_name_of("EventLog.20261121T031700"), log_name_of("a.1.gz")
    ('EventLog', 'EventLog', 'a')
    """
    for end in range(1, len(file_name)):
        if file_name[end] in ".-" and _ADDED.fullmatch(file_name, end):
            return file_name[:end]
    return file_name


class ReaderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a log file that its records do not contain.

    Attributes:
        year: year of the last event, for date styles without one; None: from `modified_s`.
        timezone: IANA name of the zone the writer's clock showed; None: the reader's default.
        modified_s: when the file was last written (Unix seconds), or None.
        fields: column names of a headerless table, or empty.
        system: where the jobs come from if the records do not name it: the schedd, the Slurm
            cluster. Declared by a person; None: not declared.
        log_name: name of the file without what rotation and packing added to it (`log_name_of`);
            replaces the system where nothing else names it. May be empty.
    """

    year: int | None = None
    timezone: str | None = None
    modified_s: float | None = None
    fields: tuple[str, ...] = ()
    system: str | None = None
    log_name: str = ""

    def zone(self) -> dt.tzinfo:
        """Return the zone of dates that name none. Raises `ConfigurationError` if it is unknown."""
        return time_zone(self.timezone) if self.timezone else dt.UTC


class Reading(msgspec.Struct):
    """Events and counts from the bytes that a reader was given.

    Attributes:
        events: in the order of the file.
        consumed: bytes from the front of the data that need not be fed again.
        records: records in those bytes; each became events, or was ignored or rejected.
        lines: lines in those bytes.
        ignored: records that are not events for Outrider, by kind.
        rejected: records that could not be read, by reason.
        warnings: facts that the person on call should know, such as a guessed year.
    """

    events: list[NamedEvent]
    consumed: int
    records: int
    lines: int
    ignored: dict[str, int]
    rejected: dict[str, int]
    warnings: list[str] = []


class LogReader:
    """Base class of every log reader.

    Class variables:
        name: the value for ``--format``.
        description: one line.
        api_version: as in `outrider.api.Policy`.
        in_order: False where a record may report what happened long before it was written (a
            record of a job's end contains its start too): ``outrider ingest`` then sorts the
            events of the whole file before it counts.
        users_write: True where users have such logs written themselves: then a job belongs to the
            file that first reports on it. False: only the batch system writes them, and several
            files in a folder may report on the same job.
        state_words: what the batch system calls the states of jobs, as `Adapter.state_words`.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    api_version: ClassVar[int]
    in_order: ClassVar[bool] = True
    users_write: ClassVar[bool] = False
    state_words: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init__(self, options: ReaderOptions) -> None:
        self.options = options

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a file that begins like this has this format."""
        raise NotImplementedError

    def read(self, data: bytes, final: bool = False) -> Reading:
        """Read the whole records at the front of `data`.

        Args:
            data: what follows the bytes consumed so far.
            final: nothing more will come (the end of a file, or a pause in a live one). Records
                held back to look at the next one are then returned. A half record stays unconsumed
                all the same; ``outrider ingest`` counts it as rejected.
        """
        raise NotImplementedError

    def save(self) -> Any:
        """Return the state to keep between reads (a year, a partly read job), as JSON types."""
        return None

    def restore(self, saved: Any) -> None:
        """Resume from what `save` returned."""

    def inherit(self, saved: Any) -> None:
        """Begin the next file of the same rotated log, after the one that `save` described.

        Facts about the log hold for this file too, such as where its jobs come from.
        """
