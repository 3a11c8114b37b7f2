"""The contract of a policy: who is asked where a job should run.

A policy is synchronous and pure in spirit: it sees a read-only view of the site, draws from the
random generator it is handed, learns from outcomes, and saves and restores what it learned. It
never sees a true run time, the next log-in or anything else that has not happened yet.
"""

import random
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from outrider.api.prediction import Prediction
from outrider.api.queue import Queue
from outrider.api.site_view import Oracle, SiteView
from outrider.model.decisions import NO_MACHINE, NOWHERE, Choice, Move
from outrider.model.events import MACHINE_KINDS
from outrider.model.jobs import Job
from outrider.model.outcomes import Outcome

API_VERSION = 1

FIRST = "first"
"""Reason of a start that needed none but the job's place in line."""


class PolicySettings(msgspec.Struct, frozen=True):
    """A policy without settings of its own."""


class Policy:
    """Base of every policy: subclass it, declare the class variables, write `choose`.

    Class variables:
        name: as in the entry point and on the command line.
        description: one line.
        settings_type: the record that `outrider.api.build` makes of its table.
        presets: named settings, such as ``literal`` for a paper's method exactly as printed.
        features: what makes two jobs alike to this policy; names only, for people. `alike`
            computes the key itself.
        api_version: the contract it was written against.
        hears: kinds of events about machines (`outrider.api.events`) that `notice` is told of.
        needs_oracle: needs the true run times; replay grants it, the daemon refuses.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    settings_type: ClassVar[type[PolicySettings]] = PolicySettings
    presets: ClassVar[dict[str, dict[str, Any]]] = {}
    features: ClassVar[tuple[str, ...]] = ()
    api_version: ClassVar[int] = API_VERSION
    hears: ClassVar[frozenset[int]] = MACHINE_KINDS
    needs_oracle: ClassVar[bool] = False

    reconsider_s: float | None = None
    """Decision epoch: a job kept queued by choice is decided again after this. None: the site's."""
    max_hold_s: float = float("inf")
    """Starvation guard: a job kept queued by choice this long must be started."""
    oracle: Oracle | None = None
    """The truth, for policies that declare `needs_oracle`; set by replay before the run."""
    wants_scores: bool = True
    """False where nobody will read the scores and the propensity of a `Choice`: a policy may then
    leave them out."""
    ranks_anew: bool = False
    """True: `rank` is asked again after each start of a round, for the site has changed."""

    def __init__(self, settings: Any, rng: random.Random) -> None:
        self.settings = settings
        self.rng = rng

    def alike(self, job: Job, view: SiteView) -> Hashable:
        """The key of the jobs that look like this one now. Equal keys are decided alike."""
        return ()

    def notice(self, kind: int, machine: int, view: SiteView) -> None:
        """Something happened to a machine; override it to learn the habits of owners.

        Called for every event about a machine of a kind in `hears`, after the site has taken it
        in: there are millions, so it should do no more than note what it needs.
        """

    def order(self, job: Job, view: SiteView) -> float:
        """The job's place in line: the least comes first, equals as they got in line.

        Asked when a job gets in line (submitted, evicted, released) or is due again. A policy that
        does not override it decides jobs in the order in which they got in line.
        """
        return 0.0

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """The place of every waiting job, by row of the queue: the least is decided first.

        Override it where the order of the line changes while jobs wait. Asked in each round in
        which a CPU is free; `choose` then says where the first of the line run, one after the
        other, until one does not fit. Whether later ones may pass that one is the site's backfill
        rule. Equals stand as they got in line; a job at nan is kept queued.
        """
        return queue.order

    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """A whole round at once: which jobs start, resume, are preempted or get other CPUs.

        Override it where decisions about several jobs hang together; nothing else is asked then.
        Called after every change of jobs or machines, also when no CPU is free. Preemptions come
        before what needs their CPUs. The moves must be possible together, in their order.
        """
        raise NotImplementedError

    def entered(self, job: Job, view: SiteView) -> None:
        """A job got in line (submitted, evicted, released). For policies that `rank` or `plan`."""

    def withdrew(self, job: Job, view: SiteView) -> None:
        """A job is no longer in line: it starts, was held, or is gone.

        Of a job that this policy itself starts it is called when that is decided, while the job is
        still queued; of one that somebody else started, when that happens: then it runs.
        """

    def appraise(self, key: Hashable, view: SiteView) -> Any:
        """What is worth computing once for all jobs alike in a round; handed to `choose`."""
        return None

    def choose(self, job: Job, appraisal: Any, view: SiteView, may_keep: bool) -> Choice:
        """Where one job should run. At least one machine is free when this is called.

        A policy that only ranks or orders need not override it: the tightest machine that suffices.

        Args:
            job: the job to decide.
            appraisal: what `appraise` gave for its key in this round.
            view: the site.
            may_keep: False when the starvation guard demands a start.
        """
        machine = view.tightest(job.spec.cpus)
        return Choice(machine, FIRST if machine != NOWHERE else NO_MACHINE, 1.0)

    def predict(self, job: Job, machine: int, view: SiteView) -> Prediction | None:
        """What to expect of a run that begins now; scored against what happens to it.

        Asked of every run, whoever chose the machine (in shadow the batch system), before the
        machine counts as taken. It is a question only: nothing may be learned or drawn from it.
        A policy that does not override it predicts nothing.
        """
        return None

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """Learn from the end of a run or of a job; return the rewards that it settled.

        Args:
            outcome: what happened.
            view: the site at that moment.
            on_policy: whether this policy chose that place (always true for the acting policy;
                in shadow, true where its standing choice was the same cluster).
        """
        return ()

    def scores(self, key: Hashable, view: SiteView) -> dict[str, float]:
        """The present score of every alternative for jobs with this key, for ``explain``."""
        return {}

    def learned(self, view: SiteView) -> dict[str, Any] | None:
        """A heat map of what was learned, or None: ``title``, ``columns``, ``rows``, ``unit``.

        Each row has a ``label`` and ``values``, one number or None per column; without a unit
        they are said to be in the policy's own reward.
        """
        return None

    def explain(self, job: Job, view: SiteView) -> str:
        """One sentence, in words a user on call understands: what speaks for what."""
        return self.description

    def save(self, view: SiteView) -> dict[str, Any]:
        """What was learned, as plain data (the random generator is saved by the engine).

        Name clusters by their names: their numbers may differ when it is restored.
        """
        return {}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on from what `save` gave.

        Raises:
            ValueError: it does not fit (other settings, another version); nothing has changed,
                and the policy starts afresh.
        """
