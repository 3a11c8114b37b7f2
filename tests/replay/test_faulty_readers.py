"""Faults of log readers, which are plugins: counted, or reported with file and line."""

from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from outrider.api.reader import LogReader, Reading
from outrider.model.errors import PluginError
from outrider.model.events import COMPLETED, STARTED, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.replay import log_files
from outrider.replay.log_files import LogFile, ingest


class LineReader(LogReader):
    """Reader of lines ``JOB SUBMIT_S START_S END_S``; it fails on ``fail``."""

    name = "lines"
    description = "a job a line"
    api_version = 1

    def read(self, data: bytes, final: bool = False) -> Reading:
        lines = data.decode().splitlines(keepends=True)
        whole = lines if final else [line for line in lines if line.endswith("\n")]
        events: list[NamedEvent] = []
        for line in whole:
            job, *times = line.split()
            submit_s, start_s, end_s = map(float, times)
            events += [
                (submit_s, SUBMITTED, job, JobSpec()),
                (start_s, STARTED, job, ("m1", 1)),
                (end_s, COMPLETED, job, None),
            ]
        used = sum(len(line.encode()) for line in whole)
        return Reading(events, used, len(whole), len(whole), {}, {})


class UnmadeReader(LineReader):
    """Reader whose constructor fails."""

    def __init__(self, options: Any) -> None:
        raise LookupError("no table of fields")


def log_of(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture(autouse=True)
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the readers as plugins, with chunks of five lines."""
    kinds = {"lines": LineReader, "unmade": UnmadeReader}
    monkeypatch.setattr(log_files, "load_reader", kinds.__getitem__)
    monkeypatch.setattr(log_files, "CHUNK_BYTES", 60)


@pytest.mark.parametrize("time_s", [nan, inf, -inf])
def test_an_event_without_a_time_is_rejected_and_the_others_count(
    tmp_path: Path, time_s: float
) -> None:
    lines = [f"{job} {10 * job} {10 * job + 1} {10 * job + 2}" for job in range(1, 30)]
    lines[7] = f"8 80 {time_s} 82"
    report = ingest([LogFile(log_of(tmp_path / "log", lines), "lines")])
    assert report["rejected"] == {"time is nan or infinite": 1}
    assert report["events"] == {"submitted": 29, "started": 28, "completed": 29}
    assert report["jobs"]["completed"] == 28
    assert report["repairs"] == {"run_unseen": 1}
    assert any('"lines" made events without a time' in warning for warning in report["warnings"])


@pytest.mark.parametrize("line", [1, 2, 17, 29])
def test_a_reader_that_raises_is_named_with_file_and_line(tmp_path: Path, line: int) -> None:
    lines = [f"{job} {10 * job} {10 * job + 1} {10 * job + 2}" for job in range(1, 30)]
    lines[line - 1] = "not a job"
    path = log_of(tmp_path / "log", lines)
    with pytest.raises(PluginError) as fault:
        ingest([LogFile(path, "lines")])
    assert f'{path}, line {line}: reader "lines" fails: ValueError' in str(fault.value)


def test_a_reader_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    path = log_of(tmp_path / "log", ["1 2 3 4"])
    with pytest.raises(PluginError, match='reader "lines" fails while it is made: LookupError'):
        LogFile(path, "unmade")
