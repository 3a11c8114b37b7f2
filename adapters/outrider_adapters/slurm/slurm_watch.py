"""Poller of a Slurm: each look at jobs, nodes and limits becomes one batch."""

import re
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from math import inf
from typing import Any, Final

import msgspec

from outrider.api import Batch, NamedEvent, PeerError, ReaderOptions, UndoLog, events
from outrider_adapters.polling import CommandError
from outrider_adapters.polling.adapter import PollingWatch
from outrider_adapters.readers.slurm import SacctReader
from outrider_adapters.slurm.acting.fence_jobs import FencesLeftOut
from outrider_adapters.slurm.commands import (
    SEPARATOR,
    RecentAnswers,
    SlurmCommands,
    acting_users,
    hidden_from_us,
)
from outrider_adapters.slurm.eligibility import Eligibility
from outrider_adapters.slurm.job_watch import JobWatch
from outrider_adapters.slurm.nodes import (
    Node,
    Partition,
    SeenNode,
    changes,
    nodes_of,
    partitions_of,
    reserved_nodes,
    settings_of,
    shown_for_s,
)
from outrider_adapters.slurm.queue_rows import FIELDS
from outrider_adapters.slurm.settings import SlurmSettings

_VERSION: Final = 1
_CONTROLLER: Final = "controller"
_MANY_ROWS: Final = 10_000
_BUSY_FACTOR: Final = 3


class SlurmWatch(PollingWatch):
    """Watcher of a Slurm's jobs, nodes and limits; blocks while its commands run.

    Args:
        commands: of the Slurm.
        settings: how it is watched.
        undo_log: what Outrider changed in it.
        clock: returns Unix seconds.

    Attributes:
        jobs: those in its queue.
        nodes: by name, at the last look.
        partitions: by name, at the last look.
        eligibility: which nodes its jobs may use.
        recent: answers that explain jobs, none older than the last look.
    """

    def __init__(
        self,
        commands: SlurmCommands,
        settings: SlurmSettings,
        undo_log: UndoLog | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(settings.start_at, clock, undo_log)
        self._commands = commands
        self._settings = settings
        self._asked_s = {"nodes": -inf, "limits": -inf}
        self._consumes_memory = False
        self._is_busy = False
        self._rows_n = 0
        self._excluded: dict[str, str] = {}
        self._numbers: set[str] = set()
        self._looked_s = -inf
        self._shown_for_s = 0.0
        self._problem = ""
        self.recent = RecentAnswers(commands)
        self._accounting = Accounting(commands, "", "")
        self._reserved: dict[str, frozenset[str]] = {}
        self._published: dict[str, SeenNode] = {}
        self.eligibility = Eligibility()
        self.jobs = JobWatch("", self.eligibility, self._undo_log)
        self._fences = FencesLeftOut(commands)
        self.nodes: dict[str, Node] = {}
        self.partitions: dict[str, Partition] = {}

    def start(self, cursor: Any) -> None:
        """Find out the cluster, and continue from the cursor of an earlier batch, if there is one.

        Raises:
            PeerError: no controller answers, or it is one of a federation.
            ValueError: the cursor does not belong to this watch.
        """
        config = settings_of(self._commands.run("scontrol", "show", "config"))
        cluster = config.get("ClusterName", "")
        federation = self._commands.run("scontrol", "show", "federation").strip()
        if federation.startswith("Federation:"):
            raise PeerError(
                f"{cluster} is in a {federation.split(chr(10))[0].lower()}: its jobs are numbered "
                "across all its clusters, which this adapter does not support; expected a cluster "
                "outside a federation, or the adapter logtail with a dump of sacct"
            )
        self._accounting = Accounting(
            self._commands, config.get("AccountingStorageType", ""), cluster
        )
        self.jobs = JobWatch(cluster, self.eligibility, self._undo_log)
        try:
            if cursor is not None:
                if cursor["version"] != _VERSION or cursor["cluster"] != cluster:
                    raise ValueError(f"of {cursor['cluster']!r}")
                self.jobs.restore(cursor["jobs"])
                self._published = msgspec.convert(cursor["nodes"], dict[str, SeenNode])
                self.eligibility.restore(cursor["classes"])
                self._looked_s = float(cursor["looked_s"])
        except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
            raise ValueError(f"no cursor of the Slurm cluster {cluster!r}: {error}") from error
        self._cursor, self._is_first = cursor, cursor is None
        self._know(config)

    def _know(self, config: dict[str, str]) -> None:
        self._consumes_memory = "MEMORY" in config.get("SelectTypeParameters", "").upper()
        self._shown_for_s = shown_for_s(config)
        self._problem = hidden_from_us(self._commands, config)
        self._fences.users = acting_users(self._commands, config)

    @property
    def pause_s(self) -> float:
        """Seconds until the next look."""
        is_slow = self._is_busy or self._rows_n > _MANY_ROWS
        return self._settings.look_s * (_BUSY_FACTOR if is_slow else 1)

    def look(self) -> Batch:
        """Return the events since the last look, ordered by time.

        If the controller does not answer, the batch is empty and reports that; its age grows.
        """
        now_s = self.now_s
        self.recent.forget()
        return self._asking.batch(_CONTROLLER, now_s, lambda: self._batch(now_s), self._cursor)

    def _batch(self, now_s: float) -> Batch:
        if self._is_due("limits", now_s, self._settings.limits_s):
            self._know(settings_of(self._commands.run("scontrol", "show", "config")))
            self.partitions = partitions_of(
                self._commands.run("scontrol", "show", "partition", "-o")
            )
            self._reserved = reserved_nodes(
                self._commands.run("scontrol", "show", "reservation", "-o")
            )
            self._asked_s["limits"] = now_s
        looks_at_nodes = self._is_due("nodes", now_s, self._settings.nodes_s)
        nodes = self._look_at_nodes() if looks_at_nodes else self.nodes
        lines = self._fences.of(self._commands.rows(FIELDS, "-a", "-t", "all"))
        numbers = {line.partition(SEPARATOR)[0].partition("_")[0] for line in lines}
        if looks_at_nodes or not numbers <= self._numbers:  # else only an edit would be missed
            # list all jobs: a job that waits in the rows above may have started or ended since
            shown = self._commands.run("squeue", "-a", "-h", "-t", "all", "-o", "%i|%x")
            self._excluded, self._numbers = _excluded(shown), numbers
        self.eligibility.know(nodes, self.partitions, self._reserved)
        history = self._is_history
        found = self.jobs.look(
            lines,
            self._excluded,
            now_s,
            lambda jobs: self._accounting.ends_of(jobs, self.jobs.name_of, now_s),
            leaves_out_ended=history,
            gapless=0.0 <= now_s - self._looked_s < self._shown_for_s,
        )
        found = self._accounting.with_reasons(found)
        self._looked_s = now_s
        self.planned_starts = self.jobs.planned_starts(now_s)
        first_s = min((event[0] for event in found), default=now_s)
        # at equal times a class is published before a job of it is submitted
        # (eligibility is not history: the journal needs it, too)
        before = [] if history else self.eligibility.news(min(first_s, now_s))
        if looks_at_nodes:
            self.nodes = nodes
            before += self._node_events(nodes, self._published, found, now_s, self._changes)
            self._published = {name: node.seen for name, node in nodes.items()}
            self._asked_s["nodes"] = now_s
        self.eligibility.forget_all_but(self.jobs.kinds())
        self._rows_n = len(lines)
        cursor = {
            "version": _VERSION,
            "cluster": self.jobs.cluster,
            "jobs": self.jobs.save(),
            "nodes": msgspec.to_builtins(self._published),
            "classes": self.eligibility.save(),
            "looked_s": now_s,
        }
        note = "; ".join(filter(None, (self._accounting.note, self._load_note())))
        return self._looked(before + found, now_s, cursor, self.jobs.rejected, note, self._problem)

    def _is_due(self, what: str, now_s: float, every_s: float) -> bool:
        return not 0.0 <= now_s - self._asked_s[what] < every_s

    def nodes_now(self) -> dict[str, Node]:
        """Return the nodes, at most a moment old. Raises `CommandError`."""
        return self.recent.kept(("nodes",), self._shown_nodes)

    def _look_at_nodes(self) -> dict[str, Node]:
        self._is_busy = is_busy(self._commands.run("sdiag"))
        return self._shown_nodes()

    def _shown_nodes(self) -> dict[str, Node]:
        return nodes_of(self._commands.run("scontrol", "show", "node", "-o"), self._cluster_of)

    def _changes(self, name: str, at_s: float) -> list[NamedEvent]:
        before = self._published.get(name)
        return changes(name, before, self.nodes[name], at_s, self._consumes_memory)

    def _cluster_of(self, name: str, partitions: tuple[str, ...]) -> str:
        for pattern, cluster in self._settings.machine_clusters.items():
            if fnmatchcase(name, pattern):
                return cluster
        return partitions[0] if partitions else "default"

    def _load_note(self) -> str:
        return "the controller is busy and is queried less often" if self._is_busy else ""


def _excluded(shown: str) -> dict[str, str]:
    """Return the nodes that users exclude, as host lists, by job number."""
    found: dict[str, str] = {}
    for line in shown.split("\n"):
        job, _, nodes = line.partition("|")
        if nodes:
            found[job.partition("_")[0]] = nodes
    return found


# -- accounting ------------------------------------------------------------------------------------
# Slurm's accounting, for jobs that are no longer in the queue.

_COLUMNS: Final = (
    "Cluster,JobID,State,Submit,Eligible,Start,End,AllocCPUS,ReqCPUS,User,Account,Group,Timelimit,"
    "NodeList"
)
_MAX_JOBS_PER_QUERY: Final = 500
"""Jobs in one query, since the length of a command line is limited."""
_PAUSES_S: Final = (0.0, 0.5, 1.0)
"""Pauses before queries about runs that were lost at this look."""


class Accounting:
    """Client of ``sacct`` for jobs that left between two looks or while the adapter was down.

    Args:
        commands: of the Slurm.
        storage: its ``AccountingStorageType``.
        cluster: the cluster of the jobs.
        sleep: waits for some seconds.

    Attributes:
        unknown_n: jobs with an unknown end since the adapter was started.
    """

    def __init__(
        self,
        commands: SlurmCommands,
        storage: str,
        cluster: str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._commands = commands
        self._sleep = sleep
        self._has_accounting = storage.endswith("slurmdbd")
        self._cluster = cluster
        self.unknown_n = 0

    def ends_of(
        self, jobs: list[str], name_of: Callable[[str], str], now_s: float
    ) -> list[NamedEvent]:
        """Return the end events of jobs; a job that accounting does not know counts as removed now.

        Args:
            jobs: their ids.
            name_of: returns the name of a job id.
            now_s: when they were found missing.

        Raises:
            CommandError: the accounting does not answer; query these jobs again later.
        """
        found: list[NamedEvent] = []
        if self._has_accounting:
            for first in range(0, len(jobs), _MAX_JOBS_PER_QUERY):
                found += self._queried(jobs[first : first + _MAX_JOBS_PER_QUERY])
        ended = {e[2] for e in found if e[1] in (events.COMPLETED, events.REMOVED)}
        unknown = [name for job in jobs if (name := name_of(job)) not in ended]
        self.unknown_n += len(unknown)
        return found + [(now_s, events.REMOVED, name, "unknown") for name in unknown]

    def with_reasons(self, found: list[NamedEvent]) -> list[NamedEvent]:
        """Return the events, with the accounting's reason in evictions of an unknown one.

        The queue shows that a job was queued again, but not that it was preempted. The controller
        reports to the accounting a moment later: a missing record is queried again, twice. A
        reason that the accounting does not have then stays unknown.
        """
        unknown = {(e[2], e[0]) for e in found if e[1] == events.EVICTED and e[3] == "unknown"}
        if not unknown or not self._has_accounting:
            return found
        jobs = sorted({name.rpartition(":")[2] for name, _ in unknown})[:_MAX_JOBS_PER_QUERY]
        reasons: dict[tuple[str, float], Any] = {}
        for pause_s in _PAUSES_S:
            self._sleep(pause_s)
            try:
                recorded = self._queried(jobs)
            except CommandError:
                break
            reasons = {(e[2], e[0]): e[3] for e in recorded if e[1] == events.EVICTED}
            if unknown <= reasons.keys():
                break
        return [
            (*e[:3], reasons.get((e[2], e[0]), e[3]))
            if e[1] == events.EVICTED and e[3] == "unknown"
            else e
            for e in found
        ]

    @property
    def note(self) -> str:
        """Note on jobs with an unknown end, for the operator; empty if there are none."""
        if not self.unknown_n:
            return ""
        return f"the end of {self.unknown_n} jobs is unknown: they count as removed"

    def _queried(self, jobs: list[str]) -> list[NamedEvent]:
        words = ("-P", "-a", "-X", "-D", "-j", ",".join(jobs), "--format", _COLUMNS)
        dump = self._commands.run("sacct", *words)
        reader = SacctReader(ReaderOptions(system=self._cluster))
        return reader.read(dump.encode(), final=True).events


# -- load ------------------------------------------------------------------------------------------
# Load of the controller: a busy controller is queried less often.

_NUMBER = re.compile(r"^(Server thread count|Agent queue size):\s*(\d+)", re.MULTILINE)
_BUSY_FROM: Final = {"Server thread count": 100, "Agent queue size": 1_000}
"""Limits: of at most 256 threads of a controller, and of queued messages to nodes."""


def is_busy(shown: str) -> bool:
    """Return whether a controller is busy, from the output of ``sdiag``."""
    return any(int(number) >= _BUSY_FROM[name] for name, number in _NUMBER.findall(shown))
