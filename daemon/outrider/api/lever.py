"""Contract of a lever: a temporary change that Outrider may make in a batch system.

A lever belongs to an adapter, which declares it (`outrider.api.Adapter.levers`). It gets the
decisions to which the gate answered *act*, after they were recorded, many at a time, and again
for as long as they are valid. No lever is created in a mode that never acts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from outrider.model.decisions import DecisionRow


class Lever:
    """Base class of every lever.

    Every change expires *automatically*: the batch system forgets it `lease_s` after `apply`, even
    if Outrider was killed in between. What users requested (requirements, rank, priority, holds) is
    never edited, or is in the adapter's undo log before it is overwritten. All methods may block:
    they are called in a thread of the lever's own, one call at a time. Their exceptions are logged
    and counted.

    Class variables:
        name, description: as in `outrider.api.Policy`.
        actions: the decisions that it executes, such as ``("start", "defer")``: some of
            `outrider.model.decisions.ACTIONS`. Each action has one lever of an adapter.
        places: whether a job that is to start is sent to the machine that was decided for; if not,
            it may begin, and the batch system chooses where.
        setup: what an administrator adds to the batch system's configuration, once, so that it
            honours the lever, with its explanation; empty if nothing is needed.

    Args:
        adapter: the adapter that declares it, made with its settings; it may not be open.

    Attributes:
        lease_s: seconds that a change lasts if it is not renewed; above 0.
        lasts: whether a part of what it changes stays until it is reverted. That part is marked in
            the adapter's undo log, and ``outrider release --stale`` reverts it if it was not
            renewed. Only if the administrator has asked for it.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    actions: ClassVar[tuple[str, ...]]
    places: ClassVar[bool] = True
    setup: ClassVar[str] = ""
    lease_s: float
    lasts: bool = False

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter

    def apply(self, decisions: Sequence[DecisionRow]) -> Mapping[str, str]:
        """Make the changes of decisions; for a job changed before, renew it for another `lease_s`.

        Args:
            decisions: of different jobs; they name jobs and machines as the batch system does.

        Returns:
            the jobs for which the batch system refused, or does not show the change when it is
            read back, and why.

        Raises:
            PeerError: it does not answer, or nothing may be changed in it at present.
        """
        raise NotImplementedError

    def withdraw(self, jobs: Sequence[str]) -> Mapping[str, str]:
        """Revert what `apply` changed for some jobs, before it expires.

        Does nothing for a job without a change.

        Returns:
            the jobs for which that was refused, and why.

        Raises:
            PeerError: the batch system does not answer.
        """
        raise NotImplementedError

    def withdraw_all(self) -> int:
        """Revert everything Outrider has changed, in this daemon's life or before.

        Returns:
            the number of jobs for which something was reverted.

        Raises:
            PeerError: the batch system refused or does not answer.
        """
        raise NotImplementedError

    def withdraw_stale(self) -> int:
        """Revert lasting changes that were not renewed in time, by any daemon.

        Returns:
            the number of jobs for which something was reverted.

        Raises:
            PeerError: the batch system refused or does not answer.
        """
        return 0

    def prove(self) -> Sequence[tuple[str, str, str, str]]:
        """Try the lever on a test job that leaves nothing behind; no user's job is touched.

        Returns:
            findings: what was tried, ``ok`` or ``warn`` or ``fail``, what was found, and a fix
            (empty where all is well). No findings where it cannot be tried without a user's job.

        Raises:
            PeerError: the batch system does not answer.
        """
        return ()

    def hurry(self) -> None:
        """Begin nothing more in `apply`: the daemon ends, and is about to revert changes.

        Called from another thread, perhaps during a call, which may then return immediately.
        """

    def close(self) -> None:
        """Close what it opened. Called once, after everything else."""


# -- undo log --------------------------------------------------------------------------------------
# The state of a batch system before a lever changed it, written before the change is made.


class Undo(msgspec.Struct, frozen=True, gc=False):
    """Record of how to revert one change.

    Attributes:
        until_s: when the change expires or, if it does not do so automatically, is to be reverted
            unless it is renewed (Unix seconds).
        before: the state before it, as JSON types.
        lasts: whether it stays in the batch system until it is reverted.
    """

    until_s: float
    before: dict[str, Any]
    lasts: bool = False


class UndoLog:
    """Changes of one adapter's lever, by job.

    An adapter reads it to distinguish what users requested from what Outrider wrote over it; a
    lever writes it. This base class keeps it in memory. The daemon and ``outrider release`` give
    every adapter one that is stored in the state directory. Any thread may call it.

    Attributes:
        entries: of all jobs; a new mapping after each change, so that readers need no lock.
    """

    def __init__(self) -> None:
        self.entries: Mapping[str, Undo] = {}
        self._parts: dict[str, UndoLog] = {}

    def part(self, name: str) -> "UndoLog":
        """Return a separate log, for another kind of change to the same jobs."""
        if name not in self._parts:
            self._parts[name] = self._begin_part(name)
        return self._parts[name]

    def _begin_part(self, name: str) -> "UndoLog":
        return UndoLog()

    def write(self, entries: Mapping[str, Undo]) -> None:
        """Store these entries, replacing those of the same jobs; they are durable on return.

        Raises:
            PeerError: they cannot be kept, so the changes must not be made.
        """
        self.entries = {**self.entries, **entries}

    def forget(self, jobs: Iterable[str]) -> None:
        """Drop the entries of jobs that are gone or restored. Raises `PeerError` as `write`."""
        gone = set(jobs)
        self.entries = {job: undo for job, undo in self.entries.items() if job not in gone}
