"""The reader of HTCondor logs: finds out the form, remembers where the log stands."""

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
from outrider_adapters.readers.htcondor.text import MOST_RECORD_BYTES

# -- frames ----------------------------------------------------------------------------------------
# Where one ClassAd ends and the next begins in a stream of JSON objects or XML elements.


class Markup(NamedTuple):
    """How ads are delimited.

    Attributes:
        tokens: finds delimiters; what else it finds (strings) is passed over.
        opening, closing: the delimiters of an ad; ads may hold ads.
        fresh: an opening at the start of a line, which only a new record has.
        between: what may stand between records.
    """

    tokens: re.Pattern[bytes]
    opening: bytes
    closing: bytes
    fresh: bytes
    between: re.Pattern[bytes]


JSON: Final = Markup(
    # a string that does not end is one to its line's end: searching on inside it would never end
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
    """Cut the data into whole records and what is none.

    Yields:
        (`RECORD`, `CUT_SHORT` or `GARBAGE`, first byte, byte after the last). What follows the
        last of them is not whole yet.
    """
    depth = 0
    start = 0  # of the record, or of what stands between two
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
            "json": ClassAdReader(dates, names, JSON, parse_json),
            "xml": ClassAdReader(dates, names, XML, parse_xml),
        }
        self._form_name = ""

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a job event, as text or ClassAd, begins somewhere in the head of a file."""
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


# -- classads --------------------------------------------------------------------------------------
# HTCondor's event logs as ClassAds: JSON objects or XML elements, one an event.

Ad = Mapping[str, Any]

_XML_ATTRIBUTE = re.compile(
    r'<a n="([^"]*)">\s*<(?:([sireat])[^>]*>([^<]*)</\2>|b v="([tf])"\s*/>)', re.ASCII
)
_MOST_DIGITS: Final = 18
_ONCE: Final = ("Cluster", "Proc", "Subproc", "EventTypeNumber", "EventTime")
"""Attributes that say what an ad tells, and of which job: two of them can be read twice."""
_ONCE_IN_JSON: Final = tuple(f'"{name}"'.encode() for name in _ONCE)


class AmbiguousAdError(ValueError):
    """An ad that can be read twice."""


class ClassAdReader:
    """Reads a stream of ClassAds.

    Args:
        dates: the log's calendar.
        names: what the log's jobs are called.
        markup: how ads are delimited.
        parse: turns the bytes of an ad into its attributes; raises `ValueError` if it cannot.
    """

    def __init__(
        self, dates: Dates, names: JobNames, markup: Markup, parse: Callable[[bytes], Ad]
    ) -> None:
        self._dates = dates
        self._names = names
        self._markup = markup
        self._parse = parse

    def read(self, data: bytes, final: bool, account: Account) -> int:
        """Tell the account every whole record at the front of the data.

        Returns:
            how many bytes they are.
        """
        stop = 0
        for what, start, end in frames(data, self._markup):
            if what == RECORD and end - start > MOST_RECORD_BYTES:
                account.reject("too_long")
            elif what == RECORD:
                self._read_record(data[start:end], start, account)
            else:
                account.reject(what)
            stop = end
        if len(data) - stop > MOST_RECORD_BYTES:
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
            _tell_job_ad(time_s, job, ad, account)
        if number not in meaning.JOB_EVENTS:
            account.ignore(meaning.ignored_name(number))
        elif job is None:
            account.reject("no_job")
        else:
            _tell(number, time_s, job, ad, account)
            if number in meaning.ENDINGS and self._names.wants_endings:
                self._names.ended(job)

    def _name(self, number: int, ad: Ad) -> str | None:
        """What the ad's job is called; None if the ad names no job."""
        job = _job(ad)
        if job is None:
            return None
        if number == meaning.SUBMIT:
            return self._names.submitted(job, _word(ad, "SubmitHost"))
        return self._names.of(job)


def parse_json(record: bytes) -> Ad:
    """The attributes of an ad in JSON.

    Raises:
        ValueError: it is none.
        AmbiguousAdError: one of `_ONCE` is there twice.
    """
    if any(record.count(name) > 1 for name in _ONCE_IN_JSON):
        raise AmbiguousAdError
    try:
        ad = msgspec.json.decode(record)
    except UnicodeDecodeError:  # words of a user in some other encoding are no reason to fail
        ad = msgspec.json.decode(record.decode("utf-8", "replace").encode())
    if not isinstance(ad, dict):
        raise ValueError("a JSON value, but no object")
    return ad


def parse_xml(record: bytes) -> Ad:
    """The attributes of an ad in XML, those of ads within it beside its own.

    Raises:
        AmbiguousAdError: one of `_ONCE` is there twice.
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
    if plain.isascii() and plain.isdigit() and len(plain) <= _MOST_DIGITS:
        return int(digits)
    return None


def _job(ad: Ad) -> str | None:
    ids = [ad.get(name, 0) for name in ("Cluster", "Proc", "Subproc")]
    if "Cluster" not in ad or "Proc" not in ad or any(type(part) is not int for part in ids):
        return None
    return job_id(*map(str, ids))


def _tell(number: int, time_s: float, job: str, ad: Ad, account: Account) -> None:
    if number == meaning.SUBMIT:
        account.submitted(time_s, job)
    elif number == meaning.EXECUTE:
        slot = slot_of(_word(ad, "SlotName").strip())
        account.started(time_s, job, _machine(ad), _cpus(ad), slot)
    elif number in meaning.SIMPLE_KINDS:
        account.tell(time_s, meaning.SIMPLE_KINDS[number], job)
    elif number in meaning.LEAVING_REASONS:
        why = meaning.hold_reason(_word(ad, "HoldReason"))
        account.left_queue(time_s, job, meaning.LEAVING_REASONS[number], why)
    elif number == meaning.RECONNECT_FAILED:
        account.not_reconnected(time_s, job)
    else:
        words = f"{_word(ad, 'Reason')}\n{_word(ad, 'Message')}"
        failed = meaning.FAILED_EXEC in words or number == meaning.EXECUTABLE_ERROR
        account.lost(time_s, job, meaning.loss_reason(failed))


def _tell_job_ad(time_s: float, job: str, ad: Ad, account: Account) -> None:
    trigger = ad.get("TriggerEventTypeNumber")
    host = _word(ad, "RemoteHost")
    if trigger == meaning.EXECUTE and host:
        account.machine_told(time_s, job, machine_of_slot(host), slot_of(host))
    elif trigger == meaning.SUBMIT:
        facts = {name: str(ad[name]) for name in SPEC_ATTRIBUTES if name in ad}
        account.spec_told(time_s, job, job_spec(facts))
    elif trigger == meaning.EVICTED and type(ad.get("VacateReasonCode")) is int:
        account.cause_told(time_s, job, ad["VacateReasonCode"])


def _machine(ad: Ad) -> str:
    return machine_of_run(_word(ad, "SlotName"), _word(ad, "ExecuteHost"))


def _cpus(ad: Ad) -> int:
    """``Cpus`` of the slot: in JSON inside ``ExecuteProps``, in XML beside it."""
    props = ad.get("ExecuteProps")
    cpus = (props if isinstance(props, dict) else ad).get("Cpus")
    return cpus if type(cpus) is int and cpus >= 1 else 1


def _word(ad: Ad, name: str) -> str:
    value = ad.get(name)
    return value if isinstance(value, str) else ""
