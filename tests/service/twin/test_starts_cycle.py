"""Each look at the queue stands in starts.json, and so does why there is none."""

from pathlib import Path

import numpy as np
import pytest

from outrider.journal import Entry, Journal
from outrider.service.twin import starts_file
from outrider.service.twin.starts_cycle import StartsCycle
from tests.forecast.recorded_grid import EPOCH_S, busy_weeks, journal, names, started, told_by


def waiting_until_the_end(path: Path) -> tuple[Path, float, set[str]]:
    """Return a journal that ends when many jobs wait, when that is, and which they are."""
    workload = busy_weeks(4)
    starts_s = started(workload)
    ticks = np.arange(0.0, workload.submit_s[-1], 600.0)
    waits = [(workload.submit_s <= at_s) & (starts_s > at_s) for at_s in ticks]
    most = int(np.argmax([rows.sum() for rows in waits]))
    end_s = EPOCH_S + ticks[most]
    with Journal(path) as opened:
        told = [("grid", event) for event in told_by(workload) if event[0] <= end_s]
        opened.append(Entry(inputs=told))
    return path, end_s, names(workload, waits[most])


def test_every_job_that_waits_has_an_expected_start(tmp_path: Path) -> None:
    path, now_s, waiting = waiting_until_the_end(tmp_path / "journal.sqlite")
    cycle = StartsCycle(tmp_path, path, lambda: 60.0, clock=lambda: now_s)
    cycle.look()
    told = starts_file.read(tmp_path)
    assert told is not None
    assert told.problem is None
    assert told.asked_s == now_s
    assert told.discipline == "first_fit"  # nobody recorded another
    assert told.jobs.keys() == waiting
    said = [start for start in told.jobs.values() if start is not None]
    assert said
    assert all(now_s <= one.low_s <= one.median_s <= one.high_s for one in said)
    assert told.scores["hourly"].n > 0  # of the two weeks before, asked anew


def test_why_nothing_is_said_stands_there_and_the_next_look_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    cycle = StartsCycle(tmp_path, path, lambda: 60.0)
    problem = cycle.look().problem
    assert problem is not None
    assert "does not exist yet" in problem
    path.write_bytes(b"no journal at all" * 1000)
    problem = cycle.look().problem
    assert problem is not None
    assert str(path) in problem
    path.unlink()
    journal(busy_weeks(4), path)
    assert cycle.look().problem is None


def test_a_file_that_is_none_of_ours_is_not_believed(tmp_path: Path) -> None:
    assert starts_file.read(tmp_path) is None
    (tmp_path / starts_file.STARTS_NAME).write_text('{"asked_s": "soon"}')
    with pytest.raises(ValueError, match="asked_s"):
        starts_file.read(tmp_path)
