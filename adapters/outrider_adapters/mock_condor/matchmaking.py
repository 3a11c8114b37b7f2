"""Negotiation cycles, which match idle jobs to free slots."""

import random
from typing import Final, NamedTuple

from outrider_adapters.htcondor.pool_calls import ClassAd, ExprTree
from outrider_adapters.mock_condor.accountant import Accountant
from outrider_adapters.mock_condor.ads import as_of, number
from outrider_adapters.mock_condor.claims import QueuedJob, Slot
from outrider_adapters.mock_condor.queue import Autoclusters, JobQueue
from outrider_adapters.mock_condor.runs import Runs

_ROUNDING_CPUS: Final = 1e-6
"""A smaller remainder of a share (CPUs) is a rounding error."""


class Cycle(NamedTuple):
    """Results of a negotiation cycle.

    Attributes:
        end_s: its time.
        slots: number of free slots at its beginning.
        considered: number of idle jobs of all users.
        matches: number of jobs started.
    """

    end_s: float
    slots: int
    considered: int
    matches: int


class _Offer(NamedTuple):
    """A free slot, and its ad with ``time()`` replaced."""

    slot: Slot
    ad: ClassAd


class Matchmaker:
    """Matchmaker that works like HTCondor's negotiator.

    Users are served by effective priority, each up to its share of the pool's CPUs less those that
    it uses already; the remainder is then shared in the same way among users who still have idle
    jobs. Jobs of one user are served in the order of `QueuedJob.sort_key`. A job and a slot match
    when the Requirements of both are true. Of its matching slots a job gets the one with the
    highest ``NEGOTIATOR_PRE_JOB_RANK``, then the highest Rank of its own, then a random one. There
    is no preemption (``PREEMPTION_REQUIREMENTS`` is false by default in HTCondor too).

    Args:
        queue, autoclusters, accountant, runs: of the pool.
        pre_job_rank: evaluated in the slot's ad with the job as ``TARGET``.
        rng: breaks ties.
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
        """Match and start idle jobs on slots that have no job and are not offline."""
        free = [slot for slot in slots if slot.job is None and slot.ad.get("Offline") is not True]
        considered = self._queue.idle_count()
        matches = 0
        if considered and free:
            queues = {
                name: _UserQueue(self._queue.idle_jobs(name))
                for name in self._queue.submitters_with_idle_jobs()
            }
            offers = _Offers(free, self._pre_job_rank, self._rng, now_s)
            pool = sum(slot.weight for slot in slots)
            in_use = {name: self._accountant.weight_in_use(name) for name in queues}
            matches = self._spin(queues, offers, pool, in_use, now_s)
            while offers.are_left() and any(not queue.is_done for queue in queues.values()):
                queues = {name: queue for name, queue in queues.items() if not queue.is_done}
                no_usage = dict.fromkeys(queues, 0.0)
                matches += self._spin(queues, offers, offers.weight_left(), no_usage, now_s)
        return Cycle(now_s, len(free), considered, matches)

    def _spin(
        self,
        queues: dict[str, "_UserQueue"],
        offers: "_Offers",
        pie: float,
        in_use: dict[str, float],
        now_s: float,
    ) -> int:
        """Serve each user its share of `pie` (CPUs) less `in_use`; return the jobs started."""
        return sum(
            self._serve(name, queues[name], offers, share * pie - in_use[name], now_s)
            for name, share in self._accountant.shares(queues, now_s).items()
        )

    def _serve(
        self, submitter: str, queue: "_UserQueue", offers: "_Offers", limit: float, now_s: float
    ) -> int:
        """Start jobs of one user up to the limit (CPUs); returns their number."""
        started = 0
        while limit > _ROUNDING_CPUS and not queue.is_done:
            if not self._accountant.below_ceiling(submitter) or not offers.are_left():
                queue.next = len(queue.jobs)
                break
            job = queue.jobs[queue.next]
            queue.next += 1
            offer = offers.best_for(job, self._autoclusters.number_of(job))
            if offer is not None:
                self._runs.start(job, offer.slot, now_s)
                limit -= offer.slot.weight
                started += 1
        return started


class _UserQueue:
    """The idle jobs of one user, and the index of the next one to match."""

    def __init__(self, jobs: list[QueuedJob]) -> None:
        self.jobs = jobs
        self.next = 0

    @property
    def is_done(self) -> bool:
        return self.next >= len(self.jobs)


class _Offers:
    """Free slots of one cycle; they are ranked once per autocluster."""

    def __init__(
        self, free: list[Slot], pre_job_rank: ExprTree, rng: random.Random, now_s: float
    ) -> None:
        self._pre_job_rank = pre_job_rank
        self._rng = rng
        self._now_s = now_s
        self._free = [_Offer(slot, as_of(slot.ad, now_s)) for slot in free]
        self._ranked: dict[int, list[_Offer]] = {}

    def are_left(self) -> bool:
        """Return whether any slot is still free."""
        while self._free and self._free[-1].slot.job is not None:
            self._free.pop()
        return bool(self._free)

    def weight_left(self) -> float:
        """Return the weight (CPUs) of the slots that are still free."""
        return sum(offer.slot.weight for offer in self._free if offer.slot.job is None)

    def best_for(self, job: QueuedJob, autocluster: int) -> _Offer | None:
        """Return the highest-ranked free slot that matches the job; None without a match."""
        ranked = self._ranked.get(autocluster)
        if ranked is None:
            ranked = self._ranked[autocluster] = self._matching(as_of(job.ad, self._now_s))
        while ranked:
            offer = ranked.pop()
            if offer.slot.job is None:
                return offer
        return None

    def _matching(self, job: ClassAd) -> list[_Offer]:
        """Return the free slots that match, in ascending rank."""
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
