"""Thread that writes the journal, so that no other thread waits for the disk."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from outrider.journal.journal import Journal
from outrider.journal.records import Entry
from outrider.model.errors import LedgerError

QUEUE_ROWS: Final = 100_000
"""Maximum waiting rows, some 30 MB: a hundred seconds at 1,000 events a second."""

TRANSACTION_ROWS: Final = 10_000
"""Rows after which a transaction takes no further entry: tens of milliseconds."""


class _Work(NamedTuple):
    """Item for the writer: an entry to record, or a task to run on the journal."""

    entry: Entry | None
    task: Callable[[Journal], Any] | None
    future: Future[Any]
    weight: int


class Writer:
    """Writer thread that records entries in the order of submission.

    Entries that accumulate share a transaction. When the journal cannot be written (disk full,
    read-only, input/output error) the writer stops recording, and `failure` contains the reason.
    From then on

    - the futures of all waiting entries fail with `LedgerError`, and the entries are *kept*, in
      order; so is every entry submitted later, until the queue is full. A failed future therefore
      means "not recorded yet": do not submit its entry again;
    - an entry that no longer fits the queue is *refused*: `submit` raises. Only the caller has it
      then, and must hold later ones back until it is accepted (an adapter can simply be left
      unread: it resumes at its cursor);
    - `retry` tries again, the oldest entry first. Nothing is ever written before an entry that
      was submitted earlier.

    A disk that hangs causes no error, and a thread that waits for it cannot be stopped: see
    `stalled_s`.

    All methods may be called from any thread; only `stop` waits.

    Args:
        journal: open for writing; the writer owns it from now on and closes it.
        queue_rows: maximum number of waiting rows; an entry of any size is accepted below it.
    """

    def __init__(self, journal: Journal, *, queue_rows: int = QUEUE_ROWS) -> None:
        self.path = journal.path
        self.rows_recorded = 0
        self._journal = journal
        self._queue_rows = queue_rows
        self._waiting: deque[_Work] = deque()
        self._waiting_rows = 0
        self._failure: str | None = None
        self._retrying: list[Future[int]] = []
        self._stopping = False
        self._moved_at: float | None = None  # monotonic; None while the thread has nothing to do
        journal.watch(self._note_move)
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name="journal-writer", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> str | None:
        """Reason why nothing can be recorded at present, or None."""
        return self._failure

    @property
    def waiting_rows(self) -> int:
        """Number of rows not yet recorded (an entry without rows, or a task, counts as one)."""
        return self._waiting_rows

    @property
    def stalled_s(self) -> float:
        """Seconds for which nothing has moved on the disk, though there is work."""
        moved_at = self._moved_at
        return 0.0 if moved_at is None else time.monotonic() - moved_at

    def submit(self, entry: Entry) -> "Future[int]":
        """Record an entry; never waits.

        The entry must not be changed afterwards.

        Returns:
            A future that resolves with the entry's last sequence number once it is recorded, or
            fails with `LedgerError` if it is kept for `retry`.

        Raises:
            LedgerError: refused, and not kept: too many wait, or the writer was stopped.
        """
        return self._enqueue(_Work(entry, None, Future(), max(1, entry.rows())))

    def run(self, task: Callable[[Journal], Any]) -> "Future[Any]":
        """Run a task (pruning, `Journal.sync`) on the writing connection, after the waiting items.

        Returns:
            A future that resolves with the task's result, or fails with its exception. A task is
            not kept for `retry`, and its failure does not stop the recording.

        Raises:
            LedgerError: refused: too many wait, or the writer was stopped.
        """
        return self._enqueue(_Work(None, task, Future(), 1))

    def retry(self) -> "Future[int]":
        """Reopen the journal and record the entries kept since the failure.

        Returns:
            A future that resolves with the number of entries that were recorded by this (0 if
            nothing was wrong), or fails with `LedgerError` if the journal still cannot be written.
        """
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()
        with self._changed:
            if self._failure is None or self._stopping:
                future.set_result(0)
            else:
                self._retrying.append(future)
                self._changed.notify()
        return future

    def stop(self, timeout_s: float) -> None:
        """Record the waiting entries, close the journal and end the thread.

        After a failure, one last retry is made.

        Raises:
            LedgerError: entries could not be recorded in this time; the message has count and
                reason.
        """
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            left = sum(work.entry is not None for work in self._waiting)
        if left:
            why = self._failure or f"still writing after {timeout_s:g} s"
            raise LedgerError(f"{self.path}: {left} entries were not recorded: {why}")

    def _enqueue(self, work: _Work) -> "Future[Any]":
        # An asyncio task that stops waiting must not cancel a write in progress.
        work.future.set_running_or_notify_cancel()
        with self._changed:
            if self._stopping:
                raise LedgerError(f"{self.path}: refused to record: the writer was stopped")
            if self._waiting_rows >= self._queue_rows:
                raise LedgerError(
                    f"{self.path}: refused to record: {self._waiting_rows} rows wait already; "
                    f"{self._failure or 'the disk is slower than what arrives'}"
                )
            if self._failure is not None:
                work.future.set_exception(LedgerError(self._failure))
            if self._failure is None or work.entry is not None:
                self._waiting.append(work)
                self._waiting_rows += work.weight
                if self._moved_at is None and self._failure is None:
                    self._moved_at = time.monotonic()
                self._changed.notify()
        return work.future

    def _serve(self) -> None:
        try:
            while self._wait_for_work():
                if self._failure is not None:
                    self._retry_now()
                elif (task := self._waiting[0].task) is not None:
                    self._run_task(task)
                else:
                    self._record(self._next_entries())
                self._note_end_of_work()
        except BaseException as error:
            # A bug: no caller may wait without end for a thread that has ended.
            self._fail(f"{self.path}: the writer itself failed: {error!r}")
            with self._changed:
                self._stopping = True
            raise
        finally:
            self._journal.close()

    def _note_move(self) -> None:
        """Record progress of SQLite: long work is not a disk that hangs."""
        if self._moved_at is not None:
            self._moved_at = time.monotonic()

    def _note_end_of_work(self) -> None:
        with self._changed:
            has_more = self._waiting and self._failure is None
            self._moved_at = time.monotonic() if has_more else None

    def _wait_for_work(self) -> bool:
        """Wait until there is work; return False if the thread should end."""
        with self._changed:
            while not self._stopping:
                if self._retrying or (self._waiting and self._failure is None):
                    return True
                self._changed.wait()
            if self._failure is None:
                return bool(self._waiting)
        # Stopping after a failure: one last try.
        return self._retry_now() and bool(self._waiting)

    def _next_entries(self) -> list[_Work]:
        """Return entries from the front for one transaction; they stay queued until recorded."""
        taken = []
        rows = 0
        with self._changed:
            for work in self._waiting:
                if work.entry is None or rows >= TRANSACTION_ROWS:
                    break
                taken.append(work)
                rows += work.entry.rows()
        return taken

    def _record(self, works: list[_Work]) -> bool:
        entries = [work.entry for work in works if work.entry is not None]
        try:
            seqs = self._journal.append_all(entries)
        except LedgerError as error:
            self._fail(str(error))
            return False
        with self._changed:
            for work in works:
                self._waiting.popleft()
                self._waiting_rows -= work.weight
        self.rows_recorded += sum(entry.rows() for entry in entries)
        for work, seq in zip(works, seqs, strict=True):
            if not work.future.done():
                work.future.set_result(seq)
        return True

    def _run_task(self, task: Callable[[Journal], Any]) -> None:
        with self._changed:
            work = self._waiting.popleft()
            self._waiting_rows -= work.weight
        try:
            result = task(self._journal)
        except Exception as error:  # noqa: BLE001 - it is passed to the caller through the future
            work.future.set_exception(error)
        else:
            work.future.set_result(result)

    def _fail(self, why: str) -> None:
        with self._changed:
            self._failure = why
            failed = list(self._waiting)
            # Tasks are not kept: their callers submit them again once recording works.
            self._waiting = deque(work for work in failed if work.entry is not None)
            self._waiting_rows = sum(work.weight for work in self._waiting)
            waiting_for_retry, self._retrying = self._retrying, []
        for future in [work.future for work in failed] + waiting_for_retry:
            if not future.done():
                # One each: the traceback of an exception grows each time it is raised.
                future.set_exception(LedgerError(why))

    def _retry_now(self) -> bool:
        """Record the kept entries; return whether that succeeded."""
        with self._changed:
            kept = len(self._waiting)
        try:
            self._journal.reopen()
        except LedgerError as error:
            self._fail(str(error))
            return False
        done = 0
        while done < kept:
            works = self._next_entries()[: kept - done]
            if not self._record(works):
                return False
            done += len(works)
        with self._changed:
            self._failure = None
            waiting_for_retry, self._retrying = self._retrying, []
        for future in waiting_for_retry:
            future.set_result(done)
        return True
