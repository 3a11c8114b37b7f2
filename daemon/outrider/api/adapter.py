"""Contract of an adapter: it reports to the engine what happens at a site.

An adapter is an asynchronous context that yields batches of events. It declares what it can see
and which levers it has (`outrider.api.Lever`), and never decides anything.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, ClassVar, Self

import msgspec
from msgspec import Struct

from outrider.api.lever import Lever, UndoLog
from outrider.model.deployment import ServiceNeeds
from outrider.model.events import NamedEvent
from outrider.model.machines import Clause, ClusterSpec, SiteHabits
from outrider.model.modes import Discipline

# -- found system ----------------------------------------------------------------------------------
# What an adapter finds of its batch system on a host that is not configured yet.


class FoundSystem(Struct, frozen=True, kw_only=True):
    """A batch system that an adapter found on this host.

    Used by ``outrider install-service`` where there is no configuration yet.

    Attributes:
        system: its usual name. If several adapters find it, the first by name is used.
        sign: the path or command that revealed it.
        settings: those that its adapter requires; empty: its table alone is enough.
        review: what an administrator should know or decide before relying on it, a sentence each.
    """

    system: str
    sign: str
    settings: Mapping[str, Any] = {}
    review: tuple[str, ...] = ()


# -- in progress -----------------------------------------------------------------------------------
# Work in progress of an adapter, kept where it outlives the process.


class InProgress:
    """Note of what an adapter is working on, for the next process if this one dies.

    One record may cost so much that the service manager ends the daemon, or may crash it. Without a
    note, the next process would read that record again and end again. This base class stores
    nothing; the daemon gives every adapter an object that does.

    Attributes:
        left: what the previous process was working on when it died, as JSON types; None: nothing.
    """

    left: Any = None

    def note(self, what: Any) -> None:
        """Record what is being worked on now (JSON types, some hundred bytes); None: nothing.

        May be called in any thread, a few thousand times a second, and never raises.
        """


# -- planned starts --------------------------------------------------------------------------------
# When a batch system itself expects its waiting jobs to start.


class PlannedStarts(msgspec.Struct, frozen=True):
    """Plan of a batch system that makes one (``squeue --start``), as of one query.

    It is not an event: it is made again every half minute, for thousands of jobs, and no decision
    depends on it. Outrider's own expected starts are compared with it.

    Attributes:
        asked_s: when the batch system was asked, Unix seconds.
        starts_s: when each job is to start, Unix seconds, by its name as in the adapter's events.
            A job that is not in the plan is left out.
    """

    asked_s: float
    starts_s: Mapping[str, float] = {}


# -- waiting reason --------------------------------------------------------------------------------
# Reason why a job waits, as its batch system gives it: what an adapter returns on request.


def removing_most(clauses: Iterable[Clause], machines: int) -> Clause | None:
    """Return the clause that alone removes most machines; None if all machines meet each one.

    Of equal ones, return the one without which most machines are left.

    Args:
        clauses: the conditions.
        machines: how many there are in all.

    >>> memory, name = Clause("Memory >= 4096", 3, 1), Clause('Name == "m7"', 1, 3)
    >>> removing_most([memory, name], 9).text
    'Name == "m7"'
    """
    found = min(clauses, key=lambda one: (one.machines, -one.without_it), default=None)
    return found if found is not None and found.machines < machines else None


class WaitingReason(msgspec.Struct, frozen=True):
    """Reason why a job is not running, in the batch system's own terms and numbers.

    The daemon shows it only to those who may see users' names, unless the adapter declares that its
    reasons name no user but the job's own (`Adapter.reasons_name_users`).

    Attributes:
        code: the batch system's own word or number for it (``Priority``, ``JobHeldUser``); empty
            where it has none.
        sentence: the reason in words that a user understands, with the batch system's numbers.
        never: whether the job can never start unless something changes.
        remedies: what would change it, a sentence each, the most promising first.
        machines: how many machines may run it at all; None: not known.
        clauses: its conditions, where the batch system reports them separately.
        expected_start_s: when the batch system itself expects it to start, Unix seconds; None: it
            has no plan for it.
        ahead: how many waiting jobs come first in the batch system's order; None: not known.
        removes_most: the text of the clause that removes most machines (`removing_most`); None:
            there is none, or the batch system does not report them separately.
        is_over: whether the job no longer waits, which the daemon will learn with the next batch;
            the sentence is then what it does, and continues the job's name (``runs on n2``).
    """

    code: str
    sentence: str
    never: bool = False
    remedies: tuple[str, ...] = ()
    machines: int | None = None
    clauses: tuple[Clause, ...] = ()
    expected_start_s: float | None = None
    ahead: int | None = None
    removes_most: str | None = None
    is_over: bool = False


# -- adapter ---------------------------------------------------------------------------------------


class AdapterSettings(msgspec.Struct, frozen=True):
    """Settings of an adapter that has none of its own."""


class Batch(msgspec.Struct):
    """Events that an adapter has seen since its last batch, and where to resume.

    Attributes:
        events: in the order the source gave them.
        cursor: plain data (JSON types) from which the adapter resumes after these events; stored
            in the same transaction as they are.
        seen_until_s: everything up to this event time has been seen (Unix seconds), or None
            when the source does not report it. A quiet but healthy source moves this forward.
        age_s: how old the newest information is, in seconds; grows while the source is away.
        rejected: records that could not be read, counted by reason.
        ignored: records that are not events for Outrider, counted by kind.
        history: True for what was written before the daemon first started, if it was configured
            to start now. State is built from it, without metrics, decisions or rewards. If the
            daemon is running already, it is skipped.
        standing: with `history`, True for the state at the first query, as opposed to the past. If
            the daemon is running already, it counts as news, or it would stay unknown.
        note: what the person on call should know ("EventLog vanished"), or empty.
        problem: why the source, or a part of it, cannot be read; while it is not empty the
            adapter is down, however recent its information. Not for faults that pass in a moment.
        written_s: when each file that it reads was last written (Unix seconds), by name, where that
            is known. The user is warned of a log to which nothing is written while jobs run.
    """

    events: list[NamedEvent]
    cursor: Any
    seen_until_s: float | None = None
    age_s: float = 0.0
    rejected: dict[str, int] = {}
    ignored: dict[str, int] = {}
    history: bool = False
    standing: bool = False
    note: str = ""
    problem: str = ""
    written_s: dict[str, float] = {}


class Adapter:
    """Base class of every adapter.

    Class variables:
        name, description, settings_type, api_version: as in `outrider.api.Policy`.
        sees: names of the event kinds it can yield (`outrider.model.events.KIND_NAMES`).
        levers: classes of what can be changed in its batch system; empty for one that only
            observes. One of each is made, of this adapter, in a mode that acts.
        inferred: True where machines and owners are guessed from job events alone.
        lateness_s: how long to wait for events that arrive out of order.
        discipline: which jobs may start before a job that does not fit, as in its batch system;
            used where the configuration sets none. None: not known.
        cluster_setting: the setting that names an attribute of machines by which they are grouped;
            None: it has none. See `machine_attributes`.
        pattern_setting: the setting with patterns of machine names; they group the machines
            for which no attribute names a group. None: it has none.
        incumbent: name of the policy that decides most nearly as its batch system does; it is
            recorded, for simulations of the site. None: not known.
        state_words: what its batch system calls the states in which jobs are shown: a word for any
            of ``queued``, ``running``, ``suspended`` and ``held``, at most 40 letters long. Pages
            and lists use them, and Outrider's own words without them. They may become known later.
        reasons_name_users: False if its waiting reasons name no user but the job's own, so that
            every client may see them (with a pseudonym for that user).
            habits: the rules of its site that it alone knows; recorded, too.
        own_clock: True if event times are not Unix time (a simulated site on a clock of its own).

    Attributes:
        in_progress: where it may note what it is working on, for the next process if this one dies.
            The daemon sets it before it enters the adapter.
        undo_log: the state before each change of its levers; set like `in_progress`.
        planned_starts: when its batch system itself expects waiting jobs to start, as of the last
            query; a new object after each. None: it makes no such plan, or none is known.
        identity: names this Outrider among others that may act on the same batch system; the same
            after a restart. It is set before its levers are made.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    settings_type: ClassVar[type[AdapterSettings]] = AdapterSettings
    api_version: ClassVar[int]
    sees: ClassVar[tuple[str, ...]] = ()
    levers: ClassVar[tuple[type[Lever], ...]] = ()
    inferred: ClassVar[bool] = False
    lateness_s: float = 5.0
    cluster_setting: ClassVar[str | None] = None
    pattern_setting: ClassVar[str | None] = None
    own_clock: ClassVar[bool] = False
    reasons_name_users: ClassVar[bool] = True
    discipline: ClassVar[Discipline | None] = None
    incumbent: str | None = None
    state_words: Mapping[str, str] = MappingProxyType({})
    habits: SiteHabits = SiteHabits()
    in_progress: InProgress = InProgress()
    planned_starts: PlannedStarts | None = None
    identity: str = ""

    def __init__(self, label: str, settings: Any) -> None:
        self.label = label
        self.settings = settings
        self.undo_log = UndoLog()

    @classmethod
    def check_source(cls, settings: Any) -> list[str]:
        """Return what is wrong with the configured source, a sentence each, for check-config.

        It changes nothing and opens no connection. It may hang: the caller does not wait long.
        """
        return []

    @classmethod
    def found_here(cls) -> FoundSystem | None:
        """Return its batch system if this host is configured for one, else None.

        For ``outrider install-service`` where there is no configuration yet. It looks at files and
        at commands that answer immediately: a controller that is down must not delay it.
        """
        return None

    def machine_attributes(self) -> Mapping[str, Mapping[str, str]]:
        """Return attributes of the machines, by machine and attribute, for `cluster_setting`.

        For ``outrider doctor --suggest``. It may query the batch system, and take seconds for it.

        Raises:
            PeerError: the batch system does not answer.
        """
        return {}

    def service_needs(self) -> ServiceNeeds:
        """Return the permissions that a service needs so that this adapter works in it.

        For ``outrider install-service`` and ``outrider doctor``. It may query the batch system, and
        take seconds for it; a batch system that does not answer becomes a note.
        """
        return ServiceNeeds()

    async def __aenter__(self) -> Self:
        """Open what it reads. Raises `outrider.api.PeerError` if that fails."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close what was opened. Never raises because the source is gone."""

    def clusters(self) -> list[ClusterSpec]:
        """Return the clusters whose opening hours or sleep it knows; may be empty."""
        return []

    def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield batches without end, from an earlier batch's cursor or, if None, from the start.

        A batch without events is a sign of life: yield one at least every few seconds. When the
        source is away for a while, keep yielding empty batches with a growing `age_s`.
        """
        raise NotImplementedError

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        """Return why a job is not running now, according to the batch system; None: unknown.

        Called on request, while `batches` continues. The daemon waits a few seconds and then
        answers without it.

        Args:
            job: its name, as in this adapter's events; it may belong to another adapter.

        Raises:
            PeerError: the batch system does not answer.
        """
        return None
