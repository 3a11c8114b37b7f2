"""Flipped bits in the journal: the daemon starts and records nevertheless."""

import asyncio
import random
import shutil
import sqlite3
from pathlib import Path

import pytest

from outrider.journal import verify
from outrider.model.errors import LedgerError
from outrider.service.core.core import Core
from outrider.service.journal.recording import Recording
from outrider.service.journal.restart import bring_up
from tests.fixtures.cores import T, core_of, run_of
from tests.service.running.test_failing_repairs import journalled

FLIPS = 120
HEADER = 100
"""Bytes at the beginning of a file that identify its format and version."""


def make() -> Core:
    return core_of("log", policies={"bandit": {}})


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory without a snapshot: everything comes from the journal."""
    state = tmp_path / "sound"
    recording = Recording(state)
    core = make()
    for n in range(120):
        journalled(recording, core, run_of(str(n), T + 10 * n), T + 10 * n + 8)
    recording.close()
    return state


def started(state: Path) -> list[str]:
    """Start, record one more batch, stop. Returns the notes."""
    recording = Recording(state)
    try:
        core, _, notes = bring_up(make, recording)
        last = recording.last_seq
        journalled(recording, core, run_of("new", T + 9_000), T + 9_100)
        asyncio.run(recording.settle())
        assert recording.last_seq > last
        return notes
    finally:
        recording.close()


@pytest.mark.parametrize("first_page", [False, True])
def test_a_flipped_bit_never_keeps_the_daemon_from_starting(
    state: Path, tmp_path: Path, first_page: bool
) -> None:
    whole = (state / "journal.sqlite").read_bytes()
    chance = random.Random(7)
    reported = 0
    for n in range(FLIPS // 2):
        damaged = bytearray(whole)
        at = chance.randrange(HEADER, 4096 if first_page else len(whole))
        damaged[at] ^= 1 << chance.randrange(8)
        folder = tmp_path / str(n)
        folder.mkdir()
        (folder / "journal.sqlite").write_bytes(damaged)
        reported += bool(started(folder))
        shutil.rmtree(folder)
    assert reported > 5


def test_a_journal_whose_schema_is_garbled_is_put_aside_and_another_begun(state: Path) -> None:
    path = state / "journal.sqlite"
    damaged = path.read_bytes().replace(b"CREATE TABLE counter", b"CREATE TABLE c\xf5unter")
    path.write_bytes(damaged)
    (note,) = started(state)
    assert "the journal was damaged and could not be opened" in note
    (aside,) = state.glob("damaged-*Z-journal.sqlite")
    assert aside.read_bytes() == damaged
    assert verify(path).ok
    assert verify(path).rows["inputs"] == 4
    assert started(state) == []


def test_a_counter_behind_the_last_row_is_mended_and_nothing_is_put_aside(state: Path) -> None:
    connection = sqlite3.connect(state / "journal.sqlite")
    connection.execute("UPDATE counter SET last_seq = last_seq - 64")
    connection.commit()
    connection.close()
    assert "its counter was behind its last row" in started(state)[0]
    assert not list(state.glob("damaged-*"))
    assert started(state) == []
    assert verify(state / "journal.sqlite").ok


def test_a_file_that_is_not_ours_stays_where_it_is(state: Path) -> None:
    path = state / "journal.sqlite"
    damaged = bytearray(path.read_bytes())
    damaged[68:72] = b"SOME"
    path.write_bytes(damaged)
    with pytest.raises(LedgerError, match="no journal of Outrider"):
        Recording(state)
    assert path.read_bytes() == damaged


def test_an_input_that_cannot_be_read_is_left_out_and_told(state: Path) -> None:
    path = state / "journal.sqlite"
    damaged = path.read_bytes()
    assert b"logA" in damaged or b"submitted" in damaged
    path.write_bytes(damaged.replace(b"submitted", b"submytted", 1))
    recording = Recording(state)
    core, cursors, notes = bring_up(make, recording)
    asyncio.run(recording.settle())
    recording.close()
    assert any("1 inputs of the journal cannot be read and were left out" in n for n in notes)
    assert cursors == {"log": 1}
    assert (
        core.accounting.completed == 120
    )  # a start contains the same facts of a job as its submission
