"""Adapter of a real HTCondor pool: slots, queues, histories and event logs."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeAlias

from outrider.api import (
    Batch,
    DecisionRow,
    FoundSystem,
    Lever,
    PeerError,
    ServiceNeeds,
    WaitingReason,
)
from outrider_adapters.htcondor.lease_edits import LEASES_CONFIG, LeaseTerms, Wanted
from outrider_adapters.htcondor.locating import (
    TOKENS,
    addresses,
    collector_hosts,
    event_log,
    event_logs_of,
    is_this_host,
    located,
)
from outrider_adapters.htcondor.pool_calls import AccessPoint, PoolCalls, htcondor2
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
from outrider_adapters.htcondor.settings import HTCondorSettings, WatchSettings
from outrider_adapters.logtail import LogtailSettings
from outrider_adapters.logtail.readers import wrong_with
from outrider_adapters.polling import PollingAdapter
from outrider_adapters.polling.commands import found_pool
from outrider_adapters.readers.htcondor.event_mapping import STATE_WORDS

# -- diagnosis -------------------------------------------------------------------------------------
# Checks of a pool before Outrider watches it.

Finding = tuple[str, str, str, str]
"""Subject, state (ok, warn, fail), finding and fix, in the order of ``outrider doctor``."""


def diagnosed(
    calls: PoolCalls, event_logs: Mapping[str, LogtailSettings], queue_s: float
) -> Iterator[Finding]:
    """Yield which daemons answer, and the source of each access point's jobs.

    Args:
        calls: calls to the pool.
        event_logs: readable event logs, by access point.
        queue_s: seconds between two queries of a queue without a log.
    """
    remedy = "let this host read (ALLOW_READ), or give it a token"
    try:
        slots = len(calls.collector.query(calls.slot_ads, "true", ["Name"]))
    except calls.failure as error:
        yield "collector", "fail", f"does not answer: {error}", remedy
    else:
        yield "collector", "ok", f"knows {slots} slots", ""
    for point in calls.access_points:
        what = f"access point {point.name}"
        try:
            jobs = len(point.schedd.query("true", ["ClusterId"]))
        except point.failure as error:
            yield what, "fail", f"does not answer: {error}", remedy
            continue
        yield what, *_source(point, jobs, event_logs.get(point.name), queue_s)


def _source(
    point: AccessPoint, jobs: int, log: LogtailSettings | None, queue_s: float
) -> tuple[str, str, str]:
    if log is not None:
        return "ok", f"{jobs} jobs in the queue; event log {', '.join(log.paths)}", ""
    found = (
        f"{jobs} jobs in the queue, no readable event log: the queue is queried every "
        f"{queue_s:g} s, which shows at most two runs of a job between two queries"
    )
    remedy = f'name its event log: event_logs = {{ "{point.name}" = "/var/log/condor/EventLog" }}'
    return "warn", found, remedy


# -- lever -----------------------------------------------------------------------------------------
# Lever of an HTCondor pool: jobs stay in the queue, or are sent to a group of machines.


class LeasedAttributes(Lever):
    """Lever that sets job attributes which the pool honours until a time stored in them.

    A deferred job starts nowhere, and may be shown as held (`defer_by`). A job that is to start is
    sent to the machine group of the decision, or prefers it (`start_by`), and may come before the
    others of its user (`start_first`). The calls are made in a separate process, with the right to
    edit all users' jobs: a token of a queue super user.
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
        """Apply decisions; also refuse jobs whose requirements do not support leases."""
        wanted = {d.job: Wanted(d.action == "defer", d.machine or "") for d in decisions}
        refused: dict[str, str] = self._ask(LEASE, (self._terms, wanted))
        return refused

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        """Withdraw leases; see `Lever.withdraw`."""
        refused: dict[str, str] = self._ask(RELEASE, (self._terms, list(jobs)))
        return refused

    def withdraw_all(self) -> int:
        """Withdraw all leases; see `Lever.withdraw_all`."""
        jobs: int = self._ask(RELEASE_ALL, self._terms)
        return jobs

    def prove(self) -> list[Finding]:
        """Prove the lever at each access point by a job on hold; see `Lever.prove`."""
        found: list[Finding] = self._ask(PROVE, self._terms)
        return found

    def close(self) -> None:
        """End the process that queries the pool."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _ask(self, question: str, argument: Any) -> Any:
        if self._process is None:
            self._process = PoolProcess(self.adapter.settings)
        try:
            return self._process.ask(question, argument)
        except RuntimeError as error:  # it is gone: the next question starts another
            self.close()
            raise PeerError(f"the pool cannot be asked: {error}") from error


# -- adapter ---------------------------------------------------------------------------------------
# Common base of the adapters of an HTCondor pool.


class CondorAdapter(PollingAdapter):
    """Base class of adapters that poll an HTCondor pool."""

    settings_type: ClassVar[type[WatchSettings]] = WatchSettings
    sees: ClassVar[tuple[str, ...]] = (
        "joined", "left", "owner_came", "owner_went", "usable", "drained", "asleep", "woken",
        "power", "submitted", "started", "suspended", "resumed", "evicted", "completed", "removed",
        "held", "released", "changed", "eligible", "disconnected", "reconnected",
    )  # fmt: skip

    discipline = "first_fit"  # the negotiator passes over what it cannot match
    state_words = STATE_WORDS
    incumbent = "user_priority"  # without a rank, all machines are the same to it


# -- real pool -------------------------------------------------------------------------------------


class HTCondorAdapter(CondorAdapter):
    """Adapter that watches a pool by calls with read access, and by readable event logs.

    The settings determine the queries and their interval. The calls are made in a separate process
    (`PoolProcess`). Only its lever, which has another process, changes anything in the pool.

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
        """Return the pool that this host is configured for."""
        return found_pool()

    @classmethod
    def check_source(cls, settings: Any) -> list[str]:
        """Return the problems of the event logs in the settings, a sentence each."""
        logs = (event_log(path, settings) for path in settings.event_logs.values())
        return [sentence for log in logs for sentence in wrong_with(log)]

    def diagnose(self) -> list[Finding]:
        """Return findings for ``outrider doctor``: daemons, sources of jobs, support for leases."""
        try:
            found: list[Finding] = asked_once(self._settings, DIAGNOSE)
        except PeerError as error:
            return [("collector", "fail", str(error), "start the pool, or fix the settings")]
        return found

    def machine_attributes(self) -> dict[str, dict[str, str]]:
        """Return the site's own attributes in slot ads. Raises `PeerError`: no answer."""
        found: dict[str, dict[str, str]] = asked_once(self._settings, ATTRIBUTES)
        return found

    def service_needs(self) -> ServiceNeeds:
        """Return the hosts to connect to, the logs to read, and the token folder."""
        return needs_of(self._settings, partial(asked_once, self._settings, HOSTS_AND_LOGS))

    def begin(self, cursor: Any) -> None:
        """Find the pool, and begin at a cursor.

        Raises:
            PeerError: it cannot be found.
            ValueError: the cursor was not made by this adapter.
            RuntimeError: the process that queries the pool failed.
        """
        self._process = PoolProcess(self._settings)
        if self._closing:  # the daemon was stopped a moment ago
            self._process.kill()
        self._process.ask(BEGIN, cursor)

    def look(self) -> Batch:
        """Return what happened since the last look. Raises `RuntimeError` if the process failed."""
        if self._process is None:
            raise RuntimeError("look() before begin()")
        batch: Batch = self._process.ask(LOOK)
        if batch.cursor == SAME_CURSOR:
            batch.cursor = self._cursor
        self._cursor = batch.cursor
        return batch

    def pause_s(self, batch: Batch) -> float:
        """Return the seconds to the next look; 0 while history is read."""
        return 0.0 if batch.seen_until_s is None and batch.events else self._settings.look_s

    def end(self) -> None:
        """End the process that queries the pool."""
        if self._process is not None:
            self._process.close()
            self._process = None

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        """Return why a job is not running, from HTCondor now. Raises `PeerError`: no answer."""

        def asked() -> WaitingReason | None:
            if self._process is None:
                raise PeerError("the pool has not been found yet")
            reason: WaitingReason | None = self._process.ask(WHY, job)
            return reason

        return await self.answer(asked)

    async def __aenter__(self) -> Self:
        """Start a thread that waits for the other process."""
        self._closing = False
        return await super().__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        """End the process without waiting for an answer, then close."""
        self._closing = True
        if self._process is not None:
            self._process.kill()
        await super().__aexit__(*raised)


# -- service needs ---------------------------------------------------------------------------------
# Needs of a service next to an HTCondor pool: its daemons' addresses, logs and tokens.

_VARIABLES: Final = ("CONDOR_CONFIG",)
_BY_FOLDERS: Final = (
    "Without a token, HTCondor identifies users of its own host by a folder that they create in "
    "/tmp (FS authentication)."
)
_NOWHERE: Final = "/dev/null"
"""Value that the bindings give to CONDOR_CONFIG if no pool is configured."""
HostsAndLogs: TypeAlias = tuple[dict[str, str], list[str]]
"""Addresses of access points, with what each is; paths of the event logs that can be read here."""


def hosts_and_logs(settings: HTCondorSettings) -> HostsAndLogs:
    """Return the hosts and logs that the pool names. Raises `PeerError`: no answer."""
    _, ads = located(settings.collector, settings.access_points)
    hosts = {address: f"access point {n}" for n, ad in ads.items() for address in addresses(ad)}
    return hosts, [p for log in event_logs_of(ads, settings).values() for p in log.paths]


def needs_of(settings: HTCondorSettings, ask: Callable[[], HostsAndLogs]) -> ServiceNeeds:
    """Return the hosts, files and token folder that the adapter needs, as far as known.

    Args:
        settings: settings of the adapter.
        ask: `hosts_and_logs`, called so that a pool without an answer blocks no other check.
    """
    hosts = dict.fromkeys(collector_hosts(_collector(settings)), "HTCondor's collector")
    logs = [*settings.event_logs.values()]
    unknown = ""
    collectors = list(hosts)
    try:
        found = ask()
    except PeerError as error:
        unknown = f"the addresses of HTCondor's access points are not known: {error}"
    else:
        hosts |= found[0]
        logs += found[1]
    environment = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}
    if environment.get("CONDOR_CONFIG") == _NOWHERE:
        del environment["CONDOR_CONFIG"]
    tokens = str(htcondor2.param.get(TOKENS) or "")
    has_token = _has_files(tokens)
    return ServiceNeeds(
        hosts=hosts,
        files=tuple(dict.fromkeys([*logs, *environment.values()])),
        token_folders={tokens: f"_CONDOR_{TOKENS}"} if has_token else {},
        environment=environment,
        shared_tmp=_BY_FOLDERS if not has_token and any(map(is_this_host, collectors)) else "",
        unknown_hosts=unknown,
        notes=(unknown,) if unknown else (),
    )


def _collector(settings: HTCondorSettings) -> str:
    return settings.collector or str(htcondor2.param.get("COLLECTOR_HOST") or "")


def _has_files(folder: str) -> bool:
    try:
        return bool(folder) and any(path.is_file() for path in Path(folder).iterdir())
    except OSError:
        return False
