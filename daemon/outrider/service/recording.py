"""Journal, snapshots and their writer thread, as the daemon uses them."""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import structlog

from outrider.ledger import Entry, Journal, SnapshotStore, Writer, open_or_begin_anew
from outrider.model.errors import LedgerError
from outrider.service.config.state_folder import JOURNAL_NAME
from outrider.service.core import Core
from outrider.service.journal_retention import DROPPED_KEY, JournalRetention
from outrider.service.locked_folder import SNAPSHOTS_NAME, open_locked
from outrider.service.pseudonyms import KEY_NAME, Pseudonyms, load_key
from outrider.service.snapshot_saver import HANGS_S, SnapshotSaver

ROWS_KEY = "rows"
_ROW_KINDS: Final = ("inputs", "decisions", "outcomes", "set_aside")
_FAR_BEHIND_ROWS: Final = 20_000
"""Rows, some 6 MB, that may wait for the writer while more is read: two of its transactions."""
_LOOK_S = 0.5
_RETRY_S = 2.0
_STOP_S = 3.0

log = structlog.get_logger()


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
                "forget_pseudonyms", reason=str(error), hint="they change at the next start"
            )
            return Pseudonyms(secrets.token_bytes())

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever recorded here, or nothing that can be used."""
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
                    log.error("pause_input", reason=str(error))
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
                    log.info("resume_recording", path=str(self.path))
                told = False
                self._waiting_since = None
                continue
            if not told:
                log.critical(
                    "stop_recording", path=str(self.path), reason=self.failure,
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
            log.error("skip_snapshot", reason=f"{named}{error}")
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
            log.critical("lose_entries", reason=str(error))
        finally:
            self._saver.close()
            self._lock.close()


def _counts(journal: Journal, key: str, none: dict[str, int]) -> dict[str, int]:
    """Counts that an entry recorded; what cannot be read begins again."""
    try:
        return none | {name: int(n) for name, n in journal.meta(key, none).items()}
    except (AttributeError, LedgerError, TypeError, ValueError) as error:
        log.error("lose_counts", key=key, reason=str(error))
        return dict(none)


def _seal(journal: Journal) -> int:
    """Make everything recorded so far safe; returns its last sequence number."""
    journal.sync()
    return journal.last_seq()
