"""The conformance suite of log readers."""

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
# Feeding a log reader as `logtail` and ``outrider ingest`` do, and adding up what it told.


class Told:
    """All that a reader told of a log.

    Attributes:
        events: in the order in which they were told.
        records, lines, consumed: summed up.
        ignored, rejected: summed up, by kind and reason.
    """

    def __init__(self) -> None:
        self.events: list[NamedEvent] = []
        self.records = self.lines = self.consumed = 0
        self.ignored: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()

    def add(self, reading: Reading, fed_n: int, where: str) -> None:
        """Add a reading of so many bytes. Raises `NotConforming` if it cannot be true."""
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
        """Everything but the events."""
        return {
            "records": self.records,
            "lines": self.lines,
            "consumed": self.consumed,
            "ignored": dict(+self.ignored),
            "rejected": dict(+self.rejected),
        }


def read_whole(kind: type[LogReader], options: ReaderOptions, log: bytes) -> Told:
    """What a new reader tells of a log that it is fed at once, as a file that is complete."""
    return read_pieces(kind, options, log, ())


def read_pieces(
    kind: type[LogReader],
    options: ReaderOptions,
    log: bytes,
    cuts: Iterable[int],
    restart: bool = False,
) -> Told:
    """What a reader tells of a log that grows, ends at each cut for a while, and is then complete.

    Args:
        kind: the reader.
        options: its options.
        log: all of it.
        cuts: how many bytes there are at each look, ascending.
        restart: a new reader goes on from what the last one saved, after each look.
    """
    told = Told()
    reader = kind(options)
    for end in (*cuts, None):
        data = log[told.consumed : end]
        where = f"fed bytes {told.consumed} to {len(log) if end is None else end}"
        told.add(reader.read(data, final=end is None), len(data), where)
        if restart:
            saved = plain(reader.save())
            reader = kind(options)
            reader.restore(saved)
    return told


def boundaries(kind: type[LogReader], options: ReaderOptions, log: bytes) -> list[int]:
    """Return where records end: what a reader consumes as the log grows line by line."""
    ends, consumed, reader, at = [0], 0, kind(options), 0
    while (at := log.find(b"\n", at) + 1) > 0:
        consumed += reader.read(log[consumed:at]).consumed
        if consumed == at:
            ends.append(at)
    return ends


def plain(saved: Any) -> Any:
    """What `save` gave, after the journal has kept it. Raises `NotConforming`."""
    try:
        return msgspec.json.decode(msgspec.json.encode(saved))
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise NotConforming(f"save() gave {saved!r}, which is no plain data: {error}") from error


def difference(got: list[NamedEvent], wanted: list[NamedEvent]) -> str:
    """Return where two lists of events differ first, in words."""
    for number, (one, other) in enumerate(zip(got, wanted, strict=False), 1):
        if one != other:
            return f"event {number} is {one!r} instead of {other!r}"
    return f"{len(got)} events came instead of {len(wanted)}"


# -- readers ---------------------------------------------------------------------------------------

_STEPS: Final = (1, 2, 7, 64, 1000)
_MOST_LOOKS: Final = 3_000
_DAMAGED: Final = 300
_ODD: Final = (b"\n", b"-", b"0", b"nan", b"1e999", b"9" * 25, b"9" * 400)
"""What is put between bytes of the sample, beside chance and pieces of it."""
_TIMED_BYTES: Final = 200_000
_ENDLESS_BYTES: Final = 4 << 20
_GROWTH: Final = 4
_MOST_TIMES: Final = 3.0 * _GROWTH
"""Twelve times as long for four times as much is no longer a matter of chance: a reader that goes
over everything again takes sixteen."""


class ReaderConformance:
    """The contract of every log reader. Subclass it, name it ``Test...``, and give it a sample.

    Class variables:
        reader: the class of the reader.
        log: a few kilobytes of a log, whole records, of every kind that you know.
        jobs: how many jobs it tells of.
        options: what the file does not say of itself.
        garbage: a line that is no record.
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
        """Class variables are there and of the right kind; it knows its own log, and no other."""
        check_identity(self.reader, READERS)
        expect(isinstance(self.reader.in_order, bool), "in_order must be True or False")
        expect(self.reader.recognises(self.log), "recognises() does not know the sample")
        for other in (b"", b"\n", b"Dear Sir or Madam,\n", self.garbage):
            expect(not self.reader.recognises(other), f"recognises() takes {other!r} for a log")

    def test_events_have_the_shapes_of_the_contract(self) -> None:
        """Names as strings, finite times, extras of the right type; as many jobs as there are."""
        told = self._whole()
        expect(bool(told.events), "no event came of the sample")
        sees = {KIND_NUMBERS[name] for name in KIND_NAMES} - {TICK}
        for event in told.events:
            check_event(event, sees)
        names = {event[2] for event in told.events if event[1] in JOB_KINDS}
        expect(
            len(names) == self.jobs,
            f"{len(names)} names of jobs in a sample that tells of {self.jobs}: {sorted(names)}",
        )

    def test_every_record_is_accounted_for(self) -> None:
        """A record is an event or more, ignored, or rejected; and all bytes are consumed."""
        told = self._whole()
        _check_sums(told)
        expect(
            told.consumed == len(self.log),
            f"{told.consumed} of {len(self.log)} bytes were consumed of a log of whole records",
        )
        lines = self.log.count(b"\n")
        expect(told.lines == lines, f"{told.lines} lines were counted, not {lines}")

    def test_it_tells_the_same_however_the_log_grows(self) -> None:
        """Records split anywhere, half ones at the end of what there is: nothing is lost."""
        self._compare(restart=False)

    def test_it_tells_the_same_over_restarts(self) -> None:
        """After each look a new reader goes on from what `save` gave."""
        self._compare(restart=True)

    def test_a_log_that_was_rotated_tells_of_the_same_jobs(self) -> None:
        """A new file after any record: a new reader that inherits names jobs as the first did."""
        if not self.rotates:
            raise SkipTest("files of this format are not continued in others")
        wanted = {event[1:3] for event in self._whole().events}
        for end in boundaries(self.reader, self.options, self.log)[1:-1]:
            first, second = self.reader(self.options), self.reader(self.options)
            told = Told()
            told.add(first.read(self.log[:end], final=True), end, "first file")
            second.inherit(plain(first.save()))
            rest = self.log[end:]
            told.add(second.read(rest, final=True), len(rest), "second file")
            missing = wanted - {event[1:3] for event in told.events}
            expect(
                not missing,
                f"rotated after byte {end}: not told of {_words(missing)}",
            )

    def test_garbage_is_counted_and_costs_no_record(self) -> None:
        """A line that is no record, after any record: it is rejected, and the events stay."""
        whole = self._whole()
        for end in boundaries(self.reader, self.options, self.log):
            damaged = self.log[:end] + self.garbage + self.log[end:]
            told = read_whole(self.reader, self.options, damaged)
            where = f"with {self.garbage!r} after byte {end}"
            expect(told.events == whole.events, f"{where}: {difference(told.events, whole.events)}")
            expect(
                told.rejected.total() > whole.rejected.total(),
                f"{where}: it was not counted as rejected: {dict(told.rejected)}",
            )
            _check_sums(told)

    def test_whatever_it_is_fed_it_never_raises(self) -> None:
        """The sample, damaged by chance in many ways, in one piece and in two."""
        rng = random.Random(20061107)
        for _ in range(_DAMAGED):
            damaged = _damaged(self.log, rng)
            self.reader.recognises(damaged)
            cut = rng.randrange(len(damaged) + 1)
            told = read_pieces(self.reader, self.options, damaged, (cut,), restart=True)
            _check_sums(told)
            for event in told.events:
                check_event(event, {event[1]})

    def test_what_never_becomes_a_record_is_let_go(self) -> None:
        """Megabytes without a line end: they must not be fed again for ever."""
        data = b"x" * _ENDLESS_BYTES
        consumed = self.reader(self.options).read(data).consumed
        expect(consumed > 0, f"nothing was consumed of {_ENDLESS_BYTES} bytes without a line end")

    def test_it_takes_time_in_proportion(self) -> None:
        """Four times as much takes four times as long, of records and of half a record."""
        times = -(-_TIMED_BYTES // len(self.log))
        for what, unit in (
            ("records", self.log * times),
            ("bytes of a line", self.log.replace(b"\n", b" ") * times),
        ):
            short_s = self._seconds(unit)
            most_s = max(_MOST_TIMES * short_s, 0.05)
            long_s = self._seconds(unit * _GROWTH, enough_s=most_s)
            expect(
                long_s < most_s,
                f"{_GROWTH} times as many {what} took {long_s / short_s:.1f} times as long "
                f"({short_s:.3f} s for {len(unit)} bytes)",
            )

    def _whole(self) -> Told:
        return read_whole(self.reader, self.options, self.log)

    def _compare(self, *, restart: bool) -> None:
        whole = self._whole()
        for cuts in _looks(len(self.log)):
            told = read_pieces(self.reader, self.options, self.log, cuts, restart)
            where = f"{len(cuts)} looks, the first at byte {cuts[0]}"
            expect(told.events == whole.events, f"{where}: {difference(told.events, whole.events)}")
            expect(told.sums() == whole.sums(), f"{where}: {told.sums()} instead of {whole.sums()}")

    def _seconds(self, data: bytes, enough_s: float = 0.0) -> float:
        """Least processor time of three readings, or the first that is below `enough_s`."""
        least_s = inf
        for _ in range(3):
            reader = self.reader(self.options)
            began_s = time.process_time()
            reader.read(data)
            least_s = min(least_s, time.process_time() - began_s)
            if least_s < enough_s:
                break
        return max(least_s, 1e-6)


def check_reader(reader: type[LogReader], log: bytes, jobs: int, **more: Any) -> dict[str, str]:
    """Run all tests on a reader.

    Args:
        reader: the class.
        log: a sample.
        jobs: how many jobs it tells of.
        **more: the other class variables of `ReaderConformance`.

    Returns:
        for each test, ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every test that failed, and why.
    """
    given = {"reader": reader, "log": log, "jobs": jobs, **more}
    return run_all_tests(type("Given", (ReaderConformance,), given)())


def _looks(size: int) -> Iterator[tuple[int, ...]]:
    """At which bytes a growing log is looked at: in steps of several sizes, and at each one cut."""
    for step in _STEPS:
        if step < size <= step * _MOST_LOOKS:
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


def _check_sums(told: Told) -> None:
    aside = told.ignored.total() + told.rejected.total()
    expect(
        aside <= told.records <= aside + len(told.events),
        f"{told.records} records, of which {told.ignored.total()} ignored and "
        f"{told.rejected.total()} rejected, with {len(told.events)} events: some are not accounted "
        "for",
    )


def _words(missing: set[tuple[int, str]]) -> str:
    return ", ".join(sorted(f"{KIND_NAMES[kind]} of {subject}" for kind, subject in missing))
