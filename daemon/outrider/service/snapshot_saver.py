"""Snapshots are written in a thread of their own, and nobody waits for ever for their disk."""

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from outrider.ledger import SnapshotStore
from outrider.model.errors import LedgerError
from outrider.service.core import Core

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
