"""Successive looks at the slots of a pool: who joined, left, sat down, went to sleep."""

import fnmatch
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.machines import SLOT_ATTRIBUTES, MachineState, changes, machines_of
from outrider_adapters.htcondor.pool_calls import Ad, PoolCalls
from outrider_adapters.htcondor.settings import WatchSettings

_CLOSED: Final = "Start =?= false"
"""Asked of the collector, for only the whole ad can tell what its START comes to."""

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
        self._attributes = [*SLOT_ATTRIBUTES, settings.cluster_attribute]

    def look(self, now_s: float) -> list[NamedEvent]:
        """What happened to the machines since the last look.

        Raises:
            HTCondorException: the collector does not answer (`PoolCalls.failure`).
        """
        query, slots = self._calls.collector.query, self._calls.slot_ads
        ads = query(slots, "true", self._attributes)
        closed = {ad["Name"] for ad in query(slots, _CLOSED, ["Name"])}
        self.heard_s = max((float(ad.get("LastHeardFrom") or 0) for ad in ads), default=None)
        found = machines_of(ads, closed, self._cluster_of)
        told: list[NamedEvent] = []
        for name, ad_says in found.items():
            after = _dated(ad_says, now_s)
            before = self.machines.get(name)
            if before is not None and before.told_s > now_s + _CLOCK_OFF_S:
                before = msgspec.structs.replace(before, told_s=after.told_s)  # ours was ahead then
            if before is not None and after.told_s < before.told_s:
                continue  # an older ad than the one known: nothing new
            told += changes(name, before, after)
            self.machines[name] = after
        return told + self._gone(found, now_s)

    def save(self) -> dict[str, Any]:
        """The machines, as JSON types."""
        built: dict[str, Any] = msgspec.to_builtins(self.machines)
        return built

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave. Raises `msgspec.ValidationError` if it does not fit."""
        self.machines = msgspec.convert(saved, dict[str, MachineState])
        self._missing_since_s.clear()

    def _gone(self, found: Mapping[str, MachineState], now_s: float) -> list[NamedEvent]:
        """The machines whose ads have been missing for too long leave."""
        missing = self._missing_since_s
        for name in [name for name in missing if name in found]:
            del missing[name]
        left: list[NamedEvent] = []
        for name in [name for name in self.machines if name not in found]:
            missing[name] = min(missing.get(name, now_s), now_s)  # the clock may have been set back
            if now_s - missing[name] >= self._settings.left_after_s:
                del missing[name], self.machines[name]
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
