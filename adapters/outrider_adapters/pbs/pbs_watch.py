"""One look at a PBS server after the other: jobs and nodes made into one batch."""

import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from math import floor, inf
from typing import Any, Final

import msgspec

from outrider.api import Batch, NamedEvent, PlannedStarts, UndoLog, WaitingReason, events
from outrider_adapters.pbs.dialects import Dialect
from outrider_adapters.pbs.job_rows import zone_of
from outrider_adapters.pbs.job_watch import JobWatch
from outrider_adapters.pbs.nodes import Node, changes, nodes_of
from outrider_adapters.pbs.reasons import waiting_reason
from outrider_adapters.pbs.settings import PBSSettings
from outrider_adapters.polling import Asking, CommandError

_VERSION: Final = 1
_SERVER: Final = "server"
_BEHIND_S: Final = 1.0
"""PBS's times are whole seconds: what happens within the second of a look may be told later."""


class PBSWatch:
    """Everything that is seen of a server. Synchronous, and it blocks as long as its commands do.

    Args:
        dialect: asks the server.
        settings: how it is watched.
        clock: Unix seconds now.
        undo_log: what Outrider changed in it.

    Attributes:
        jobs: that are in its queue.
        nodes: by name, as of the last look.
        planned_starts: when PBS itself expects to start jobs, as of the last look.
    """

    def __init__(
        self,
        dialect: Dialect,
        settings: PBSSettings,
        clock: Callable[[], float] = time.time,
        undo_log: UndoLog | None = None,
    ) -> None:
        self._dialect = dialect
        self._settings = settings
        self._clock = clock
        self._asking = Asking(CommandError)
        self._cursor: Any = None
        self._is_first = False
        self._nodes_asked_s = -inf
        self._told: dict[str, Node] = {}
        self._undo_log = undo_log or UndoLog()
        zone = zone_of(settings.timezone)
        self.jobs = JobWatch(zone, dialect.is_torque, self._undo_log)
        self.nodes: dict[str, Node] = {}
        self.planned_starts = PlannedStarts(-inf)

    def start(self, cursor: Any) -> None:
        """Begin at the cursor of an earlier batch; None: anew.

        Raises:
            ValueError: the cursor is none of this watch's.
        """
        try:
            if cursor is not None:
                if cursor["version"] != _VERSION:
                    raise ValueError(f"version {cursor['version']!r}")
                self.jobs.restore(cursor["jobs"])
                self._told = msgspec.convert(cursor["nodes"], dict[str, Node])
        except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
            raise ValueError(f"no cursor of a watched PBS server: {error}") from error
        self._cursor, self._is_first = cursor, cursor is None

    @property
    def now_s(self) -> float:
        """Unix seconds now, whole as all of PBS's times.

        Else what has no time of PBS's own would seem to come after what followed in its second.
        """
        return float(floor(self._clock()))

    def look(self) -> Batch:
        """What happened since the last look, by time.

        Where the server does not answer, the batch is empty, says so and grows old.
        """
        now_s = self.now_s
        batch = self._asking.ask(_SERVER, now_s, lambda: self._batch(now_s))
        if batch is None:
            age_s = now_s - self._asking.away_since_s(now_s)
            note = "; ".join(self._asking.notes())
            return Batch(events=[], cursor=self._cursor, age_s=age_s, note=note)
        return batch

    def why(self, job: str) -> WaitingReason | None:
        """Why a job is not running, asked now; None for one that is, or that is another's.

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
        history = self._is_first and self._settings.start_at == "now"
        told = self.jobs.look(
            shown,
            unreadable,
            now_s,
            lambda jobs: self._dialect.ended(jobs).entries,
            leaves_out_ended=history,
        )
        self.planned_starts = self.jobs.planned_starts(now_s)
        before: list[NamedEvent] = []
        if looks_at_nodes:
            # at equal times nodes come first: a machine opens before a job starts there
            begun_s = min((e[0] for e in told if e[1] == events.STARTED), default=now_s)
            before = self._node_events(min(begun_s, now_s), now_s)
            self._nodes_asked_s = now_s
        self._is_first = False
        self._cursor = {
            "version": _VERSION,
            "jobs": self.jobs.save(),
            "nodes": msgspec.to_builtins(self._told),
        }
        return Batch(
            events=sorted(before + told, key=lambda event: event[0]),
            cursor=self._cursor,
            seen_until_s=None if history else now_s - _BEHIND_S,
            rejected=dict(self.jobs.rejected),
            history=history,
            standing=history,
            note=self._note(),
        )

    def _node_events(self, first_s: float, now_s: float) -> list[NamedEvent]:
        """What happened to nodes. One that is new was there before the jobs that are told now."""
        told: list[NamedEvent] = []
        for name, node in self.nodes.items():
            before = self._told.get(name)
            told += changes(name, before, node, first_s if before is None else now_s)
        gone = sorted(set(self._told) - set(self.nodes))
        self._told = dict(self.nodes)
        return told + [(now_s, events.LEFT, name, None) for name in gone]

    def _cluster_of(self, name: str) -> str:
        patterns = self._settings.machine_clusters.items()
        matching = (cluster for pattern, cluster in patterns if fnmatchcase(name, pattern))
        return next(matching, "default")

    def _note(self) -> str:
        n = self.jobs.unknown_n
        return f"how {n} jobs left is not known: they count as removed" if n else ""
