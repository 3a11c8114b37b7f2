"""Slot ads made into machines, and two looks at a machine into what happened between them."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from outrider.api import MachineSpec, NamedEvent, Resources, events
from outrider_adapters.htcondor.pool_calls import Ad, number
from outrider_adapters.htcondor.watts import StateWatts
from outrider_adapters.readers.htcondor.hosts import machine_of_slot

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
    """When an ad was made, by the machine's clock, else by the collector's."""
    return number(ad, "MyCurrentTime") or number(ad, "LastHeardFrom")


def is_owned(ad: Ad) -> bool:
    """Whether the owner of a slot's machine sits there."""
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
