"""The journal: one number for everything, all of an entry or nothing, and read while written."""

import random
import sqlite3
import threading
from pathlib import Path

import pytest

from outrider.engine.ingest.set_aside import SetAside
from outrider.journal import (
    AlikeDecision,
    Entry,
    Journal,
    RunRecord,
    SetAsideRecord,
    schema,
    verify,
)
from outrider.journal.connection import open_to_write
from outrider.journal.records import decode_extra
from outrider.journal.schema import VERSION
from outrider.model.errors import LedgerError
from outrider.model.events import (
    CHANGED,
    COMPLETED,
    EVICTED,
    JOINED,
    STARTED,
    SUBMITTED,
    TICK,
    NamedEvent,
)
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from tests.journal.samples import decision, entry_numbers, numbered_entry, outcome

EVENTS: list[tuple[str, NamedEvent]] = [
    ("log", (1.25, JOINED, "lab-1", MachineSpec(cluster="lab", idle_w=0.1))),
    ("log", (2.0, SUBMITTED, "1.0", JobSpec(user="ann", estimate_s=1e-9))),
    ("log", (2.5, STARTED, "1.0", ("lab-1", 2))),
    ("plugs", (2.75, CHANGED, "1.0", {"cpus": 3})),
    ("log", (3.0, EVICTED, "1.0", "owner")),
    ("log", (3.5, TICK, "log", None)),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the journal of a test is."""
    return tmp_path / "journal.sqlite"


def test_events_come_back_in_order_of_arrival(path: Path) -> None:
    with Journal(path) as journal:
        journal.append(Entry(inputs=EVENTS[:4]))
        journal.append(Entry(inputs=EVENTS[4:]))
    with Journal(path, read_only=True) as journal:
        expected = [(seq, adapter, event) for seq, (adapter, event) in enumerate(EVENTS, 1)]
        assert list(journal.inputs_after(0)) == expected
        assert list(journal.inputs_after(4)) == expected[4:]


def test_everything_draws_its_number_from_one_counter(path: Path) -> None:
    with Journal(path) as journal:
        entry = Entry(EVENTS[:2], [decision(), decision(11.0)], [outcome()], {"log": {"at": 7}})
        assert journal.append(entry) == 5
        assert journal.append(entry) == 10
        assert [seq for seq, _, _ in journal.inputs_after(0)] == [1, 2, 6, 7]
        assert [seq for seq, _ in journal.decisions()] == [3, 4, 8, 9]
        assert list(journal.outcomes()) == [(5, outcome()), (10, outcome())]
        assert (journal.last_seq(), journal.last_decision_seq()) == (10, 9)


def test_events_set_aside_draw_numbers_too_and_come_back_newest_first(path: Path) -> None:
    aside = [
        SetAsideRecord("log", 10.0 + n, "evicted", f"{n}.0", '"owner"', "after_end") for n in (1, 2)
    ]
    with Journal(path) as journal:
        entry = Entry(EVENTS[:2], [decision()], cursors={"log": 1}, set_aside=aside)
        assert journal.append(entry) == 5
        assert journal.latest_set_aside(10) == [(5, aside[1]), (4, aside[0])]
    assert verify(path).ok


def test_a_journal_from_before_events_were_set_aside_is_brought_up_to_date(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        before.setattr(schema, "VERSION", 1)
        with Journal(path) as journal:
            assert journal.last_seq() == 0
    with Journal(path) as journal:
        assert journal.latest_set_aside(1) == []
        assert journal.append(Entry(decisions=[decision()])) == 1


def test_a_journal_from_before_the_gate_was_recorded_keeps_its_decisions(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:2])
        before.setattr(schema, "VERSION", 2)
        Journal(path).close()
    connection = sqlite3.connect(path)
    connection.execute(
        "INSERT INTO decisions VALUES (1, 10.0, '1.0', NULL, 'start', 'lab-1', 1, 'best', "
        "'bandit', 'shadow', 0.9, NULL, 'full', 0.5)"
    )
    connection.execute("UPDATE counter SET last_seq = 1")
    connection.commit()
    connection.close()
    asked = decision(11.0, "2.0", gate="refused: budget")
    with Journal(path) as journal:
        assert journal.append(Entry(decisions=[asked])) == 2
        assert list(journal.decisions()) == [(1, decision(scores=None)), (2, asked)]
        assert journal.latest_decisions(1, job="1.0")[0][1].gate is None
    assert verify(path).ok


def test_decisions_come_back_as_they_were_made(path: Path) -> None:
    kept = AlikeDecision(12.0, "2.0", "defer", None, 0, "explore", "bandit", "shadow",
                         jobs=("2.0", "3.0"))  # fmt: skip
    unknown = decision(13.0, "4.0", propensity=None, scores=None, input_age_s=None)
    asked = decision(13.5, "6.0", gate="would")
    unfinite = decision(14.0, "5.0", scores={"new": float("inf")})
    with Journal(path) as journal:
        journal.append(Entry(decisions=[decision(), kept, unknown, asked, unfinite]))
        found = list(journal.decisions())
    assert found == [(1, decision()), (2, kept), (3, unknown), (4, asked), (5, unfinite)]


def test_decisions_of_a_job_include_those_it_shared(path: Path) -> None:
    shared = AlikeDecision(12.0, '1".0', "defer", None, 0, "best", "bandit", "shadow",
                           jobs=('1".0', "1.0", "12.0"))  # fmt: skip
    with Journal(path) as journal:
        journal.append(Entry(decisions=[decision(), shared, decision(13.0, "11.0")]))
        assert [seq for seq, _ in journal.decisions(job="1.0")] == [1, 2]
        assert [seq for seq, _ in journal.decisions(job='1".0')] == [2]
        assert [seq for seq, _ in journal.decisions(job="2.0")] == []
        assert [seq for seq, _ in journal.latest_decisions(1, job="1.0")] == [2]
        assert [seq for seq, _ in journal.latest_decisions(2)] == [3, 2]
        assert [seq for seq, _ in journal.decisions(after=1, limit=1)] == [2]


def test_reading_goes_on_over_many_pages(path: Path) -> None:
    with Journal(path) as journal:
        journal.append_all([numbered_entry(number, rows=10) for number in range(1000)])
        assert entry_numbers(journal) == [number for number in range(1000) for _ in range(10)]
        assert len(list(journal.decisions(limit=999))) == 999


def test_cursors_and_facts_are_replaced_by_later_ones(path: Path) -> None:
    with Journal(path) as journal:
        assert journal.cursor("log") is None
        journal.append(Entry(cursors={"log": [1, None]}, meta={"jobs_seen": 3}))
        journal.append(Entry(cursors={"log": {"offset": 9}, "plugs": "x"}, meta={"jobs_seen": 4}))
    with Journal(path, read_only=True) as journal:
        assert (journal.cursor("log"), journal.cursor("plugs")) == ({"offset": 9}, "x")
        assert (journal.meta("jobs_seen"), journal.meta("unheard", 0)) == (4, 0)


def test_an_entry_that_cannot_be_written_whole_leaves_nothing(path: Path) -> None:
    with Journal(path) as journal:
        journal.append(numbered_entry(1))
        broken = numbered_entry(2)
        broken.decisions = [decision(), decision(job="half a \ud800 pair")]
        with pytest.raises(LedgerError, match="surrogates not allowed"):
            journal.append_all([numbered_entry(3), broken])
        assert set(entry_numbers(journal)) == {1}
        assert journal.cursor("log") == 1
        assert journal.append(numbered_entry(4)) == 8


def test_a_journal_overwrites_what_is_removed_and_its_files_become_smaller_again(
    path: Path,
) -> None:
    connection = open_to_write(path)
    told = ("secure_delete", "auto_vacuum", "journal_mode", "synchronous", "journal_size_limit")
    incremental, normal = 2, 1
    assert [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in told] == [
        1, incremental, "wal", normal, 64 << 20,
    ]  # fmt: skip
    connection.close()


def test_a_journal_of_a_newer_version_is_refused(path: Path) -> None:
    Journal(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {VERSION + 6}")
    connection.close()
    for read_only in (False, True):
        with pytest.raises(LedgerError, match=f"version {VERSION + 6} .* newer .* {VERSION}"):
            Journal(path, read_only=read_only)


def test_another_programs_file_is_refused_and_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE shopping (item)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="no journal of Outrider"):
        Journal(path)
    path.write_text("dear diary, " * 100)
    with pytest.raises(LedgerError, match="not a database"):
        Journal(path)
    assert before != path.read_bytes() == b"dear diary, " * 100


def test_a_missing_journal_is_named_when_read(path: Path) -> None:
    with pytest.raises(LedgerError, match="no such journal"):
        Journal(path, read_only=True)
    with pytest.raises(LedgerError, match="directory must exist"):
        Journal(path.parent / "nowhere" / "journal.sqlite")


def test_a_failed_migration_leaves_the_version_before(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal(path) as journal:
        journal.append(numbered_entry(1))
    from outrider.journal import schema

    step = ("ALTER TABLE outcomes ADD COLUMN site TEXT", "INSERT INTO nowhere VALUES (1)")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, step))
    monkeypatch.setattr(schema, "VERSION", VERSION + 1)
    with pytest.raises(LedgerError, match="no such table: nowhere"):
        Journal(path)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:-1], step[:1]))
    connection = sqlite3.connect(path, isolation_level=None)
    assert schema.migrate(connection, path) == [VERSION + 1]
    assert schema.migrate(connection, path) == []
    columns = [row[1] for row in connection.execute("PRAGMA table_info(outcomes)")]
    connection.close()
    assert columns.count("site") == 1


def test_readers_see_whole_entries_while_a_writer_writes(path: Path) -> None:
    entries = 300
    journal = Journal(path)

    def write() -> None:
        for number in range(entries):
            journal.append(numbered_entry(number))

    thread = threading.Thread(target=write)
    with Journal(path, read_only=True) as reader:
        thread.start()
        looks = 0
        while thread.is_alive() and looks < 10_000:
            last, cursor = reader.last_seq(), reader.cursor("log")
            assert last % 4 == 0, f"half an entry was visible: last number {last}"
            assert cursor is None or cursor + 1 >= last // 4
            assert len(list(reader.inputs_after(max(0, last - 8)))) >= min(last, 8) * 3 // 4
            looks += 1
        thread.join()
        assert looks > 1
        assert entry_numbers(reader) == [number for number in range(entries) for _ in range(3)]
    journal.close()


def test_pruning_keeps_what_a_restart_needs_and_never_reuses_a_number(path: Path) -> None:
    with Journal(path) as journal:
        for number in range(10):
            journal.append(numbered_entry(number))
        assert journal.prune(5.0, oldest_snapshot_seq=8) == 6 + 5
        assert entry_numbers(journal) == [number for number in range(2, 10) for _ in range(3)]
        assert [d.time_s for _, d in journal.decisions()] == [5.0, 6.0, 7.0, 8.0, 9.0]
        assert verify(path).problems == []
        assert journal.prune(5.0, oldest_snapshot_seq=40) == 9
        assert journal.prune(100.0, oldest_snapshot_seq=40) == 20
        assert journal.cursor("log") == 9
        assert verify(path).problems == []
    with Journal(path) as journal:
        assert journal.append(numbered_entry(10)) == 44


def test_a_garbled_date_far_ahead_does_not_keep_what_is_behind_it_for_ever(path: Path) -> None:
    garbled: NamedEvent = (1e12, EVICTED, "1.0", "owner")
    with Journal(path) as journal:
        journal.append(Entry(inputs=[("log", garbled), *EVENTS]))
        assert journal.prune(1_000.0, oldest_snapshot_seq=journal.last_seq()) == len(EVENTS) + 1


def test_without_a_snapshot_no_input_is_pruned(path: Path) -> None:
    with Journal(path) as journal:
        journal.append(numbered_entry(1))
        assert journal.prune(100.0, oldest_snapshot_seq=0) == 1
        assert len(entry_numbers(journal)) == 3


def test_pruned_names_are_gone_from_the_file(path: Path) -> None:
    rng = random.Random(7)
    with Journal(path) as journal:
        spec = JobSpec(user="very-private-name")
        events = [("log", (1.0, SUBMITTED, f"{rng.random()}", spec)) for _ in range(200)]
        last = journal.append(Entry(inputs=events))
        journal.sync()
        assert b"very-private-name" in path.read_bytes()
        journal.prune(2.0, oldest_snapshot_seq=last)
    assert b"very-private-name" not in path.read_bytes()


def test_an_event_that_was_set_aside_is_kept_with_all_that_it_said(tmp_path: Path) -> None:
    started: NamedEvent = (5.0, STARTED, "1.0", ("m1", 2))
    evicted: NamedEvent = (6.0, COMPLETED, "1.0", None)
    put = [
        SetAside("log", started, "unknown_machine", "no m1"),
        SetAside("meters", evicted, "after_end", ""),
    ]
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.append(Entry(set_aside=[SetAsideRecord.of(one) for one in put]))
        (second, first) = [record for _, record in journal.latest_set_aside(5)]
    assert first.extra is not None
    assert decode_extra(STARTED, first.extra) == ("m1", 2)
    assert (first.adapter, first.time_s, first.kind, first.subject) == (
        "log",
        5.0,
        "started",
        "1.0",
    )
    assert (first.reason, first.detail) == ("unknown_machine", "no m1")
    assert (second.adapter, second.kind, second.extra) == ("meters", "completed", None)


def test_events_set_aside_for_a_reason_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    reasons = ("fault", "after_end", "fault", "fault", "after_end")
    records = [
        SetAsideRecord("log", float(n), "started", f"{n}.0", None, reason)
        for n, reason in enumerate(reasons)
    ]
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.append(Entry(set_aside=records))
        assert [seq for seq, _ in journal.set_aside_after(0, "fault")] == [1, 3, 4]
        assert [one for _, one in journal.set_aside_after(1, "fault")] == [records[2], records[3]]
        assert [seq for seq, _ in journal.set_aside_after(0, "after_end")] == [2, 5]
        assert [seq for seq, _ in journal.latest_set_aside(2)] == [5, 4]


def test_runs_are_numbered_as_they_ended_and_go_on_after_a_number(tmp_path: Path) -> None:
    runs = [
        RunRecord(f"{n}.0", "physics", "batch", "m1", 1, None, 5.0 + n, 9.0 + n, 4.0, "")
        for n in range(5)
    ]
    with Journal(tmp_path / "journal.sqlite") as journal:
        journal.append(Entry(runs=runs[:2]))
        journal.append(Entry(runs=runs[2:]))
        assert list(journal.runs()) == list(enumerate(runs, 1))
        assert list(journal.runs(after=3)) == [(4, runs[3]), (5, runs[4])]
        assert list(journal.runs(after=5)) == []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_journal_opened_in_one_thread_may_be_used_in_another(
    tmp_path: Path, read_only: bool
) -> None:
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        journal.append(numbered_entry(1))
    found: list[list[int]] = []
    with Journal(path, read_only=read_only) as journal:
        thread = threading.Thread(target=lambda: found.append(entry_numbers(journal)))
        thread.start()
        thread.join(30.0)
    assert found == [[1, 1, 1]]
