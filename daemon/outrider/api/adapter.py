"""The contract of an adapter: who tells the engine what happens at a site.

An adapter is an asynchronous context that yields batches of events. It declares what it can see
and which levers it has (`outrider.api.Lever`), and never sorts out policy.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, ClassVar, Self

import msgspec
from msgspec import Struct

from outrider.api.lever import Lever, UndoLog
from outrider.model.deployment import ServiceNeeds
from outrider.model.events import NamedEvent
from outrider.model.machines import ClusterSpec, SiteHabits
from outrider.model.modes import Discipline

# -- found system ----------------------------------------------------------------------------------
# What an adapter finds of its batch system on a host, before anybody has configured it.


class FoundSystem(Struct, frozen=True, kw_only=True):
    """For ``outrider install-service`` where there is no configuration yet.

    Attributes:
        system: what people call it. Of adapters that find the same one, the first by name is taken.
        sign: what it was found by, a path or a command.
        settings: those that its adapter has to have; empty: its table alone is enough.
        review: what somebody should know or decide before relying on it, a sentence each.
    """

    system: str
    sign: str
    settings: Mapping[str, Any] = {}
    review: tuple[str, ...] = ()


# -- in progress -----------------------------------------------------------------------------------
# What an adapter is at, kept where it outlives the process.


class InProgress:
    """What an adapter is at, for the next process in case this one dies in it.

    A record may cost so much that the service manager ends the daemon, or may end it outright:
    without a note of it the next process would read it again, and end again. This base keeps
    nothing; the daemon gives every adapter one that does.

    Attributes:
        left: what the process before was at when it died, as JSON types; None: nothing.
    """

    left: Any = None

    def note(self, what: Any) -> None:
        """Now it is at this (JSON types, some hundred bytes); None: at nothing.

        May be called in any thread, a few thousand times a second, and never raises.
        """


# -- planned starts --------------------------------------------------------------------------------
# When a batch system itself expects its waiting jobs to start.


class PlannedStarts(msgspec.Struct, frozen=True):
    """The plan of a batch system that makes one (``squeue --start``), as of one look.

    It is no event: it is made anew every half a minute, for thousands of jobs, and no decision
    depends on it. Expected starts of Outrider's own are held against it.

    Attributes:
        asked_s: when the batch system was asked, Unix seconds.
        starts_s: when each job is to start, Unix seconds, by its name as in the adapter's events.
            A job that the plan does not hold is left out.
    """

    asked_s: float
    starts_s: Mapping[str, float] = {}


# -- waiting reason --------------------------------------------------------------------------------
# Why a job waits, as its batch system says it: what an adapter answers when somebody asks.


class Clause(msgspec.Struct, frozen=True):
    """One of the conditions that a job puts on its machines; all of them have to hold.

    Attributes:
        text: as the batch system writes it.
        machines: how many machines meet it, whatever the other conditions say.
        without_it: how many machines would meet all the others if this one were not there.
    """

    text: str
    machines: int
    without_it: int


def removing_most(clauses: Iterable[Clause], machines: int) -> Clause | None:
    """The clause that by itself removes most machines; None where each is met by all of them.

    Of equals it is the one without which most machines are left.

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
    """Why a job is not running, in the batch system's own terms and numbers.

    It may name users: the daemon shows it only to those who may see their names.

    Attributes:
        code: the batch system's own word or number for it (``Priority``, ``JobHeldUser``); empty
            where it has none.
        sentence: the reason in words that a user understands, with the batch system's numbers.
        never: whether the job never starts as it stands, however long it waits.
        remedies: what would change it, a sentence each, the most promising first.
        machines: how many machines may run it at all; None: not known.
        clauses: its conditions, where the batch system tells them apart.
        expected_start_s: when the batch system itself expects it to start, Unix seconds; None: it
            has no plan for it.
        ahead: how many waiting jobs stand before it in the batch system's order; None: not known.
        removes_most: the text of the clause that removes most machines (`removing_most`); None:
            there is none, or the batch system does not tell them apart.
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


# -- adapter ---------------------------------------------------------------------------------------


class AdapterSettings(msgspec.Struct, frozen=True):
    """An adapter without settings of its own."""


class Batch(msgspec.Struct):
    """Events an adapter has seen since its last batch, and how to resume after them.

    Attributes:
        events: in the order the source gave them.
        cursor: plain data (JSON types) from which the adapter goes on after these events; it is
            stored in the same transaction as they are.
        seen_until_s: everything up to this event time has been seen (Unix seconds), or None
            when the source cannot say. A quiet but healthy source moves this forward.
        age_s: how old the newest information is, in seconds; grows while the source is away.
        rejected: records that could not be read, counted by reason.
        ignored: records that are no event of ours, counted by kind.
        history: True for what was written before the daemon first started, when it was told to
            start now: state is built from it, without metrics, decisions or rewards. Where the
            daemon runs already it is passed over.
        standing: with `history`, that this is what stands at the first look, and not what was:
            where the daemon runs already it is news, or these jobs and machines would stay unknown.
        note: what the person on call should know ("EventLog vanished"), or empty.
        problem: why the source, or a part of it, cannot be read; while it is not empty the
            adapter is down, however young its information is. What passes in a moment is none.
        written_s: when what it reads was last written (Unix seconds), by name, where that is
            known; a log to which nothing is written while jobs run is told to the user.
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
    """Base of every adapter.

    Class variables:
        name, description, settings_type, api_version: as in `outrider.api.Policy`.
        sees: names of the event kinds it can yield (`outrider.model.events.KIND_NAMES`).
        levers: classes of what can be changed in its batch system; empty for one that only
            observes. One of each is made, of this adapter, in a mode that acts.
        inferred: True where machines and owners are guessed from job events alone.
        lateness_s: how long to wait for events that arrive out of order.
        discipline: who may start before a job that does not fit, as its batch system does it; it
            holds where the configuration does not say. None: not known.
        cluster_setting: the setting that names an attribute of machines by which they are grouped;
            None: it has none. See `machine_attributes`.
        pattern_setting: the setting with patterns of machines' names, by which those are grouped
            that no attribute names a group for; None: it has none.
        incumbent: the policy, by name, that decides most nearly as its batch system does; it is
            recorded, for whoever simulates the site. None: not known.
        state_words: what its batch system calls the states in which jobs are shown: a word for any
            of ``queued``, ``running``, ``suspended`` and ``held``, at most 40 letters long. Pages
            and lists use them; without one they say ours. They may become known on the way.
        habits: of its site, as far as it knows them and nobody else tells; recorded, too.
        own_clock: True if event times are not Unix time (a simulated site on a clock of its own).

    Attributes:
        in_progress: where it may note what it is at, for the next process should this one die in
            it. The daemon sets it before it enters the adapter.
        undo_log: what stood before each change of its levers; set as `in_progress` is.
        planned_starts: when its batch system itself expects waiting jobs to start, as of the last
            look; another object after each. None: it makes no such plan, or none is known.
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
        """What is wrong with the source that the settings name, a sentence each; for check-config.

        A look that changes nothing and opens no connection. It may hang: nobody waits for it long.
        """
        return []

    @classmethod
    def found_here(cls) -> FoundSystem | None:
        """Its batch system, if this host is configured for one; None: it is not, as far as seen.

        For ``outrider install-service`` where there is no configuration yet. A look at files and
        at commands that answer at once: a controller that is down must not hold it up.
        """
        return None

    def machine_attributes(self) -> Mapping[str, Mapping[str, str]]:
        """What the site says of its machines, by machine and attribute, for `cluster_setting`.

        For ``outrider doctor --suggest``. It may ask the batch system, and take seconds for it.

        Raises:
            PeerError: it does not answer.
        """
        return {}

    def service_needs(self) -> ServiceNeeds:
        """What a service has to be allowed so that this adapter works in it.

        For ``outrider install-service`` and ``outrider doctor``. It may ask the batch system, and
        take seconds for it; who does not answer is a note.
        """
        return ServiceNeeds()

    async def __aenter__(self) -> Self:
        """Open what it reads. Raises `outrider.api.PeerError` if that cannot be done."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close what was opened. Never raises because the source is gone."""

    def clusters(self) -> list[ClusterSpec]:
        """The clusters whose habits it knows (opening hours, sleep); may be empty."""
        return []

    def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield batches for ever, from the cursor of an earlier batch or, if None, the start.

        A batch without events is a sign of life: yield one at least every few seconds. When the
        source is gone for a while, keep yielding empty batches with a growing `age_s`.
        """
        raise NotImplementedError

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        """Why a job is not running, as the batch system says it now; None: it says nothing of it.

        Asked when somebody wants to know, while `batches` goes on. The daemon waits a few seconds
        and then answers without it.

        Args:
            job: its name, as this adapter's events have it; it may be another adapter's.

        Raises:
            PeerError: the batch system does not answer.
        """
        return None
