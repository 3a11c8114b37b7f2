"""The levers of a daemon, created only in acting modes, and the undo log's file."""

import contextlib
import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from outrider.acting.gate import ACTING_MODES
from outrider.acting.leases import LeaseBounds
from outrider.acting.lever_runner import LeverRunner
from outrider.api.adapter import Adapter
from outrider.api.lever import Lever, Undo, UndoLog
from outrider.model.errors import OutriderError, PeerError, PluginError
from outrider.service.config.declarations import Config, acting_of
from outrider.service.config.loaded import LoadedConfig
from outrider.service.host.private_folder import make_private_file, open_owned
from outrider.service.host.threads import in_own_thread

CLOSE_S: Final = 4.0
"""Seconds for reverting active changes; the rest expires automatically.

10,000 leases of an HTCondor pool take .7 to .9 s, a thousand start times of a Slurm 1.5 s. systemd
gives the daemon ten seconds to end."""
log = structlog.get_logger()


def carried_actions(adapters: Mapping[str, Adapter]) -> dict[str, frozenset[str]]:
    """Return the actions that the levers of each adapter support, by label."""
    return {
        label: frozenset(action for lever in adapter.levers for action in lever.actions)
        for label, adapter in adapters.items()
        if adapter.levers
    }


def make_lever_runner(
    loaded: LoadedConfig,
    adapters: Mapping[str, Adapter],
    folder: Path,
    is_fresh: Callable[[], bool],
    adapter_of: Callable[[str], str | None],
) -> LeverRunner | None:
    """Return a runner of these adapters' levers; None, without levers, unless the mode acts.

    Args:
        loaded: the configuration.
        adapters: by label.
        folder: the state directory.
        is_fresh: returns whether information is recent enough to act on; thread-safe.
        adapter_of: returns the label of the adapter of a job; None: one without levers.

    Raises:
        PluginError: a lever cannot be created, or two of an adapter support the same action.
    """
    config = loaded.config
    if config.mode not in ACTING_MODES:
        return None
    return LeverRunner(make_levers(adapters, folder), adapter_of, lease_bounds(config), is_fresh)


def lease_bounds(config: Config) -> LeaseBounds:
    """Return the bounds of changes of a configuration."""
    acting = acting_of(config)
    return LeaseBounds(acting.acts_per_minute, acting.deferred_at_once, acting.longest_deferral_s)


def make_levers(adapters: Mapping[str, Adapter], folder: Path) -> dict[str, list[Lever]]:
    """Return one of each lever that these adapters declare, by adapter.

    Args:
        adapters: by label.
        folder: the state directory, different for each daemon on a host.

    Raises:
        PluginError: a lever cannot be created.
    """
    levers: dict[str, list[Lever]] = {}
    for label, adapter in adapters.items():
        adapter.identity = f"{label}@{socket.gethostname()}:{folder}"
        for kind in adapter.levers:
            try:
                levers.setdefault(label, []).append(kind(adapter))
            except OutriderError:
                raise
            except Exception as error:
                raise PluginError(
                    f"[adapters.{label}]: lever {kind.__name__} fails: "
                    f"{type(error).__name__}: {error}"
                ) from error
    return levers


async def close_levers(runner: LeverRunner | None) -> list[str]:
    """Withdraw all changes within a time limit; return the levers that could not."""
    left = []
    if runner is not None:
        left = await in_own_thread(lambda: runner.close(CLOSE_S), "close-levers")
    if left:
        log.warning("levers_left", levers=left, reason="their changes expire automatically")
    return left


# -- undo file -------------------------------------------------------------------------------------
# The undo log of an adapter, in a database in the state directory.

UNDO_FILE: Final = "undo.sqlite"
_WAIT_S: Final = 5.0
"""Seconds to wait for another writing process, such as ``outrider release``."""
_TABLE: Final = """\
CREATE TABLE IF NOT EXISTS undo (
    adapter TEXT NOT NULL, job TEXT NOT NULL, entry BLOB NOT NULL, PRIMARY KEY (adapter, job)
) WITHOUT ROWID"""
_LASTS: Final = b'"lasts":true'
"""Bytes in the stored entry of a permanent change; possibly also in other entries."""


def has_lasting(folder: Path) -> bool:
    """Return whether a state directory notes changes that do not expire automatically.

    A file that cannot be read may contain some.
    """
    path = folder / UNDO_FILE
    if not path.exists():
        return False
    decode = msgspec.json.Decoder(Undo).decode
    try:
        os.close(open_owned(path))
        with contextlib.closing(sqlite3.connect(path, timeout=_WAIT_S)) as database:
            rows = database.execute("SELECT entry FROM undo WHERE instr(entry, ?)", (_LASTS,))
            return any(decode(entry).lasts for (entry,) in rows)
    except (OSError, sqlite3.Error, msgspec.MsgspecError):
        return True


class UndoFile(UndoLog):
    """Undo log with the value before each change, in a file that survives a crash.

    A file that cannot be read is renamed. Changes that expire automatically still do so.

    Args:
        folder: the state directory, created when the first change is noted.
        label: label of the adapter.
    """

    def __init__(self, folder: Path, label: str) -> None:
        super().__init__()
        self._folder = folder
        self._path = folder / UNDO_FILE
        self._label = label
        self._lock = threading.Lock()
        if self._path.exists():
            self.entries = self._read()

    def write(self, entries: Mapping[str, Undo]) -> None:
        """Write entries to the file, see `UndoLog.write`."""
        if not entries:
            return
        rows = [(self._label, job, msgspec.json.encode(one)) for job, one in entries.items()]
        with self._lock:
            with self._opened() as database:
                database.executemany("INSERT OR REPLACE INTO undo VALUES (?, ?, ?)", rows)
            super().write(entries)

    def forget(self, jobs: Iterable[str]) -> None:
        """Remove jobs from the file, see `UndoLog.forget`."""
        gone = self.entries.keys() & set(jobs)
        if not gone:
            return
        rows = [(self._label, job) for job in gone]
        with self._lock:
            with self._opened() as database:
                database.executemany("DELETE FROM undo WHERE adapter = ? AND job = ?", rows)
            super().forget(gone)

    def _begin_part(self, name: str) -> UndoLog:
        return UndoFile(self._folder, f"{self._label} / {name}")

    def _read(self) -> dict[str, Undo]:
        decode = msgspec.json.Decoder(Undo).decode
        try:
            with self._opened() as database:
                rows = database.execute(
                    "SELECT job, entry FROM undo WHERE adapter = ?", (self._label,)
                ).fetchall()
            return {job: decode(entry) for job, entry in rows}
        except (PeerError, msgspec.MsgspecError) as error:
            aside = self._path.with_name(f"{UNDO_FILE}.damaged")
            with contextlib.suppress(OSError):
                self._path.replace(aside)
            log.error("undo_log_quarantined", file=str(aside), error=str(error))
            return {}

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction, which is on the disk when the block ends without an error."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_private_file(self._path)
            os.close(open_owned(self._path))
            opened = sqlite3.connect(self._path, timeout=_WAIT_S)
            with contextlib.closing(opened) as database, database:
                database.execute(_TABLE)
                yield database
        except (OSError, sqlite3.Error) as error:
            raise PeerError(
                f"{self._path} cannot be read or written, so nothing is changed: {error}"
            ) from error
