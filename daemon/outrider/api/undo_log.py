"""What stood in a batch system before a lever changed it: written before the change is made."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


class Undo(msgspec.Struct, frozen=True, gc=False):
    """How to take one change back.

    Attributes:
        until_s: when the change lapses or, if it does not by itself, is to be taken back unless
            it is renewed (Unix seconds).
        before: what stood before it, as JSON types.
        lasts: whether it stays in the batch system until somebody takes it back.
    """

    until_s: float
    before: dict[str, Any]
    lasts: bool = False


class UndoLog:
    """The changes of one adapter's lever, by job.

    An adapter reads it to tell what users asked for from what Outrider wrote over it; a lever
    writes it. This base keeps it in memory; the daemon and ``outrider release`` give every adapter
    one that is kept in the state directory. Any thread may call it.

    Attributes:
        entries: of all jobs; another mapping after each change, so that it can be read at leisure.
    """

    def __init__(self) -> None:
        self.entries: Mapping[str, Undo] = {}
        self._parts: dict[str, UndoLog] = {}

    def part(self, name: str) -> "UndoLog":
        """A log kept apart, for another thing that is changed of the same jobs."""
        if name not in self._parts:
            self._parts[name] = self._begin_part(name)
        return self._parts[name]

    def _begin_part(self, name: str) -> "UndoLog":
        return UndoLog()

    def write(self, entries: Mapping[str, Undo]) -> None:
        """Note these, in place of what was noted for the same jobs; they are kept on return.

        Raises:
            PeerError: they cannot be kept, so the changes must not be made.
        """
        self.entries = {**self.entries, **entries}

    def forget(self, jobs: Iterable[str]) -> None:
        """These jobs are gone, or are as they were. Raises `PeerError` as `write`."""
        gone = set(jobs)
        self.entries = {job: undo for job, undo in self.entries.items() if job not in gone}
