"""The adapter of a PBS server: jobs and nodes, by its own commands."""

from typing import Any, ClassVar, Self

from outrider.api import Batch, FoundSystem, PeerError, ServiceNeeds, WaitingReason
from outrider_adapters.found_commands import found_by_commands
from outrider_adapters.pbs.diagnosis import Finding, diagnosed
from outrider_adapters.pbs.dialects import dialect_of, pbs_commands
from outrider_adapters.pbs.lever import LeasedExecutionTimes
from outrider_adapters.pbs.pbs_watch import PBSWatch
from outrider_adapters.pbs.service_needs import needs_of, signs_of_pbs
from outrider_adapters.pbs.settings import PBSSettings
from outrider_adapters.polling import PollingAdapter
from outrider_adapters.readers.pbs.state_words import STATE_WORDS


class PBSAdapter(PollingAdapter):
    """Watches a server by ``qstat`` and ``pbsnodes``.

    What is asked, and how often, is in the settings. Only its lever changes anything.
    """

    name: ClassVar[str] = "pbs"
    description: ClassVar[str] = "watches a PBS server (OpenPBS, Torque): its queue and nodes"
    api_version = 1
    settings_type: ClassVar[type[PBSSettings]] = PBSSettings
    sees: ClassVar[tuple[str, ...]] = (
        "joined", "left", "usable", "drained", "asleep", "woken", "submitted", "started",
        "suspended", "resumed", "evicted", "completed", "removed", "held", "released", "changed",
    )  # fmt: skip
    pattern_setting = "machine_clusters"
    levers = (LeasedExecutionTimes,)
    discipline = "easy"  # strict order with backfill is what its schedulers come with
    incumbent = "fifo"
    state_words = STATE_WORDS

    def __init__(self, label: str, settings: PBSSettings) -> None:
        super().__init__(label, settings)
        self._settings = settings
        self._commands = pbs_commands(settings)
        self._watch: PBSWatch | None = None

    @classmethod
    def found_here(cls) -> FoundSystem | None:
        """A PBS of which this host has the commands and the configuration."""
        return found_by_commands("PBS", "qstat", signs_of_pbs())

    def diagnose(self) -> list[Finding]:
        """For ``outrider doctor``: who answers, and what is known of ends."""
        return list(diagnosed(self._settings))

    def service_needs(self) -> ServiceNeeds:
        """Who is asked, and which files its commands read."""
        return needs_of(self._settings)

    def begin(self, cursor: Any) -> None:
        """Find out whose commands these are, and begin at a cursor.

        Raises:
            PeerError: there is no qstat.
            ValueError: the cursor is none of this adapter's.
        """
        dialect = dialect_of(self._settings, self._commands)
        self._watch = PBSWatch(dialect, self._settings, undo_log=self.undo_log)
        self._watch.start(cursor)

    def look(self) -> Batch:
        """What happened since the last look."""
        if self._watch is None:
            raise RuntimeError("look() before begin()")
        batch = self._watch.look()
        self.planned_starts = self._watch.planned_starts
        return batch

    def pause_s(self, batch: Batch) -> float:
        """Seconds to the next look."""
        return self._settings.look_s

    def end(self) -> None:
        """Nothing is open between looks."""

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        """Why a job is not running, as PBS says it now. Raises `PeerError`: no answer."""

        def asked() -> WaitingReason | None:
            if self._watch is None:
                raise PeerError("the server has not been asked yet")
            return self._watch.why(job)

        return await self.answer(asked)

    async def __aenter__(self) -> Self:
        """Get a thread, and commands that may run until the adapter is left."""
        self._commands = pbs_commands(self._settings)
        return await super().__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        """Wait for no command; then close."""
        self._commands.close()
        await super().__aexit__(*raised)
