"""The adapter of a real HTCondor pool: slots, queues, histories and event logs."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

from outrider.api import (
    Batch,
    DecisionRow,
    FoundSystem,
    Lever,
    PeerError,
    ServiceNeeds,
    WaitingReason,
)
from outrider_adapters.found_commands import found_pool
from outrider_adapters.htcondor.diagnosis import Finding
from outrider_adapters.htcondor.lease_attributes import LEASES_CONFIG, LeaseTerms, Wanted
from outrider_adapters.htcondor.locating import event_log
from outrider_adapters.htcondor.pool_process import (
    ATTRIBUTES,
    BEGIN,
    DIAGNOSE,
    HOSTS_AND_LOGS,
    LEASE,
    LOOK,
    PROVE,
    RELEASE,
    RELEASE_ALL,
    SAME_CURSOR,
    WHY,
    PoolProcess,
    asked_once,
)
from outrider_adapters.htcondor.real_pool_settings import HTCondorSettings
from outrider_adapters.htcondor.service_needs import needs_of
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.logtail.first_look import wrong_with
from outrider_adapters.polling import PollingAdapter
from outrider_adapters.readers.htcondor.state_words import STATE_WORDS

# -- lever -----------------------------------------------------------------------------------------
# The lever of an HTCondor pool: jobs stay in the queue, or are sent to a group of machines.


class LeasedAttributes(Lever):
    """Sets attributes of jobs that the pool heeds while a time in them lies ahead.

    A deferred job starts nowhere, and may be shown as held (`defer_by`); one that is to start is
    sent to the machine group that was decided for, or prefers it (`start_by`), and may come before
    the others of its user (`start_first`). The pool is asked in a process of the lever's own, with
    the right to edit everybody's jobs: a token of a queue super user.
    """

    name = "leased_attributes"
    description = (
        "keeps jobs in the queue, or sends them to a group of machines, by leased attributes"
    )
    actions = ("start", "defer")
    setup = LEASES_CONFIG

    def __init__(self, adapter: Any) -> None:
        super().__init__(adapter)
        settings = adapter.settings
        self.lease_s = settings.lease_s
        self._terms = LeaseTerms(
            by=adapter.identity,
            lease_s=settings.lease_s,
            cluster_attribute=settings.cluster_attribute,
            pins=settings.start_by == "pin",
            first=settings.start_first,
            shows=settings.defer_by == "hold",
        )
        self._process: PoolProcess | None = None

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        """As `Lever.apply`; refused are jobs whose requirements heed no lease, too."""
        wanted = {d.job: Wanted(d.action == "defer", d.machine or "") for d in decisions}
        refused: dict[str, str] = self._ask(LEASE, (self._terms, wanted))
        return refused

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        """As `Lever.withdraw`."""
        refused: dict[str, str] = self._ask(RELEASE, (self._terms, list(jobs)))
        return refused

    def withdraw_all(self) -> int:
        """As `Lever.withdraw_all`."""
        jobs: int = self._ask(RELEASE_ALL, self._terms)
        return jobs

    def prove(self) -> list[Finding]:
        """As `Lever.prove`: at each access point by a job on hold."""
        found: list[Finding] = self._ask(PROVE, self._terms)
        return found

    def close(self) -> None:
        """End the process that asks."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _ask(self, question: str, argument: Any) -> Any:
        if self._process is None:
            self._process = PoolProcess(self.adapter.settings)
        try:
            return self._process.ask(question, argument)
        except RuntimeError as error:  # it is gone: the next question gets another
            self.close()
            raise PeerError(f"the pool cannot be asked: {error}") from error


# -- adapter ---------------------------------------------------------------------------------------
# What the adapters of an HTCondor pool have in common.


class CondorAdapter(PollingAdapter):
    """Base of adapters that look at an HTCondor pool again and again."""

    settings_type: ClassVar[type[WatchSettings]] = WatchSettings
    sees: ClassVar[tuple[str, ...]] = (
        "joined", "left", "owner_came", "owner_went", "usable", "drained", "asleep", "woken",
        "power", "submitted", "started", "suspended", "resumed", "evicted", "completed", "removed",
        "held", "released", "changed", "eligible", "disconnected", "reconnected",
    )  # fmt: skip

    discipline = "first_fit"  # the negotiator passes over what it cannot match
    state_words = STATE_WORDS
    incumbent = "user_priority"  # without a rank, machines are alike to it


# -- real pool -------------------------------------------------------------------------------------


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
