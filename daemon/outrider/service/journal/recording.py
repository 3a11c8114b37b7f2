"""Journal, snapshots and their writer thread, as the daemon uses them."""

import asyncio
import fcntl
import gc
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

from outrider.journal import Entry, Journal, SnapshotStore, Writer, open_or_begin_anew
from outrider.model.errors import LedgerError
from outrider.service.config.reading import JOURNAL_NAME, TOKEN_NAME
from outrider.service.core.core import Core
from outrider.service.core.user_privacy import KEY_NAME, Pseudonyms, load_key
from outrider.service.host.private_folder import make_private, make_private_file

ROWS_KEY = "rows"
_ROW_KINDS: Final = ("inputs", "decisions", "outcomes", "set_aside")
_FAR_BEHIND_ROWS: Final = 20_000
"""Rows, some 6 MB, that may wait for the writer while more is read: two of its transactions."""
_LOOK_S = 0.5
_RETRY_S = 2.0
_STOP_S = 3.0


class Recording:
    """The state directory of one daemon. Only one daemon at a time may use it.

    Args:
        folder: the state directory; made if it is not there, and closed to other users.

    Attributes:
        notes: what an operator should know of state directory and journal, one sentence each.
        retention: removes what is too old.
        last_seq: of the last entry that is safe on the disk.
        fed: inputs that a restart had to feed again.
        snapshot_used: whether there is a snapshot that no restart found to be of no use.

    Raises:
        LedgerError: it cannot be written, holds a newer journal, or another daemon uses it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / JOURNAL_NAME
        self.notes, self._lock = open_locked(folder)
        try:
            journal, damage = open_or_begin_anew(self.path)
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
        """From where an adapter resumes, or None if it never reported."""
        with Journal(self.path, read_only=True) as journal:
            return journal.cursor(label)

    @cached_property
    def pseudonyms(self) -> Pseudonyms:
        """Those of this state directory; while its key cannot be kept, others until the end."""
        try:
            return Pseudonyms(load_key(self.folder / KEY_NAME))
        except LedgerError as error:
            log.warning(
                "pseudonyms_not_saved", error=str(error), hint="they change at the next start"
            )
            return Pseudonyms(secrets.token_bytes())

    @property
    def is_new(self) -> bool:
        """True if nothing was ever recorded here, or nothing that can be used."""
        return self.last_seq == 0 and not self.snapshot_used

    # -- while running ------------------------------------------------------------------------

    @property
    def failure(self) -> str | None:
        """Why nothing is recorded at present, or None; from any thread."""
        if self._writer.failure is None and self._writer.stalled_s > HANGS_S:
            return f"{self.path}: the disk hangs: it has taken nothing for {HANGS_S:g} s and longer"
        return self._writer.failure

    async def keep_up(self) -> None:
        """Before more is read: wait until what was submitted is recorded, if that is much.

        A backlog is read faster than it is written. While recording has failed, or the disk hangs,
        this does not wait: entries are kept then, as long as there is room for them.
        """
        if self.failure is None and self._writer.waiting_rows >= _FAR_BEHIND_ROWS:
            with suppress(LedgerError):
                await self.recorded()

    async def submit(self, entry: Entry) -> "Future[int]":
        """Hand an entry to the writer; waits only while it has no room (the disk is full).

        Returns:
            resolves once the entry is on record; fails if that has to wait.
        """
        told = False
        while True:
            # anew each time: while this waited, another may have been taken
            rows = self.rows.copy()
            rows.update({kind: len(getattr(entry, kind)) for kind in _ROW_KINDS})
            entry.meta[ROWS_KEY] = dict(rows)
            try:
                future = self._writer.submit(entry)
                break
            except LedgerError as error:
                if not told:
                    log.error("input_paused", error=str(error))
                told = True
                await asyncio.sleep(_RETRY_S)
        self.rows = rows
        future.add_done_callback(self._note_outcome)
        return future

    def _note_outcome(self, future: "Future[int]") -> None:
        if future.exception() is None:
            self.last_seq = max(self.last_seq, future.result())
        else:
            self.failures += 1

    async def mend(self) -> None:
        """For ever: while recording has failed, say so and try again."""
        told = False
        while True:
            await asyncio.sleep(_RETRY_S)
            if self.failure is None:
                if told:
                    log.info("recording_resumed", path=str(self.path))
                told = False
                self._waiting_since = None
                continue
            if not told:
                log.critical(
                    "recording_stopped", path=str(self.path), error=self.failure,
                    hint="the batch system is not touched; recording goes on when this is mended",
                )  # fmt: skip
                self._waiting_since = time.monotonic()
            told = True
            try:
                await asyncio.wrap_future(self._writer.retry())
            except LedgerError:
                continue

    async def settle(self) -> None:
        """Wait until everything that was submitted is safe on the disk.

        Raises:
            LedgerError: the journal cannot be written at present.
        """
        # the writer seals after all that was submitted before, and not while it has failed
        self.last_seq = await self._run(_seal)

    async def recorded(self) -> None:
        """Wait until everything that was submitted is on record, though not yet flushed to disk.

        Raises:
            LedgerError: the journal cannot be written at present.
        """
        await self._run(Journal.last_seq)

    async def _run(self, task: Callable[[Journal], int]) -> int:
        """What a short task gave, after all that was submitted before.

        Raises:
            LedgerError: it failed, or the disk hangs; then it may still be done later.
        """
        if (why := self.failure) is not None:
            raise LedgerError(why)
        running: asyncio.Future[int] = asyncio.wrap_future(self._writer.run(task))
        while not (await asyncio.wait({running}, timeout=_LOOK_S))[0]:
            if (why := self.failure) is not None:
                running.cancel()
                raise LedgerError(why)
        return running.result()

    async def snapshot(self, core: Core, now_s: float | None = None) -> bool:
        """Write the state beside the journal; whether that went well.

        The caller keeps the core from changing, and has submitted everything that led to it;
        `now_s` is the daemon's clock, Unix seconds; None: as the files' system has it.
        """
        try:
            await self.settle()
            core.accounting.work_out()  # or the thread and a reader of metrics might do it at once
            await self._saver.save(core, self.last_seq, now_s)
        except Exception as error:  # noqa: BLE001 - a policy's `save` is a plugin's code
            self.failures += 1
            named = "" if isinstance(error, LedgerError) else f"{type(error).__name__}: "
            log.error("snapshot_failed", error=f"{named}{error}")
            return False
        self.snapshot_at, self.snapshot_used = time.monotonic(), True
        return True

    def figures(self) -> dict[str, Any]:
        """For status and metrics."""
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
        """Write what waits, then release the state directory. Logs what could not be written."""
        try:
            self._writer.stop(min(within_s, _STOP_S))
        except LedgerError as error:
            log.critical("entries_lost", error=str(error))
        finally:
            self._saver.close()
            self._lock.close()


def _counts(journal: Journal, key: str, none: dict[str, int]) -> dict[str, int]:
    """Counts that an entry recorded; what cannot be read begins again."""
    try:
        return none | {name: int(n) for name, n in journal.meta(key, none).items()}
    except (AttributeError, LedgerError, TypeError, ValueError) as error:
        log.error("counters_not_saved", key=key, error=str(error))
        return dict(none)


def _seal(journal: Journal) -> int:
    """Make everything recorded so far safe; returns its last sequence number."""
    journal.sync()
    return journal.last_seq()


# -- journal retention -----------------------------------------------------------------------------
# What the daemon removes from its journal: what is too old, and what is beyond the budget.

DROPPED_KEY: Final = "dropped"
log = structlog.get_logger()


class JournalRetention:
    """Removes rows, in the writer's thread, but none that a restart needs.

    Args:
        writer: of the journal.
        snapshots: the oldest of which a restart may begin with.
        submit: records an entry.
        dropped_rows: that the budget has taken before.

    Attributes:
        budget_bytes: most that the journal may take; None before the first check.
        over_budget: what an operator should know of the budget; None: nothing.
        dropped_rows: that the budget took so far.
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
        """Forget what is older than the retention allows: events and decisions, and runs.

        Rows that are dated later than can be keep nothing.
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
        """Drop the oldest rows while the journal takes more than its budget, and say so."""
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
# Snapshots are written in a thread of their own, and nobody waits for ever for their disk.

HANGS_S: Final = 30.0
"""Seconds after which a disk that has taken nothing is said to hang."""


class SnapshotSaver:
    """The thread that writes the snapshots of one daemon.

    Args:
        store: where they go.
    """

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="snapshots")
        self._writing: asyncio.Future[Path] | None = None

    async def save(self, core: Core, seq: int, now_s: float | None) -> None:
        """Write a snapshot; the caller keeps the core from changing until this returns.

        Args:
            core: the state.
            seq: of the last entry of the journal that led to it.
            now_s: the daemon's clock, Unix seconds; None: as the files' system has it.

        Raises:
            LedgerError: it could not be written, or not within `HANGS_S`; then it may still be.
            Exception: what a policy raised as it was saved.
        """
        if self._writing is not None and not self._writing.done():
            raise LedgerError(f"{self._store.folder}: the disk hangs: the last is not written yet")
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
        gc.disable()  # a hundred thousand small lists would set off collections that hold up all
        try:
            return self._store.packed(seq, core.save())
        finally:
            if collects:
                gc.enable()

    def close(self) -> None:
        """End the thread, once the last snapshot is written."""
        self._thread.shutdown(cancel_futures=True)


def _ignore(writing: "asyncio.Future[Path]") -> None:
    """It was told that this snapshot could not be written; how it ended is of no account."""
    if not writing.cancelled():
        writing.exception()


# -- locked folder ---------------------------------------------------------------------------------
# The state directory, which one daemon at a time may use.

SNAPSHOTS_NAME: Final = "snapshots"
_LOCK_NAME: Final = "lock"
_OURS: Final = (
    f"{JOURNAL_NAME}*", SNAPSHOTS_NAME, KEY_NAME, TOKEN_NAME, _LOCK_NAME, "in-progress-*.json",
    "mode-limit.*", "undo.sqlite*", "twin.*", "starts.json*",
    f"before-schema-*-{JOURNAL_NAME}*", f"damaged-*-{JOURNAL_NAME}*",
)  # fmt: skip
"""Patterns of the names that the daemon gives files in its state directory."""


def open_locked(folder: Path) -> tuple[list[str], TextIO]:
    """Make the folder, close it to other users, and lock it until the file returned is closed.

    Returns:
        notes for the operator, one sentence each, and the lock's file.

    Raises:
        LedgerError: it cannot be written, or another daemon uses it.
    """
    try:
        notes = make_private(folder, _OURS)
        make_private_file(folder / JOURNAL_NAME)
        make_private_file(folder / _LOCK_NAME)
        file = (folder / _LOCK_NAME).open("w", encoding="ascii")
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
    """Return whether a daemon runs with this state directory, as far as we may know."""
    try:
        with (folder / _LOCK_NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # there is no such folder, or it is not open to us
    return False
