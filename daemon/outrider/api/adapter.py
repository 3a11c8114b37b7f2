"""The contract of an adapter: who tells the engine what happens at a site.

An adapter is an asynchronous context that yields batches of events. It declares what it can see
and which levers it has (`outrider.api.Lever`), and never sorts out policy.
"""

from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, ClassVar, Self

import msgspec

from outrider.api.found_system import FoundSystem
from outrider.api.in_progress import InProgress
from outrider.api.lever import Lever
from outrider.api.planned_starts import PlannedStarts
from outrider.api.undo_log import UndoLog
from outrider.api.waiting_reason import WaitingReason
from outrider.model.clusters import ClusterSpec
from outrider.model.disciplines import Discipline
from outrider.model.events import NamedEvent
from outrider.model.service_needs import ServiceNeeds
from outrider.model.site_habits import SiteHabits


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
