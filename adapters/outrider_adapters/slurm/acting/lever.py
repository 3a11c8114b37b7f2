"""The lever of a Slurm: jobs stay in the queue until a start time that lapses by itself.

Where the settings ask for it, jobs that are to start are raised above the others, and are given
back the age that their deferral took: that does not lapse.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from outrider.api import DecisionRow, Lever
from outrider_adapters.noted_changes import Pace
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.acting.controller import Controller
from outrider_adapters.slurm.acting.fence import Fence, Finding
from outrider_adapters.slurm.acting.helper.client import HelperClient
from outrider_adapters.slurm.acting.job_acts import JobActs
from outrider_adapters.slurm.acting.job_updates import JobUpdates, Scontrol, Updater
from outrider_adapters.slurm.acting.taking_back import TakingBack
from outrider_adapters.slurm.commands import SlurmCommands


class LeasedStartTimes(Lever):
    """Moves the start time of deferred jobs a lease ahead, again and again.

    A job that is to start may begin at once; where it runs stays Slurm's matter, and which of those
    that may begin comes first, unless `order_by` says otherwise.

    Args:
        adapter: of the Slurm.
        now: this host's clock, Unix seconds.
    """

    name = "leased_start_times"
    description = "keeps jobs in the queue by a start time a lease ahead, which lapses by itself"
    actions = ("start", "defer")
    places = False

    def __init__(self, adapter: Any, now: Callable[[], float] = time.time) -> None:
        super().__init__(adapter)
        settings = adapter.settings
        self.lease_s = settings.lease_s
        self.lasts = settings.changes_last
        self._now = now
        self._commands = SlurmCommands(settings)
        self._updater: Updater = (
            Scontrol(self._commands)
            if settings.helper is None
            else HelperClient(settings.helper, settings.answer_within_s)
        )
        self._pace = Pace(settings.updates_per_s)
        self._updates = JobUpdates(self._updater, self._pace, self._forbids)

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        """As `Lever.apply`."""
        controller = self._acts.controller
        now_s = controller.now_s()
        if self._fence is not None:
            self._fence.hold(now_s, controller.acting_users())
        _, refused = self._taking_back.overdue(now_s)
        kept = [one.job for one in decisions if one.action == "defer"]
        free = [one.job for one in decisions if one.action == "start"]
        return refused | self._acts.apply(kept, free, now_s)

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        """As `Lever.withdraw`. Age that jobs lost stays given back for as long as they wait."""
        return self._taking_back.withdraw(jobs)

    def withdraw_all(self) -> int:
        """As `Lever.withdraw_all`; the undo log tells of whom."""
        return self._taking_back.withdraw_all()

    def withdraw_stale(self) -> int:
        """As `Lever.withdraw_stale`."""
        return self._taking_back.withdraw_stale()

    def prove(self) -> list[Finding]:
        """As `Lever.prove`: by a fence that is cancelled at once."""
        if self._fence is None:
            return []
        controller = self._acts.controller
        return [self._fence.prove(controller.now_s(), controller.acting_users())]

    def hurry(self) -> None:
        """As `Lever.hurry`."""
        self._pace.hurry()

    def close(self) -> None:
        """Let another Outrider act, and end a command that runs."""
        fence = self.__dict__.get("_fence")  # where one was needed
        if fence is not None:
            with contextlib.suppress(CommandError):  # it lapses by itself
                fence.leave()
        self._commands.close()

    def _forbids(self) -> str:
        if self._fence is None or self._fence.stands:
            return ""
        return "its turn came so late that the fence had lapsed; it is asked for again"

    # what needs the undo log is made when it is needed: the adapter gets it after its levers

    @cached_property
    def _fence(self) -> Fence | None:
        settings = self.adapter.settings
        if not settings.fence:
            return None
        return Fence(
            self._commands,
            self._updater,
            self.adapter.identity,
            self.lease_s,
            settings.fence_partition,
        )

    @cached_property
    def _acts(self) -> JobActs:
        controller = Controller(self._commands, self.lease_s, self._now)
        return JobActs(controller, self._updates, self.adapter.undo_log, self.adapter.settings)

    @cached_property
    def _taking_back(self) -> TakingBack:
        return TakingBack(self._acts, self._updates)
