"""Convert slot ads into machines, and two looks at a machine into events."""

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from outrider.api import MachineSpec, NamedEvent, Resources, events
from outrider_adapters.htcondor.pool_calls import Ad, ClassAd, number
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.readers.htcondor.event_mapping import hold_reason
from outrider_adapters.readers.htcondor.job_ads import machine_of_slot

# -- made of ads -----------------------------------------------------------------------------------
# Cache of objects made from ads, keyed by the ad text.
#
# Writing an ad out is one call of the library; reading it attribute by attribute costs ten times as
# much. Most ads of a queue have not changed since the last read.

MAX_ENTRIES: Final = 100_000
MadeT = TypeVar("MadeT")


class AdCache(Generic[MadeT]):
    """Cache of objects made from ads, keyed by the ad text.

    It keeps at least the last `max_entries` and at most twice as many.

    Args:
        make: makes the object; the same text always gives the same object, until `clear`.
        max_entries: minimum number of objects to keep.
    """

    def __init__(self, make: Callable[[Any], MadeT], max_entries: int = MAX_ENTRIES) -> None:
        self._make = make
        self._max_entries = max_entries
        self._made: dict[int, MadeT] = {}
        self._before: dict[int, MadeT] = {}

    def of(self, ad: Any) -> MadeT:
        """Return the object of an ad; one that is not the library's ClassAd is never cached."""
        if not isinstance(ad, ClassAd):
            return self._make(ad)
        text = hash(ad.printOld())
        made = self._made.get(text)
        if made is None:
            made = self._before.pop(text, None)
            if made is None:
                made = self._make(ad)
            if len(self._made) >= self._max_entries:
                self.age()
            self._made[text] = made
        return made

    def age(self) -> None:
        """Forget at the next call all entries that are not used until then."""
        self._made, self._before = {}, self._made

    def clear(self) -> None:
        """Forget everything: the same ads have another meaning now."""
        self._made, self._before = {}, {}


# -- watts -----------------------------------------------------------------------------------------
# Watts in slot ads: the power that a machine draws now, and in each state.

_REPEAT_AFTER_S: Final = 300.0
"""Seconds after which an unchanged reading is reported again; it is valid for 15 minutes."""
_MAX_WATTS: Final = 1e6


class StateWatts(NamedTuple):
    """Watts of a machine while it works, idles and sleeps; None: not in its ads."""

    active_w: float | None = None
    idle_w: float | None = None
    sleep_w: float | None = None

    def or_else(self, other: "StateWatts") -> "StateWatts":
        """Return these values, with unknown ones taken from the other."""
        pairs = zip(self, other, strict=True)
        return StateWatts(*(theirs if own is None else own for own, theirs in pairs))


class WattsOfAds:
    """Reader of the power attributes that a site names; without a name nothing is read.

    Each slot of a machine reports the whole machine.

    Args:
        settings: the names of the attributes.

    Attributes:
        attributes: attributes to query slots for.
    """

    def __init__(self, settings: WatchSettings) -> None:
        self._now = settings.watts_attribute
        states = (
            settings.active_w_attribute, settings.idle_w_attribute, settings.sleep_w_attribute,
        )  # fmt: skip
        self._states = states
        self.attributes = [name for name in (self._now, *states) if name is not None]
        self._last_readings: dict[str, tuple[float, float]] = {}

    def of_states(self, ad: Ad) -> StateWatts:
        """Return the watts of a machine's states from an ad."""
        return StateWatts(*(_watts(ad, name) for name in self._states))

    def news(self, machine: str, ads: Iterable[Any], at_s: float) -> list[NamedEvent]:
        """Return the reading of a machine, if it changed or the last one is about to expire.

        Args:
            machine: the machine's name.
            ads: ads of its slots.
            at_s: when the newest was made.
        """
        if self._now is None:
            return []
        newest = max(ads, key=lambda ad: number(ad, "MyCurrentTime"))
        watts = _watts(newest, self._now)
        before_w, before_s = self._last_readings.get(machine, (None, at_s))
        if watts is None or (watts == before_w and at_s - before_s < _REPEAT_AFTER_S):
            return []
        self._last_readings[machine] = watts, at_s
        return [(at_s, events.POWER, machine, watts)]

    def forget(self, machine: str) -> None:
        """Forget a machine that has left."""
        self._last_readings.pop(machine, None)


def _watts(ad: Any, name: str | None) -> float | None:
    """Return the watts in an attribute; None if it is missing or no plausible power."""
    if name is None or name not in ad:
        return None
    watts = ad.eval(name) if hasattr(ad, "eval") else ad[name]
    is_number = type(watts) in (int, float) and isfinite(watts)
    return float(watts) if is_number and 0.0 <= watts <= _MAX_WATTS else None


# -- machines --------------------------------------------------------------------------------------

SLOT_ATTRIBUTES: Final = (
    "Name",
    "State",
    "EnteredCurrentState",
    "MyCurrentTime",
    "LastHeardFrom",
    "Cpus",
    "TotalSlotCpus",
    "Memory",
    "TotalSlotMemory",
    "GPUs",
    "TotalSlotGPUs",
    "PartitionableSlot",
    "DynamicSlot",
    "OwnerActive",
    "Draining",
    "DrainReason",
    "Offline",
)
"""Attributes of a slot ad that are read here, besides those that a site names."""
_IN_USE: Final = frozenset({"Claimed", "Matched", "Preempting"})


class MachineState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A machine at the moment of its last ad.

    Attributes:
        cluster, cpus: as in `MachineSpec`.
        owner: its owner is logged in.
        usable: jobs may start on it (or did, where they run).
        draining: an administrator is emptying it.
        asleep: it sleeps; its ad was kept to wake it up.
        entered_s: when a slot last changed its state, Unix seconds by the machine's clock.
        reported_s: when the ad was made, by the same clock.
        memory_mib, gpus: total of all its slots.
        watts: watts of its states.
        drain_reason: why it is drained, in the administrator's words; empty: unknown.
    """

    cluster: str
    cpus: int
    owner: bool
    usable: bool
    draining: bool
    asleep: bool
    entered_s: float
    reported_s: float
    memory_mib: float
    gpus: float
    watts: StateWatts = StateWatts()
    drain_reason: str = ""

    @property
    def spec(self) -> MachineSpec:
        """Specification that is reported when it joins."""
        return MachineSpec(
            cluster=self.cluster,
            cpus=self.cpus,
            usable=self.usable,
            resources=Resources(memory_mib=self.memory_mib, gpus=self.gpus),
            **self.watts._asdict(),
        )

    @property
    def size(self) -> tuple[object, ...]:
        """Properties whose change makes it a different machine."""
        return self.cluster, self.cpus, self.memory_mib, self.gpus, self.watts


def machines_of(
    ads: Iterable[Any],
    closed: set[str],
    cluster_of: Callable[[str, Ad], str],
    watts_of: Callable[[Ad], StateWatts] = lambda _: StateWatts(),
) -> dict[str, MachineState]:
    """Return machines from the ads of their slots, by the names that the event log uses.

    An owner at one slot is an owner at the machine, and one usable slot makes it usable. Dynamic
    slots are parts of their partitionable one.

    Args:
        ads: ads of slots; if a slot occurs twice, the newest counts.
        closed: names of the slots whose ``START`` is false for every job.
        cluster_of: returns the cluster of a machine, from its name and an ad of it.
        watts_of: returns the watts of a machine's states, from an ad of it.
    """
    newest: dict[str, Any] = {}
    for ad in ads:
        name = ad["Name"]
        if name not in newest or ad_time_s(ad) >= ad_time_s(newest[name]):
            newest[name] = ad
    machines: dict[str, MachineState] = {}
    for name, ad in newest.items():
        if ad.get("DynamicSlot") is True:
            continue
        machine = machine_of_slot(name)
        slot = _slot(ad, name in closed, cluster_of(machine, ad), watts_of(ad))
        known = machines.get(machine)
        machines[machine] = slot if known is None else _together(known, slot)
    return machines


def changes(name: str, before: MachineState | None, after: MachineState) -> list[NamedEvent]:
    """Return the events that explain a machine's change between two looks, in order.

    A change of state has the time that HTCondor gives it, if that falls between the looks; all
    else has the time of the ad that shows it first.
    """
    new_events: list[NamedEvent] = []
    at_s = after.reported_s
    if before is None or before.size != after.size:
        new_events.append((at_s, events.JOINED, name, after.spec))
    if before is None:
        before = msgspec.structs.replace(after, owner=False, asleep=False)
    elif after.entered_s > before.reported_s:
        at_s = min(after.entered_s, at_s)
    if after.asleep != before.asleep:
        new_events.append((at_s, events.ASLEEP if after.asleep else events.WOKEN, name, None))
    if after.owner and not before.owner:
        return [*new_events, (at_s, events.OWNER_CAME, name, None)]
    if before.owner and not after.owner:
        new_events.append((at_s, events.OWNER_WENT, name, None))
    opened = after.usable and not after.owner and (before.owner or not before.usable)
    if opened:
        new_events.append((at_s, events.USABLE, name, None))
    elif before.usable and not after.usable and not before.owner:
        new_events.append((at_s, events.DRAINED, name, after.drain_reason or None))
    elif not after.usable and after.drain_reason not in ("", before.drain_reason):
        new_events.append((at_s, events.DRAINED, name, after.drain_reason))
    return new_events


def ad_time_s(ad: Ad) -> float:
    """Return when an ad was made, by the machine's clock, else by the collector's."""
    return number(ad, "MyCurrentTime") or number(ad, "LastHeardFrom")


def is_owned(ad: Ad) -> bool:
    """Return whether the owner of a slot's machine is logged in."""
    active = ad.get("OwnerActive")  # exact where a site publishes it, also while START is false
    return active if isinstance(active, bool) else ad.get("State") == "Owner"


def _slot(ad: Any, closed: bool, cluster: str, watts: StateWatts) -> MachineState:
    """Return the state of a slot as if it were a whole machine."""
    state, owner = ad.get("State"), is_owned(ad)
    draining = ad.get("Draining") is True or state == "Drained"
    may_start = state in _IN_USE or (state != "Owner" and not closed)
    whole = "TotalSlot" if ad.get("PartitionableSlot") is True else ""
    return MachineState(
        cluster=cluster,
        cpus=max(1, int(number(ad, f"{whole}Cpus"))),
        owner=owner,
        usable=may_start and not owner and not draining,
        draining=draining,
        asleep=ad.get("Offline") is True,
        entered_s=number(ad, "EnteredCurrentState"),
        reported_s=ad_time_s(ad),
        memory_mib=number(ad, f"{whole}Memory"),
        gpus=number(ad, f"{whole}GPUs"),
        watts=watts,
        drain_reason=hold_reason(str(ad.get("DrainReason") or "")) if draining else "",
    )


def _together(one: MachineState, other: MachineState) -> MachineState:
    return MachineState(
        cluster=one.cluster,
        cpus=one.cpus + other.cpus,
        owner=one.owner or other.owner,
        usable=one.usable or other.usable,
        draining=one.draining or other.draining,
        asleep=one.asleep and other.asleep,
        entered_s=max(one.entered_s, other.entered_s),
        reported_s=max(one.reported_s, other.reported_s),
        memory_mib=one.memory_mib + other.memory_mib,
        gpus=one.gpus + other.gpus,
        watts=one.watts.or_else(other.watts),
        drain_reason=one.drain_reason or other.drain_reason,
    )
