"""Eligibility: the nodes that each kind of job may use, published when they change."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from math import ceil
from typing import Any, Final, NamedTuple

import msgspec

from outrider.api import NamedEvent, events
from outrider_adapters.readers.slurm.record_events import hosts_of
from outrider_adapters.slurm.nodes import Node, Partition, amount_of
from outrider_adapters.slurm.queue_rows import QueueRow

_MAX_KINDS: Final = 10_000
"""Limit of remembered kinds of jobs; above it, kinds without a waiting job are forgotten."""


class JobKind(NamedTuple):
    """Request of a job, in Slurm's own terms, that determines its nodes; amounts are per node."""

    partitions: tuple[str, ...]
    limit_s: float | None
    nodes: int
    cpus: int
    memory_mib: float
    features: str
    generic: tuple[tuple[str, float], ...]
    required: str
    excluded: str
    reservation: str

    @property
    def name(self) -> str:
        """Name of the class of nodes that jobs of this kind may use."""
        return f"slurm-{_digest(tuple(self))}"


def _digest(of: tuple[object, ...]) -> str:
    return hashlib.sha256(repr(of).encode()).hexdigest()[:10]


def kind_of(row: QueueRow, excluded: str) -> JobKind:
    """Return the kind of a job.

    Args:
        row: the job's row.
        excluded: the nodes that its user excludes, as a host list.
    """
    return JobKind(
        partitions=row.partitions,
        limit_s=row.limit_s,
        nodes=row.nodes,
        cpus=-(-row.cpus // row.nodes),
        memory_mib=row.amount("mem") / row.nodes,
        features=row.features,
        generic=_generic_of_a_node(row),
        required=row.required,
        excluded=excluded,
        reservation=row.reservation,
    )


class Eligibility:
    """Nodes that the jobs of a Slurm may use, by their requests and its limits.

    Free resources, jobs with higher priority and limits of users are not considered here.
    """

    def __init__(self) -> None:
        self._nodes: Mapping[str, Node] = {}
        self._partitions: Mapping[str, Partition] = {}
        self._reserved: Mapping[str, frozenset[str]] = {}
        self._names: dict[JobKind, str] = {}
        self._published: dict[str, str] = {}
        self._due: dict[JobKind, None] = {}

    def save(self) -> dict[str, str]:
        """Return a digest of each published class, by which changes are found after a restart."""
        return dict(self._published)

    def restore(self, saved: Any) -> None:
        """Restore what `save` returned. Raises `msgspec.ValidationError` if it is invalid."""
        self._published = msgspec.convert(saved, dict[str, str])

    def know(
        self,
        nodes: Mapping[str, Node],
        partitions: Mapping[str, Partition],
        reserved: Mapping[str, frozenset[str]],
    ) -> None:
        """Set the current nodes and partitions; classes that this may change are recomputed.

        Args:
            nodes: by name.
            partitions: by name.
            reserved: nodes of each reservation.
        """
        same_kinds = {n: node.kind for n, node in nodes.items()} == {
            n: node.kind for n, node in self._nodes.items()
        }
        if not same_kinds or partitions != self._partitions or reserved != self._reserved:
            self._due = dict.fromkeys(self._names)
        self._nodes, self._partitions, self._reserved = nodes, partitions, reserved

    def is_off(self, name: str) -> bool:
        """Return whether a node is powered down or wakes up."""
        node = self._nodes.get(name)
        return node is not None and node.is_off

    def class_of(self, kind: JobKind) -> str:
        """Return the name of the class of nodes that jobs of a kind may use."""
        name = self._names.get(kind)
        if name is None:
            name = self._names[kind] = kind.name
            self._due[kind] = None
        return name

    def news(self, at_s: float) -> list[NamedEvent]:
        """Return events for classes that are new or have changed since the last call."""
        found: list[NamedEvent] = []
        for kind in self._due:
            name, may_use = self._names[kind], self.nodes_for(kind)
            nodes = tuple(sorted(may_use))
            digest = _digest(nodes)
            if self._published.get(name) != digest:
                self._published[name] = digest
                found.append((at_s, events.ELIGIBLE, name, nodes))
        self._due = {}
        return found

    def forget_all_but(self, kinds: set[JobKind]) -> None:
        """Forget kinds without a remaining job, if there are many."""
        if len(self._names) > _MAX_KINDS:
            self._names = {kind: name for kind, name in self._names.items() if kind in kinds}
            kept = set(self._names.values())
            self._published = {
                name: nodes for name, nodes in self._published.items() if name in kept
            }
            self._due = {kind: None for kind in self._due if kind in kinds}

    def nodes_for(self, kind: JobKind) -> frozenset[str]:
        """Return the nodes that a job of a kind may use; none if its request cannot be parsed."""
        found = frozenset(self._nodes)
        return found.intersection(*(nodes for _, nodes in self.conditions(kind)))

    def conditions(self, kind: JobKind) -> list[tuple[str, frozenset[str]]]:
        """Return each condition of a job kind on its nodes, with the nodes that meet it."""
        found = [self._partition(kind)]
        for text, meets in _requests(kind):
            by_kind: dict[tuple[object, ...], bool] = {}
            for node in self._nodes.values():
                if node.kind not in by_kind:
                    by_kind[node.kind] = meets(node)
            nodes = frozenset(n for n, node in self._nodes.items() if by_kind[node.kind])
            found.append((text, nodes))
        if kind.reservation:
            reserved = self._reserved.get(kind.reservation, frozenset())
            found.append((f"reservation {kind.reservation}", reserved))
        if kind.required:
            found.append((f"nodes {kind.required}", frozenset(hosts_of(kind.required))))
        if kind.excluded:
            others = frozenset(self._nodes) - frozenset(hosts_of(kind.excluded))
            found.append((f"not on {kind.excluded}", others))
        return found

    def _partition(self, kind: JobKind) -> tuple[str, frozenset[str]]:
        """Return the nodes of the partitions that admit the job."""
        admit = {
            name
            for name in kind.partitions
            if (partition := self._partitions.get(name)) is not None
            and partition.admits(kind.limit_s, kind.nodes)
        }
        nodes = frozenset(
            name for name, node in self._nodes.items() if not admit.isdisjoint(node.partitions)
        )
        within = "no time limit" if kind.limit_s is None else f"{kind.limit_s / 60:g} min"
        return f"partition {' or '.join(kind.partitions)} for {within}", nodes


def _requests(kind: JobKind) -> Iterator[tuple[str, Callable[[Node], bool]]]:
    """Yield each request for node resources, with a test of a node that is wholly free."""
    yield f"{kind.cpus} CPUs", lambda node: node.cpus >= kind.cpus
    if kind.memory_mib:
        text = f"{kind.memory_mib:,.0f} MiB of memory"
        yield text, lambda node: node.memory_mib >= kind.memory_mib
    if kind.features:
        yield f"features {kind.features}", lambda node: _admits(kind.features, node)
    for name, amount in kind.generic:
        text = f"{amount:g} of {name}"
        yield text, partial(_has, name, amount)


def _has(resource: str, amount: float, node: Node) -> bool:
    return amount_of(node.generic, resource) >= amount


def _admits(expression: str, node: Node) -> bool:
    """Return whether a node has the features; False if the expression cannot be parsed."""
    try:
        return has_features(expression, node.features)
    except ValueError:
        return False


def _generic_of_a_node(row: QueueRow) -> tuple[tuple[str, float], ...]:
    """Return the generic resources per node that a job requests, assuming it is spread evenly."""
    per_node, per_job, per_task = row.generic
    wanted = wanted_generic(per_node)
    wanted += [(name, float(ceil(n / row.nodes))) for name, n in wanted_generic(per_job)]
    tasks = ceil(row.tasks / row.nodes)
    return (*wanted, *((name, n * tasks) for name, n in wanted_generic(per_task)))


_OTHERS: Final = re.compile(r"(cpu|mem|node|billing|energy)(:|$)|(license|bb|fs|ic|pages|vmem)/")
"""Resources that are not of a node's list of generic ones."""


def wanted_generic(asked: str) -> list[tuple[str, float]]:
    """Return generic resources by name, as a user requests them; others are left out.

    >>> wanted_generic("gres:gpu:a100:2,gres:shard"), wanted_generic("gres/gpu:1")
    ([('gpu:a100', 2.0), ('shard', 1.0)], [('gpu', 1.0)])
    >>> wanted_generic("cpu=2,license/matlab=1,gres/gpu:t4=1")  # as since Slurm 23.11
    [('gpu:t4', 1.0)]
    """
    wanted: list[tuple[str, float]] = []
    for one in filter(None, asked.replace("=", ":").split(",")):
        if _OTHERS.match(one):
            continue
        name = one.removeprefix("gres:").removeprefix("gres/")
        named, _, amount = name.rpartition(":")
        if named and amount.isdecimal():
            wanted.append((named, float(amount)))
        else:
            wanted.append((name, 1.0))
    return wanted


# -- features --------------------------------------------------------------------------------------
# Expressions of node features, as ``--constraint`` takes them.

_TOKEN = re.compile(r"\s*([&|()\[\],]|[^&|()\[\],*\s]+)(?:\*\d+)?")
_OPERATORS: Final = frozenset("&|,)]")
_CLOSES: Final = {"(": ")", "[": "]"}
_MAX_TOKENS: Final = 200
"""Limit of tokens in an expression: each bracket is a nested call."""


def has_features(expression: str, features: Collection[str]) -> bool:
    """Return whether an expression admits a node with these features.

    ``&`` and a comma mean *and*, ``|`` means *or*. They have the same precedence, from left to
    right, as in Slurm. The brackets of *matching or* define how nodes are combined, not which. So
    do counts (``a*2&b*1``): with them, every node that has one of the features may be among those
    of a job.

    >>> has_features("intel&(ssd|nvme)", {"intel", "nvme"}), has_features("a*2&b*1", {"b"})
    (True, True)

    Raises:
        ValueError: it is not such an expression.
    """
    tokens = _TOKEN.findall(expression)
    if not tokens or len(tokens) > _MAX_TOKENS or _TOKEN.sub("", expression).strip():
        raise ValueError(f'"{expression[:60]}" is not an expression of features')
    if "*" in expression:
        return any(token in features for token in tokens)
    tokens.reverse()
    found = _value(tokens, features, "")
    if tokens:
        raise ValueError(f'"{expression[:60]}" closes a bracket that is not open')
    return found


def _value(tokens: list[str], features: Collection[str], until: str) -> bool:
    found = _one(tokens, features)
    while tokens and tokens[-1] != until:
        operator = tokens.pop()
        other = _one(tokens, features)
        if operator in ("&", ","):
            found = found and other
        elif operator == "|":
            found = found or other
        else:
            raise ValueError(f'unexpected "{operator[:60]}" among features; expected & or |')
    return found


def _one(tokens: list[str], features: Collection[str]) -> bool:
    if not tokens:
        raise ValueError("an expression of features ends too early")
    token = tokens.pop()
    if token in _CLOSES:
        found = _value(tokens, features, _CLOSES[token])
        if not tokens:
            raise ValueError(f'"{token}" is not closed')
        tokens.pop()
        return found
    if token in _OPERATORS:
        raise ValueError(f'unexpected "{token}" among features; expected a feature')
    return token in features
