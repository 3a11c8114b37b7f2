"""The reader of HTCondor logs: finds out the form, remembers where the log stands."""

import re
from typing import Any, ClassVar, Final, Protocol

from outrider.api import LogReader, ReaderOptions, Reading
from outrider_adapters.readers.htcondor import classads, frames, text
from outrider_adapters.readers.htcondor.dates import NEVER_YET, Dates, Day
from outrider_adapters.readers.htcondor.names import JobNames
from outrider_adapters.readers.htcondor.record_events import NO_CLOCK, Account
from outrider_adapters.readers.htcondor.state_words import STATE_WORDS

_HEAD_BYTES: Final = 64 * 1024
_BEGINNINGS: Final = {
    "text": text.HEADER,
    "json": re.compile(rb'\{\s*"(?:[A-Z]\w*)"\s*:'),
    "xml": re.compile(rb'<c>\s*<a n="'),
}


class _Form(Protocol):
    def read(self, data: bytes, final: bool, account: Account) -> int: ...


class HTCondorLogReader(LogReader):
    """Reads HTCondor event logs and user logs: text, JSON and XML.

    Dates without a zone are local time of `ReaderOptions.timezone`, and UTC where that is None.
    Dates without a year are told by `ReaderOptions.year`, which then needs the whole log in one
    final reading, or by `ReaderOptions.modified_s`.

    Jobs go by ``SCHEDD#CLUSTER.PROC`` (`JobNames` says what names the schedd).

    What was written in the last two seconds of the log waits for the next, for it may explain
    them; a final reading gives it out.
    """

    name: ClassVar[str] = "htcondor"
    description: ClassVar[str] = "HTCondor event logs and user logs: text, JSON, XML"
    api_version = 1
    state_words = STATE_WORDS

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self._dates = Dates(options)
        self._names = JobNames(options)
        self._clock = NO_CLOCK
        dates, names = self._dates, self._names
        self._forms: dict[str, _Form] = {
            "text": text.TextReader(dates, names),
            "json": classads.ClassAdReader(dates, names, frames.JSON, classads.parse_json),
            "xml": classads.ClassAdReader(dates, names, frames.XML, classads.parse_xml),
        }
        self._form_name = ""

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Whether a job event, as text or ClassAd, begins somewhere in the head of a file."""
        form = _form_of(head)
        return form == "text" or (form != "" and b"EventTypeNumber" in head)

    def read(self, data: bytes, final: bool = False) -> Reading:
        """Read the whole records at the front of the data (see `outrider.api.LogReader.read`)."""
        name = self._form_name or _form_of(data)
        if name == "text" and not text.anchor_years(data, self._dates, final):
            return Reading([], 0, 0, 0, {}, {})
        self._names.begin(data)
        account = Account(self._dates, self._clock)
        end = self._forms[name or "text"].read(data, final, account)
        reading, self._clock = account.settle(end, final)
        reading.lines = data.count(b"\n", 0, reading.consumed)
        reading.warnings = self._dates.take_warnings()
        if reading.records:
            self._form_name = name
            self._names.settle()
        return reading

    def save(self) -> Any:
        """Form, names, newest second, last date; without years, the day the log stands at."""
        day, last_s = self._dates.day, self._dates.last_s
        return {
            "form": self._form_name,
            "names": self._names.save(),
            "clock": self._clock,
            "day": list(day) if day else None,
            "last_s": None if last_s == NEVER_YET else last_s,
        }

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self._form_name = saved["form"]
        self._clock = saved["clock"]
        self._dates.day = Day(*saved["day"]) if saved["day"] else None
        last_s = saved.get("last_s")
        self._dates.last_s = NEVER_YET if last_s is None else last_s
        self._names.restore(saved["names"])

    def inherit(self, saved: Any) -> None:
        """A log that was rotated is the same schedd's."""
        self._names.restore(saved["names"])


def _form_of(data: bytes) -> str:
    """The form whose first record begins first, or empty if none does."""
    head = data[:_HEAD_BYTES]
    found = ((match.start(), name) for name, match in _matches(head) if match)
    return min(found, default=(0, ""))[1]


def _matches(head: bytes) -> list[tuple[str, re.Match[bytes] | None]]:
    return [(name, pattern.search(head)) for name, pattern in _BEGINNINGS.items()]
