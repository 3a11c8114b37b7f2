"""The adapter of a real HTCondor pool: slots, queues, histories and event logs."""

from functools import partial
from typing import Any, ClassVar, Self

from outrider.api import Batch, FoundSystem, PeerError, ServiceNeeds, WaitingReason
from outrider_adapters.found_commands import found_pool
from outrider_adapters.htcondor.adapter import CondorAdapter
from outrider_adapters.htcondor.diagnosis import Finding
from outrider_adapters.htcondor.lever import LeasedAttributes
from outrider_adapters.htcondor.locating import event_log
from outrider_adapters.htcondor.pool_process import (
    ATTRIBUTES,
    BEGIN,
    DIAGNOSE,
    HOSTS_AND_LOGS,
    LOOK,
    SAME_CURSOR,
    WHY,
    PoolProcess,
    asked_once,
)
from outrider_adapters.htcondor.real_pool_settings import HTCondorSettings
from outrider_adapters.htcondor.service_needs import needs_of
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.logtail.first_look import wrong_with


class HTCondorAdapter(CondorAdapter):
    """Watches a pool by calls that need the right to read, and by the event logs it may read.

    What is asked, and how often, is in the settings. The calls are made in a process of their own
    (`PoolProcess`). Nothing is changed in the pool but by its lever, which has another.

    Raises:
        PluginError: HTCondor's Python bindings are not installed.
    """

    name: ClassVar[str] = "htcondor"
    description: ClassVar[str] = "watches an HTCondor pool: slots, queues and event logs"
    api_version = 1
    levers = (LeasedAttributes,)
    settings_type: ClassVar[type[WatchSettings]] = HTCondorSettings
    cluster_setting = "cluster_attribute"
    pattern_setting = "machine_clusters"

    def __init__(self, label: str, settings: HTCondorSettings) -> None:
        super().__init__(label, settings)
        self._settings = settings
        self._process: PoolProcess | None = None
        self._cursor: Any = None
        self._closing = False

    @classmethod
    def found_here(cls) -> FoundSystem | None:
        """The pool that this host is configured for."""
        return found_pool()

    @classmethod
    def check_source(cls, settings: Any) -> list[str]:
        """What is wrong with the event logs that the settings name, a sentence each."""
        logs = (event_log(path, settings) for path in settings.event_logs.values())
        return [sentence for log in logs for sentence in wrong_with(log)]

    def diagnose(self) -> list[Finding]:
        """For ``outrider doctor``: who answers, from where jobs are known, who heeds leases."""
        try:
            found: list[Finding] = asked_once(self._settings, DIAGNOSE)
        except PeerError as error:
            return [("collector", "fail", str(error), "start the pool, or mend the settings")]
        return found

    def machine_attributes(self) -> dict[str, dict[str, str]]:
        """What the site has the slot ads say. Raises `PeerError`: no answer."""
        found: dict[str, dict[str, str]] = asked_once(self._settings, ATTRIBUTES)
        return found

    def service_needs(self) -> ServiceNeeds:
        """Who is asked, which logs are read, and where the tokens are."""
        return needs_of(self._settings, partial(asked_once, self._settings, HOSTS_AND_LOGS))

    def begin(self, cursor: Any) -> None:
        """Find the pool, and begin at a cursor.

        Raises:
            PeerError: it cannot be found.
            ValueError: the cursor is none of this adapter's.
            RuntimeError: the process that asks failed.
        """
        self._process = PoolProcess(self._settings)
        if self._closing:  # the daemon was stopped a moment ago
            self._process.kill()
        self._process.ask(BEGIN, cursor)

    def look(self) -> Batch:
        """What happened since the last look. Raises `RuntimeError` if the asking process failed."""
        if self._process is None:
            raise RuntimeError("look() before begin()")
        batch: Batch = self._process.ask(LOOK)
        if batch.cursor == SAME_CURSOR:
            batch.cursor = self._cursor
        self._cursor = batch.cursor
        return batch

    def pause_s(self, batch: Batch) -> float:
        """Seconds to the next look; none while history is read."""
        return 0.0 if batch.seen_until_s is None and batch.events else self._settings.look_s

    def end(self) -> None:
        """End the process that asks."""
        if self._process is not None:
            self._process.close()
            self._process = None

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        """Why a job is not running, as HTCondor says it now. Raises `PeerError`: no answer."""

        def asked() -> WaitingReason | None:
            if self._process is None:
                raise PeerError("the pool has not been found yet")
            said: WaitingReason | None = self._process.ask(WHY, job)
            return said

        return await self.answer(asked)

    async def __aenter__(self) -> Self:
        """Get a thread, in which the other process is waited for."""
        self._closing = False
        return await super().__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        """Wait for no answer; then close."""
        self._closing = True
        if self._process is not None:
            self._process.kill()
        await super().__aexit__(*raised)
