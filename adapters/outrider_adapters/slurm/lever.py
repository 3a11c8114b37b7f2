"""The lever of a Slurm: jobs stay in the queue until a start time that lapses by itself."""

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from outrider.api import DecisionRow, Lever
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.start_times import StartTimes


class LeasedStartTimes(Lever):
    """Moves the start time of deferred jobs a lease ahead, again and again.

    A job that is to start may begin at once; where it runs, and which of those that may begin comes
    first, stays Slurm's matter.
    """

    name = "leased_start_times"
    description = "keeps jobs in the queue by a start time a lease ahead, which lapses by itself"
    actions = ("start", "defer")
    places = False

    def __init__(self, adapter: Any) -> None:
        super().__init__(adapter)
        self.lease_s = adapter.settings.lease_s
        self._commands = SlurmCommands(adapter.settings)

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        """As `Lever.apply`."""
        kept = [one.job for one in decisions if one.action == "defer"]
        free = [one.job for one in decisions if one.action == "start"]
        refused = self._start_times.release(free) if free else {}
        return refused | (self._start_times.defer(kept) if kept else {})

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        """As `Lever.withdraw`."""
        return self._start_times.release(jobs)

    def withdraw_all(self) -> int:
        """As `Lever.withdraw_all`; the undo log tells of whom."""
        return self._start_times.release_all()

    def close(self) -> None:
        """End a command that runs."""
        self._commands.close()

    @cached_property
    def _start_times(self) -> StartTimes:
        # not when it is made: the adapter gets its undo log after that
        return StartTimes(self._commands, self.adapter.undo_log, self.lease_s, time.time)
