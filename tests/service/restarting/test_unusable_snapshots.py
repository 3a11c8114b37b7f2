"""No snapshot that can be used is no reason not to start: the journal is the truth."""

import asyncio
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.journal import SnapshotStore
from outrider.service.core.core import Core
from outrider.service.host.wall_clock import WallClock
from outrider.service.journal.recording import Recording
from outrider.service.journal.restart import StartProgress, StartStoppedError, bring_up
from tests.fixtures.cores import T, core_of, packed, run_of, tell
from tests.service.running.test_failing_repairs import journalled

POLICIES: dict[str, Any] = {"bandit": {}, "survival": {}, "random_match": {}}


def make() -> Core:
    return core_of("log", policies=POLICIES)


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def of_a_newer_format(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8:12] = struct.pack(">I", 99)
    path.write_bytes(data)


def replaced(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """A valid snapshot, but of another state."""

    def damage(path: Path) -> None:
        store = SnapshotStore(path.parent)
        snapshot = store.load_latest()
        assert snapshot is not None
        store.save(snapshot.seq, change(snapshot.state))

    return damage


def without_a_policys_key(state: Any) -> Any:
    for _, runner in state["engine"]["runners"]:
        runner.clear()
    return state


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a bit flipped": (flipped, "damaged snapshot"),
    "cut short": (cut_short, "damaged snapshot"),
    "empty": (empty, "damaged snapshot"),
    "of a newer format": (of_a_newer_format, "newer than this Outrider's"),
    "of an older release": (replaced(lambda s: s | {"version": 1}), "state version 1"),
    "of a newer release": (replaced(lambda s: s | {"version": 99}), "state version 99"),
    "without a part": (replaced(lambda s: {"version": s["version"]}), "KeyError: 'merger'"),
    "no state at all": (replaced(lambda s: [1, 2]), "AttributeError"),
    "a policy's part is gone": (replaced(without_a_policys_key), "KeyError"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_state_is_made_anew_of_the_journal(tmp_path: Path, damage: str) -> None:
    recording = Recording(tmp_path)
    core, spared = make(), make()
    batches = [[event for job in range(n, n + 5) for event in run_of(str(job), T + 10 * job)]
               for n in range(0, 40, 5)]  # fmt: skip
    for n, events in enumerate(batches):
        journalled(recording, core, events, T + 50 * n + 60)
        tell(spared, "log", events, T + 50 * n + 60)
        if n == 4:
            assert asyncio.run(recording.snapshot(core))
    asyncio.run(recording.settle())
    (path,) = recording.snapshots.paths()
    harm, why = DAMAGES[damage]
    harm(path)
    again, cursors, notes = bring_up(make, recording)
    recording.close()
    assert cursors == {"log": 1}
    assert why in notes[0]
    assert notes[1].startswith("no snapshot could be used: the state was rebuilt from the journal")
    assert packed(again.save()["engine"]) == packed(spared.save()["engine"])
    assert again.accounting.completed == 40


def test_an_older_snapshot_that_fits_is_taken_before_the_journal_alone(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    core = make()
    for n in range(3):
        journalled(recording, core, run_of(str(n), T + 10 * n), T + 10 * n + 8)
        assert asyncio.run(recording.snapshot(core))
    _, middle, newest = recording.snapshots.paths()
    replaced(lambda s: s | {"version": 99})(newest)
    again, _, notes = bring_up(make, recording)
    recording.close()
    assert again.accounting.completed == 3
    assert len(notes) == 1
    assert 0 < recording.fed < recording.last_seq - int(middle.stem.removeprefix("snapshot-")) + 1


def test_a_snapshot_of_a_time_to_come_is_the_last_choice(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    core = make()
    day_s, begin_s = 86_400.0, time.time()
    for n, at_s in enumerate((begin_s, begin_s + 3_650 * day_s, begin_s + 3_651 * day_s)):
        journalled(recording, core, run_of(str(n), at_s), at_s + 8)
        assert asyncio.run(recording.snapshot(core))

    def fed(paths_gone: int) -> int:
        for path in recording.snapshots.paths()[:paths_gone]:
            path.unlink()
        again, _, notes = bring_up(make, recording, clock=WallClock(lambda: begin_s + 60))
        assert (again.accounting.completed, notes) == (3, [])
        return recording.fed

    behind_two, behind_none = fed(0), fed(1)
    recording.close()
    assert behind_two > 0, "begun before the clock leapt, and what came after is put right"
    assert behind_none == 0, "none is of a time before: the newest is better than none"


def test_history_is_read_again_where_only_an_unusable_snapshot_held_it(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    core = make()
    tell(core, "log", run_of("1", T), T + 10)
    core.begin()
    assert asyncio.run(recording.snapshot(core))
    is_new = [recording.is_new]
    flipped(recording.snapshots.paths()[0])
    _, cursors, _ = bring_up(make, recording)
    recording.close()
    is_new.append(recording.is_new)
    assert is_new == [False, True]
    assert cursors == {}


def test_a_daemon_without_a_snapshot_yet_has_nothing_to_tell_of_it(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    journalled(recording, make(), run_of("1", T), T + 10)
    asyncio.run(recording.settle())
    _, _, notes = bring_up(make, recording)
    recording.close()
    assert notes == []


def test_the_start_tells_how_far_it_is_and_stops_when_it_is_told_to(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    core = make()
    for n in range(100):
        journalled(recording, core, run_of(str(n), T + 10 * n), T + 10 * n + 8)
    asyncio.run(recording.settle())
    progress = StartProgress()
    seen: list[tuple[int, float]] = []
    move = progress.move

    def stop_later() -> None:
        seen.append((progress.fed, progress.ratio))
        if progress.fed > 200:
            progress.stop()
        move()

    progress.move = stop_later  # type: ignore[method-assign]
    with pytest.raises(StartStoppedError):
        bring_up(make, recording, progress=progress)
    recording.close()
    assert [fed for fed, _ in seen if fed] == [64, 128, 192, 256]
    assert [ratio for _, ratio in seen] == sorted(ratio for _, ratio in seen)
    assert "still starting: replaying the journal, 256 inputs so far" in progress.sentence
