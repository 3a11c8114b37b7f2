"""Adapter contract tests, and tests of this adapter's own behaviour."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from outrider_csv_watch import CsvWatch, CsvWatchSettings, read_row

from outrider.api import Batch
from outrider.testing import AdapterConformance, AdapterHarness

JOB = "{at}.0,submitted,{job},\n{at}.5,started,{job},lab-1\n{at}.9,completed,{job},\n"


class CsvHarness(AdapterHarness):
    within_s = 5.0
    quiet_within_s = 0.5

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "events.csv"
        self.jobs = 0

    def settings(self) -> dict[str, Any]:
        return {"path": str(self.path), "poll_s": 0.02}

    def adapter(self) -> CsvWatch:
        return CsvWatch("csv", CsvWatchSettings(**self.settings()))

    def append(self) -> int:
        self.jobs += 1
        with self.path.open("a") as file:
            file.write(JOB.format(at=1000 + self.jobs, job=self.jobs))
        return 3

    def take_away(self) -> None:
        self.path.rename(self.path.with_suffix(".away"))

    def bring_back(self) -> None:
        self.path.with_suffix(".away").rename(self.path)

    def close(self) -> None:
        self.folder.cleanup()


class TestCsvWatch(AdapterConformance):
    def harness(self) -> AdapterHarness:
        return CsvHarness()


def first_batch(text: str) -> Batch:
    async def listen() -> Batch:
        async with harness.adapter() as adapter:
            return await anext(adapter.batches(None))

    harness = CsvHarness()
    harness.path.write_text(text)
    try:
        return asyncio.run(listen())
    finally:
        harness.close()


def test_a_half_line_waits_for_its_rest() -> None:
    batch = first_batch("1,submitted,7,\n2,start")
    assert [event[2] for event in batch.events] == ["7"]
    assert batch.cursor == len("1,submitted,7,\n")


def test_a_row_that_cannot_be_read_is_counted_and_passed_over() -> None:
    batch = first_batch("soon,submitted,7,\n1,exploded,7,\n2,submitted,8,\n")
    assert batch.rejected == {"row": 2}
    assert [event[2] for event in batch.events] == ["8"]


def test_a_row_needs_all_its_columns() -> None:
    assert read_row("1,submitted,7") is None
