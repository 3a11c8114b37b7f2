"""The writer: order, batches, and what happens when the disk says no."""

import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

from outrider.journal import Entry, Journal, Writer
from outrider.model.errors import LedgerError
from tests.journal.samples import entry_numbers, numbered_entry


class StubbornJournal(Journal):
    """Real journal that can refuse, as a full disk does, and be slow."""

    refuses = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.transactions: list[int] = []

    def append_all(self, entries: list[Entry]) -> list[int]:  # type: ignore[override]
        self.may_go_on.wait(10)
        if self.refuses:
            raise LedgerError(f"{self.path}: cannot record: database or disk is full")
        self.transactions.append(len(entries))
        return super().append_all(entries)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the journal of a test is."""
    return tmp_path / "journal.sqlite"


def numbers_in(path: Path) -> list[int]:
    with Journal(path, read_only=True) as journal:
        return entry_numbers(journal)[::3]


def test_a_future_resolves_with_the_last_number_of_its_entry(path: Path) -> None:
    writer = Writer(Journal(path))
    futures = [writer.submit(numbered_entry(number)) for number in range(50)]
    assert [future.result(10) for future in futures] == [4 * n + 4 for n in range(50)]
    writer.stop(10)
    assert numbers_in(path) == list(range(50))
    assert writer.rows_recorded == 200


def test_entries_that_pile_up_share_a_transaction(path: Path) -> None:
    journal = StubbornJournal(path)
    journal.may_go_on.clear()
    writer = Writer(journal)
    futures = [writer.submit(numbered_entry(number)) for number in range(100)]
    journal.may_go_on.set()
    assert futures[-1].result(10) == 400
    writer.stop(10)
    assert sum(journal.transactions) == 100
    assert len(journal.transactions) <= 2


def test_stopping_records_what_waits_and_then_refuses(path: Path) -> None:
    journal = StubbornJournal(path)
    journal.may_go_on.clear()
    writer = Writer(journal)
    futures = [writer.submit(numbered_entry(number)) for number in range(20)]
    threading.Timer(0.05, journal.may_go_on.set).start()
    writer.stop(10)
    assert all(future.done() for future in futures)
    assert numbers_in(path) == list(range(20))
    with pytest.raises(LedgerError, match="the writer was stopped"):
        writer.submit(numbered_entry(21))


def test_after_a_failure_entries_are_kept_and_recorded_in_order_by_a_retry(path: Path) -> None:
    journal = StubbornJournal(path)
    writer = Writer(journal)
    writer.submit(numbered_entry(0)).result(10)
    journal.refuses = True
    futures = [writer.submit(numbered_entry(number)) for number in range(1, 10)]
    for future in futures:
        with pytest.raises(LedgerError, match=r"journal\.sqlite.*disk is full"):
            future.result(10)
    assert "disk is full" in str(writer.failure)
    with pytest.raises(LedgerError, match="disk is full"):
        writer.retry().result(10)
    later = writer.submit(numbered_entry(10))
    with pytest.raises(LedgerError, match="disk is full"):
        later.result(10)
    assert numbers_in(path) == [0]
    journal.refuses = False
    assert writer.retry().result(10) == 10
    assert writer.failure is None
    assert writer.submit(numbered_entry(11)).result(10) == 48
    writer.stop(10)
    assert numbers_in(path) == list(range(12))


def test_a_full_queue_refuses_loudly_and_loses_nothing_it_took(path: Path) -> None:
    journal = StubbornJournal(path)
    journal.refuses = True
    writer = Writer(journal, queue_rows=10)
    taken = [writer.submit(numbered_entry(number)) for number in range(3)]
    with pytest.raises(LedgerError, match="refused to record: 12 rows wait"):
        writer.submit(numbered_entry(3))
    with pytest.raises(LedgerError):
        taken[-1].result(10)
    journal.refuses = False
    assert writer.retry().result(10) == 3
    assert writer.waiting_rows == 0
    assert writer.submit(numbered_entry(3)).result(10) == 16
    writer.stop(10)
    assert numbers_in(path) == [0, 1, 2, 3]


def test_stopping_says_how_much_could_not_be_recorded(path: Path) -> None:
    journal = StubbornJournal(path)
    journal.refuses = True
    threads_before_n = threading.active_count()
    writer = Writer(journal)
    futures = [writer.submit(numbered_entry(number)) for number in range(5)]
    assert isinstance(futures[0].exception(10), LedgerError), "it has failed before it is stopped"
    with pytest.raises(LedgerError, match=r"5 entries were not recorded: .*disk is full"):
        writer.stop(10)
    assert all(isinstance(future.exception(0), LedgerError) for future in futures)
    assert threading.active_count() == threads_before_n, "its thread tries for ever"


def test_a_retry_where_nothing_is_wrong_records_nothing(path: Path) -> None:
    writer = Writer(Journal(path))
    writer.submit(numbered_entry(0)).result(10)
    assert writer.retry().result(10) == 0
    writer.stop(10)
    assert writer.retry().result(10) == 0
    assert numbers_in(path) == [0]


def test_a_retry_that_fails_half_way_keeps_the_rest_in_order_for_the_next(path: Path) -> None:
    journal = StubbornJournal(path)
    writer = Writer(journal)
    journal.refuses = True
    many = [writer.submit(numbered_entry(number)) for number in range(3)]
    with pytest.raises(LedgerError):
        many[-1].result(10)
    for _ in range(2):
        with pytest.raises(LedgerError, match="disk is full"):
            writer.retry().result(10)
        assert writer.failure is not None
        assert writer.waiting_rows == 12
    journal.refuses = False
    assert writer.retry().result(10) == 3
    writer.stop(10)
    assert numbers_in(path) == [0, 1, 2]


def test_entries_without_rows_are_not_kept_without_end_either(path: Path) -> None:
    journal = StubbornJournal(path)
    journal.may_go_on.clear()
    writer = Writer(journal, queue_rows=3)
    for _ in range(3):
        writer.submit(Entry(meta={"a": 1}))
    with pytest.raises(LedgerError, match="refused to record: 3 rows wait already"):
        writer.submit(Entry(meta={"a": 1}))
    journal.may_go_on.set()
    writer.stop(10)


def test_stopping_tries_once_more(path: Path) -> None:
    journal = StubbornJournal(path)
    journal.refuses = True
    writer = Writer(journal)
    with pytest.raises(LedgerError):
        writer.submit(numbered_entry(0)).result(10)
    journal.refuses = False
    writer.stop(10)
    assert numbers_in(path) == [0]


def test_a_task_runs_after_the_entries_before_it_and_its_failure_is_its_own(path: Path) -> None:
    writer = Writer(Journal(path))
    writer.submit(numbered_entry(1))
    assert writer.run(lambda journal: journal.last_seq()).result(10) == 4
    failing: Future[int] = writer.run(lambda journal: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.result(10)
    assert writer.run(lambda journal: journal.prune(9.0, oldest_snapshot_seq=4)).result(10) == 4
    assert writer.submit(numbered_entry(2)).result(10) == 8
    writer.stop(10)


def test_an_entry_that_a_journal_cannot_hold_stops_the_recording_by_name(path: Path) -> None:
    writer = Writer(Journal(path))
    odd = Entry(meta={"odd": {1, 2}, "odder": object()})
    with pytest.raises(LedgerError, match="an entry contains what a journal cannot"):
        writer.submit(odd).result(10)
    assert "object" in (writer.failure or "")
    with pytest.raises(LedgerError, match=r"1 entries were not recorded: .*object"):
        writer.stop(10)


def test_whoever_stops_waiting_cannot_cancel_a_record(path: Path) -> None:
    journal = StubbornJournal(path)
    journal.may_go_on.clear()
    writer = Writer(journal)
    assert not writer.submit(numbered_entry(1)).cancel()
    journal.may_go_on.set()
    writer.stop(10)
    assert numbers_in(path) == [1]
