"""Conformance suite of log readers: the tests that every reader has to pass."""

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from math import inf
from typing import Any, ClassVar, Final
from unittest import SkipTest

import msgspec

from outrider.api.reader import LogReader, ReaderOptions, Reading
from outrider.model.events import JOB_KINDS, KIND_NAMES, KIND_NUMBERS, TICK, NamedEvent
from outrider.plugins.finding import READERS
from outrider.testing.conformance import NotConforming, check_identity, expect, run_all_tests
from outrider.testing.harness import check_event

# -- reading ---------------------------------------------------------------------------------------
# Feed a log reader as `logtail` and ``outrider ingest`` do, and sum up its readings.


class Total:
    """Sum of all readings of a log.

    Attributes:
        events: in the order of the readings.
        records, lines, consumed: summed up.
        ignored, rejected: summed up, by kind and reason.
    """

    def __init__(self) -> None:
        self.events: list[NamedEvent] = []
        self.records = self.lines = self.consumed = 0
        self.ignored: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()

    def add(self, reading: Reading, fed_n: int, where: str) -> None:
        """Add a reading of `fed_n` bytes. Raises `NotConforming` if it is inconsistent."""
        expect(
            0 <= reading.consumed <= fed_n,
            f"{where}: consumed {reading.consumed} of {fed_n} bytes",
        )
        self.events += reading.events
        self.records += reading.records
        self.lines += reading.lines
        self.consumed += reading.consumed
        self.ignored.update(reading.ignored)
        self.rejected.update(reading.rejected)

    def sums(self) -> dict[str, Any]:
        """Return everything but the events."""
        return {
            "records": self.records,
            "lines": self.lines,
            "consumed": self.consumed,
            "ignored": dict(+self.ignored),
            "rejected": dict(+self.rejected),
        }


def read_whole(kind: type[LogReader], options: ReaderOptions, log: bytes) -> Total:
    """Return the readings of a new reader that is fed a complete log in one piece."""
    return read_pieces(kind, options, log, ())


def read_pieces(
    kind: type[LogReader],
    options: ReaderOptions,
    log: bytes,
    cuts: Iterable[int],
    restart: bool = False,
) -> Total:
    """Return the readings of a log that grows to each cut in turn, and is then complete.

    Args:
        kind: the reader.
        options: its options.
        log: all of it.
        cuts: number of bytes at each look, ascending.
        restart: continue with a new reader from the state that the last one saved, after each look.
    """
    total = Total()
    reader = kind(options)
    for end in (*cuts, None):
        data = log[total.consumed : end]
        where = f"fed bytes {total.consumed} to {len(log) if end is None else end}"
        total.add(reader.read(data, final=end is None), len(data), where)
        if restart:
            saved = plain(reader.save())
            reader = kind(options)
            reader.restore(saved)
    return total


def boundaries(kind: type[LogReader], options: ReaderOptions, log: bytes) -> list[int]:
    """Return where records end: the bytes that a reader consumes as the log grows line by line."""
    ends, consumed, reader, at = [0], 0, kind(options), 0
    while (at := log.find(b"\n", at) + 1) > 0:
        consumed += reader.read(log[consumed:at]).consumed
        if consumed == at:
            ends.append(at)
    return ends


def plain(saved: Any) -> Any:
    """Return the result of `save`, as stored in the journal. Raises `NotConforming`."""
    try:
        return msgspec.json.decode(msgspec.json.encode(saved))
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise NotConforming(
            f"save() returned {saved!r}, which is not plain data: {error}"
        ) from error


def difference(got: list[NamedEvent], wanted: list[NamedEvent]) -> str:
    """Return where two lists of events differ first, in words."""
    for number, (one, other) in enumerate(zip(got, wanted, strict=False), 1):
        if one != other:
            return f"event {number} is {one!r} instead of {other!r}"
    return f"{len(got)} events came instead of {len(wanted)}"


# -- readers ---------------------------------------------------------------------------------------

_STEPS: Final = (1, 2, 7, 64, 1000)
_MAX_LOOKS: Final = 3_000
_DAMAGED: Final = 300
_ODD: Final = (b"\n", b"-", b"0", b"nan", b"1e999", b"9" * 25, b"9" * 400)
"""Odd bytes that are inserted into the sample, besides random bytes and pieces of it."""
_TIMED_BYTES: Final = 200_000
_ENDLESS_BYTES: Final = 4 << 20
_GROWTH: Final = 4
_MAX_TIMES: Final = 3.0 * _GROWTH
"""Limit of the growth of time, for four times as much data. A reader that reads everything again
takes sixteen times as long.
"""


class ReaderConformance:
    """Contract of every log reader, as tests. Subclass it, name it ``Test...``, and add a sample.

    Class variables:
        reader: the class of the reader.
        log: a few kilobytes of a log, whole records, of every known kind.
        jobs: its number of jobs.
        options: facts that the file does not contain.
        garbage: a line that is not a record.
        rotates: False for files that are never continued in another one, such as a dump with a
            header.
    """

    reader: ClassVar[type[LogReader]]
    log: ClassVar[bytes]
    jobs: ClassVar[int]
    options: ClassVar[ReaderOptions] = ReaderOptions()
    garbage: ClassVar[bytes] = b"\x00\xff this is no record\n"
    rotates: ClassVar[bool] = True

    def test_it_says_what_it_is(self) -> None:
        """Class variables have the right types; the reader recognises its own log, and no other."""
        check_identity(self.reader, READERS)
        expect(isinstance(self.reader.in_order, bool), "in_order must be True or False")
        expect(self.reader.recognises(self.log), "recognises() rejects the sample")
        for other in (b"", b"\n", b"Dear Sir or Madam,\n", self.garbage):
            expect(not self.reader.recognises(other), f"recognises() accepts {other!r} as a log")

    def test_events_have_the_shapes_of_the_contract(self) -> None:
        """Names are strings, times finite, extras of the right type; the job count is right."""
        total = self._whole()
        expect(bool(total.events), "the sample yields no event")
        sees = {KIND_NUMBERS[name] for name in KIND_NAMES} - {TICK}
        for event in total.events:
            check_event(event, sees)
        names = {event[2] for event in total.events if event[1] in JOB_KINDS}
        expect(
            len(names) == self.jobs,
            f"{len(names)} names of jobs in a sample with {self.jobs}: {sorted(names)}",
        )

    def test_every_record_is_accounted_for(self) -> None:
        """Each record is an event or more, ignored, or rejected; and all bytes are consumed."""
        total = self._whole()
        _check_sums(total)
        expect(
            total.consumed == len(self.log),
            f"{total.consumed} of {len(self.log)} bytes were consumed of a log of whole records",
        )
        lines = self.log.count(b"\n")
        expect(total.lines == lines, f"{total.lines} lines were counted, not {lines}")

    def test_it_tells_the_same_however_the_log_grows(self) -> None:
        """Records may be split anywhere, also at the end of the data: nothing is lost."""
        self._compare(restart=False)

    def test_it_tells_the_same_over_restarts(self) -> None:
        """Let a new reader continue from the result of `save`, after each look."""
        self._compare(restart=True)

    def test_a_log_that_was_rotated_tells_of_the_same_jobs(self) -> None:
        """Names stay the same in a new file, for a new reader that inherits, after any record."""
        if not self.rotates:
            raise SkipTest("files of this format are not continued in others")
        wanted = {event[1:3] for event in self._whole().events}
        for end in boundaries(self.reader, self.options, self.log)[1:-1]:
            first, second = self.reader(self.options), self.reader(self.options)
            total = Total()
            total.add(first.read(self.log[:end], final=True), end, "first file")
            second.inherit(plain(first.save()))
            rest = self.log[end:]
            total.add(second.read(rest, final=True), len(rest), "second file")
            missing = wanted - {event[1:3] for event in total.events}
            expect(
                not missing,
                f"rotated after byte {end}: missing {_words(missing)}",
            )

    def test_garbage_is_counted_and_costs_no_record(self) -> None:
        """A line of garbage after any record is rejected, and the events stay the same."""
        whole = self._whole()
        for end in boundaries(self.reader, self.options, self.log):
            damaged = self.log[:end] + self.garbage + self.log[end:]
            total = read_whole(self.reader, self.options, damaged)
            where = f"with {self.garbage!r} after byte {end}"
            expect(
                total.events == whole.events, f"{where}: {difference(total.events, whole.events)}"
            )
            expect(
                total.rejected.total() > whole.rejected.total(),
                f"{where}: it was not counted as rejected: {dict(total.rejected)}",
            )
            _check_sums(total)

    def test_whatever_it_is_fed_it_never_raises(self) -> None:
        """Damage the sample at random in many ways, and read it in one piece and in two."""
        rng = random.Random(20061107)
        for _ in range(_DAMAGED):
            damaged = _damaged(self.log, rng)
            self.reader.recognises(damaged)
            cut = rng.randrange(len(damaged) + 1)
            total = read_pieces(self.reader, self.options, damaged, (cut,), restart=True)
            _check_sums(total)
            for event in total.events:
                check_event(event, {event[1]})

    def test_what_never_becomes_a_record_is_let_go(self) -> None:
        """Consume megabytes without a line end, so that they are not fed again indefinitely."""
        data = b"x" * _ENDLESS_BYTES
        consumed = self.reader(self.options).read(data).consumed
        expect(consumed > 0, f"nothing was consumed of {_ENDLESS_BYTES} bytes without a line end")

    def test_it_takes_time_in_proportion(self) -> None:
        """Take four times as long for four times as much, of records and of half a record."""
        times = -(-_TIMED_BYTES // len(self.log))
        for kind_of_data, unit in (
            ("records", self.log * times),
            ("bytes of a line", self.log.replace(b"\n", b" ") * times),
        ):
            short_s = self._seconds(unit)
            max_s = max(_MAX_TIMES * short_s, 0.05)
            long_s = self._seconds(unit * _GROWTH, enough_s=max_s)
            expect(
                long_s < max_s,
                f"{_GROWTH} times as many {kind_of_data} took {long_s / short_s:.1f} times as long "
                f"({short_s:.3f} s for {len(unit)} bytes)",
            )

    def _whole(self) -> Total:
        return read_whole(self.reader, self.options, self.log)

    def _compare(self, *, restart: bool) -> None:
        whole = self._whole()
        for cuts in _looks(len(self.log)):
            total = read_pieces(self.reader, self.options, self.log, cuts, restart)
            where = f"{len(cuts)} looks, the first at byte {cuts[0]}"
            expect(
                total.events == whole.events, f"{where}: {difference(total.events, whole.events)}"
            )
            expect(
                total.sums() == whole.sums(), f"{where}: {total.sums()} instead of {whole.sums()}"
            )

    def _seconds(self, data: bytes, enough_s: float = 0.0) -> float:
        """Return the minimum processor time of three readings, or the first below `enough_s`."""
        min_s = inf
        for _ in range(3):
            reader = self.reader(self.options)
            began_s = time.process_time()
            reader.read(data)
            min_s = min(min_s, time.process_time() - began_s)
            if min_s < enough_s:
                break
        return max(min_s, 1e-6)


def check_reader(reader: type[LogReader], log: bytes, jobs: int, **more: Any) -> dict[str, str]:
    """Run all tests on a reader.

    Args:
        reader: the class.
        log: a sample.
        jobs: its number of jobs.
        **more: the other class variables of `ReaderConformance`.

    Returns:
        for each test, ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every failed test, with the cause.
    """
    given = {"reader": reader, "log": log, "jobs": jobs, **more}
    return run_all_tests(type("Given", (ReaderConformance,), given)())


def _looks(size: int) -> Iterator[tuple[int, ...]]:
    """Yield the sizes at which a growing log is read: in steps of several sizes, or one cut."""
    for step in _STEPS:
        if step < size <= step * _MAX_LOOKS:
            yield tuple(range(step, size, step))
    spread = max(1, size // 200)
    for cut in range(1, size, spread):
        yield (cut,)


def _damaged(log: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randrange(1, 6)):
        at, size = rng.randrange(len(log) + 1), rng.randrange(40)
        put = rng.choice((rng.randbytes(rng.randrange(20)), log[:size], *_ODD))
        log = log[:at] + put + log[at + size :]
    return log


def _check_sums(total: Total) -> None:
    not_events = total.ignored.total() + total.rejected.total()
    expect(
        not_events <= total.records <= not_events + len(total.events),
        f"{total.records} records, of which {total.ignored.total()} ignored and "
        f"{total.rejected.total()} rejected, with {len(total.events)} events: some are "
        "missing",
    )


def _words(missing: set[tuple[int, str]]) -> str:
    return ", ".join(sorted(f"{KIND_NAMES[kind]} of {subject}" for kind, subject in missing))
