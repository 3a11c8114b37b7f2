"""The contract of a lever: something that Outrider may change in a batch system, for a while.

A lever belongs to an adapter, which declares it (`outrider.api.Adapter.levers`). It is handed the
decisions that the gate answered with *act*, after they were recorded, many at a time, and again
for as long as they stand. None is made in a mode that never acts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from outrider.model.decisions import DecisionRow


class Lever:
    """Base of every lever.

    Whatever it changes lapses *by itself*: the batch system forgets it `lease_s` after `apply`,
    also if Outrider was killed in between. What users asked for (requirements, rank, priority,
    holds) is never edited, or is in the adapter's undo log before it is written over. All methods
    may block: they are called in a thread of the lever's own, one call at a time; what they raise
    is logged and counted.

    Class variables:
        name, description: as in `outrider.api.Policy`.
        actions: the decisions that it carries out, such as ``("start", "defer")``: some of
            `outrider.model.decisions.ACTIONS`. An action has one lever of an adapter.
        places: whether a job that is to start is sent to the machine that was decided for; else
            it may begin, and where is the batch system's matter.
        setup: what an administrator adds to the batch system's configuration, once, so that it
            heeds the lever, with its explanation; empty if nothing has to be.

    Args:
        adapter: the adapter that declares it, made with its settings; perhaps not open.

    Attributes:
        lease_s: for how many seconds a change lasts that is not renewed; above 0.
        lasts: whether a part of what it changes stays until it is taken back. That is in the
            adapter's undo log, marked as such, and ``outrider release --stale`` takes it back
            where nobody has renewed it. Never without the administrator having asked for it.
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
        """Make the changes of decisions; again for the same job: renew it for another `lease_s`.

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
        """Take back what `apply` changed for some jobs, before it lapses.

        For a job for which there is nothing to take back, nothing is done.

        Returns:
            the jobs for which that was refused, and why.

        Raises:
            PeerError: the batch system does not answer.
        """
        raise NotImplementedError

    def withdraw_all(self) -> int:
        """Take back whatever Outrider has changed, this daemon or one before it.

        Returns:
            for how many jobs there was something to take back.

        Raises:
            PeerError: the batch system refused or does not answer.
        """
        raise NotImplementedError

    def withdraw_stale(self) -> int:
        """Take back what lasts and was not renewed in time, whoever made it.

        Returns:
            for how many jobs there was something to take back.

        Raises:
            PeerError: the batch system refused or does not answer.
        """
        return 0

    def prove(self) -> Sequence[tuple[str, str, str, str]]:
        """Try it on a job of its own, which leaves nothing behind; no job of a user is touched.

        Returns:
            findings: what was tried, ``ok`` or ``warn`` or ``fail``, what was found, and a remedy
            (empty where all is well). None where it cannot be tried without a user's job.

        Raises:
            PeerError: the batch system does not answer.
        """
        return ()

    def hurry(self) -> None:
        """Begin nothing more in `apply`: the daemon ends, and is about to take changes back.

        Called from another thread, perhaps during a call, which may then return at once.
        """

    def close(self) -> None:
        """End what it opened. Called once, after everything else."""


# -- undo log --------------------------------------------------------------------------------------
# What stood in a batch system before a lever changed it: written before the change is made.


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
