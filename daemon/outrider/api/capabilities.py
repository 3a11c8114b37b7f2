"""What a policy can do beside choosing a machine: one small class for each capability.

A policy declares what it can do by its bases, and nothing is asked of it that it does not declare:

    class Survival(Learns, Listens, Groups, Predicts, Policy): ...

The engine reads the declaration (`isinstance`, and `Policy.decides` for the kind of decision); it
never compares methods. So a policy that wraps another one declares what that one declares, and is
asked the same.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from enum import Enum, unique
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api.queue import Queue
from outrider.api.site_view import SiteView
from outrider.model.decisions import Move, Outcome
from outrider.model.events import MACHINE_KINDS
from outrider.model.jobs import Job

# -- prediction ------------------------------------------------------------------------------------
# Predictions: what a policy expects of a run that begins, so that it can be scored later.


class Prediction(NamedTuple):
    """What a policy expects of one run, at the machine on which it really begins.

    Attributes:
        eviction_probability: that the run ends before its job is done, for any reason but
            somebody's will (its user's, an administrator's): 0 to 1. None: no opinion.
        run_s: expected seconds of work of the run if it completes its job. None: no opinion.
    """

    eviction_probability: float | None = None
    run_s: float | None = None


# -- capabilities ----------------------------------------------------------------------------------


@unique
class Decides(Enum):
    """How a policy decides.

    Attributes:
        PER_JOB: one job after the other, by `Policy.choose`, in order of arrival or, where the
            policy `Orders`, in its own.
        RANKING: all pending jobs are put in order anew before each scheduling pass (`Ranks`);
            `Policy.choose` then says where each runs.
        PLAN: everything at once, preemptions included (`Plans`); `Policy.choose` is never asked.
    """

    PER_JOB = "per_job"
    RANKING = "ranking"
    PLAN = "plan"


class Orders(ABC):
    """Puts jobs in an order that is fixed when each joins the queue."""

    @abstractmethod
    def order(self, job: Job, view: SiteView) -> float:
        """The job's place in the queue: the least comes first, equals in order of arrival.

        Asked when a job joins the queue (submitted, evicted, released) or is due again.
        """


class Groups(ABC):
    """Computes once per pass what is the same for all jobs with the same key."""

    @abstractmethod
    def evaluate_group(self, key: Hashable, view: SiteView) -> Any:
        """What `Policy.choose` is handed for every job with this key, in this pass."""


class SeesQueue(ABC):  # noqa: B024 - both methods are optional
    """Sees all pending jobs at once: the common base of `Ranks` and `Plans`."""

    def on_enqueue(self, job: Job, view: SiteView) -> None:  # noqa: B027 - optional
        """A job joined the queue (submitted, evicted, released)."""

    def on_dequeue(self, job: Job, view: SiteView) -> None:  # noqa: B027 - optional
        """A job left the queue: it starts, was held, or is gone.

        Of a job that this policy itself starts it is called when that is decided, while the job is
        still queued; of one that somebody else started, when that happens: then it runs.
        """


class Ranks(SeesQueue):
    """Puts all pending jobs in order before each pass: for an order that changes while they wait.

    Attributes:
        ranks_anew: True: `rank` is asked again after each start of a pass, for the site has
            changed.
    """

    decides: ClassVar[Decides] = Decides.RANKING
    ranks_anew: bool = False

    @abstractmethod
    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """The place of every pending job, by row of the queue: the least is decided first.

        Asked in each pass in which a CPU is free; `Policy.choose` then says where the first run,
        one after the other, until one does not fit. Whether later ones may pass that one is the
        site's discipline. Equals keep their order of arrival; a job at nan stays
        queued.
        """


class Plans(SeesQueue):
    """Plans a whole pass at once: for decisions about several jobs that hang together."""

    decides: ClassVar[Decides] = Decides.PLAN

    @abstractmethod
    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Return which jobs start, resume, are preempted or get other CPUs.

        Asked after every change of jobs or machines, also when no CPU is free. Preemptions come
        before what needs their CPUs. The moves must be possible together, in their order.
        """


class Listens(ABC):
    """Is told of events about machines, for instance to learn the habits of owners.

    Class variables:
        subscribes: kinds of events about machines (`outrider.api.events`); by default all of them.
    """

    subscribes: ClassVar[frozenset[int]] = MACHINE_KINDS

    @abstractmethod
    def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
        """Something happened to a machine.

        Called for every event about a machine of a kind in `subscribes`, after the site has taken
        it in: there are millions, so it should do no more than note what it needs.
        """


class Learns(ABC):
    """Learns from the ends of runs and jobs."""

    @abstractmethod
    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """Learn from the end of a run or of a job; return the rewards that it settled.

        Args:
            outcome: what happened.
            view: the site at that moment.
            on_policy: whether this policy chose that place (always true for the acting policy;
                in shadow, true where its pending decision was the same cluster).
        """

    def learned(self, view: SiteView) -> dict[str, Any] | None:
        """A heat map of what was learned, or None: ``title``, ``columns``, ``rows``, ``unit``.

        Each row has a ``label`` and ``values``, one number or None per column; without a unit
        they are said to be in the policy's own reward.
        """
        return None

    def start_state(self, view: SiteView) -> dict[str, Any] | None:
        """What another one may start from after training, as plain data. None: all of `save`."""
        return None


class Predicts(ABC):
    """Predicts runs, so that its predictions can be scored."""

    @abstractmethod
    def predict(self, job: Job, machine: int, view: SiteView) -> Prediction | None:
        """What to expect of a run that begins now; scored against what happens to it.

        Asked of every run, whoever chose the machine (in shadow the batch system), before the
        machine counts as taken. It is a question only: nothing may be learned or drawn from it.
        None: no opinion of this run.
        """


CAPABILITIES: Final[tuple[type, ...]] = (
    Orders, Groups, SeesQueue, Ranks, Plans, Listens, Learns, Predicts,
)  # fmt: skip


def check_declaration(policy: type) -> None:
    """Compare what a policy defines with what it declares.

    Raises:
        TypeError: it defines a method of a capability that it does not declare, or both ranks and
            plans, or `decides` says something else than its bases.
    """
    for capability in CAPABILITIES:
        if issubclass(policy, capability):
            continue
        undeclared = [name for name in vars(capability) if name in vars(policy) and name[0] != "_"]
        undeclared = [name for name in undeclared if name != "decides"]
        if undeclared:
            owner = "Ranks or Plans" if capability is SeesQueue else capability.__name__
            raise TypeError(
                f'{policy.__name__} defines "{undeclared[0]}" and does not declare {owner}, so '
                f"nothing would call it; expected class {policy.__name__}({owner}, ...)"
            )
    if issubclass(policy, Ranks) and issubclass(policy, Plans):
        raise TypeError(f"{policy.__name__} is declared to rank and to plan; expected one")
    said = getattr(policy, "decides", None)
    right = (
        Decides.RANKING if issubclass(policy, Ranks)
        else Decides.PLAN if issubclass(policy, Plans)
        else Decides.PER_JOB
    )  # fmt: skip
    if said is not right:
        raise TypeError(
            f"{policy.__name__}.decides is {said}, its bases say {right}; expected "
            "Ranks or Plans, whichever it is, before Policy in the list of bases"
        )
