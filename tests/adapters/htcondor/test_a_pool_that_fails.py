"""Tests of outages, stale ads, slow answers and duplicates: reported, and harmless."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from outrider.engine.ingest.event_merger import EventMerger
from outrider.model.machines import MachineSpec, Resources
from outrider_adapters.htcondor import WatchSettings
from outrider_adapters.mock_condor.faults import Faults
from outrider_adapters.polling import PATIENCE_S
from tests.adapters.htcondor.watched_pool import (
    WatchedPool,
    WatchingAdapter,
    kinds,
    named,
    spec_of,
)

Asks = Callable[..., Sequence[Any]]


def test_an_outage_only_makes_old_and_nothing_is_lost(site: WatchedPool) -> None:
    site.look()
    job = site.submit(run_s=30)
    site.fails(outage_ratio=1.0)
    site.pool.owner_came("m1")
    away = [site.look(10) for _ in range(3)]
    assert [batch.age_s for batch in away] == [10.0, 20.0, 30.0], "since the last answer"
    for batch in away:
        assert "the schedd schedd@mock.local does not answer" in batch.note
        assert "the collector does not answer" in batch.note
    reported = [event[2] for batch in away for event in batch.events]
    assert job in reported, "the event log needs nobody who answers"

    site.fails()
    batch = site.look(10)
    assert (batch.age_s, batch.note) == (0.0, "")
    assert [event[2] for event in batch.events if event[2] == "m1"] == ["m1"]


def test_machines_do_not_leave_because_nobody_answers(site: WatchedPool) -> None:
    site.look()
    site.fails(outage_ratio=1.0)
    for _ in range(5):
        assert site.reported(1000) == []


def test_a_submission_during_an_outage_is_completed_when_it_is_over(site: WatchedPool) -> None:
    site.look()
    site.fails(outage_ratio=1.0)
    job = site.submit(run_s=5000, request_cpus="2")
    log = site.log.read_text().split("...\n")
    site.log.write_text("".join(f"{one}...\n" for one in log if one and one[:3] != "028"))
    reported = site.reported(10)
    assert [(kind, extra.user) for kind, name, extra in reported if name == job] == [
        ("submitted", "")
    ]
    site.fails()
    changed = [extra for kind, name, extra in site.reported(10) if (kind, name) == ("changed", job)]
    resources = Resources(memory_mib=128.0)
    asked = {"user": "alice", "vo": "physics", "cpus": 2, "resources": resources}
    assert changed == [asked]


def test_stale_ads_are_as_old_as_they_are(tmp_path: Path) -> None:
    settings = WatchSettings(ads_fresh_s=400)
    site = WatchedPool(tmp_path, faults=Faults(stale_s=1000), settings=settings)
    assert site.look(900).age_s == 0.0, "no ads yet: nothing is known to be old"
    batch = site.look(600)
    assert 1000 <= batch.age_s <= 1300
    assert "the newest slot ad is" in batch.note
    site.close()


def test_doubles_of_ads_and_records_change_nothing(tmp_path: Path) -> None:
    def life(folder: Path, faults: Faults) -> tuple[list[object], int]:
        folder.mkdir()
        site = WatchedPool(folder, faults=faults)
        merger = EventMerger(["pool"], lambda name: MachineSpec(inferred=True))
        out: list[object] = []
        for step in range(12):
            if step < 4:
                site.submit(run_s=35)
            if step in (3, 6):
                (site.pool.owner_came if step == 3 else site.pool.owner_went)("m1")
            batch = site.look(20)
            merger.arrive("pool", batch.events)
            out += list(merger.seen("pool", batch.seen_until_s or 0.0))
        site.close()
        return out, merger.duplicates["pool"]

    once, no_doubles = life(tmp_path / "once", Faults())
    twice, doubles = life(
        tmp_path / "twice", Faults(duplicate_ad_ratio=1, duplicate_record_ratio=1)
    )
    assert no_doubles == 0
    assert doubles > 10
    assert twice == once


async def test_while_an_answer_is_long_in_coming_there_are_signs_of_life(site: WatchedPool) -> None:
    site.fails(answer_delay_s=0.8 * PATIENCE_S)  # of three calls a look
    adapter = WatchingAdapter(site, threading.Lock())
    ages = []
    async with adapter:
        source = adapter.batches(None)
        async for batch in source:
            ages.append(batch.age_s)
            if batch.events:
                break
            assert "the batch system has not answered for" in batch.note
        await source.aclose()
        site.fails()
    assert len(ages) >= 3
    assert 0 < ages[0] < ages[1], "it must grow old meanwhile"


def test_the_queue_alone_may_be_away(site: WatchedPool) -> None:
    site.look()
    schedd = site.point.schedd
    site.watch = site.new_watch()
    site.watch.start(None)
    query = schedd.query

    def silent(*_: object, **__: object) -> list[object]:
        raise site.calls.failure("Failed to fetch ads from schedd")

    schedd.query = silent  # type: ignore[method-assign]
    site.pool.owner_came("m1")
    batch = site.look(10)
    assert (
        batch.note
        == "the schedd schedd@mock.local does not answer: Failed to fetch ads from schedd"
    )
    assert kinds([(str(e[1]), e[2], e[3]) for e in batch.events], "m1"), "slots are told"
    schedd.query = query  # type: ignore[method-assign]
    assert site.look(10).note == ""


def noted(query: Asks, asked: list[object]) -> Asks:
    """Return the same query, that also notes what it was asked."""

    def ask(*words: Any) -> Sequence[Any]:
        asked.append(words)
        return query(*words)

    return ask


def test_what_a_silent_queue_did_not_say_of_a_job_is_told_at_the_next_look(tmp_path: Path) -> None:
    """The history is read before the next whole look, and before a start to report."""
    settings = WatchSettings(left_after_s=0, snapshot_s=3600, repair_after_s=5)
    site = WatchedPool(tmp_path, settings=settings)
    site.look()
    schedd = site.point.schedd
    query = schedd.query

    def silent(*_: object, **__: object) -> list[object]:
        raise site.calls.failure("Failed to fetch ads from schedd")

    job = site.submit(run_s=1000, user="bob")
    records = site.log.read_text().split("...\n")  # no 028, no 001
    site.log.write_text("".join(f"{one}...\n" for one in records if one[:3] == "000"))
    schedd.query = silent  # type: ignore[method-assign]
    assert spec_of(site.reported(), job).user == ""
    site.pool.advance(site.pool.now_s + 60)
    site.log.write_text("".join(f"{one}...\n" for one in records if one[:3] == "000"))
    schedd.query = query  # type: ignore[method-assign]
    reported = [named(event) for event in site.look().events if event[2] == job]
    assert [kind for kind, _, _ in reported] == ["changed", "started"]
    assert reported[0][2].items() >= {"user": "bob", "vo": "physics"}.items()
    asked: list[object] = []
    schedd.query = noted(query, asked)  # type: ignore[method-assign]
    site.look(10)
    assert asked == [], "nothing is missing any more"
    site.close()


def test_a_job_that_nobody_can_describe_any_more_does_not_have_the_queue_read_at_every_look(
    tmp_path: Path,
) -> None:
    """Test a job that left while the schedd was silent, with the history refused."""
    settings = WatchSettings(left_after_s=0, snapshot_s=3600, repair_after_s=5)
    site = WatchedPool(tmp_path, settings=settings)
    site.look()
    schedd, asked = site.point.schedd, list[object]()
    query = schedd.query

    def silent(*words: object, **__: object) -> list[object]:
        asked.append(words)
        raise site.calls.failure("not now")

    schedd.query = schedd.history = silent  # type: ignore[method-assign]
    job = site.submit(run_s=1000)
    records = site.log.read_text().split("...\n")
    site.log.write_text("".join(f"{one}...\n" for one in records if one[:3] == "000"))
    assert spec_of(site.reported(), job).user == ""
    site.act("remove", job)
    site.log.write_text("".join(f"{one}...\n" for one in records if one[:3] == "000"))
    schedd.query = noted(query, asked)  # type: ignore[method-assign]
    site.look(60)
    asked.clear()
    for _ in range(3):
        site.look(60)
    assert asked == []
    site.close()


def test_a_refused_history_takes_nothing_away_from_what_the_queue_says_of_others(
    tmp_path: Path,
) -> None:
    """Return a pool where short jobs have left already, and the history is unreadable."""
    settings = WatchSettings(left_after_s=0, snapshot_s=3600, repair_after_s=5)
    site = WatchedPool(tmp_path, settings=settings)
    site.look()
    schedd, asked = site.point.schedd, list[object]()
    query = schedd.query

    def refused(*_: object, **__: object) -> list[object]:
        raise site.calls.failure("no")

    schedd.history = refused  # type: ignore[method-assign]
    short = site.submit(run_s=1, user="carol")
    site.pool.advance(site.pool.now_s + 60)
    long = site.submit(run_s=1000, user="bob")
    records = site.log.read_text().split("...\n")
    site.log.write_text("".join(f"{one}...\n" for one in records if one and one[:3] != "028"))
    reported = site.reported()
    assert (spec_of(reported, short).user, spec_of(reported, long).user) == ("", "bob")
    schedd.query = noted(query, asked)  # type: ignore[method-assign]
    site.look(60)
    assert asked == [], "the whole queue is not read for it"
    site.close()
