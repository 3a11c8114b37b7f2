"""Parser of ``scontrol show node``, and events from two successive looks at a node."""

import re
from collections.abc import Callable, Iterator
from math import inf
from typing import Final, NamedTuple

import msgspec

from outrider.api import MachineSpec, NamedEvent, Resources, events
from outrider_adapters.readers.slurm.record_events import hosts_of, limit_s
from outrider_adapters.slurm.queue_rows import trackable

_PAIR = re.compile(r"(\w+)=(\S*)")
_WATTS = re.compile(r"\d{1,7}", re.ASCII)
_BY_WHOM = re.compile(r" \[[^][]*@[^][]*\](?: \w+=.*)?$")
"""Slurm's note at the end of a reason: who gave it, and when. In newer releases more may follow."""
_GPUS = re.compile(r"gpu(?::[^:,(]+)?:(\d{1,6})")
_CLOSED: Final = frozenset(
    {
        "DOWN", "ERROR", "UNKNOWN", "FUTURE", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING",
        "MAINT", "MAINTENANCE", "RESERVED", "REBOOT", "REBOOT_ISSUED", "REBOOT_REQUESTED",
        "NOT_RESPONDING", "POWERING_DOWN", "POWER_DOWN", "INVALID_REG", "INVAL", "BLOCKED",
        "PERFCTRS",
    }
)  # fmt: skip
"""States and flags with which no job outside a reservation starts on a node."""
_CLOSED_WORDS: Final = {
    "DOWN": "down", "NOT_RESPONDING": "not responding", "FAIL": "failed", "FAILING": "failing",
    "DRAIN": "drained", "DRAINED": "drained", "DRAINING": "drained", "MAINT": "in maintenance",
    "MAINTENANCE": "in maintenance", "RESERVED": "reserved", "POWERING_DOWN": "powering down",
    "POWER_DOWN": "powering down", "REBOOT": "rebooting", "REBOOT_ISSUED": "rebooting",
    "REBOOT_REQUESTED": "about to reboot",
}  # fmt: skip
"""Words for states; the first that applies is used."""
_BUSY: Final = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})
_WAKING: Final = frozenset({"POWERING_UP", "POWER_UP"})
_ASLEEP: Final = frozenset({"POWERED_DOWN"})
_NOTHING: Final = frozenset({"", "(null)", "N/A", "None"})


class SeenNode(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Last published state of a node, kept over a restart.

    Attributes:
        cluster, cpus, memory_mib, gpus, usable, asleep, watts: as in `Node`.
    """

    cluster: str
    cpus: int
    memory_mib: float
    gpus: float
    usable: bool
    asleep: bool
    watts: float | None

    @property
    def size(self) -> tuple[object, ...]:
        """Properties that make it another machine when they change."""
        return self.cluster, self.cpus, self.memory_mib, self.gpus


class Node(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """State of a node at a look.

    Attributes:
        cluster, cpus: as in `MachineSpec`; CPUs usable by jobs.
        memory_mib, gpus: its memory and number of GPUs.
        usable: jobs may start on it (or did, where they run).
        asleep: Slurm has powered it down, and will wake it for a job.
        allocated: CPUs allocated to jobs.
        watts: as measured by its energy plugin; None if not measured.
        features: active features.
        generic: its generic resources, in Slurm's notation.
        partitions: partitions that contain it.
        state: as reported by Slurm.
        reason: why it is closed, in the administrator's words, without his name.
        allocated_mib: memory allocated to jobs.
    """

    cluster: str
    cpus: int
    memory_mib: float
    gpus: float
    usable: bool
    asleep: bool
    allocated: int
    watts: float | None
    features: frozenset[str]
    generic: str
    partitions: tuple[str, ...]
    state: str
    reason: str
    allocated_mib: float = 0.0

    def spec(self, consumes_memory: bool) -> MachineSpec:
        """Return the machine for its `joined` event; Slurm does not report watts of idle nodes."""
        resources = Resources(
            memory_mib=self.memory_mib if consumes_memory else None, gpus=self.gpus
        )
        return MachineSpec(
            cluster=self.cluster, cpus=self.cpus, usable=self.usable, resources=resources
        )

    @property
    def seen(self) -> SeenNode:
        """State of the node to remember."""
        return SeenNode(
            self.cluster,
            self.cpus,
            self.memory_mib,
            self.gpus,
            self.usable,
            self.asleep,
            self.watts,
        )

    @property
    def is_off(self) -> bool:
        """True if it is powered down, or wakes up and does not respond yet."""
        return bool(_flags(self.state) & (_ASLEEP | _WAKING))

    @property
    def why_closed(self) -> str:
        """Reason that no job starts on it, with Slurm's own words; empty if it is open."""
        if self.usable:
            return ""
        flags = _flags(self.state)
        word = next((word for flag, word in _CLOSED_WORDS.items() if flag in flags), "closed")
        if flags & _BUSY and word == "drained":
            word = "draining, its jobs still run"
        by_admin = word.startswith(("drain", "down", "fail"))
        why = self.reason or ("no reason given" if by_admin else "")
        return f"{word} ({self.state}: {why})" if why else f"{word} ({self.state})"

    @property
    def kind(self) -> tuple[object, ...]:
        """Properties that determine which jobs it may run: the same for nodes of one kind."""
        return self.cpus, self.memory_mib, self.features, self.generic, self.partitions


def nodes_of(shown: str, cluster_of: Callable[[str, tuple[str, ...]], str]) -> dict[str, Node]:
    """Parse the output of ``scontrol show node -o`` into nodes by name.

    Args:
        shown: a line for each node. The first of two pairs with the same name counts: what
                    administrators write (the reason, a comment) comes at the end.
        cluster_of: returns the cluster of a node, by its name and partitions.
    """
    return {name: _node(name, pairs, line, cluster_of) for name, pairs, line in _lines(shown)}


def _lines(shown: str) -> Iterator[tuple[str, dict[str, str], str]]:
    for line in shown.split("\n"):
        pairs: dict[str, str] = {}
        for name, value in _PAIR.findall(line):
            pairs.setdefault(name, value)
        if "NodeName" in pairs and "State" in pairs:
            yield pairs["NodeName"], pairs, line


def _flags(state: str) -> set[str]:
    """Return a node's state and its flags; one that wakes up does not respond yet."""
    flags = set(
        state.replace("*", "+NOT_RESPONDING").replace("#", "+POWERING_UP").upper().split("+")
    )
    return flags - {"NOT_RESPONDING"} if flags & _WAKING else flags


def _node(
    name: str, pairs: dict[str, str], line: str, cluster_of: Callable[[str, tuple[str, ...]], str]
) -> Node:
    flags = _flags(pairs["State"])
    partitions = tuple(p for p in pairs.get("Partitions", "").split(",") if p not in _NOTHING)
    generic = pairs.get("Gres", "")
    features = pairs.get("ActiveFeatures", "")
    watts = pairs.get("CurrentWatts", "")
    return Node(
        cluster=cluster_of(name, partitions),
        cpus=max(1, _whole(pairs.get("CPUEfctv", "")) or _whole(pairs.get("CPUTot", ""))),
        memory_mib=float(_whole(pairs.get("RealMemory", ""))),
        gpus=float(sum(int(n) for n in _GPUS.findall(generic))),
        usable=not flags & _CLOSED,
        asleep=bool(flags & _ASLEEP),
        allocated=_whole(pairs.get("CPUAlloc", "")),
        watts=float(watts) if _WATTS.fullmatch(watts) and int(watts) else None,
        features=frozenset(f for f in features.split(",") if f not in _NOTHING),
        generic="" if generic in _NOTHING else generic,
        partitions=partitions,
        state=pairs["State"],
        reason=_BY_WHOM.sub("", line.partition(" Reason=")[2])[:200],
        allocated_mib=float(_whole(pairs.get("AllocMem", ""))),
    )


def changes(
    name: str, before: SeenNode | None, node: Node, at_s: float, consumes_memory: bool
) -> list[NamedEvent]:
    """Return the events of a node between two looks, in order.

    Args:
        name: the node's name.
        before: its last state; None: it is new.
        node: its current state.
        at_s: time of the look: Slurm does not report when a state was entered.
        consumes_memory: whether Slurm allocates memory to jobs, and not CPUs alone.
    """
    found: list[NamedEvent] = []
    after = node.seen
    if before is None or before.size != after.size:
        found.append((at_s, events.JOINED, name, node.spec(consumes_memory)))
    if before is None:
        before = msgspec.structs.replace(after, asleep=False, watts=None)
    if after.asleep != before.asleep:
        found.append((at_s, events.ASLEEP if after.asleep else events.WOKEN, name, None))
    if after.usable != before.usable:
        found.append((at_s, events.USABLE if after.usable else events.DRAINED, name, None))
    if after.watts is not None and after.watts != before.watts:
        found.append((at_s, events.POWER, name, after.watts))
    return found


def amount_of(generic: str, wanted: str) -> float:
    """Return how much of a generic resource a node has: ``gpu``, or ``gpu:a100``.

    >>> amount_of("gpu:a100:4(S:0-1),gpu:t4:2,lustre:1", "gpu"), amount_of("gpu:a100:4", "gpu:t4")
    (6.0, 0.0)
    """
    total = 0.0
    for one in _outside_brackets(generic).split(","):
        name, _, amount = one.rpartition(":")
        if name == wanted or name.startswith(f"{wanted}:"):
            total += dict(trackable(f"n={amount.upper()}")).get("n", 0.0)
    return total


def _outside_brackets(text: str) -> str:
    return re.sub(r"\([^)]*\)", "", text)


def _whole(digits: str) -> int:
    return int(digits) if digits.isascii() and digits.isdigit() else 0


# -- partitions ------------------------------------------------------------------------------------
# Partitions, reservations and the configuration, as ``scontrol`` shows them.

_UNLIMITED = 4_294_967_293


class Partition(NamedTuple):
    """Limits of a partition on its jobs.

    Attributes:
        is_up: whether jobs start in it.
        max_s: longest time limit, seconds; None: unlimited.
        min_nodes, max_nodes: limits on a job's number of nodes.
        tier: jobs of partitions with a higher tier are considered first.
        qos: its quality of service, whose limits apply to its jobs; empty: none.
    """

    is_up: bool
    max_s: float | None
    min_nodes: int
    max_nodes: int
    tier: int = 1
    qos: str = ""

    def admits(self, limit_s: float | None, nodes: int) -> bool:
        """Return whether a job of this time limit (None: unlimited) and node count may start."""
        short = self.max_s is None or (limit_s is not None and limit_s <= self.max_s)
        return self.is_up and short and self.min_nodes <= nodes <= self.max_nodes


def partitions_of(shown: str) -> dict[str, Partition]:
    """Parse the output of ``scontrol show partition -o`` into partitions by name."""
    return {
        pairs["PartitionName"]: Partition(
            is_up=pairs.get("State", "").upper() == "UP",
            max_s=limit_s(pairs.get("MaxTime", "")),
            min_nodes=_count(pairs.get("MinNodes", ""), 0),
            max_nodes=_count(pairs.get("MaxNodes", ""), _UNLIMITED),
            tier=_count(pairs.get("PriorityTier", ""), 1),
            qos="" if (qos := pairs.get("QoS", "")) in _NOTHING else qos,
        )
        for pairs in _pairs(shown)
        if "PartitionName" in pairs
    }


class Reservation(NamedTuple):
    """Reservation of nodes; times are Unix seconds."""

    start_s: float
    end_s: float
    nodes: frozenset[str]


def reservations_of(shown: str) -> dict[str, Reservation]:
    """Parse the output of ``scontrol show reservation -o`` into reservations by name."""
    return {
        pairs["ReservationName"]: Reservation(
            float(_count(pairs.get("StartTime", ""), 0)),
            float(_count(pairs.get("EndTime", ""), 0)),
            frozenset(hosts_of(pairs.get("Nodes", ""))),
        )
        for pairs in _pairs(shown)
        if "ReservationName" in pairs
    }


def reserved_nodes(shown: str) -> dict[str, frozenset[str]]:
    """Return the nodes of each reservation, from the same output."""
    return {name: one.nodes for name, one in reservations_of(shown).items()}


def settings_of(shown: str) -> dict[str, str]:
    """Parse the output of ``scontrol show config`` into settings by name."""
    found: dict[str, str] = {}
    for line in shown.split("\n"):
        name, equals, value = line.partition("=")
        if equals:
            found.setdefault(name.strip(), value.strip())
    return found


def shown_for_s(config: dict[str, str]) -> float:
    """Return for how many seconds ``squeue`` shows ended jobs, by Slurm's configuration."""
    age = config.get("MinJobAge", "").partition(" ")[0]
    return float(_count(age, 0)) or inf  # 0 means that it keeps them


def _pairs(shown: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for line in shown.split("\n"):
        pairs: dict[str, str] = {}
        for name, value in _PAIR.findall(line):
            pairs.setdefault(name, value)
        found.append(pairs)
    return found


def _count(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() else otherwise
