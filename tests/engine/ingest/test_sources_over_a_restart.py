"""State of several sources over a restart: how far each was seen, and its waiting events."""

from math import inf

from msgspec import msgpack

from outrider.engine.ingest.event_merger import ArrivalQueue, TickSchedule, Watermark
from outrider.model.events import NamedEvent


def kept(state: object) -> dict[str, object]:
    """Return the state in the form of a snapshot."""
    back: dict[str, object] = msgpack.decode(msgpack.encode(state))
    return back


def test_the_clock_waits_for_the_source_that_was_seen_least_and_for_one_not_seen_yet() -> None:
    watermark = Watermark(["log", "meters", "machines"])
    watermark.note("log", 100.0)
    watermark.note("meters", 70.0)
    assert watermark.time_s == -inf
    watermark.note("machines", 90.0)
    watermark.note("meters", 60.0)  # what was seen stays seen
    assert watermark.time_s == 70.0
    watermark.excuse("meters")
    assert watermark.time_s == 90.0
    watermark.note("meters", 80.0)
    assert watermark.time_s == 80.0


def test_after_a_restart_sources_are_seen_as_far_as_before_and_none_that_is_gone() -> None:
    before = Watermark(["log", "meters", "machines"])
    before.note("log", 100.0)
    before.note("meters", 70.0)
    after = Watermark(["log", "machines", "new"])
    after.restore(kept(before.save()))  # type: ignore[arg-type]
    assert after.time_s == -inf, "neither machines nor the new one has been seen"
    after.note("machines", 110.0)
    after.note("new", 120.0)
    assert after.time_s == 100.0, "the log has been seen up to there, and meters are gone"


def test_what_waits_comes_after_a_restart_in_the_order_it_had() -> None:
    """The order is by time, then by source as configured, then by arrival."""

    def event(time_s: float, name: str) -> NamedEvent:
        return (time_s, 0, name, None)

    before = ArrivalQueue(["log", "meters"])
    before.add("meters", [event(5.0, "m1"), event(4.0, "m2")])
    before.add("log", [event(5.0, "l1"), event(5.0, "l2")])
    after = ArrivalQueue(["log", "meters"])
    after.restore(kept(before.save()), lambda row: (row[0], row[1], row[2], row[3]))
    after.add("log", [event(5.0, "l3")])
    order = [entry[4][2] for entry in sorted(after.heap, key=lambda entry: entry[:3])]
    assert order == ["m2", "l1", "l2", "l3", "m1"]


def test_a_tick_serves_all_that_were_wanted_by_then_and_the_later_ones_outlive_a_restart() -> None:
    before = TickSchedule()
    for time_s in (30.0, 10.0, 20.0, 20.5):
        before.add(time_s)
    assert before.next_s(5.0) == 10.0
    before.take(20.0)
    before.is_due = True
    after = TickSchedule()
    after.restore(kept(before.save()))
    assert after.next_s(21.0) == 21.0
    after.take(20.25)
    assert after.next_s(20.25) == 20.5
    after.take(30.0)
    assert after.next_s(30.0) == inf
