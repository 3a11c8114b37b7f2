"""Recording of the daemon: journal, snapshots, their writer threads and retention."""

import asyncio
import fcntl
import gc
import os
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TextIO

import structlog

from outrider.journal import Entry, Journal, SnapshotStore, Writer, open_or_replace
from outrider.model.errors import LedgerError
from outrider.service.config.declarations import SOCKET_NAME
from outrider.service.config.reading import JOURNAL_NAME, TOKEN_NAME
from outrider.service.core.core import Core
from outrider.service.core.user_privacy import KEY_NAME, Pseudonyms, load_key
from outrider.service.host.private_folder import (
    make_private,
    make_private_file,
    open_owned,
    refuse_strangers,
)

ROWS_KEY = "rows"
_ROW_KINDS: Final = ("inputs", "decisions", "outcomes", "set_aside")
_MAX_BACKLOG_ROWS: Final = 20_000
"""Largest number of rows that may wait for the writer while input is read.

They take some 6 MB, and are two transactions of the writer."""
_POLL_S = 0.5
_RETRY_S = 2.0
_STOP_S = 3.0


class Recording:
    """The state directory of one daemon, which no other daemon may use at the same time.

    Args:
        folder: the state directory, created if necessary, and closed to other users.

    Attributes:
        notes: notes for operators on state directory and journal, one sentence each.
        retention: removes old rows.
        last_seq: sequence number of the last entry that is safe on the disk.
        fed: number of inputs that a restart had to replay.
        snapshot_used: True if there is a snapshot that no restart found unusable.

    Raises:
        LedgerError: it cannot be written, has a newer journal, or another daemon uses it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / JOURNAL_NAME
        self.notes, self._lock = open_locked(folder)
        try:
            journal, damage = open_or_replace(self.path)
        except BaseException:
            self._lock.close()
            raise
        self.notes += [] if damage is None else [damage]
        self.last_seq = journal.last_seq()
        self.rows: Counter[str] = Counter(_counts(journal, ROWS_KEY, dict.fromkeys(_ROW_KINDS, 0)))
        dropped_rows = _counts(journal, DROPPED_KEY, {"rows": 0})["rows"]
        self._writer = Writer(journal)
        self.snapshots = SnapshotStore(folder / SNAPSHOTS_NAME)
        self.retention = JournalRetention(self._writer, self.snapshots, self.submit, dropped_rows)
        self._saver = SnapshotSaver(self.snapshots)
        self.failures = 0
        self.fed = 0
        self.snapshot_used = bool(self.snapshots.paths())
        self.snapshot_at: float | None = None
        self._waiting_since: float | None = None

    def cursor(self, label: str) -> Any:
        """Return where an adapter resumes, or None if it never reported."""
        with Journal(self.path, read_only=True) as journal:
            return journal.cursor(label)

    @cached_property
    def pseudonyms(self) -> Pseudonyms:
        """Pseudonyms of this state directory; temporary ones if its key cannot be stored."""
        try:
            return Pseudonyms(load_key(self.folder / KEY_NAME))
        except LedgerError as error:
            log.warning(
                "pseudonyms_not_saved", error=str(error), hint="they change at the next start"
            )
            return Pseudonyms(secrets.token_bytes())

    @property
    def is_new(self) -> bool:
        """True if nothing usable was ever recorded here."""
        return self.last_seq == 0 and not self.snapshot_used

    # -- while running ------------------------------------------------------------------------

    @property
    def failure(self) -> str | None:
        """Reason why nothing can be recorded now, or None; thread-safe."""
        if self._writer.failure is None and self._writer.stalled_s > HANGS_S:
            return f"{self.path}: the disk hangs: no write for {HANGS_S:g} s or longer"
        return self._writer.failure

    async def keep_up(self) -> None:
        """Wait before more is read if many submitted rows are not recorded yet.

        Input is read faster than it is written. While recording has failed, or the disk hangs,
        this does not wait: entries are then kept in memory as long as there is space for them.
        """
        if self.failure is None and self._writer.waiting_rows >= _MAX_BACKLOG_ROWS:
            with suppress(LedgerError):
                await self.recorded()

    async def submit(self, entry: Entry) -> "Future[int]":
        """Pass an entry to the writer; waits only while its buffer is full (the disk is full).

        Returns:
            a future that resolves once the entry is recorded; it fails if that is delayed.
        """
        is_reported = False
        while True:
            # recomputed each time: another entry may have been accepted during the wait
            rows = self.rows.copy()
            rows.update({kind: len(getattr(entry, kind)) for kind in _ROW_KINDS})
            entry.meta[ROWS_KEY] = dict(rows)
            try:
                future = self._writer.submit(entry)
                break
            except LedgerError as error:
                if not is_reported:
                    log.error("input_paused", error=str(error))
                is_reported = True
                await asyncio.sleep(_RETRY_S)
        self.rows = rows
        future.add_done_callback(self._note_outcome)
        return future

    def _note_outcome(self, future: "Future[int]") -> None:
        if future.exception() is None:
            self.last_seq = max(self.last_seq, future.result())
        else:
            self.failures += 1

    async def retry_while_failed(self) -> None:
        """Watch the recording endlessly; while it has failed, log that and retry."""
        is_reported = False
        while True:
            await asyncio.sleep(_RETRY_S)
            if self.failure is None:
                if is_reported:
                    log.info("recording_resumed", path=str(self.path))
                is_reported = False
                self._waiting_since = None
                continue
            if not is_reported:
                log.critical(
                    "recording_stopped", path=str(self.path), error=self.failure,
                    hint="the batch system is not affected; recording continues when this is fixed",
                )  # fmt: skip
                self._waiting_since = time.monotonic()
            is_reported = True
            try:
                await asyncio.wrap_future(self._writer.retry())
            except LedgerError:
                continue

    async def settle(self) -> None:
        """Wait until everything submitted is safe on the disk.

        Raises:
            LedgerError: the journal cannot be written at present.
        """
        # the writer seals after all earlier entries, and not while it has failed
        self.last_seq = await self._run(_seal)

    async def recorded(self) -> None:
        """Wait until everything submitted is recorded, though not yet flushed to disk.

        Raises:
            LedgerError: the journal cannot be written at present.
        """
        await self._run(Journal.last_seq)

    async def _run(self, task: Callable[[Journal], int]) -> int:
        """Return the result of a short task that runs after all earlier entries.

        Raises:
            LedgerError: it failed, or the disk hangs; then it may still run later.
        """
        if (why := self.failure) is not None:
            raise LedgerError(why)
        running: asyncio.Future[int] = asyncio.wrap_future(self._writer.run(task))
        while not (await asyncio.wait({running}, timeout=_POLL_S))[0]:
            if (why := self.failure) is not None:
                running.cancel()
                raise LedgerError(why)
        return running.result()

    async def snapshot(self, core: Core, now_s: float | None = None) -> bool:
        """Write a snapshot of the state next to the journal; return whether that succeeded.

        The caller keeps the core from changing, and has submitted everything that led to it.
        `now_s` is the daemon's clock, in Unix seconds; None: the time of the file system.
        """
        try:
            await self.settle()
            core.accounting.work_out()  # or thread and metrics reader might do it together
            await self._saver.save(core, self.last_seq, now_s)
        except Exception as error:  # noqa: BLE001 - a policy's `save` is a plugin's code
            self.failures += 1
            named = "" if isinstance(error, LedgerError) else f"{type(error).__name__}: "
            log.error("snapshot_failed", error=f"{named}{error}")
            return False
        self.snapshot_at, self.snapshot_used = time.monotonic(), True
        return True

    def figures(self) -> dict[str, Any]:
        """Return the figures of the recording for status and metrics."""
        size = sum(p.stat().st_size for p in self.folder.glob(JOURNAL_NAME + "*"))
        return {
            "recording": self.failure is None,
            "failure": self.failure,
            "rows": dict(self.rows),
            "failures": self.failures,
            "lag_s": 0.0 if self._waiting_since is None else time.monotonic() - self._waiting_since,
            "size_bytes": size,
            "last_seq": self.last_seq,
            "budget_bytes": self.retention.budget_bytes,
            "dropped_rows": self.retention.dropped_rows,
            "snapshot_age_s": None
            if self.snapshot_at is None
            else time.monotonic() - self.snapshot_at,
        }

    def close(self, within_s: float = _STOP_S) -> None:
        """Write waiting entries, log those that cannot be written, and release the directory."""
        try:
            self._writer.stop(min(within_s, _STOP_S))
        except LedgerError as error:
            log.critical("entries_lost", error=str(error))
        finally:
            self._saver.close()
            self._lock.close()


def _counts(journal: Journal, key: str, none: dict[str, int]) -> dict[str, int]:
    """Return recorded counts; unreadable ones start again at 0."""
    try:
        return none | {name: int(n) for name, n in journal.meta(key, none).items()}
    except (AttributeError, LedgerError, TypeError, ValueError) as error:
        log.error("counters_not_saved", key=key, error=str(error))
        return dict(none)


def _seal(journal: Journal) -> int:
    """Flush everything recorded so far; return the last sequence number."""
    journal.sync()
    return journal.last_seq()


# -- journal retention -----------------------------------------------------------------------------
# Removal of journal rows that are too old or beyond the budget.

DROPPED_KEY: Final = "dropped"
log = structlog.get_logger()


class JournalRetention:
    """Removes rows in the writer's thread, but none that a restart needs.

    Args:
        writer: the journal's writer.
        snapshots: the snapshots; a restart may begin with the oldest.
        submit: records an entry.
        dropped_rows: number of rows dropped for the budget before.

    Attributes:
        budget_bytes: largest size of the journal; None before the first check.
        over_budget: a note for operators on the budget; None: there is none.
        dropped_rows: number of rows dropped for the budget so far.
    """

    def __init__(
        self,
        writer: Writer,
        snapshots: SnapshotStore,
        submit: Callable[[Entry], Awaitable[Any]],
        dropped_rows: int,
    ) -> None:
        self._writer = writer
        self._snapshots = snapshots
        self._submit = submit
        self.dropped_rows = dropped_rows
        self.budget_bytes: int | None = None
        self.over_budget: str | None = None

    async def prune(
        self, before_s: float, latest_s: float, runs_before_s: float | None = None
    ) -> None:
        """Remove events, decisions and runs that are older than the retention.

        Rows with impossible later dates do not prevent this.
        """
        oldest = self._snapshots.oldest_seq()

        def pruned(journal: Journal) -> int:
            return journal.prune(
                before_s,
                oldest_snapshot_seq=oldest,
                latest_time_s=latest_s,
                runs_before_s=runs_before_s,
            )

        try:
            n = await asyncio.wrap_future(self._writer.run(pruned))
        except LedgerError as error:
            log.error("pruning_failed", error=str(error))
        else:
            log.info("journal_pruned", rows=n)

    async def keep_within(self, budget_bytes: int) -> None:
        """Drop the oldest rows while the journal exceeds its budget, and report that."""
        self.budget_bytes = budget_bytes
        oldest = self._snapshots.oldest_seq()

        def kept(journal: Journal) -> tuple[int, int, int]:
            gone = journal.keep_within(budget_bytes, oldest_snapshot_seq=oldest)
            return gone, journal.used_bytes(), journal.pruned_seq()

        try:
            gone, used, first = await asyncio.wrap_future(self._writer.run(kept))
        except LedgerError as error:
            log.error("pruning_failed", error=str(error))
            return
        if used > budget_bytes:
            self.over_budget = (
                f"the journal takes {used:,} bytes, more than its budget of {budget_bytes:,}; what "
                "is left is newer than the oldest snapshot, and a restart needs it"
            )
            log.error("budget_exceeded", used_bytes=used, budget_bytes=budget_bytes)
        elif gone:
            self.over_budget = (
                f"the journal reached its budget of {budget_bytes:,} bytes (journal_max_bytes): "
                f"its oldest rows were dropped before their time, up to number {first}"
            )
            log.warning("rows_dropped", rows=gone, up_to_seq=first, budget_bytes=budget_bytes)
        if gone:
            self.dropped_rows += gone
            await self._submit(Entry(meta={DROPPED_KEY: {"rows": self.dropped_rows}}))


# -- snapshot saver --------------------------------------------------------------------------------
# Snapshots are written in a dedicated thread, with a time limit for the disk.

HANGS_S: Final = 30.0
"""Seconds without a completed write after which a disk counts as hanging."""


class SnapshotSaver:
    """The thread that writes the snapshots of one daemon.

    Args:
        store: the snapshots' files.
    """

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
        self._writing: asyncio.Future[Path] | None = None

    async def save(self, core: Core, seq: int, now_s: float | None) -> None:
        """Write a snapshot; the caller keeps the core from changing until this returns.

        Args:
            core: the state.
            seq: sequence number of the last journal entry that led to it.
            now_s: the daemon's clock, in Unix seconds; None: the time of the file system.

        Raises:
            LedgerError: it could not be written within `HANGS_S`; it may still be written later.
            Exception: any error of a policy while it is saved.
        """
        if self._writing is not None and not self._writing.done():
            raise LedgerError(
                f"{self._store.folder}: the disk hangs: the last snapshot is not written yet"
            )
        loop = asyncio.get_running_loop()
        packed = await loop.run_in_executor(self._thread, self._packed, core, seq)
        self._writing = loop.run_in_executor(self._thread, self._store.write, seq, packed, now_s)
        done, _ = await asyncio.wait({self._writing}, timeout=HANGS_S)
        if not done:
            self._writing.add_done_callback(_ignore)
            raise LedgerError(f"{self._store.folder}: the disk hangs: no end after {HANGS_S:g} s")
        self._writing.result()

    def _packed(self, core: Core, seq: int) -> bytes:
        collects = gc.isenabled()
        gc.disable()  # many small lists would trigger collections that block all threads
        try:
            return self._store.packed(seq, core.save())
        finally:
            if collects:
                gc.enable()

    def close(self) -> None:
        """End the thread once the last snapshot is written."""
        self._thread.shutdown(cancel_futures=True)


def _ignore(writing: "asyncio.Future[Path]") -> None:
    """Ignore the late result of a snapshot that was reported as not written."""
    if not writing.cancelled():
        writing.exception()


# -- locked folder ---------------------------------------------------------------------------------
# The state directory, locked against other daemons.

SNAPSHOTS_NAME: Final = "snapshots"
_LOCK_NAME: Final = "lock"
OUR_FILES: Final = (
    f"{JOURNAL_NAME}*", SNAPSHOTS_NAME, KEY_NAME, TOKEN_NAME, _LOCK_NAME, "in-progress-*.json",
    "mode-limit.*", "undo.sqlite*", "twin.*", "starts.json*",
    SOCKET_NAME, f"before-schema-*-{JOURNAL_NAME}*", f"damaged-*-{JOURNAL_NAME}*",
)  # fmt: skip
"""Patterns of the names of the daemon's files in its state directory."""


def open_locked(folder: Path) -> tuple[list[str], TextIO]:
    """Create the folder, close it to other users, and lock it until the file is closed.

    Returns:
        notes for operators, one sentence each, and the lock's file.

    Raises:
        LedgerError: it cannot be written, others can write it, or another daemon uses it.
    """
    try:
        refuse_strangers(folder, OUR_FILES)
        notes = make_private(folder, OUR_FILES)
        make_private_file(folder / JOURNAL_NAME)
        lock = open_owned(folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT)
        file = os.fdopen(lock, "r+", encoding="ascii")
    except OSError as error:
        raise LedgerError(
            f"{folder}: cannot be written: {error.strerror}; expected a folder that the "
            "daemon owns (state_dir)"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise LedgerError(f"{folder}: another Outrider uses this state directory") from error
    return notes, file


def is_in_use(folder: Path) -> bool:
    """Return whether a daemon uses this state directory; False if that cannot be checked."""
    try:
        with (folder / _LOCK_NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # there is no such folder, or we may not read it
    return False
