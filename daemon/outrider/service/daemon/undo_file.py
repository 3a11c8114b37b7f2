"""The undo log of an adapter, in a database of the state directory."""

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from outrider.api.undo_log import Undo, UndoLog
from outrider.model.errors import PeerError
from outrider.service.host.private_folder import make_private_file

UNDO_FILE: Final = "undo.sqlite"
_WAIT_S: Final = 5.0
"""For another process that writes, such as ``outrider release``."""
_TABLE: Final = """\
CREATE TABLE IF NOT EXISTS undo (
    adapter TEXT NOT NULL, job TEXT NOT NULL, entry BLOB NOT NULL, PRIMARY KEY (adapter, job)
) WITHOUT ROWID"""

_LASTS: Final = b'"lasts":true'
"""In an entry of something that lasts, as it is kept; perhaps in others, too."""

log = structlog.get_logger()


def has_lasting(folder: Path) -> bool:
    """Whether something is noted in a state directory that does not lapse by itself.

    A file that cannot be read may have some.
    """
    path = folder / UNDO_FILE
    if not path.exists():
        return False
    decode = msgspec.json.Decoder(Undo).decode
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_WAIT_S)) as database:
            rows = database.execute("SELECT entry FROM undo WHERE instr(entry, ?)", (_LASTS,))
            return any(decode(entry).lasts for (entry,) in rows)
    except (sqlite3.Error, msgspec.MsgspecError):
        return True


class UndoFile(UndoLog):
    """Keeps what stood before each change where it outlives the process and the machine.

    A file that cannot be read is set aside: what lapses by itself does so all the same.

    Args:
        folder: the state directory; it is made when the first change is noted.
        label: of the adapter.
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
        """See `UndoLog.write`."""
        if not entries:
            return
        rows = [(self._label, job, msgspec.json.encode(one)) for job, one in entries.items()]
        with self._lock:
            with self._opened() as database:
                database.executemany("INSERT OR REPLACE INTO undo VALUES (?, ?, ?)", rows)
            super().write(entries)

    def forget(self, jobs: Iterable[str]) -> None:
        """See `UndoLog.forget`."""
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
            log.error("set_aside_undo_log", file=str(aside), reason=str(error))
            return {}

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """One transaction; it is on the disk when the block ends without an error."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_private_file(self._path)
            opened = sqlite3.connect(self._path, timeout=_WAIT_S)
            with contextlib.closing(opened) as database, database:
                database.execute(_TABLE)
                yield database
        except (OSError, sqlite3.Error) as error:
            raise PeerError(
                f"{self._path} cannot be read or written, so nothing is changed: {error}"
            ) from error
