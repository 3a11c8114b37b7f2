"""Poller of a PBS server: each look at jobs and nodes becomes one batch."""

import re
import time
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from math import inf
from typing import Any, Final

import msgspec

from outrider.api import (
    Batch,
    MachineSpec,
    NamedEvent,
    Resources,
    UndoLog,
    WaitingReason,
    events,
)
from outrider_adapters.pbs.dialects import Dialect
from outrider_adapters.pbs.job_rows import DEFERRED, size_mib, zone_of
from outrider_adapters.pbs.job_watch import JobWatch
from outrider_adapters.pbs.settings import PBSSettings
from outrider_adapters.polling.adapter import PollingWatch

_VERSION: Final = 1
_SERVER: Final = "server"


class PBSWatch(PollingWatch):
    """Watcher of a server's jobs and nodes; blocks while its commands run.

    Args:
        dialect: queries the server.
        settings: how it is watched.
        clock: returns Unix seconds.
        undo_log: what Outrider changed in it.

    Attributes:
        jobs: those in its queue.
        nodes: by name, at the last look.
    """

    def __init__(
        self,
        dialect: Dialect,
        settings: PBSSettings,
        clock: Callable[[], float] = time.time,
        undo_log: UndoLog | None = None,
    ) -> None:
        super().__init__(settings.start_at, clock, undo_log)
        self._dialect = dialect
        self._settings = settings
        self._nodes_asked_s = -inf
        self._published: dict[str, Node] = {}
        zone = zone_of(settings.timezone)
        self.jobs = JobWatch(zone, dialect.is_torque, self._undo_log)
        self.nodes: dict[str, Node] = {}

    def start(self, cursor: Any) -> None:
        """Continue from the cursor of an earlier batch; None: begin afresh.

        Raises:
            ValueError: the cursor does not belong to this watch.
        """
        try:
            if cursor is not None:
                if cursor["version"] != _VERSION:
                    raise ValueError(f"version {cursor['version']!r}")
                self.jobs.restore(cursor["jobs"])
                self._published = msgspec.convert(cursor["nodes"], dict[str, Node])
        except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
            raise ValueError(f"no cursor of a watched PBS server: {error}") from error
        self._cursor, self._is_first = cursor, cursor is None

    def look(self) -> Batch:
        """Return the events since the last look, ordered by time.

        If the server does not answer, the batch is empty and reports that; its age grows.
        """
        now_s = self.now_s
        return self._asking.batch(_SERVER, now_s, lambda: self._batch(now_s), self._cursor)

    def why(self, job: str) -> WaitingReason | None:
        """Query why a job is not running; None if it runs or is unknown here.

        Raises:
            CommandError: the server does not answer.
        """
        if self.jobs.row(job) is None:
            return None
        ad = self._dialect.jobs().entries.get(job, {})
        return waiting_reason(job, ad, self.jobs.as_its_user_left_it(job, ad) is not ad)

    def _batch(self, now_s: float) -> Batch:
        looks_at_nodes = not 0.0 <= now_s - self._nodes_asked_s < self._settings.nodes_s
        if looks_at_nodes:
            self.nodes = nodes_of(self._dialect.nodes().entries, self._cluster_of)
        shown, unreadable = self._dialect.jobs()
        found = self.jobs.look(
            shown,
            unreadable,
            now_s,
            lambda jobs: self._dialect.ended(jobs).entries,
            leaves_out_ended=self._is_history,
        )
        self.planned_starts = self.jobs.planned_starts(now_s)
        before: list[NamedEvent] = []
        if looks_at_nodes:
            before = self._node_events(self.nodes, self._published, found, now_s, self._changes)
            self._published = dict(self.nodes)
            self._nodes_asked_s = now_s
        cursor = {
            "version": _VERSION,
            "jobs": self.jobs.save(),
            "nodes": msgspec.to_builtins(self._published),
        }
        return self._looked(before + found, now_s, cursor, self.jobs.rejected, self._note())

    def _changes(self, name: str, at_s: float) -> list[NamedEvent]:
        return changes(name, self._published.get(name), self.nodes[name], at_s)

    def _cluster_of(self, name: str) -> str:
        patterns = self._settings.machine_clusters.items()
        matching = (cluster for pattern, cluster in patterns if fnmatchcase(name, pattern))
        return next(matching, "default")

    def _note(self) -> str:
        n = self.jobs.unknown_n
        return f"the end of {n} jobs is unknown: they count as removed" if n else ""


# -- nodes -----------------------------------------------------------------------------------------
# Nodes of a PBS server, from ``pbsnodes``, and events from two successive looks at a node.

_CLOSED: Final = frozenset(
    {
        "offline", "down", "stale", "state-unknown", "unknown", "unresolvable", "provisioning",
        "wait-provisioning", "maintenance", "reserve", "resv-exclusive", "Standby", "Suspend",
        "Sleep", "Hibernate", "Shutdown",
    }
)  # fmt: skip
"""States in which no job starts, of both families; the last five are power states of Torque."""

_ASLEEP: Final = frozenset({"sleep", "Standby", "Suspend", "Sleep", "Hibernate", "Shutdown"})
_PART: Final = re.compile(r"\[\d+\]$")
"""Suffix of a virtual node: ``n7[0]`` and ``n7[1]`` are parts of the host n7."""

_STATUS: Final = re.compile(r"(?:^|,)physmem=(\w+)")


class Node(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """State of a node at a look.

    Attributes:
        cluster, cpus: as in `MachineSpec`.
        memory_mib, gpus: total memory and number of GPUs.
        usable: jobs may start on it.
        asleep: it is asleep.
    """

    cluster: str
    cpus: int
    memory_mib: float | None
    gpus: float
    usable: bool
    asleep: bool

    @property
    def spec(self) -> MachineSpec:
        """Machine for the `joined` event; PBS does not report watts."""
        resources = Resources(memory_mib=self.memory_mib, gpus=self.gpus)
        return MachineSpec(
            cluster=self.cluster, cpus=self.cpus, usable=self.usable, resources=resources
        )

    @property
    def size(self) -> tuple[object, ...]:
        """Properties that make it another machine when they change."""
        return self.cluster, self.cpus, self.memory_mib, self.gpus


def nodes_of(
    shown: Mapping[str, Mapping[str, str]], cluster_of: Callable[[str], str]
) -> dict[str, Node]:
    """Return nodes by name; virtual nodes of one host are merged.

    Args:
        shown: attributes by name.
        cluster_of: returns the cluster of a node.
    """
    nodes: dict[str, Node] = {}
    for name, ad in shown.items():
        host = _PART.sub("", name)
        one, known = _node(ad, cluster_of(host)), nodes.get(host)
        nodes[host] = one if known is None else _merged(known, one)
    return nodes


def changes(name: str, before: Node | None, after: Node, at_s: float) -> list[NamedEvent]:
    """Return the events of a node between two looks, in order.

    Args:
        name: the node's name.
        before: its last state; None: it is new.
        after: its current state.
        at_s: time of the look: PBS does not report when a state was entered.
    """
    found: list[NamedEvent] = []
    if before is None or before.size != after.size:
        found.append((at_s, events.JOINED, name, after.spec))
    if before is None:
        return found + ([(at_s, events.ASLEEP, name, None)] if after.asleep else [])
    if after.asleep != before.asleep:
        found.append((at_s, events.ASLEEP if after.asleep else events.WOKEN, name, None))
    if after.usable != before.usable:
        found.append((at_s, events.USABLE if after.usable else events.DRAINED, name, None))
    return found


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


def _merged(one: Node, other: Node) -> Node:
    known = [node.memory_mib for node in (one, other) if node.memory_mib is not None]
    return Node(
        cluster=one.cluster,
        cpus=one.cpus + other.cpus,
        memory_mib=sum(known) if known else None,
        gpus=one.gpus + other.gpus,
        usable=one.usable or other.usable,
        asleep=one.asleep and other.asleep,
    )


# -- reasons ---------------------------------------------------------------------------------------
# Waiting reasons, as reported by PBS.

_WAITS: Final = frozenset("QHWT")
_NEVER: Final = "Can Never Run"
"""Beginning of a comment by OpenPBS's scheduler on a job that can never run."""

_HOLDS: Final = {
    "u": ("its user", "qrls -h u {job}"),
    "o": ("an operator", "qrls -h o {job} (by an operator)"),
    "s": ("the system or a manager", "qrls -h s {job} (by a manager)"),
    "p": ("a wrong password", "qrls -h p {job} (by a manager)"),
}


def waiting_reason(job: str, ad: Mapping[str, str], is_ours: bool = False) -> WaitingReason | None:
    """Return why a job is not running; None for one that runs or has left.

    Args:
        job: its name.
        ad: its attributes; the comment is written by the scheduler or an operator, not by users.
        is_ours: whether Outrider gave it the time for which it waits.
    """
    state, comment = ad.get("job_state", ""), ad.get("comment", "").strip()
    if state not in _WAITS:
        return None
    reported = [f"PBS reports: {comment}"] if comment else []
    if state == "W":
        when = ad.get("Execution_Time", "its time")
        if is_ours:
            sentence = f"it waits until {when}, because Outrider asked for that: no user did"
            return WaitingReason(code=DEFERRED, sentence=sentence)
        remedy = f"let it begin now: qalter -a $(date +%Y%m%d%H%M) {job}"
        return WaitingReason(code="W", sentence=f"it waits until {when}", remedies=(remedy,))
    if depend := ad.get("depend", ""):
        remedy = f"remove the dependency: qalter -W depend= {job}"
        sentence = "; ".join([f"it waits for other jobs: {depend}", *reported])
        return WaitingReason(
            code=state, sentence=sentence, remedies=("wait for these jobs", remedy)
        )
    holds = [_HOLDS[letter] for letter in ad.get("Hold_Types", "") if letter in _HOLDS]
    if state == "H":
        who = " and ".join(name for name, _ in holds) or "an unknown user"
        release = tuple(f"release it: {command.format(job=job)}" for _, command in holds)
        sentence = "; ".join([f"it is held by {who}", *reported])
        return WaitingReason(code=state, sentence=sentence, remedies=release)
    if comment.startswith(_NEVER):
        remedy = f"ask for less, or for something else: qalter -l ... {job}"
        return WaitingReason(code=state, sentence=reported[0], never=True, remedies=(remedy,))
    sentence = reported[0] if reported else "its scheduler has not reported a reason yet"
    return WaitingReason(code=state, sentence=sentence, remedies=("wait, or ask for less",))
