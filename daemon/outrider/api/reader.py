"""The contract of a log reader: text that a batch system wrote, turned into events.

A reader is found by the entry point ``outrider.readers``. It does no I/O and never raises on
what it is fed: a record is an event, ignored (counted by kind) or rejected (counted by reason).
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
    """The name of a log, whatever a rotation made of it.

    >>> log_name_of("EventLog.old"), log_name_of("EventLog.20261121T031700"), log_name_of("a.1.gz")
    ('EventLog', 'EventLog', 'a')
    """
    for end in range(1, len(file_name)):
        if file_name[end] in ".-" and _ADDED.fullmatch(file_name, end):
            return file_name[:end]
    return file_name


class ReaderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a file does not say of itself.

    Attributes:
        year: year of the last event, for date styles without one; None: from `modified_s`.
        timezone: IANA name of the zone the writer's clock showed; None: the reader's default.
        modified_s: when the file was last written (Unix seconds), or None.
        fields: column names of a headerless table, or empty.
        system: whose jobs these are where the records do not name it: the schedd, the Slurm
            cluster. Declared by a person; None: not declared.
        log_name: name of the file without what rotation and packing added to it
            (`log_name_of`): stands for the system where nothing else names it. May be empty.
    """

    year: int | None = None
    timezone: str | None = None
    modified_s: float | None = None
    fields: tuple[str, ...] = ()
    system: str | None = None
    log_name: str = ""

    def zone(self) -> dt.tzinfo:
        """The zone of dates that name none. Raises `ConfigurationError` if it is not known."""
        return time_zone(self.timezone) if self.timezone else dt.UTC


class Reading(msgspec.Struct):
    """What a reader made of the bytes it was fed.

    Attributes:
        events: in the order of the file.
        consumed: bytes from the front of the data that need not be fed again.
        records: records in those bytes; each is one of events' sources, ignored or rejected.
        lines: lines in those bytes.
        ignored: records that are no event of ours, by kind.
        rejected: records that could not be read, by reason.
        warnings: things the person on call should know, such as a guessed year.
    """

    events: list[NamedEvent]
    consumed: int
    records: int
    lines: int
    ignored: dict[str, int]
    rejected: dict[str, int]
    warnings: list[str] = []


class LogReader:
    """Base of every log reader.

    Class variables:
        name: the word for ``--format``.
        description: one line.
        api_version: as in `outrider.api.Policy`.
        in_order: False where a record may tell of what happened long before it was written (a
            record of a job's end tells of its start too): ``outrider ingest`` then puts the
            events of the whole file in order before it counts.
        state_words: what the batch system calls the states of jobs, as `Adapter.state_words`.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    api_version: ClassVar[int]
    in_order: ClassVar[bool] = True
    state_words: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init__(self, options: ReaderOptions) -> None:
        self.options = options

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a file that begins like this is written in this format."""
        raise NotImplementedError

    def read(self, data: bytes, final: bool = False) -> Reading:
        """Read the whole records at the front of `data`.

        Args:
            data: what follows the bytes consumed so far.
            final: nothing more will come (the end of a file, or a pause in a live one): what was
                held back to look at the next record is given out. A half record stays
                unconsumed all the same; ``outrider ingest`` counts it as rejected.
        """
        raise NotImplementedError

    def save(self) -> Any:
        """What must be remembered between reads (a year, a half-told job), as JSON types."""
        return None

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""

    def inherit(self, saved: Any) -> None:
        """Begin a file after the one of which `save` told: the same log, rotated.

        What was true of the log is true of this file, such as whose jobs it tells of.
        """
