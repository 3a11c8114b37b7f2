"""Capabilities of policies other than choosing a machine, one small class each.

A policy declares its capabilities by its bases, and the engine calls only what it declares:

    class Survival(Learns, Listens, Groups, Predicts, Policy): ...

The engine reads the declaration (`isinstance`, and `Policy.decides` for the kind of decision); it
never compares methods. So a policy that wraps another one declares the same, and the same
methods are called.
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
# Predictions: what a policy expects of a run that begins, scored when the run ends.


class Prediction(NamedTuple):
    """Expectation of one run, on the machine where it really begins.

    Attributes:
        eviction_probability: that the run ends before its job is done, except by a decision of its
            user or an administrator: 0 to 1. None: no opinion.
        run_s: expected seconds of work of the run if it completes its job. None: no opinion.
    """

    eviction_probability: float | None = None
    run_s: float | None = None


# -- capabilities ----------------------------------------------------------------------------------


@unique
class Decides(Enum):
    """Kinds of decisions that a policy makes.

    Attributes:
        PER_JOB: one job after the other, by `Policy.choose`, in order of arrival or, where the
            policy `Orders`, in its own order.
        RANKING: all pending jobs are sorted before each scheduling pass (`Ranks`); `Policy.choose`
            then selects the machine for each.
        PLAN: all jobs together, preemptions included (`Plans`); `Policy.choose` is never called.
    """

    PER_JOB = "per_job"
    RANKING = "ranking"
    PLAN = "plan"


class Orders(ABC):
    """Capability of a policy that assigns each job a fixed place when it joins the queue."""

    @abstractmethod
    def order(self, job: Job, view: SiteView) -> float:
        """Return the job's place in the queue: lowest first, equals in order of arrival.

        Called when a job joins the queue (submitted, evicted, released) or is due again.
        """


class Groups(ABC):
    """Capability of a policy that computes a value once per pass for all jobs with the same key."""

    @abstractmethod
    def evaluate_group(self, key: Hashable, view: SiteView) -> Any:
        """Return what `Policy.choose` gets in this pass for every job with this key."""


class SeesQueue(ABC):  # noqa: B024 - both methods are optional
    """Common base of `Ranks` and `Plans`, which see all pending jobs together."""

    def on_enqueue(self, job: Job, view: SiteView) -> None:  # noqa: B027 - optional
        """Handle a job that joined the queue (submitted, evicted, released)."""

    def on_dequeue(self, job: Job, view: SiteView) -> None:  # noqa: B027 - optional
        """Handle a job that left the queue: it starts, was held, or is gone.

        If this policy itself starts the job, this is called when that is decided, while the job is
        still queued. If the batch system starts it, this is called when the job already runs.
        """


class Ranks(SeesQueue):
    """Capability of a policy that sorts all pending jobs before each pass.

    For an order that changes while jobs wait.

    Attributes:
        ranks_anew: True: `rank` is called again after each start of a pass, for the site has
            changed.
    """

    decides: ClassVar[Decides] = Decides.RANKING
    ranks_anew: bool = False

    @abstractmethod
    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Return the place of every pending job, by row of the queue: lowest first.

        Called in each pass in which a CPU is free. `Policy.choose` then selects a machine for the
        first, the second and so on, until one does not fit. The site's discipline determines
        whether later ones may pass that one. Equals keep their order of arrival; a job at nan stays
        queued.
        """


class Plans(SeesQueue):
    """Capability of a policy that plans a whole pass: decisions about several jobs together."""

    decides: ClassVar[Decides] = Decides.PLAN

    @abstractmethod
    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Return which jobs start, resume, are preempted or get other CPUs.

        Called after every change of jobs or machines, also when no CPU is free. Preemptions come
        before what needs their CPUs. The moves must be possible together, in their order.
        """


class Listens(ABC):
    """Capability of a policy that receives machine events, for instance to learn owners' habits.

    Class variables:
        subscribes: kinds of events about machines (`outrider.api.events`); by default all of them.
    """

    subscribes: ClassVar[frozenset[int]] = MACHINE_KINDS

    @abstractmethod
    def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
        """Handle an event about a machine.

        Called for every event of a kind in `subscribes`, after the site has been updated. There are
        millions of them, so it should only note what it needs.
        """


class Learns(ABC):
    """Capability of a policy that learns from the ends of runs and jobs."""

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
        """Return a heat map of what was learned, or None.

        Its keys are ``title``, ``columns``, ``rows`` and ``unit``. Each row has a ``label`` and
        ``values``, one number or None per column; without a unit they are labelled with the
        policy's own reward.
        """
        return None

    def start_state(self, view: SiteView) -> dict[str, Any] | None:
        """Return the state for another instance after training, as plain data; None: use `save`."""
        return None


class Predicts(ABC):
    """Capability of a policy that predicts runs; its predictions are scored."""

    @abstractmethod
    def predict(self, job: Job, machine: int, view: SiteView) -> Prediction | None:
        """Predict a run that begins now; the prediction is scored against what happens.

        Called for every run, whether the policy or the batch system chose the machine, before the
        machine counts as taken. It must not change state: nothing may be learned or drawn from it.
        None: no opinion of this run.
        """


CAPABILITIES: Final[tuple[type, ...]] = (
    Orders, Groups, SeesQueue, Ranks, Plans, Listens, Learns, Predicts,
)  # fmt: skip


def check_declaration(policy: type) -> None:
    """Check that a policy defines only methods of capabilities that it declares.

    Raises:
        TypeError: it defines a method of a capability that it does not declare, or both ranks and
            plans, or `decides` contradicts its bases.
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
    declared = getattr(policy, "decides", None)
    right = (
        Decides.RANKING if issubclass(policy, Ranks)
        else Decides.PLAN if issubclass(policy, Plans)
        else Decides.PER_JOB
    )  # fmt: skip
    if declared is not right:
        raise TypeError(
            f"{policy.__name__}.decides is {declared}, its bases declare {right}; expected "
            "Ranks or Plans before Policy in the list of bases"
        )
