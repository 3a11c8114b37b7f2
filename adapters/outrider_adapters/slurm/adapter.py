"""The adapter of a Slurm cluster: jobs, nodes and limits, by its own commands."""

import os
from typing import Any, ClassVar, Final, Self

from outrider.api import Batch, FoundSystem, ServiceNeeds, WaitingReason
from outrider_adapters.found_commands import found_by_commands
from outrider_adapters.polling import PollingAdapter
from outrider_adapters.readers.slurm.state_words import STATE_WORDS
from outrider_adapters.slurm.acting.lever import LeasedStartTimes
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.diagnosis import Finding, diagnosed
from outrider_adapters.slurm.questions import ask_why
from outrider_adapters.slurm.service_needs import needs_of
from outrider_adapters.slurm.settings import SlurmSettings
from outrider_adapters.slurm.slurm_watch import SlurmWatch

USUAL: Final = (
    "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf", "/etc/slurm-llnl/slurm.conf",
)  # fmt: skip
"""Where slurm.conf is; the second where slurmctld hands it out."""


class SlurmAdapter(PollingAdapter):
    """Watches a cluster by ``squeue``, ``scontrol show`` and ``sacct``.

    What is asked, and how often, is in the settings. Only its lever changes anything.
    """

    name: ClassVar[str] = "slurm"
    description: ClassVar[str] = "watches a Slurm cluster: its queue, nodes and limits"
    api_version = 1
    settings_type: ClassVar[type[SlurmSettings]] = SlurmSettings
    sees: ClassVar[tuple[str, ...]] = (
        "joined", "left", "usable", "drained", "asleep", "woken", "power", "submitted", "started",
        "suspended", "resumed", "evicted", "completed", "removed", "held", "released", "changed",
        "eligible",
    )  # fmt: skip
    levers = (LeasedStartTimes,)
    pattern_setting = "machine_clusters"
    discipline = "easy"  # its backfill lets nobody delay the first in line; further plans it redoes
    incumbent = "multifactor"
    state_words = STATE_WORDS

    def __init__(self, label: str, settings: SlurmSettings) -> None:
        super().__init__(label, settings)
        self._settings = settings
        self._commands = SlurmCommands(settings)
        self._watch = SlurmWatch(self._commands, settings)

    @classmethod
    def found_here(cls) -> FoundSystem | None:
        """A Slurm of which this host has the commands and the configuration."""
        return found_by_commands("Slurm", "squeue", (os.environ.get("SLURM_CONF", ""), *USUAL))

    def diagnose(self) -> list[Finding]:
        """For ``outrider doctor``: who answers, and what may be seen."""
        return list(diagnosed(self._commands, self._settings))

    def service_needs(self) -> ServiceNeeds:
        """Who is asked, and which files its commands read."""
        return needs_of(self._settings, self._commands)

    def begin(self, cursor: Any) -> None:
        """Find out which cluster this is, and begin at a cursor.

        Raises:
            PeerError: no controller answers, or the cluster is in a federation.
            ValueError: the cursor is none of this adapter's.
        """
        self._watch = SlurmWatch(self._commands, self._settings, self.undo_log)
        self._watch.start(cursor)

    def look(self) -> Batch:
        """What happened since the last look."""
        batch = self._watch.look()
        self.planned_starts = self._watch.planned_starts
        return batch

    def pause_s(self, batch: Batch) -> float:
        """Seconds to the next look."""
        return self._watch.pause_s

    def end(self) -> None:
        """Nothing is open between looks."""

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        """Why a job is not running, as Slurm says it now. Raises `PeerError`: no answer."""
        return await self.answer(lambda: ask_why(self._watch, self._commands, job))

    async def __aenter__(self) -> Self:
        """Get a thread, and commands that may run until the adapter is left."""
        self._commands = SlurmCommands(self._settings)
        return await super().__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        """Wait for no command; then close."""
        self._commands.close()
        await super().__aexit__(*raised)
