"""A start from a journal of which something is missing, wrong or of a time that cannot be."""

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from outrider.engine.ingest.set_aside import IMPLAUSIBLE_TIME, TimeLimits
from outrider.journal import Entry
from outrider.model.events import SUBMITTED, TICK
from outrider.model.jobs import JobSpec
from outrider.service.core.core import Core
from outrider.service.host.wall_clock import WallClock
from outrider.service.journal.recording import Recording
from outrider.service.journal.restart import bring_up, replay_inputs
from tests.fixtures.cores import T, core_of, run_of, tell
from tests.service.running.test_failing_repairs import journalled

NOW_S = 1_800_000_000.0


def make() -> Core:
    return core_of("log", policies={"fifo": {}})


def lived(folder: Path, runs: int = 3, from_s: float = T) -> Recording:
    """The state directory of a daemon that saw so many runs and wrote no snapshot."""
    recording, core = Recording(folder), make()
    for n in range(runs):
        journalled(recording, core, run_of(str(n), from_s + 10 * n), from_s + 10 * n + 8)
    asyncio.run(recording.settle())
    return recording


@pytest.mark.parametrize(
    ("damage", "cursors"),
    [
        ("UPDATE cursors SET cursor = '{'", {}),
        ("""UPDATE meta SET value = '[1]' WHERE key = 'records:log'""", {"log": 7}),
    ],
)
def test_a_place_that_cannot_be_read_is_told_and_the_state_is_whole(
    tmp_path: Path, damage: str, cursors: dict[str, Any]
) -> None:
    recording = lived(tmp_path)
    asyncio.run(recording.submit(Entry(cursors={"log": 7})))
    asyncio.run(recording.settle())
    with sqlite3.connect(recording.path) as journal:
        assert journal.execute(damage).rowcount == 1
    core, found, notes = bring_up(make, recording)
    recording.close()
    assert any(note.startswith("log: read as on a first start: ") for note in notes), notes
    assert (found, core.accounting.completed) == (cursors, 3)


def test_that_older_inputs_were_pruned_is_told_where_the_state_is_made_of_the_rest(
    tmp_path: Path,
) -> None:
    recording = lived(tmp_path, runs=4)
    assert asyncio.run(recording.snapshot(bring_up(make, recording)[0]))
    asyncio.run(recording.retention.prune(T + 15, T + 1e6))
    [snapshot] = recording.snapshots.paths()
    snapshot.unlink()
    core, _, notes = bring_up(make, recording)
    recording.close()
    [note] = notes
    assert note.startswith("no snapshot could be used: the state was rebuilt from the journal, ")
    assert "whose inputs up to number " in note
    assert note.endswith("are known again once their source reports them")
    assert 0 < core.accounting.completed < 4


def test_a_snapshot_without_a_time_is_tried_like_the_others_and_does_not_fit(
    tmp_path: Path,
) -> None:
    recording = lived(tmp_path, from_s=NOW_S - 1_000)
    recording.snapshots.save(recording.last_seq, {"another": "release"})
    core, _, notes = bring_up(make, recording, clock=WallClock(lambda: NOW_S))
    recording.close()
    assert core.accounting.completed == 3
    assert any("does not fit this Outrider and its configuration" in note for note in notes)


def test_what_is_dated_wrongly_is_set_aside_anew_when_it_is_fed_again_and_recorded_then() -> None:
    rows: list[Any] = [
        (n, "log", (at_s, SUBMITTED, f"{n}.0", JobSpec()))
        for n, at_s in enumerate((T, T + 10 * 365 * 86_400.0, T + 20), 1)
    ]
    rows.append((4, "log", (T + 60, TICK, "log", None)))
    believing, core = make(), make()
    assert replay_inputs(believing, rows) == 4
    assert replay_inputs(core, rows, TimeLimits(0.0, T + 86_400.0)) == 4
    assert believing.merger.newly_set_aside == []
    [aside] = core.merger.newly_set_aside
    assert (aside.reason, aside.event[2]) == (IMPLAUSIBLE_TIME, "2.0")
    assert len(core.site.jobs) == 2
    tell(core, "log", [], T + 100)
    assert not core.decision_log.replaying
