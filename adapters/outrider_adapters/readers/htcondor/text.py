"""Reader of HTCondor's text form: a header line, further lines, and three dots on a line."""

import re
from typing import Final

from outrider_adapters.readers.htcondor import event_mapping as meaning
from outrider_adapters.readers.htcondor.dates import Dates
from outrider_adapters.readers.htcondor.job_ads import (
    SPEC_ATTRIBUTES,
    job_spec,
    machine_of_run,
    machine_of_slot,
    slot_of,
)
from outrider_adapters.readers.htcondor.names import JobNames
from outrider_adapters.readers.htcondor.record_events import Account

MAX_RECORD_BYTES: Final = 1 << 20
"""Limit of a record; longer data without a whole record is rejected."""

HEADER: Final = re.compile(
    rb"(\d\d\d) \((-?\d{1,20}\.-?\d{1,20}\.-?\d{1,20})\) "
    rb"(\d[\d/-]*[ T]\d\d:\d\d):((?:[0-5]\d|60)(?:\.\d+)?)(Z|[+-]\d\d:?\d\d)?(?!\S)"
)
_BREAKS = re.compile(rb"\n(?:(\.\.\.)\r?\n|\d\d\d \()")
_LAST_BREAKS = re.compile(rb"\n(?:(\.\.\.)(?:\r?\n|\Z)|\d\d\d \()")
_YEARLESS = re.compile(
    rb"^\d\d\d \(-?\d{1,20}\.-?\d{1,20}\.-?\d{1,20}\) (\d\d?)/(\d\d?)[ T]\d\d:", re.MULTILINE
)
_PLACE = re.compile(
    rb"[^\r\n]*?host: *([^\r\n]*)(?:\r?\n[ \t]+SlotName: ([^\r\n]*))?", re.IGNORECASE
)
_CPUS = re.compile(rb"\n[ \t]+Cpus = (\d{1,9})\b")
_HOLD_REASON = re.compile(rb"\A[^\n]*\n[ \t]+(?!Code \d)([^\r\n]*)")
_TRIGGER = re.compile(rb"\nTriggerEventTypeNumber = (\d{1,9})\b")
_REMOTE_HOST = re.compile(rb'\nRemoteHost = "([^"\r\n]*)"')
_VACATE_CODE = re.compile(rb"\nVacateReasonCode = (\d{1,9})\b")
_SPEC_ATTRIBUTE = re.compile(rb"\n(" + "|".join(SPEC_ATTRIBUTES).encode() + rb') = "?([^"\r\n]*)')
_HEAD_BYTES = 1 << 16
_MAX_NAMES = 100_000  # places cached at a time
_MAX_PLACE_BYTES = 4096
_BLANK = b" \t\r\n."
_JOB_AD: Final = b"028"
_EXECUTE: Final = b"001"
_IGNORED: Final = {
    b"%03d" % number: name
    for number, name in meaning.IGNORED_NAMES.items()
    if number not in meaning.JOB_EVENTS
}
_SIMPLE_KINDS: Final = {b"%03d" % number: kind for number, kind in meaning.SIMPLE_KINDS.items()}
_SUBMIT: Final = b"%03d" % meaning.SUBMIT
_ENDINGS: Final = frozenset(b"%03d" % number for number in meaning.ENDINGS)


class AmbiguousError(ValueError):
    """Job ad with two values for its user, or for the job's request."""


def anchor_years(data: bytes, dates: Dates, whole: bool) -> bool:
    """Find the year of dates without one. False: the whole log is needed first."""
    if dates.day is not None or not _YEARLESS.search(data, 0, _HEAD_BYTES):
        return True
    return dates.anchor([(int(month), int(day)) for month, day in _YEARLESS.findall(data)], whole)


class TextReader:
    """Parser of the text form; it has only a cache of names.

    Args:
        dates: converts the log's dates.
        names: names the log's jobs.
    """

    def __init__(self, dates: Dates, names: JobNames) -> None:
        self._dates = dates
        self._names = names
        self._places: dict[tuple[bytes, bytes | None], tuple[str, str]] = {}

    def read(self, data: bytes, final: bool, account: Account) -> int:
        """Add every whole record at the front of the data to the account.

        Returns:
            the number of their bytes.
        """
        start = 0
        for break_ in (_LAST_BREAKS if final else _BREAKS).finditer(data):
            stop = break_.start()
            if break_.lastindex is None:  # a header before the previous record has ended
                if HEADER.match(data, stop + 1):
                    _skip_unended(data, start, stop, account)
                    start = stop + 1
                continue
            header = HEADER.match(data, start, stop) or _skip_garbage(data, start, stop, account)
            if header is not None and stop - header.start() > MAX_RECORD_BYTES:
                account.reject("too_long")
            elif header is not None:
                self._read_record(header, data, stop, account)
            start = break_.end()
        if final and not data[start:].strip(_BLANK):
            return len(data)
        if len(data) - start > MAX_RECORD_BYTES:
            return _skip_endless(data, start, account)
        return start

    def _read_record(
        self, header: re.Match[bytes], data: bytes, end: int, account: Account
    ) -> None:
        number, raw_job, minute, second, zone = header.groups()
        try:
            time_s = self._dates.at(minute, second, zone)
        except (ValueError, OverflowError):
            account.reject("date")
            return
        account.at(header.start(), time_s)
        names = self._names
        if number == _SUBMIT:
            place = _PLACE.match(data, header.end(), end)
            account.submitted(time_s, names.submitted_raw(raw_job, place[1] if place else None))
            return
        job = names.of_raw(raw_job)
        if number in _IGNORED:
            if number == _JOB_AD and account.is_open(job):
                try:
                    _apply_job_ad(time_s, job, data, header.end(), end, account)
                except AmbiguousError:
                    account.reject("ambiguous")
                    return
            account.ignore(_IGNORED[number])
        elif number in _SIMPLE_KINDS:
            account.add(time_s, _SIMPLE_KINDS[number], job)
        elif number == _EXECUTE:
            cpus = _CPUS.search(data, header.end(), end)
            machine, slot = self._place(data, header.end(), end)
            account.started(time_s, job, machine, max(1, int(cpus[1])) if cpus else 1, slot)
        else:
            self._add_event(int(number), time_s, job, data[header.end() : end], account)
        if number in _ENDINGS and names.wants_endings:
            names.ended(job)

    def _add_event(
        self, number: int, time_s: float, job: str, body: bytes, account: Account
    ) -> None:
        if number not in meaning.JOB_EVENTS:
            account.ignore(meaning.ignored_name(number))
        elif number in meaning.LEAVING_REASONS:
            why = _HOLD_REASON.search(body) if number == meaning.HELD else None
            words = why[1].decode("utf-8", "replace") if why else ""
            account.left_queue(
                time_s, job, meaning.LEAVING_REASONS[number], meaning.hold_reason(words)
            )
        elif number == meaning.RECONNECT_FAILED:
            account.not_reconnected(time_s, job)
        else:
            failed = number == meaning.EXECUTABLE_ERROR or meaning.FAILED_EXEC.encode() in body
            account.lost(time_s, job, meaning.loss_reason(failed))

    def _place(self, data: bytes, body: int, end: int) -> tuple[str, str]:
        """Return the machine of a 001, and the slot on it (empty if the record names none)."""
        match = _PLACE.match(data, body, end)
        key = (match[1], match[2]) if match else (b"", None)
        place = self._places.get(key)
        if place is None:
            address, slot = (word.decode("utf-8", "replace") if word else "" for word in key)
            place = machine_of_run(slot, address), slot_of(slot.strip())
            if sum(map(len, filter(None, key))) > _MAX_PLACE_BYTES:
                return place
            if len(self._places) >= _MAX_NAMES:
                self._places.clear()
            self._places[key] = place
        return place


def _skip_unended(data: bytes, start: int, stop: int, account: Account) -> None:
    """Count data before a header that is not a complete record."""
    if HEADER.match(data, start, stop):
        account.reject("cut_short")
    elif data[start:stop].strip(_BLANK):
        account.reject("garbage")


def _skip_garbage(data: bytes, start: int, end: int, account: Account) -> re.Match[bytes] | None:
    """Count invalid data up to a header further on the line, and return that header."""
    header = HEADER.search(data, start, end)
    if data[start : header.start() if header else end].strip(_BLANK):
        account.reject("garbage")
    return header


def _skip_endless(data: bytes, start: int, account: Account) -> int:
    """Reject data that is too long for a record; return where the next record may begin."""
    account.reject("garbage")
    header = HEADER.search(data, start + 1)
    return header.start() if header else len(data)


def _apply_job_ad(
    time_s: float, job: str, data: bytes, body: int, end: int, account: Account
) -> None:
    trigger = _TRIGGER.search(data, body, end)
    number = int(trigger[1]) if trigger else -1
    if number == meaning.EXECUTE:
        host = _REMOTE_HOST.search(data, body, end)
        if host is not None and host[1]:
            name = host[1].decode("utf-8", "replace")
            account.set_machine(time_s, job, machine_of_slot(name), slot_of(name))
    elif number == meaning.SUBMIT:
        facts: dict[str, str] = {}
        for name, value in _SPEC_ATTRIBUTE.findall(data, body, end):
            fact = value.decode("utf-8", "replace")
            if facts.setdefault(name.decode(), fact) != fact:
                raise AmbiguousError
        account.set_spec(time_s, job, job_spec(facts))
    elif number == meaning.EVICTED:
        code = _VACATE_CODE.search(data, body, end)
        if code is not None:
            account.set_cause(time_s, job, int(code[1]))
