"""One negotiation cycle: which idle job goes to which free slot."""

import random
from typing import Final, NamedTuple

from outrider_adapters.mock_condor.accountant import Accountant
from outrider_adapters.mock_condor.ads import as_of, number
from outrider_adapters.mock_condor.autoclusters import Autoclusters
from outrider_adapters.mock_condor.bindings import ClassAd, ExprTree
from outrider_adapters.mock_condor.queue import JobQueue, QueuedJob
from outrider_adapters.mock_condor.runs import Runs
from outrider_adapters.mock_condor.startd import Slot

PRE_JOB_RANK: Final = (
    "(10000000 * My.Rank) + (1000000 * (RemoteOwner is undefined)) - (100000 * Cpus) - Memory"
)
"""HTCondor's default ``NEGOTIATOR_PRE_JOB_RANK``: machines' ``RANK`` first, then small slots."""

_NOTHING: Final = 1e-6
"""CPUs: a smaller part of the pie is a rounding error."""


class Cycle(NamedTuple):
    """What a cycle did.

    Attributes:
        end_s: when it was.
        slots: free slots at its beginning.
        considered: idle jobs of all users.
        matches: jobs started.
    """

    end_s: float
    slots: int
    considered: int
    matches: int


class _Offer(NamedTuple):
    """A free slot, as it stands for matching."""

    slot: Slot
    ad: ClassAd


class Matchmaker:
    """Matches jobs to slots as HTCondor's negotiator does.

    Users are served by effective priority, each up to the share of the pool's CPUs that it
    deserves less those that it uses already; what is left over then goes to those who still have
    idle jobs, by the same shares. Of one user, jobs come in their line. A job and a slot match
    when the Requirements of both are true. Of the slots that match a job it takes the one with
    the highest ``NEGOTIATOR_PRE_JOB_RANK``, then the highest Rank of its own, then by lot. Nobody
    is preempted (``PREEMPTION_REQUIREMENTS`` is false by default in HTCondor too).

    Args:
        pre_job_rank: evaluated in the slot's ad with the job as ``TARGET``.
        rng: the lot.
    """

    def __init__(
        self,
        queue: JobQueue,
        autoclusters: Autoclusters,
        accountant: Accountant,
        runs: Runs,
        pre_job_rank: ExprTree,
        rng: random.Random,
    ) -> None:
        self._queue = queue
        self._autoclusters = autoclusters
        self._accountant = accountant
        self._runs = runs
        self._pre_job_rank = pre_job_rank
        self._rng = rng

    def cycle(self, slots: list[Slot], now_s: float) -> Cycle:
        """Start what can be started on the slots that have no job and do not sleep."""
        free = [slot for slot in slots if slot.job is None and slot.ad.get("Offline") is not True]
        considered = self._queue.idle_count()
        matches = 0
        if considered and free:
            lines = {
                name: _Line(self._queue.waiting(name)) for name in self._queue.submitters_waiting()
            }
            offers = _Offers(free, self._pre_job_rank, self._rng, now_s)
            pool = sum(slot.weight for slot in slots)
            in_use = {name: self._accountant.weight_in_use(name) for name in lines}
            matches = self._spin(lines, offers, pool, in_use, now_s)
            while offers.are_left() and any(not line.is_done for line in lines.values()):
                lines = {name: line for name, line in lines.items() if not line.is_done}
                nothing = dict.fromkeys(lines, 0.0)
                matches += self._spin(lines, offers, offers.weight_left(), nothing, now_s)
        return Cycle(now_s, len(free), considered, matches)

    def _spin(
        self,
        lines: dict[str, "_Line"],
        offers: "_Offers",
        pie: float,
        in_use: dict[str, float],
        now_s: float,
    ) -> int:
        """Cut the pie (CPUs) once: to each user its share, less what it uses; how many started."""
        return sum(
            self._serve(name, lines[name], offers, share * pie - in_use[name], now_s)
            for name, share in self._accountant.shares(lines, now_s).items()
        )

    def _serve(
        self, submitter: str, line: "_Line", offers: "_Offers", limit: float, now_s: float
    ) -> int:
        """Start jobs of one user up to the limit (CPUs); how many."""
        started = 0
        while limit > _NOTHING and not line.is_done:
            if not self._accountant.below_ceiling(submitter) or not offers.are_left():
                line.next = len(line.jobs)
                break
            job = line.jobs[line.next]
            line.next += 1
            offer = offers.best_for(job, self._autoclusters.number_of(job))
            if offer is not None:
                self._runs.start(job, offer.slot, now_s)
                limit -= offer.slot.weight
                started += 1
        return started


class _Line:
    """The idle jobs of one user and how far down the line the negotiator is."""

    def __init__(self, jobs: list[QueuedJob]) -> None:
        self.jobs = jobs
        self.next = 0

    @property
    def is_done(self) -> bool:
        return self.next >= len(self.jobs)


class _Offers:
    """Free slots of one cycle; the order in which an autocluster likes them is found once."""

    def __init__(
        self, free: list[Slot], pre_job_rank: ExprTree, rng: random.Random, now_s: float
    ) -> None:
        self._pre_job_rank = pre_job_rank
        self._rng = rng
        self._now_s = now_s
        self._free = [_Offer(slot, as_of(slot.ad, now_s)) for slot in free]
        self._liked: dict[int, list[_Offer]] = {}

    def are_left(self) -> bool:
        """Whether anything is left that nobody has taken."""
        while self._free and self._free[-1].slot.job is not None:
            self._free.pop()
        return bool(self._free)

    def weight_left(self) -> float:
        """CPUs of the slots that nobody has taken yet."""
        return sum(offer.slot.weight for offer in self._free if offer.slot.job is None)

    def best_for(self, job: QueuedJob, autocluster: int) -> _Offer | None:
        """The slot that the job likes best of those that it matches and nobody took."""
        liked = self._liked.get(autocluster)
        if liked is None:
            liked = self._liked[autocluster] = self._matching(as_of(job.ad, self._now_s))
        while liked:
            offer = liked.pop()
            if offer.slot.job is None:
                return offer
        return None

    def _matching(self, job: ClassAd) -> list[_Offer]:
        """Free slots that match, the best last."""
        rank = job.lookup("Rank")
        ranked = [
            (
                number(self._pre_job_rank.eval(scope=offer.ad, target=job), 0.0),
                number(rank.eval(scope=job, target=offer.ad), 0.0),
                self._rng.random(),
                offer,
            )
            for offer in self._free
            if offer.slot.job is None and job.symmetricMatch(offer.ad)
        ]
        ranked.sort(key=lambda entry: entry[:3])
        return [entry[3] for entry in ranked]
