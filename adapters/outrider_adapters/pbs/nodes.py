"""Nodes of a PBS server, from ``pbsnodes``, and two looks at one made into what happened to it."""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from outrider.api import MachineSpec, NamedEvent, Resources, events
from outrider_adapters.pbs.job_rows import size_mib

_CLOSED: Final = frozenset(
    {
        "offline", "down", "stale", "state-unknown", "unknown", "unresolvable", "provisioning",
        "wait-provisioning", "maintenance", "reserve", "resv-exclusive", "Standby", "Suspend",
        "Sleep", "Hibernate", "Shutdown",
    }
)  # fmt: skip
"""States in which no job starts, of both families; the last are power states of Torque."""

_ASLEEP: Final = frozenset({"sleep", "Standby", "Suspend", "Sleep", "Hibernate", "Shutdown"})
_PART: Final = re.compile(r"\[\d+\]$")
"""Of a host that is several virtual nodes: ``n7[0]`` and ``n7[1]`` are n7."""

_STATUS: Final = re.compile(r"(?:^|,)physmem=(\w+)")


class Node(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A node at the moment of a look.

    Attributes:
        cluster, cpus: as in `MachineSpec`.
        memory_mib, gpus: in all.
        usable: jobs may start on it.
        asleep: it sleeps.
    """

    cluster: str
    cpus: int
    memory_mib: float | None
    gpus: float
    usable: bool
    asleep: bool

    @property
    def spec(self) -> MachineSpec:
        """What is told when it joins; PBS does not tell watts."""
        resources = Resources(memory_mib=self.memory_mib, gpus=self.gpus)
        return MachineSpec(
            cluster=self.cluster, cpus=self.cpus, usable=self.usable, resources=resources
        )

    @property
    def size(self) -> tuple[object, ...]:
        """What makes it another machine when it changes."""
        return self.cluster, self.cpus, self.memory_mib, self.gpus


def nodes_of(
    shown: Mapping[str, Mapping[str, str]], cluster_of: Callable[[str], str]
) -> dict[str, Node]:
    """Nodes by name; parts of one host are one.

    Args:
        shown: attributes by name.
        cluster_of: the cluster of a node.
    """
    nodes: dict[str, Node] = {}
    for name, ad in shown.items():
        host = _PART.sub("", name)
        one, known = _node(ad, cluster_of(host)), nodes.get(host)
        nodes[host] = one if known is None else _together(known, one)
    return nodes


def changes(name: str, before: Node | None, after: Node, at_s: float) -> list[NamedEvent]:
    """What must have happened to a node between two looks, in order.

    Args:
        name: of the node.
        before: as it was; None: it is new.
        after: as it is.
        at_s: when it was looked at: PBS does not say when a state was entered.
    """
    told: list[NamedEvent] = []
    if before is None or before.size != after.size:
        told.append((at_s, events.JOINED, name, after.spec))
    if before is None:
        return told + ([(at_s, events.ASLEEP, name, None)] if after.asleep else [])
    if after.asleep != before.asleep:
        told.append((at_s, events.ASLEEP if after.asleep else events.WOKEN, name, None))
    if after.usable != before.usable:
        told.append((at_s, events.USABLE if after.usable else events.DRAINED, name, None))
    return told


def _node(ad: Mapping[str, str], cluster: str) -> Node:
    words = {word.strip() for word in ad.get("state", "").split(",")}
    words.add(ad.get("power_state", ""))
    memory = ad.get("resources_available.mem") or _physical_memory(ad.get("status", ""))
    cpus = ad.get("resources_available.ncpus") or ad.get("np") or ad.get("pcpus") or ""
    gpus = ad.get("resources_available.ngpus") or ad.get("gpus") or ""
    return Node(
        cluster=cluster,
        cpus=max(1, int(cpus)) if cpus.isdecimal() else 1,
        memory_mib=size_mib(memory) if memory else None,
        gpus=float(gpus) if gpus.isdecimal() else 0.0,
        usable=not words & _CLOSED and "sleep" not in words,
        asleep=bool(words & _ASLEEP),
    )


def _physical_memory(status: str) -> str:
    found = _STATUS.search(status)
    return found[1] if found else ""


def _together(one: Node, other: Node) -> Node:
    known = [node.memory_mib for node in (one, other) if node.memory_mib is not None]
    return Node(
        cluster=one.cluster,
        cpus=one.cpus + other.cpus,
        memory_mib=sum(known) if known else None,
        gpus=one.gpus + other.gpus,
        usable=one.usable or other.usable,
        asleep=one.asleep and other.asleep,
    )
