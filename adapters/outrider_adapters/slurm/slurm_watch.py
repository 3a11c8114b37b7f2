"""One look at a Slurm after the other: jobs, nodes and limits made into one batch."""

import re
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from math import floor, inf
from typing import Any, Final

import msgspec

from outrider.api import Batch, NamedEvent, PeerError, PlannedStarts, ReaderOptions, UndoLog, events
from outrider_adapters.polling import Asking, CommandError
from outrider_adapters.readers.slurm import SacctReader
from outrider_adapters.slurm.acting.fence_jobs import FencesLeftOut
from outrider_adapters.slurm.commands import SlurmCommands, acting_users, hidden_from_us
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
_SLOWER: Final = 3
_BEHIND_S: Final = 1.0
"""Slurm's times are whole seconds: what happens within the second of a look may be told later."""


class SlurmWatch:
    """Everything that is seen of a Slurm. Synchronous, and it blocks as long as its commands do.

    Args:
        commands: of the Slurm.
        settings: how it is watched.
        undo_log: what Outrider changed in it.
        clock: Unix seconds now.

    Attributes:
        jobs: that are in its queue.
        nodes: by name, as of the last look.
        partitions: by name, as of the last look.
        eligibility: which nodes its jobs may use.
        planned_starts: when Slurm itself expects to start jobs, as of the last look.
    """

    def __init__(
        self,
        commands: SlurmCommands,
        settings: SlurmSettings,
        undo_log: UndoLog | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._commands = commands
        self._settings = settings
        self._undo_log = undo_log or UndoLog()
        self._clock = clock
        self._asking = Asking(CommandError)
        self._cursor: Any = None
        self._is_first = False
        self._asked_s = {"nodes": -inf, "limits": -inf}
        self._consumes_memory = False
        self._is_busy = False
        self._rows_n = 0
        self._looked_s = -inf
        self._shown_for_s = 0.0
        self._problem = ""
        self._accounting = Accounting(commands, "", "")
        self._reserved: dict[str, frozenset[str]] = {}
        self._told: dict[str, SeenNode] = {}
        self.eligibility = Eligibility()
        self.jobs = JobWatch("", self.eligibility, self._undo_log)
        self._fences = FencesLeftOut(commands)
        self.nodes: dict[str, Node] = {}
        self.partitions: dict[str, Partition] = {}
        self.planned_starts = PlannedStarts(-inf)

    def start(self, cursor: Any) -> None:
        """Ask which cluster this is, and begin at the cursor of an earlier batch; None: anew.

        Raises:
            PeerError: no controller answers, or it is one of a federation.
            ValueError: the cursor is none of this watch's.
        """
        config = settings_of(self._commands.run("scontrol", "show", "config"))
        cluster = config.get("ClusterName", "")
        federation = self._commands.run("scontrol", "show", "federation").strip()
        if federation.startswith("Federation:"):
            raise PeerError(
                f"{cluster} is in a {federation.split(chr(10))[0].lower()}: its jobs go by numbers "
                "of all its clusters, which this adapter does not follow; expected a cluster "
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
                self._told = msgspec.convert(cursor["nodes"], dict[str, SeenNode])
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
    def now_s(self) -> float:
        """Unix seconds now, whole as all of Slurm's times.

        Else what has no time of Slurm's own would seem to come after what followed in its second.
        """
        return float(floor(self._clock()))

    @property
    def pause_s(self) -> float:
        """Seconds to the next look."""
        is_slow = self._is_busy or self._rows_n > _MANY_ROWS
        return self._settings.look_s * (_SLOWER if is_slow else 1)

    def look(self) -> Batch:
        """What happened since the last look, by time.

        Where the controller does not answer, the batch is empty, says so and grows old.
        """
        now_s = self.now_s
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
        # of all jobs: one that waits above may have started, or ended, by now
        excluded = _excluded(self._commands.run("squeue", "-a", "-h", "-t", "all", "-o", "%i|%x"))
        self.eligibility.know(nodes, self.partitions, self._reserved)
        history = self._is_first and self._settings.start_at == "now"
        told = self.jobs.look(
            lines,
            excluded,
            now_s,
            lambda jobs: self._accounting.ends_of(jobs, self.jobs.name_of, now_s),
            leaves_out_ended=history,
            gapless=0.0 <= now_s - self._looked_s < self._shown_for_s,
        )
        self._looked_s = now_s
        self.planned_starts = self.jobs.planned_starts(now_s)
        first_s = min((event[0] for event in told), default=now_s)
        # at equal times nodes come first: a machine opens before a job starts there, and a class
        # is told before a job of it is submitted
        # (what jobs may use is no history: the journal, too, must have it)
        before = [] if history else self.eligibility.news(min(first_s, now_s))
        if looks_at_nodes:
            begun_s = min((e[0] for e in told if e[1] == events.STARTED), default=now_s)
            before += self._node_events(nodes, min(begun_s, now_s), now_s)
            self._asked_s["nodes"] = now_s
        self.eligibility.forget_all_but(self.jobs.kinds())
        self._rows_n = len(lines)
        self._is_first = False
        self._cursor = {
            "version": _VERSION,
            "cluster": self.jobs.cluster,
            "jobs": self.jobs.save(),
            "nodes": msgspec.to_builtins(self._told),
            "classes": self.eligibility.save(),
            "looked_s": now_s,
        }
        return Batch(
            events=sorted(before + told, key=lambda event: event[0]),
            cursor=self._cursor,
            seen_until_s=None if history else now_s - _BEHIND_S,
            rejected=dict(self.jobs.rejected),
            history=history,
            standing=history,
            note="; ".join(filter(None, (self._accounting.note, self._load_note()))),
            problem=self._problem,
        )

    def _is_due(self, what: str, now_s: float, every_s: float) -> bool:
        return not 0.0 <= now_s - self._asked_s[what] < every_s

    def _look_at_nodes(self) -> dict[str, Node]:
        self._is_busy = is_busy(self._commands.run("sdiag"))
        return nodes_of(self._commands.run("scontrol", "show", "node", "-o"), self._cluster_of)

    def _node_events(
        self, nodes: dict[str, Node], first_s: float, now_s: float
    ) -> list[NamedEvent]:
        """What happened to nodes. One that is new was there before the jobs that are told now."""
        told: list[NamedEvent] = []
        for name, node in nodes.items():
            before = self._told.get(name)
            at_s = first_s if before is None else now_s
            told += changes(name, before, node, at_s, self._consumes_memory)
        gone = sorted(set(self._told) - set(nodes))
        told += [(now_s, events.LEFT, name, None) for name in gone]
        self.nodes, self._told = nodes, {name: node.seen for name, node in nodes.items()}
        return told

    def _cluster_of(self, name: str, partitions: tuple[str, ...]) -> str:
        for pattern, cluster in self._settings.machine_clusters.items():
            if fnmatchcase(name, pattern):
                return cluster
        return partitions[0] if partitions else "default"

    def _load_note(self) -> str:
        return "the controller has much to do and is asked less often" if self._is_busy else ""


def _excluded(shown: str) -> dict[str, str]:
    """Nodes that users exclude, as host lists, by the number of the job."""
    found: dict[str, str] = {}
    for line in shown.split("\n"):
        job, _, nodes = line.partition("|")
        if nodes:
            found[job.partition("_")[0]] = nodes
    return found


# -- accounting ------------------------------------------------------------------------------------
# What Slurm's accounting knows of jobs that are in the queue no more.

_COLUMNS: Final = (
    "Cluster,JobID,State,Submit,Eligible,Start,End,AllocCPUS,ReqCPUS,User,Account,Group,Timelimit,"
    "NodeList"
)
_AT_ONCE: Final = 500
"""Jobs in one question: a command line has an end."""


class Accounting:
    """Asks ``sacct`` for jobs that left unseen: while nobody looked, or too quickly.

    Args:
        commands: of the Slurm.
        storage: its ``AccountingStorageType``.
        cluster: whose jobs they are.

    Attributes:
        unknown_n: jobs whose end nobody knows, since the adapter was started.
    """

    def __init__(self, commands: SlurmCommands, storage: str, cluster: str) -> None:
        self._commands = commands
        self._has_accounting = storage.endswith("slurmdbd")
        self._cluster = cluster
        self.unknown_n = 0

    def ends_of(
        self, jobs: list[str], name_of: Callable[[str], str], now_s: float
    ) -> list[NamedEvent]:
        """How jobs ended; those of which nothing is known are taken as removed now.

        Args:
            jobs: their ids.
            name_of: makes names of them.
            now_s: when they were missed.

        Raises:
            CommandError: the accounting does not answer; they are to be asked for again.
        """
        told: list[NamedEvent] = []
        if self._has_accounting:
            for first in range(0, len(jobs), _AT_ONCE):
                told += self._asked(jobs[first : first + _AT_ONCE])
        ended = {e[2] for e in told if e[1] in (events.COMPLETED, events.REMOVED)}
        unknown = [name for job in jobs if (name := name_of(job)) not in ended]
        self.unknown_n += len(unknown)
        return told + [(now_s, events.REMOVED, name, "unknown") for name in unknown]

    @property
    def note(self) -> str:
        """What the person on call should know of them; empty: nothing."""
        if not self.unknown_n:
            return ""
        return f"how {self.unknown_n} jobs left is not known: they count as removed"

    def _asked(self, jobs: list[str]) -> list[NamedEvent]:
        words = ("-P", "-a", "-X", "-D", "-j", ",".join(jobs), "--format", _COLUMNS)
        dump = self._commands.run("sacct", *words)
        reader = SacctReader(ReaderOptions(system=self._cluster))
        return reader.read(dump.encode(), final=True).events


# -- load ------------------------------------------------------------------------------------------
# Whether the controller has so much to do that it should be asked less often.

_NUMBER = re.compile(r"^(Server thread count|Agent queue size):\s*(\d+)", re.MULTILINE)
_MUCH: Final = {"Server thread count": 100, "Agent queue size": 1_000}
"""Of 256 threads that a controller has at most; of messages to nodes that wait to be sent."""


def is_busy(shown: str) -> bool:
    """Return whether a controller is busy, by what ``sdiag`` prints."""
    return any(int(number) >= _MUCH[what] for what, number in _NUMBER.findall(shown))
