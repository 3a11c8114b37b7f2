"""The publisher's place and counts: stored in the journal, unchanged by a restart."""

import asyncio
from pathlib import Path

from outrider.journal import Entry
from outrider.service.journal.recording import Recording
from outrider.service.mqtt import publisher
from outrider.service.mqtt.publisher import Place
from tests.fixtures.clocks import SetClock
from tests.journal.samples import numbered_entry


async def recorded(recording: Recording, *entries: Entry) -> None:
    for entry in entries:
        future = await recording.submit(entry)
        await asyncio.wrap_future(future)


async def test_the_first_time_begins_with_what_is_recorded_from_now_on(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "state")
    try:
        await recorded(recording, numbered_entry(1), numbered_entry(2))
        place = Place(recording)
        assert (place.seq, place.lost, place.behind) == (None, 0, 0)
        nothing = {"decisions": 0, "evictions": 0}
        assert place.figures() == {"published": nothing, "last_seq": 8, "behind": 0, "lost": 0}
        await place.begin()
        assert place.seq == 8
        await recorded(recording, numbered_entry(3))
        await place.begin()  # not the first time any more
        assert (place.seq, place.behind) == (8, 4)
    finally:
        recording.close(10.0)


async def test_what_was_published_and_lost_is_counted_on_after_a_restart(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "state")
    try:
        await recorded(recording, numbered_entry(1), numbered_entry(2))
        place = Place(recording)
        place.published["decisions"] += 2
        place.lost += 3
        await place.move_to(5, worth_keeping=True)
        await recorded(recording)
    finally:
        recording.close(10.0)
    again = Recording(tmp_path / "state")
    try:
        place = Place(again)
        assert place.figures() == {
            "published": {"decisions": 2, "evictions": 0}, "last_seq": 5, "behind": 3, "lost": 3,
        }  # fmt: skip
    finally:
        again.close(10.0)


async def test_where_nothing_was_published_the_place_is_kept_now_and_then(tmp_path: Path) -> None:
    """Storing the place at every poll, each 0.2 s, would fill the disk with rows."""
    every = publisher._SAVE_EVERY
    recording = Recording(tmp_path / "state")
    try:
        place = Place(recording)
        await place.move_to(10, worth_keeping=True)
        for seq in (every + 9, every + 10):
            await place.move_to(seq, worth_keeping=False)
            await recorded(recording, Entry())
            assert (place.seq, Place(recording).seq) == (seq, 10)
        await place.move_to(every + 11, worth_keeping=False)
        await recorded(recording, Entry())
        assert Place(recording).seq == every + 11
    finally:
        recording.close(10.0)


async def test_what_was_confirmed_just_before_the_broker_was_lost_is_sent_again(
    tmp_path: Path,
) -> None:
    recording, clock = Recording(tmp_path / "state"), SetClock(1_000.0)
    try:
        await recorded(recording, *map(numbered_entry, range(1, 11)))
        place = Place(recording, clock)
        await place.begin()
        await place.go_back()
        assert place.seq == 40, "there is nothing before the beginning"
        await place.move_to(5, worth_keeping=True)
        clock.now_s += publisher.DOUBT_S + 0.1
        for seq in (10, 15):
            await place.move_to(seq, worth_keeping=True)
            clock.now_s += 1.0
        await place.move_to(20, worth_keeping=False)
        place.seq = 23  # three rows of a piece that broke off
        await place.go_back()
        assert (place.seq, place.behind) == (5, 35)
        await recorded(recording, Entry())
        assert Place(recording).seq == 5, "a daemon that is stopped now sends them, too"
        await place.move_to(30, worth_keeping=True)
        clock.now_s += publisher.DOUBT_S + 0.1
        await place.go_back()
        assert place.seq == 30, "that is long enough ago"
        await recorded(recording, Entry())
        assert Place(recording).seq == 30
    finally:
        recording.close(10.0)


async def test_a_broker_lost_before_anything_was_published_changes_nothing(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "state")
    try:
        place = Place(recording)
        await place.go_back()
        assert place.seq is None
    finally:
        recording.close(10.0)
