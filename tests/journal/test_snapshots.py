"""Snapshots: whole or passed over, with a word about it."""

import os
from pathlib import Path

import pytest

from outrider.journal import SnapshotStore
from outrider.journal.snapshots import FORMAT_VERSION, read_snapshot
from outrider.model.errors import LedgerError

STATE = {"jobs": [1, 2.5, None, float("inf")], "policy": {"arms": {"lab": -0.0}}, "raw": b"\x00"}


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    """A store with three snapshots."""
    store = SnapshotStore(tmp_path / "snapshots")
    for seq in (10, 20, 30):
        store.save(seq, STATE | {"seq": seq})
    return store


def test_the_newest_snapshot_is_loaded_as_it_was_saved(store: SnapshotStore) -> None:
    assert store.load_latest() == (30, STATE | {"seq": 30})
    assert store.notes == []


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert SnapshotStore(tmp_path / "none").load_latest() is None


def test_only_the_newest_are_kept(store: SnapshotStore) -> None:
    store.save(40, STATE)
    store.save(50, STATE)
    assert store.oldest_seq() == 30
    assert sorted(path.name for path in store.folder.iterdir()) == [
        f"snapshot-{seq:020d}.bin" for seq in (30, 40, 50)
    ]


@pytest.mark.parametrize("place", [0, 8, 12, 20, 60, -1])
def test_a_damaged_snapshot_falls_back_to_the_one_before(store: SnapshotStore, place: int) -> None:
    newest = store.paths()[-1]
    data = bytearray(newest.read_bytes())
    data[place] ^= 0x10
    newest.write_bytes(data)
    assert store.load_latest() == (20, STATE | {"seq": 20})
    assert len(store.notes) == 1
    assert str(newest) in store.notes[0]
    assert "falling back" in store.notes[0]


def test_a_truncated_snapshot_falls_back_wherever_it_was_cut(store: SnapshotStore) -> None:
    newest = store.paths()[-1]
    size = newest.stat().st_size
    for length in (size - 1, size // 2, 30, 0):
        os.truncate(newest, length)
        assert store.load_latest() == (20, STATE | {"seq": 20})
    assert len(store.notes) == 4


def test_when_all_are_damaged_there_is_none_and_each_is_named(store: SnapshotStore) -> None:
    for path in store.paths():
        path.write_bytes(b"OUTRIDER, or so it says")
    assert store.load_latest() is None
    assert len(store.notes) == 3


def test_a_snapshot_of_a_newer_format_is_passed_over(store: SnapshotStore) -> None:
    newest = store.paths()[-1]
    data = bytearray(newest.read_bytes())
    data[8:12] = (FORMAT_VERSION + 1).to_bytes(4, "big")
    newest.write_bytes(data)
    assert store.load_latest() == (20, STATE | {"seq": 20})
    assert f"format {FORMAT_VERSION + 1} is newer" in store.notes[0]


def test_a_snapshot_beyond_the_end_of_the_journal_is_passed_over(store: SnapshotStore) -> None:
    assert store.load_latest(not_after=29) == (20, STATE | {"seq": 20})
    assert "the journal ends at 29" in store.notes[0]
    store.save(25, STATE)
    assert store.load_latest() == (25, STATE)


def test_a_state_that_cannot_be_saved_says_so_and_changes_nothing(store: SnapshotStore) -> None:
    with pytest.raises(LedgerError, match=r"the state cannot be saved: .*object"):
        store.save(40, {"bad": object()})
    assert store.load_latest() == (30, STATE | {"seq": 30})


DAY_S = 86_400.0


def test_snapshots_on_both_sides_of_a_leap_stay_for_a_week(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    store.save(1, {"n": 1}, 0.0)
    store.save(2, {"n": 2}, 300.0)
    for n in range(20):
        store.save(3 + n, {"n": 3 + n}, 3_650 * DAY_S + 300.0 * n)
    assert [read_snapshot(path).seq for path in store.paths()] == [2, 3, 20, 21, 22]
    assert [(leap.before.name[-6:], leap.after.name[-6:]) for leap in store.leaps()] == [
        ("02.bin", "03.bin")
    ]
    assert store.dated_until(300.0)
    assert not store.dated_until(299.0)
    store.save(30, {}, 3_658 * DAY_S)  # that stood for a week: it was right
    assert [read_snapshot(path).seq for path in store.paths()] == [21, 22, 30]


def test_a_leap_counts_from_its_first_snapshot_on_and_not_while_a_clock_is_back(
    tmp_path: Path,
) -> None:
    store = SnapshotStore(tmp_path)
    store.save(1, {}, 300.0)
    store.save(2, {}, 10 * DAY_S)
    assert [leap.before_s for leap in store.leaps()] == [300.0], "the newest is just behind it"
    store.save(3, {}, 600.0)  # put right
    assert store.leaps() == [], "what is dated after the newest was dated wrongly"
    store.save(4, {}, 17 * DAY_S - 1.0)
    assert [leap.before_s for leap in store.leaps()] == [300.0, 600.0]


def test_many_leaps_do_not_fill_the_disk(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path)
    for n in range(50):
        store.save(n, {}, n * 8_000.0)
    assert len(store.paths()) <= 6
