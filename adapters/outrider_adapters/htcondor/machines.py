"""Slot ads made into machines, and two looks at a machine into what happened between them."""

from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from outrider.api import MachineSpec, NamedEvent, Resources, events
from outrider_adapters.htcondor.pool_calls import Ad, ClassAd, number
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.readers.htcondor.job_ads import machine_of_slot

# -- made of ads -----------------------------------------------------------------------------------
# What was made of ads that have not changed since: told apart by their text.
#
# To write an ad out is one call of the library; to read it, attribute by attribute, costs ten times
# as much. Most ads of a queue are as they were when it was read before.

MOST: Final = 100_000
MadeT = TypeVar("MadeT")


class MadeOfAds(Generic[MadeT]):
    """Remembers by an ad's text what was made of it; at least the last `most`, at most twice those.

    Args:
        make: makes it of an ad; of the same text always the same, until `clear`.
        most: how many.
    """

    def __init__(self, make: Callable[[Any], MadeT], most: int = MOST) -> None:
        self._make = make
        self._most = most
        self._made: dict[int, MadeT] = {}
        self._before: dict[int, MadeT] = {}

    def of(self, ad: Any) -> MadeT:
        """What is made of an ad; of one that is no ClassAd of the library, each time anew."""
        if not isinstance(ad, ClassAd):
            return self._make(ad)
        text = hash(ad.printOld())
        made = self._made.get(text)
        if made is None:
            made = self._before.pop(text, None)
            if made is None:
                made = self._make(ad)
            if len(self._made) >= self._most:
                self.age()
            self._made[text] = made
        return made

    def age(self) -> None:
        """Forget at the next call what is not asked for until then."""
        self._made, self._before = {}, self._made

    def clear(self) -> None:
        """Forget everything: the same ads mean something else now."""
        self._made, self._before = {}, {}


# -- watts -----------------------------------------------------------------------------------------
# Watts that slot ads tell: what a machine draws now, and what it draws in each state.

_SAME_FOR_S: Final = 300.0
"""A reading that has not changed is told again after so long: it holds for 15 minutes."""
_MOST_WATTS: Final = 1e6


class StateWatts(NamedTuple):
    """Watts of a machine while it works, idles and sleeps; None: its ads do not say."""

    active_w: float | None = None
    idle_w: float | None = None
    sleep_w: float | None = None

    def or_else(self, other: "StateWatts") -> "StateWatts":
        """These, and where they are not known the other's."""
        pairs = zip(self, other, strict=True)
        return StateWatts(*(theirs if own is None else own for own, theirs in pairs))


class WattsOfAds:
    """Reads the attributes that a site names; without a name nothing is read.

    All slots of a machine tell of the whole machine.

    Args:
        settings: the names of the attributes.

    Attributes:
        attributes: that slots have to be asked for.
    """

    def __init__(self, settings: WatchSettings) -> None:
        self._now = settings.watts_attribute
        states = (
            settings.active_w_attribute, settings.idle_w_attribute, settings.sleep_w_attribute,
        )  # fmt: skip
        self._states = states
        self.attributes = [name for name in (self._now, *states) if name is not None]
        self._told: dict[str, tuple[float, float]] = {}

    def of_states(self, ad: Ad) -> StateWatts:
        """What an ad says of its machine's states."""
        return StateWatts(*(_watts(ad, name) for name in self._states))

    def news(self, machine: str, ads: Iterable[Any], at_s: float) -> list[NamedEvent]:
        """The reading of a machine, where it is another or the one before is growing old.

        Args:
            machine: its name.
            ads: of its slots.
            at_s: when the newest was made.
        """
        if self._now is None:
            return []
        newest = max(ads, key=lambda ad: number(ad, "MyCurrentTime"))
        watts = _watts(newest, self._now)
        before_w, before_s = self._told.get(machine, (None, at_s))
        if watts is None or (watts == before_w and at_s - before_s < _SAME_FOR_S):
            return []
        self._told[machine] = watts, at_s
        return [(at_s, events.POWER, machine, watts)]

    def forget(self, machine: str) -> None:
        """The machine has left."""
        self._told.pop(machine, None)


def _watts(ad: Any, name: str | None) -> float | None:
    """Watts of an attribute; None where there is none, or what cannot be watts."""
    if name is None or name not in ad:
        return None
    watts = ad.eval(name) if hasattr(ad, "eval") else ad[name]
    is_number = type(watts) in (int, float) and isfinite(watts)
    return float(watts) if is_number and 0.0 <= watts <= _MOST_WATTS else None


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
    "Offline",
)
"""Attributes of a slot ad that are read here, beside those that a site names."""
_IN_USE: Final = frozenset({"Claimed", "Matched", "Preempting"})


class MachineState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A machine at the moment of its last ad.

    Attributes:
        cluster, cpus: as in `MachineSpec`.
        owner: its owner sits there.
        usable: jobs may start on it (or did, where they run).
        draining: an administrator is emptying it.
        asleep: it sleeps; the ad was left behind to wake it by.
        entered_s: when a slot last changed its state, Unix seconds by the machine's clock.
        told_s: when the ad was made, by the same clock.
        memory_mib, gpus: of all its slots.
        watts: of its states.
    """

    cluster: str
    cpus: int
    owner: bool
    usable: bool
    draining: bool
    asleep: bool
    entered_s: float
    told_s: float
    memory_mib: float
    gpus: float
    watts: StateWatts = StateWatts()

    @property
    def spec(self) -> MachineSpec:
        """What is told when it joins."""
        return MachineSpec(
            cluster=self.cluster,
            cpus=self.cpus,
            usable=self.usable,
            resources=Resources(memory_mib=self.memory_mib, gpus=self.gpus),
            **self.watts._asdict(),
        )

    @property
    def size(self) -> tuple[object, ...]:
        """What makes it another machine when it changes."""
        return self.cluster, self.cpus, self.memory_mib, self.gpus, self.watts


def machines_of(
    ads: Iterable[Any],
    closed: set[str],
    cluster_of: Callable[[str, Ad], str],
    watts_of: Callable[[Ad], StateWatts] = lambda _: StateWatts(),
) -> dict[str, MachineState]:
    """Machines by the name that the event log's reader gives them, from the ads of their slots.

    An owner at one slot is an owner at the machine, and one usable slot makes it usable. Dynamic
    slots are parts of their partitionable one.

    Args:
        ads: of slots; where a slot comes twice, the newest counts.
        closed: names of the slots whose ``START`` is false for every job.
        cluster_of: the cluster of a machine, by its name and an ad of it.
        watts_of: of a machine's states, by an ad of it.
    """
    newest: dict[str, Any] = {}
    for ad in ads:
        name = ad["Name"]
        if name not in newest or told_s(ad) >= told_s(newest[name]):
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
    """What must have happened to a machine between two looks, in order.

    A change of state has the time that HTCondor gives it, if that falls between the looks; all
    else has the time of the ad that shows it first.
    """
    told: list[NamedEvent] = []
    at_s = after.told_s
    if before is None or before.size != after.size:
        told.append((at_s, events.JOINED, name, after.spec))
    if before is None:
        before = msgspec.structs.replace(after, owner=False, asleep=False)
    elif after.entered_s > before.told_s:
        at_s = min(after.entered_s, at_s)
    if after.asleep != before.asleep:
        told.append((at_s, events.ASLEEP if after.asleep else events.WOKEN, name, None))
    if after.owner and not before.owner:
        return [*told, (at_s, events.OWNER_CAME, name, None)]
    if before.owner and not after.owner:
        told.append((at_s, events.OWNER_WENT, name, None))
    opened = after.usable and not after.owner and (before.owner or not before.usable)
    if opened:
        told.append((at_s, events.USABLE, name, None))
    elif before.usable and not after.usable and not before.owner:
        told.append((at_s, events.DRAINED, name, None))
    return told


def told_s(ad: Ad) -> float:
    """Return when an ad was made, by the machine's clock, else by the collector's."""
    return number(ad, "MyCurrentTime") or number(ad, "LastHeardFrom")


def is_owned(ad: Ad) -> bool:
    """Return whether the owner of a slot's machine sits there."""
    active = ad.get("OwnerActive")  # exact where a site publishes it, also while START is false
    return active if isinstance(active, bool) else ad.get("State") == "Owner"


def _slot(ad: Any, closed: bool, cluster: str, watts: StateWatts) -> MachineState:
    """A slot as if it were a machine of its own."""
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
        told_s=told_s(ad),
        memory_mib=number(ad, f"{whole}Memory"),
        gpus=number(ad, f"{whole}GPUs"),
        watts=watts,
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
        told_s=max(one.told_s, other.told_s),
        memory_mib=one.memory_mib + other.memory_mib,
        gpus=one.gpus + other.gpus,
        watts=one.watts.or_else(other.watts),
    )
