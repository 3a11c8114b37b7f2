"""A source's state as users see it: up or down, age of its input, cause."""

from typing import Any

from outrider.api import Batch
from outrider.service.core.source_state import (
    HANGS_AFTER_S,
    LATE_S,
    MAX_COUNTED,
    SourceState,
    add_bounded,
)
from tests.fixtures.clocks import SetClock

STALE_AFTER_S = 60.0


def told(source: SourceState) -> tuple[bool, float, str]:
    return source.up, source.age_s, source.down_because


def batch(**told: Any) -> Batch:
    return Batch(events=[], cursor=None, **told)


def opened(clock: SetClock) -> SourceState:
    return SourceState("log", "logtail", False, 0.0, clock)


def test_a_source_that_never_gives_anything_is_down_and_says_since_when() -> None:
    source = opened(clock := SetClock(1_000.0))
    source.note_awaited(True)
    assert source.is_opening
    clock.now_s += HANGS_AFTER_S
    assert (source.is_opening, source.hangs) == (True, False)
    clock.now_s += 5.0
    assert told(source) == (False, 20.0, "no sign of life yet, for 20 s")
    assert (source.is_opening, source.hangs) == (False, True)


def test_what_a_source_gave_and_is_not_taken_in_yet_is_no_silence_of_the_source() -> None:
    source = opened(clock := SetClock(1_000.0))
    source.note_awaited(True)
    clock.now_s += 40.0
    source.note_awaited(False)
    assert source.down_because == "its last batch waits to be taken in"
    assert not source.hangs


def test_the_age_is_what_the_source_says_until_it_hangs_and_grows_from_then_on() -> None:
    source = opened(clock := SetClock(1_000.0))
    source.note_batch(batch(age_s=3.0), STALE_AFTER_S)
    source.note_awaited(True)
    clock.now_s += HANGS_AFTER_S
    assert told(source) == (True, 3.0, "")
    clock.now_s += 5.0
    assert told(source) == (True, 23.0, ""), "it hangs, but what it told is not stale"
    assert source.hangs
    clock.now_s += 37.0
    assert told(source) == (True, 60.0, "")
    clock.now_s += 1.0
    assert told(source) == (False, 61.0, "no sign of life for 58 s")


def test_a_source_that_lives_but_tells_old_things_is_down_for_their_age() -> None:
    source = opened(clock := SetClock(1_000.0))
    source.note_batch(batch(age_s=90.0), STALE_AFTER_S)
    clock.now_s += 10.0
    assert told(source) == (False, 90.0, "its newest information is 90 s old")


def test_a_lost_source_ages_at_once_says_its_problem_and_is_up_again_with_its_next_batch() -> None:
    source = opened(clock := SetClock(1_000.0))
    source.note_batch(batch(age_s=1.0, note="reads 2 logs"), STALE_AFTER_S)
    source.lose("permission denied")
    clock.now_s += 4.0
    assert told(source) == (False, 5.0, "permission denied")
    assert (source.is_open, source.is_opening, source.note) == (False, False, "permission denied")
    source.note_batch(batch(age_s=2.0, note="reads 2 logs"), STALE_AFTER_S)
    assert told(source) == (True, 2.0, "")
    assert source.note == "reads 2 logs"
    source.note_batch(batch(problem="1 of 2 logs is missing"), STALE_AFTER_S)
    assert told(source) == (False, 0.0, "1 of 2 logs is missing")
    assert source.is_open


def test_a_log_that_nobody_writes_is_silent_once_that_is_longer_than_input_may_be_old() -> None:
    source = opened(SetClock(1_000.0))
    source.note_batch(batch(written_s={"a": 100.0, "b": 139.5, "c": 140.0}), STALE_AFTER_S)
    assert source.silent(200.0) == {"a": 100.0, "b": 139.5}


def test_reasons_without_end_are_counted_together_and_those_known_by_then_by_name() -> None:
    source = opened(SetClock(1_000.0))
    add_bounded(source.rejected, {f"word {n}": 1 for n in range(MAX_COUNTED + 3)})
    add_bounded(source.rejected, {"word 0": 4, "one more": 5})
    assert source.rejected["word 0"] == 5
    assert source.rejected["other"] == 8
    assert len(source.rejected) == MAX_COUNTED + 1


def gap_of(source: SourceState, known_until_s: float | None = None) -> tuple[float | None, str]:
    """Return since when a source has no data, and why; fails if it has."""
    gap = source.gap(known_until_s)
    assert gap is not None
    return gap.since_s, gap.why


def test_a_source_without_data_says_since_when_by_the_wall() -> None:
    clock, wall = SetClock(1_000.0), SetClock(1_800_000_000.0)
    source = SourceState("log", "logtail", False, 0.0, clock, wall)
    assert gap_of(source) == (None, "its last batch waits to be taken in")
    source.note_batch(batch(), STALE_AFTER_S)
    assert source.gap(None) is None
    for one in (clock, wall):
        one.now_s += 100.0
    source.note_batch(batch(age_s=100.0, note="no answer"), STALE_AFTER_S)
    assert gap_of(source) == (1_800_000_000.0, "no answer"), "not since its last sign of life"
    source.note_batch(batch(), STALE_AFTER_S)
    assert source.gap(None) is None
    source.lose("permission denied")
    assert gap_of(source) == (1_800_000_100.0, "permission denied")


def test_a_problem_of_a_source_that_answers_is_no_gap_until_its_data_grow_old() -> None:
    source = opened(SetClock(1_000.0))
    source.note_batch(batch(problem="no negotiator runs"), STALE_AFTER_S)
    assert source.gap(None) is None
    source.note_batch(batch(problem="the log is missing", age_s=LATE_S + 1.0), STALE_AFTER_S)
    assert gap_of(source)[1] == "the log is missing"


def test_waiting_for_the_first_answer_is_no_answer() -> None:
    source = opened(SetClock(1_000.0))
    source.note_batch(batch(age_s=4.0), STALE_AFTER_S)
    assert gap_of(source) == (None, "it has not answered yet")


def test_after_a_restart_data_end_where_those_of_the_journal_end() -> None:
    clock, wall = SetClock(1_000.0), SetClock(2_000.0)
    source = SourceState("log", "logtail", False, 0.0, clock, wall)
    assert gap_of(source, 1_500.0)[0] == 1_500.0
    wall.now_s += 1_000.0
    assert gap_of(source, 2_900.0)[0] == 2_000.0, "another source moves the site's clock"
    after = SourceState("log", "logtail", False, 0.0, clock, wall)
    source.note_batch(batch(), STALE_AFTER_S)
    after.succeed(source)
    assert gap_of(after, 100.0)[0] == 3_000.0, "a reload forgets nothing"
