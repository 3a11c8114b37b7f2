"""Reader of HTCondor logs: detects the form and remembers the position in the log."""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import msgspec

from outrider.api import LogReader, ReaderOptions, Reading
from outrider_adapters.readers.htcondor import event_mapping as meaning
from outrider_adapters.readers.htcondor import text
from outrider_adapters.readers.htcondor.dates import NEVER_YET, Dates, Day
from outrider_adapters.readers.htcondor.event_mapping import STATE_WORDS
from outrider_adapters.readers.htcondor.job_ads import (
    SPEC_ATTRIBUTES,
    job_id,
    job_spec,
    machine_of_run,
    machine_of_slot,
    slot_of,
)
from outrider_adapters.readers.htcondor.names import JobNames
from outrider_adapters.readers.htcondor.record_events import NO_CLOCK, Account
from outrider_adapters.readers.htcondor.text import MAX_RECORD_BYTES

# -- frames ----------------------------------------------------------------------------------------
# Boundaries of ClassAds in a stream of JSON objects or XML elements.


class Markup(NamedTuple):
    """Delimiters of ads in one form.

    Attributes:
        tokens: matches delimiters; other matches (strings) are skipped.
        opening, closing: the delimiters of an ad; ads may be nested.
        fresh: an opening at the start of a line, which only a new record has.
        between: what may be between records.
    """

    tokens: re.Pattern[bytes]
    opening: bytes
    closing: bytes
    fresh: bytes
    between: re.Pattern[bytes]


JSON: Final = Markup(
    # an unterminated string ends with its line: a search on inside it would never end
    tokens=re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?|\n\{|[{}]'),
    opening=b"{",
    closing=b"}",
    fresh=b"\n{",
    between=re.compile(rb"[\s,\[\]]*+"),
)
XML: Final = Markup(
    tokens=re.compile(rb"\n<c>|</?c>"),
    opening=b"<c>",
    closing=b"</c>",
    fresh=b"\n<c>",
    between=re.compile(rb"(?:\s|<\?[^>]*>|<![^>]*>|</?classads>)*+"),
)

RECORD: Final = "record"
CUT_SHORT: Final = "cut_short"
GARBAGE: Final = "garbage"


def frames(data: bytes, markup: Markup) -> Iterator[tuple[str, int, int]]:
    """Split the data into whole records and the rest.

    Yields:
        (`RECORD`, `CUT_SHORT` or `GARBAGE`, first byte, byte after the last). Data after the last
        of them is not a whole record yet.
    """
    depth = 0
    start = 0  # of the record, or of the data between two records
    for token in markup.tokens.finditer(data):
        word = token.group()
        if word == markup.fresh or (word == markup.opening and not depth):
            here = token.end() - len(markup.opening)
            if depth:
                yield CUT_SHORT, start, here
            elif not markup.between.fullmatch(data, start, here):
                yield GARBAGE, start, here
            start, depth = here, 1
        elif word == markup.opening:
            depth += 1
        elif word == markup.closing and depth:
            depth -= 1
            if not depth:
                yield RECORD, start, token.end()
                start = token.end()


# -- reader ----------------------------------------------------------------------------------------

_HEAD_BYTES: Final = 64 * 1024
_BEGINNINGS: Final = {
    "text": text.HEADER,
    "json": re.compile(rb'\{\s*"(?:[A-Z]\w*)"\s*:'),
    "xml": re.compile(rb'<c>\s*<a n="'),
}


class _Form(Protocol):
    def read(self, data: bytes, final: bool, account: Account) -> int: ...


class HTCondorLogReader(LogReader):
    """Reader of HTCondor event logs and user logs: text, JSON and XML.

    Dates without a zone are local time of `ReaderOptions.timezone`, and UTC where that is None.
    Dates without a year get it from `ReaderOptions.year`, which then needs the whole log in one
    final reading, or from `ReaderOptions.modified_s`.

    Jobs have the names ``SCHEDD#CLUSTER.PROC`` (see `JobNames` for the name of the schedd).

    The records of the last two seconds of the log wait for the next, which may explain
    them; a final reading returns them.
    """

    name: ClassVar[str] = "htcondor"
    description: ClassVar[str] = "HTCondor event logs and user logs: text, JSON, XML"
    api_version = 1
    users_write = True
    state_words = STATE_WORDS

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self._dates = Dates(options)
        self._names = JobNames(options)
        self._clock = NO_CLOCK
        dates, names = self._dates, self._names
        self._forms: dict[str, _Form] = {
            "text": text.TextReader(dates, names),
            "json": ClassAdReader(dates, names, JSON, parse_json),
            "xml": ClassAdReader(dates, names, XML, parse_xml),
        }
        self._form_name = ""

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a job event, as text or ClassAd, begins in the head of a file."""
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
        """Return form, names, newest second and last date; without years, the current day."""
        day, last_s = self._dates.day, self._dates.last_s
        return {
            "form": self._form_name,
            "names": self._names.save(),
            "clock": self._clock,
            "day": list(day) if day else None,
            "last_s": None if last_s == NEVER_YET else last_s,
        }

    def restore(self, saved: Any) -> None:
        """Continue from what `save` returned."""
        self._form_name = saved["form"]
        self._clock = saved["clock"]
        self._dates.day = Day(*saved["day"]) if saved["day"] else None
        last_s = saved.get("last_s")
        self._dates.last_s = NEVER_YET if last_s is None else last_s
        self._names.restore(saved["names"])

    def inherit(self, saved: Any) -> None:
        """Keep the names: a rotated log belongs to the same schedd."""
        self._names.restore(saved["names"])


def _form_of(data: bytes) -> str:
    """Return the form whose first record begins first, or empty if none does."""
    head = data[:_HEAD_BYTES]
    found = ((match.start(), name) for name, match in _matches(head) if match)
    return min(found, default=(0, ""))[1]


def _matches(head: bytes) -> list[tuple[str, re.Match[bytes] | None]]:
    return [(name, pattern.search(head)) for name, pattern in _BEGINNINGS.items()]


# -- classads --------------------------------------------------------------------------------------
# HTCondor's event logs as ClassAds: JSON objects or XML elements, one per event.

Ad = Mapping[str, Any]

_XML_ATTRIBUTE = re.compile(
    r'<a n="([^"]*)">\s*<(?:([sireat])[^>]*>([^<]*)</\2>|b v="([tf])"\s*/>)', re.ASCII
)
_MAX_DIGITS: Final = 18
_ONCE: Final = ("Cluster", "Proc", "Subproc", "EventTypeNumber", "EventTime")
"""Attributes with an ad's event and job: an ad that has one twice is ambiguous."""
_ONCE_IN_JSON: Final = tuple(f'"{name}"'.encode() for name in _ONCE)


class AmbiguousAdError(ValueError):
    """Ad with several readings, since an attribute comes twice."""


class ClassAdReader:
    """Parser of a stream of ClassAds.

    Args:
        dates: converts the log's dates.
        names: names the log's jobs.
        markup: how ads are delimited.
        parse: converts the bytes of an ad into its attributes; raises `ValueError` if it cannot.
    """

    def __init__(
        self, dates: Dates, names: JobNames, markup: Markup, parse: Callable[[bytes], Ad]
    ) -> None:
        self._dates = dates
        self._names = names
        self._markup = markup
        self._parse = parse

    def read(self, data: bytes, final: bool, account: Account) -> int:
        """Add every whole record at the front of the data to the account.

        Returns:
            the number of their bytes.
        """
        stop = 0
        for kind, start, end in frames(data, self._markup):
            if kind == RECORD and end - start > MAX_RECORD_BYTES:
                account.reject("too_long")
            elif kind == RECORD:
                self._read_record(data[start:end], start, account)
            else:
                account.reject(kind)
            stop = end
        if len(data) - stop > MAX_RECORD_BYTES:
            account.reject(GARBAGE)
            return len(data)
        if final and self._markup.between.fullmatch(data, stop):
            return len(data)
        return stop

    def _read_record(self, record: bytes, offset: int, account: Account) -> None:
        try:
            ad = self._parse(record)
        except AmbiguousAdError:
            account.reject("ambiguous")
            return
        except (ValueError, RecursionError):
            account.reject("no_ad")
            return
        number = ad.get("EventTypeNumber")
        if type(number) is not int or number < 0:
            account.reject("no_number")
            return
        try:
            time_s = self._dates.at_stamp(str(ad.get("EventTime", "")))
        except (ValueError, OverflowError):
            account.reject("date")
            return
        account.at(offset, time_s)
        job = self._name(number, ad)
        if number == meaning.JOB_AD_INFORMATION and job and account.is_open(job):
            _apply_job_ad(time_s, job, ad, account)
        if number not in meaning.JOB_EVENTS:
            account.ignore(meaning.ignored_name(number))
        elif job is None:
            account.reject("no_job")
        else:
            _add_event(number, time_s, job, ad, account)
            if number in meaning.ENDINGS and self._names.wants_endings:
                self._names.ended(job)

    def _name(self, number: int, ad: Ad) -> str | None:
        """Return the name of the ad's job; None if the ad names no job."""
        job = _job(ad)
        if job is None:
            return None
        if number == meaning.SUBMIT:
            return self._names.submitted(job, _word(ad, "SubmitHost"))
        return self._names.of(job)


def parse_json(record: bytes) -> Ad:
    """Parse an ad in JSON into its attributes.

    Raises:
        ValueError: it is not an ad.
        AmbiguousAdError: it has one of `_ONCE` twice.
    """
    if any(record.count(name) > 1 for name in _ONCE_IN_JSON):
        raise AmbiguousAdError
    try:
        ad = msgspec.json.decode(record)
    except UnicodeDecodeError:  # a user's text in some other encoding is no reason to fail
        ad = msgspec.json.decode(record.decode("utf-8", "replace").encode())
    if not isinstance(ad, dict):
        raise ValueError("a JSON value, but not an object")
    return ad


def parse_xml(record: bytes) -> Ad:
    """Parse an ad in XML into its attributes, including those of ads within it.

    Raises:
        AmbiguousAdError: it has one of `_ONCE` twice.
    """
    ad: dict[str, Any] = {}
    for name, kind, words, truth in _XML_ATTRIBUTE.findall(record.decode("utf-8", "replace")):
        if name in _ONCE and name in ad:
            raise AmbiguousAdError
        if truth:
            ad[name] = truth == "t"
        elif kind == "i":
            ad[name] = _whole(words)
        else:
            ad[name] = html.unescape(words)
    return ad


def _whole(words: str) -> int | None:
    digits = words.strip()
    plain = digits.removeprefix("-")
    if plain.isascii() and plain.isdigit() and len(plain) <= _MAX_DIGITS:
        return int(digits)
    return None


def _job(ad: Ad) -> str | None:
    ids = [ad.get(name, 0) for name in ("Cluster", "Proc", "Subproc")]
    if "Cluster" not in ad or "Proc" not in ad or any(type(part) is not int for part in ids):
        return None
    return job_id(*map(str, ids))


def _add_event(number: int, time_s: float, job: str, ad: Ad, account: Account) -> None:
    if number == meaning.SUBMIT:
        account.submitted(time_s, job)
    elif number == meaning.EXECUTE:
        slot = slot_of(_word(ad, "SlotName").strip())
        account.started(time_s, job, _machine(ad), _cpus(ad), slot)
    elif number in meaning.SIMPLE_KINDS:
        account.add(time_s, meaning.SIMPLE_KINDS[number], job)
    elif number in meaning.LEAVING_REASONS:
        why = meaning.hold_reason(_word(ad, "HoldReason"))
        account.left_queue(time_s, job, meaning.LEAVING_REASONS[number], why)
    elif number == meaning.RECONNECT_FAILED:
        account.not_reconnected(time_s, job)
    else:
        words = f"{_word(ad, 'Reason')}\n{_word(ad, 'Message')}"
        failed = meaning.FAILED_EXEC in words or number == meaning.EXECUTABLE_ERROR
        account.lost(time_s, job, meaning.loss_reason(failed))


def _apply_job_ad(time_s: float, job: str, ad: Ad, account: Account) -> None:
    trigger = ad.get("TriggerEventTypeNumber")
    host = _word(ad, "RemoteHost")
    if trigger == meaning.EXECUTE and host:
        account.set_machine(time_s, job, machine_of_slot(host), slot_of(host))
    elif trigger == meaning.SUBMIT:
        facts = {name: str(ad[name]) for name in SPEC_ATTRIBUTES if name in ad}
        account.set_spec(time_s, job, job_spec(facts))
    elif trigger == meaning.EVICTED and type(ad.get("VacateReasonCode")) is int:
        account.set_cause(time_s, job, ad["VacateReasonCode"])


def _machine(ad: Ad) -> str:
    return machine_of_run(_word(ad, "SlotName"), _word(ad, "ExecuteHost"))


def _cpus(ad: Ad) -> int:
    """Return ``Cpus`` of the slot: in JSON inside ``ExecuteProps``, in XML next to it."""
    props = ad.get("ExecuteProps")
    cpus = (props if isinstance(props, dict) else ad).get("Cpus")
    return cpus if type(cpus) is int and cpus >= 1 else 1


def _word(ad: Ad, name: str) -> str:
    value = ad.get(name)
    return value if isinstance(value, str) else ""
