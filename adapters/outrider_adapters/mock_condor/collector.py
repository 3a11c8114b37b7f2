"""The collector: the latest ads of the pool, and the client that queries them."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from outrider_adapters.htcondor.pool_calls import (
    AdType,
    ClassAd,
    ClassAdException,
    DaemonType,
    ExprTree,
    HTCondorException,
)
from outrider_adapters.mock_condor.ads import at_time, holds, projected
from outrider_adapters.mock_condor.faults import Transport
from outrider_adapters.mock_condor.matchmaking import Cycle
from outrider_adapters.mock_condor.queue import JobQueue

_NO_ANSWER = "Failed communication with collector."
_FOR_LOCATION = ("MyAddress", "CondorVersion", "Name", "Machine")
_AD_TYPES = {DaemonType.Schedd: AdType.Schedd, DaemonType.Negotiator: AdType.Negotiator}
_GONE = ""
_SLOT_TYPES = (AdType.Startd, AdType.Slot)


class AdStore:
    """The newest ad of every slot, as it was when its startd advertised it.

    Args:
        stale_s: seconds until an advertised ad becomes visible (a fault).
    """

    def __init__(self, stale_s: float) -> None:
        self._stale_s = stale_s
        self._pending: deque[tuple[float, str, str]] = deque()
        self._arrived: dict[str, str] = {}
        self._visible: dict[str, ClassAd] = {}

    def advertise(self, now_s: float, name: str, ad: ClassAd | None) -> None:
        """Store the ad that a startd advertises for a slot; None: invalidate the ad."""
        if ad is not None:
            ad["MyCurrentTime"] = ad["LastHeardFrom"] = int(now_s)
        self._pending.append((now_s + self._stale_s, name, _GONE if ad is None else repr(ad)))
        self._deliver(now_s)

    def ads(self, now_s: float) -> list[ClassAd]:
        """Return the ads visible now; not copies, so callers must not change them."""
        self._deliver(now_s)
        for name, text in self._arrived.items():
            if text == _GONE:
                self._visible.pop(name, None)
            else:
                self._visible[name] = ClassAd(text)
        self._arrived.clear()
        return list(self._visible.values())

    def _deliver(self, now_s: float) -> None:
        while self._pending and self._pending[0][0] <= now_s:
            _, name, text = self._pending.popleft()
            self._arrived[name] = text


class Collector:
    """A client with the calls of ``htcondor2.Collector``.

    It knows slots (``AdType.Startd``) and one ad each of the schedd and the negotiator.
    """

    def __init__(
        self,
        ad_store: AdStore,
        daemons: Callable[[], dict[AdType, ClassAd]],
        transport: Transport,
        now: Callable[[], float],
    ) -> None:
        self._ad_store = ad_store
        self._daemons = daemons
        self._transport = transport
        self._now = now

    def query(
        self,
        ad_type: AdType = AdType.Any,
        constraint: str | None = None,
        projection: list[str] | None = None,
        statistics: str | None = None,
    ) -> list[ClassAd]:
        """Return ads of this type for which the constraint is true.

        Args:
            ad_type: types that the mock pool does not have give none.
            constraint: a ClassAd expression; None: all.
            projection: attributes to return; None or empty: all.
            statistics: ignored.

        Raises:
            HTCondorException: the collector does not answer, or the constraint does not parse.
        """
        self._transport.call(_NO_ANSWER)
        ads = self._ads(ad_type)
        if constraint:
            try:
                condition = ExprTree(at_time(str(constraint), self._now()))
            except ClassAdException as error:
                raise HTCondorException("Failed to parse constraint.") from error
            ads = [ad for ad in ads if holds(condition, ad)]
        return self._transport.answer([projected(ad, projection or ()) for ad in ads])

    def locate(self, daemon_type: DaemonType, name: str | None = None) -> ClassAd | None:
        """Return the location ad of the daemon of this type and name; None if there is none."""
        found = self.locateAll(daemon_type)
        return next((ad for ad in found if name in (None, ad["Name"])), None)

    def locateAll(self, daemon_type: DaemonType) -> list[ClassAd]:  # noqa: N802  # htcondor2's name
        """Return the location ads of the daemons of this type."""
        if daemon_type not in _AD_TYPES:
            return []
        return self.query(_AD_TYPES[daemon_type], projection=list(_FOR_LOCATION))

    def _ads(self, ad_type: AdType) -> list[ClassAd]:
        slots = self._ad_store.ads(self._now())
        daemons = self._daemons()
        if ad_type == AdType.Any:
            return [*slots, *daemons.values()]
        if ad_type in _SLOT_TYPES:
            return slots
        return [daemons[ad_type]] if ad_type in daemons else []


# -- machines --------------------------------------------------------------------------------------
# The declaration of a machine of the pool.

OWNER_AWAY: Final = "(OwnerActive isnt true)"
"""Value of ``START`` of a machine that takes jobs whenever its owner is away."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine with static slots of equal size.

    Attributes:
        name: its host name; its slots are ``slot1@name``, ``slot2@name``, ...
        cluster: published as ``MachineCluster``.
        slots: number of slots.
        cpus: CPUs per slot.
        memory_mb: memory per slot.
        start: the ``START`` expression. It may refer to ``OwnerActive`` and ``KeyboardIdle``
            (seconds since the owner left), and to the job as ``TARGET``. A running job is evicted
            as soon as it is false.
        rank: the machine's ``RANK`` of jobs.
        attributes: further attributes of the slot ads, as ClassAd expressions
            (``{"Watts": "85", "OpSys": '"LINUX"'}``).
    """

    name: str
    cluster: str = "default"
    slots: int = 1
    cpus: int = 1
    memory_mb: int = 2048
    start: str = OWNER_AWAY
    rank: str = "0.0"
    attributes: Mapping[str, str] = {}


# -- daemons ---------------------------------------------------------------------------------------
# The ads of the daemons that a client can locate: the schedd and the negotiator.

_VERSION: Final = "$CondorVersion: 25.14.1 2026-09-24 BuildID: MockPool $"


def schedd_name(domain: str) -> str:
    """Return the name of a pool's schedd, which is also the prefix of its job ids."""
    return f"schedd@{domain}"


def daemon_ads(domain: str, queue: JobQueue, cycle: Cycle, now_s: float) -> dict[AdType, ClassAd]:
    """Up-to-date ads of both daemons.

    Args:
        domain: the pool's domain, also the host name of both.
        queue: the schedd's queue.
        cycle: the negotiator's last cycle.
        now_s: the pool's time.
    """
    common = {
        "Machine": domain,
        "MyAddress": "<127.0.0.1:0?sock=mock>",
        "CondorVersion": _VERSION,
        "MyCurrentTime": int(now_s),
        "LastHeardFrom": int(now_s),
    }
    schedd = {
        "MyType": "Scheduler",
        "Name": schedd_name(domain),
        **{f"Total{state}Jobs": count for state, count in queue.count().items()},
    }
    negotiator = {
        "MyType": "Negotiator",
        "Name": f"negotiator@{domain}",
        "LastNegotiationCycleEnd0": int(cycle.end_s),
        "LastNegotiationCycleCandidateSlots0": cycle.slots,
        "LastNegotiationCycleNumIdleJobs0": cycle.considered,
        "LastNegotiationCycleMatches0": cycle.matches,
    }
    return {
        AdType.Schedd: ClassAd({**common, **schedd}),
        AdType.Negotiator: ClassAd({**common, **negotiator}),
    }
