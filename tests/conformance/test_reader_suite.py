"""Tests of the reader suite: it passes a sound reader and catches every breach of contract."""

import re
from collections import Counter
from typing import Any

import pytest

from outrider.api import JobSpec, LogReader, NamedEvent, ReaderOptions, Reading, events
from outrider.testing import NotConforming, check_reader

LOG = b"100 submit 17\n101 submit 18\n105 start 17 pc-4\n110 mail 17\n120 done 17\n"


class Sound(LogReader):
    """Reader of one event per line, which remembers the jobs it has read."""

    name = "sound"
    description = "an event a line"
    api_version = 1

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self.heard: list[str] = []

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        return re.match(rb"\d+ (submit|start|done) ", head) is not None

    def read(self, data: bytes, final: bool = False) -> Reading:
        end = self.end_of(data)
        reading = Reading([], end, 0, data.count(b"\n", 0, end), {}, Counter())
        for line in data[:end].split(b"\n")[:-1]:
            self.count(line, reading)
        if len(data) - end > 1 << 20:
            reading.consumed, reading.records = len(data), reading.records + 1
            reading.rejected["endless"] = 1
        return reading

    def end_of(self, data: bytes) -> int:
        return data.rfind(b"\n") + 1

    def count(self, line: bytes, reading: Reading) -> None:
        reading.records += 1
        try:
            event = self.event_of(line.decode())
        except (ValueError, KeyError):
            reading.rejected["garbage"] = reading.rejected.get("garbage", 0) + 1
            return
        if event is None:
            reading.ignored["mail"] = reading.ignored.get("mail", 0) + 1
        else:
            reading.events.append(event)

    def event_of(self, line: str) -> NamedEvent | None:
        time, what, job, *more = line.split()
        if what == "submit":
            self.heard.append(job)
        kinds = {"submit": events.SUBMITTED, "start": events.STARTED, "done": events.COMPLETED}
        if what == "mail":
            return None
        extra = {"submit": JobSpec(), "start": (*more, 1), "done": None}[what]
        if what == "start" and len(more) != 1:
            raise ValueError("no machine")
        return self.time_of(time), kinds[what], self.name_of(job), extra

    def time_of(self, time: str) -> float:
        if not 0 < float(time) < 1e11:
            raise ValueError("no time")
        return float(time)

    def name_of(self, job: str) -> str:
        return job if job in self.heard else f"unknown-{job}"

    def save(self) -> Any:
        return self.heard

    def restore(self, saved: Any) -> None:
        self.heard = saved

    inherit = restore


class TakesHalfALine(Sound):
    def end_of(self, data: bytes) -> int:
        return len(data)

    def read(self, data: bytes, final: bool = False) -> Reading:
        reading = super().read(data + b"\n")
        reading.consumed, reading.lines = len(data), data.count(b"\n")
        return reading


class ForgetsOverARestart(Sound):
    def restore(self, saved: Any) -> None:
        self.heard = []


class SavesWhatIsNoData(Sound):
    def save(self) -> Any:
        return iter(self.heard)


class ForgetsOverARotation(Sound):
    def inherit(self, saved: Any) -> None:
        """Inherit nothing, against the contract."""


class DropsGarbage(Sound):
    def count(self, line: bytes, reading: Reading) -> None:
        super().count(line, reading)
        reading.records -= sum(reading.rejected.values())
        reading.rejected.clear()


class BeginsAnewAfterGarbage(Sound):
    def count(self, line: bytes, reading: Reading) -> None:
        if b"\x00" in line:
            self.heard.clear()
        super().count(line, reading)


class RaisesOnGarbage(Sound):
    def count(self, line: bytes, reading: Reading) -> None:
        line.decode()
        super().count(line, reading)


class BelievesAnyTime(Sound):
    def time_of(self, time: str) -> float:
        return float(time)


class KeepsEverythingItCannotRead(Sound):
    def read(self, data: bytes, final: bool = False) -> Reading:
        return super().read(data[: data.rfind(b"\n") + 1])


class CountsNoMail(Sound):
    def count(self, line: bytes, reading: Reading) -> None:
        super().count(line, reading)
        reading.ignored.clear()


class NamesAllAlike(Sound):
    def name_of(self, job: str) -> str:
        return "17"


class TakesEverythingForItsOwn(Sound):
    @classmethod
    def recognises(cls, head: bytes) -> bool:
        return True


class GoesOverHalfARecordAgain(Sound):
    def read(self, data: bytes, final: bool = False) -> Reading:
        reading = super().read(data)
        for n in range(reading.consumed, len(data), 1024):
            data[n:].count(b"nowhere")
        return reading


def test_a_sound_reader_passes_everything() -> None:
    answers = check_reader(Sound, LOG, 2)
    assert set(answers.values()) == {"passed"}
    assert len(answers) == 10


def test_a_test_that_does_not_apply_is_reported() -> None:
    answers = check_reader(ForgetsOverARotation, LOG, 2, rotates=False)
    result = answers["test_a_log_that_was_rotated_tells_of_the_same_jobs"]
    assert result == "does not apply: files of this format are not continued in others"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (TakesHalfALine, "however_the_log_grows: NotConforming: 69 looks, the first at byte 1"),
        (ForgetsOverARestart, "over_restarts: .* event 3 is .*'unknown-17'"),
        (SavesWhatIsNoData, "save.. returned .* which is not plain data"),
        (ForgetsOverARotation, "rotated after byte 14: missing completed of 17, started of 17"),
        (DropsGarbage, "it was not counted as rejected"),
        (BeginsAnewAfterGarbage, "after byte 14: event 3 is .*'unknown-17'"),
        (RaisesOnGarbage, "UnicodeDecodeError"),
        (BelievesAnyTime, "the time must be a finite number of seconds"),
        (KeepsEverythingItCannotRead, "nothing was consumed of 4194304 bytes"),
        (CountsNoMail, "5 records, of which 0 ignored and 0 rejected, with 4 events"),
        (NamesAllAlike, "1 names of jobs in a sample with 2"),
        (TakesEverythingForItsOwn, "recognises.. accepts b'' as a log"),
        (GoesOverHalfARecordAgain, "4 times as many bytes of a line took"),
    ],
)
def test_a_broken_reader_gets_its_breach_reported(kind: type[LogReader], message: str) -> None:
    with pytest.raises(NotConforming, match=message):
        check_reader(kind, LOG, 2)
