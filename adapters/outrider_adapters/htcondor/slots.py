"""Successive looks at the slots of a pool: who joined, left, sat down, went to sleep.

A pool of thousands of slots tells of a few each second, so most looks ask for those alone that the
collector has heard from since the last.
"""

import fnmatch
from collections.abc import Callable, Iterable
from math import inf
from typing import Any, Final

import msgspec

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.machines import (
    SLOT_ATTRIBUTES,
    MachineState,
    WattsOfAds,
    changes,
    machines_of,
    told_s,
)
from outrider_adapters.htcondor.pool_calls import Ad, PoolCalls, number, quote
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.polling import Asking
from outrider_adapters.readers.htcondor.job_ads import UNKNOWN_HOST, machine_of_slot

_CLOSED: Final = "Start =?= false"
"""Asked of the collector, for only the whole ad can tell what its START comes to."""
WHOLE_SLOTS: Final = "DynamicSlot =!= true"
"""A dynamic slot is a part of its partitionable one."""
_MOST_WHOLE_S: Final = 60.0
"""From one look at all slots to the next: only these show who has left."""
_CLOCK_OFF_S: Final = 86_400.0
"""Clocks of machines, the collector and this host may differ by hours; by days one is wrong."""


class SlotWatch:
    """The machines of a pool as its collector knows them.

    Args:
        calls: the pool.
        settings: how it is watched.

    Attributes:
        machines: by name, as of the last look.
        heard_s: when the newest of their ads reached the collector, Unix seconds; None: no ads.
    """

    def __init__(self, calls: PoolCalls, settings: WatchSettings) -> None:
        self.machines: dict[str, MachineState] = {}
        self.heard_s: float | None = None
        self._calls = calls
        self._settings = settings
        self._missing_since_s: dict[str, float] = {}
        self._watts = WattsOfAds(settings)
        self._attributes = [
            *SLOT_ATTRIBUTES, settings.cluster_attribute, *self._watts.attributes,
        ]  # fmt: skip
        self._ads: dict[str, dict[str, Any]] = {}
        self._saved: dict[str, Any] = {}
        self._closed: set[str] = set()
        self._whole_s = -inf

    def look(self, now_s: float) -> list[NamedEvent]:
        """What happened to the machines since the last look.

        Raises:
            HTCondorException: the collector does not answer (`PoolCalls.failure`).
        """
        is_whole = self._is_whole(now_s)
        since = (
            "" if is_whole or self.heard_s is None else f" && LastHeardFrom >= {self.heard_s:.0f}"
        )
        query, slots = self._calls.collector.query, self._calls.slot_ads
        ads = query(slots, f"{WHOLE_SLOTS}{since}", self._attributes)
        closed = {ad["Name"] for ad in query(slots, f"{WHOLE_SLOTS}{since} && {_CLOSED}", ["Name"])}
        if is_whole:
            self._whole_s = now_s
            self._ads.clear()
            self._closed.clear()
        heard_s = max((number(ad, "LastHeardFrom") for ad in ads), default=None)
        if is_whole or heard_s is not None:
            self.heard_s = heard_s
        touched = self._take(ads, closed)
        every = (ad for machine in touched for ad in self._ads[machine].values())
        found = machines_of(every, self._closed, self._cluster_of, self._watts.of_states)
        told: list[NamedEvent] = []
        for name, ad_says in found.items():
            after = _dated(ad_says, now_s)
            before = self.machines.get(name)
            if before is not None and before.told_s > now_s + _CLOCK_OFF_S:
                before = msgspec.structs.replace(before, told_s=after.told_s)  # ours was ahead then
            if before is not None and after.told_s < before.told_s:
                continue  # an older ad than the one known: nothing new
            told += changes(name, before, after)
            told += self._watts.news(name, self._ads[name].values(), after.told_s)
            self.machines[name] = after
            self._saved[name] = msgspec.to_builtins(after)
        return told + self._gone(now_s) if is_whole else told

    def _is_whole(self, now_s: float) -> bool:
        """Return whether it is time to ask for all slots."""
        every_s = min(_MOST_WHOLE_S, self._settings.left_after_s / 10)
        return not 0.0 <= now_s - self._whole_s < every_s

    def _take(self, ads: Iterable[Any], closed: set[str]) -> dict[str, None]:
        """Remember ads of slots; the machines that they are of."""
        touched: dict[str, None] = {}
        for ad in ads:
            slot = str(ad["Name"])
            machine = machine_of_slot(slot)
            known = self._ads.setdefault(machine, {})
            if slot not in known or told_s(ad) >= told_s(known[slot]):
                known[slot] = ad
            self._closed.discard(slot)
            touched[machine] = None
        self._closed |= closed
        return touched

    def save(self) -> dict[str, Any]:
        """The machines, as JSON types."""
        return dict(self._saved)

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave. Raises `msgspec.ValidationError` if it does not fit."""
        self.machines = msgspec.convert(saved, dict[str, MachineState])
        self._saved = msgspec.to_builtins(self.machines)
        self._missing_since_s.clear()

    def _gone(self, now_s: float) -> list[NamedEvent]:
        """The machines whose ads have been missing for too long leave."""
        missing, found = self._missing_since_s, self._ads
        for name in [name for name in missing if name in found]:
            del missing[name]
        left: list[NamedEvent] = []
        for name in [name for name in self.machines if name not in found]:
            missing[name] = min(missing.get(name, now_s), now_s)  # the clock may have been set back
            if now_s - missing[name] >= self._settings.left_after_s:
                del missing[name], self.machines[name], self._saved[name]
                self._watts.forget(name)
                left.append((now_s, events.LEFT, name, None))
        return left

    def _cluster_of(self, machine: str, ad: Ad) -> str:
        named = ad.get(self._settings.cluster_attribute)
        if isinstance(named, str) and named:
            return named
        patterns = self._settings.machine_clusters.items()
        matching = (cluster for like, cluster in patterns if fnmatch.fnmatchcase(machine, like))
        return next(matching, "default")


def _dated(state: MachineState, now_s: float) -> MachineState:
    """What an ad says, as of now where the machine's clock, or ours, is wrong by days."""
    if abs(state.told_s - now_s) <= _CLOCK_OFF_S:
        return state
    return msgspec.structs.replace(state, told_s=now_s, entered_s=min(state.entered_s, now_s))


# -- claimed slots ---------------------------------------------------------------------------------
# Where jobs run, by the word of slots: a queue alone is no proof.
#
# HTCondor lets users set ``JobStatus`` and ``RemoteHost`` of their own jobs. A start that is told
# with a slot says that what ran there before is over, which may be somebody else's job; one on a
# machine that nobody knows would add that to the site.

_ATTRIBUTES: Final = ("Name", "GlobalJobId")
_MOST_ASKED: Final = 1_000
"""Slots in one question; starts on others are told without them."""


class ClaimedSlots:
    """Holds starts that a queue tells against the slots.

    Args:
        calls: the pool.
        asking: asks, and notes who does not answer.
        knows: whether a machine is in the pool.
    """

    def __init__(self, calls: PoolCalls, asking: Asking, knows: Callable[[str], bool]) -> None:
        self._calls = calls
        self._asking = asking
        self._knows = knows

    def confirmed(self, told: list[NamedEvent], now_s: float) -> list[NamedEvent]:
        """The events; starts have their slot only where the slot says that it runs this job.

        A machine that is not in the pool goes by `UNKNOWN_HOST`.

        Args:
            told: by a queue.
            now_s: when.
        """
        names = {_slot(event) for event in told} - {""}
        runs = self._runs(sorted(names)[:_MOST_ASKED], now_s) if names else {}
        return [self._placed(event, runs) if _slot(event) else event for event in told]

    def _placed(self, event: NamedEvent, runs: dict[str, str] | None) -> NamedEvent:
        time_s, kind, job, (machine, cpus, _) = event
        if runs is None:  # nobody says otherwise
            return time_s, kind, job, (machine, cpus)
        said = runs.get(_slot(event))
        if said is not None and said.startswith(f"{job}#"):
            return event
        is_known = said is not None or self._knows(machine)
        return time_s, kind, job, (machine if is_known else UNKNOWN_HOST, cpus)

    def _runs(self, names: list[str], now_s: float) -> dict[str, str] | None:
        """The ``GlobalJobId`` of what runs on each of these slots; None: no answer."""
        constraint = f"member(Name, {{{','.join(map(quote, names))}}})"
        ads = self._asking.ask("collector", now_s, lambda: self._query(constraint))
        if ads is None:
            return None
        return {str(ad["Name"]): str(ad.get("GlobalJobId") or "") for ad in ads}

    def _query(self, constraint: str) -> Any:
        calls = self._calls
        return calls.collector.query(calls.slot_ads, constraint, list(_ATTRIBUTES))


def _slot(event: NamedEvent) -> str:
    """The name of the slot on which a run begins; empty where it has none."""
    _, kind, _, extra = event
    return f"{extra[2]}@{extra[0]}" if kind == events.STARTED and len(extra) > 2 else ""
