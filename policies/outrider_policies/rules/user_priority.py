"""HTCondor's negotiator without ranks: users by their priorities, each on any free machine."""

import random
from collections.abc import Mapping, Sequence
from math import exp2
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import (
    NOWHERE,
    Choice,
    Job,
    Learns,
    Outcome,
    Policy,
    PolicySettings,
    Queue,
    Ranks,
    SiteView,
)  # fmt: skip
from outrider_policies.rules.placements import any_free, cpus_of_site, places_by

_BEST: Final = 0.5
"""Best priority there is: that of a user who has run nothing for a long time."""
_MIN_PAST_CPUS: Final = 0.01
"""CPUs; lower past usage is forgotten when another user comes."""


class UserPrioritySettings(PolicySettings, frozen=True):
    """Settings of the memory of past usage."""

    half_life_s: Annotated[
        float,
        Meta(
            gt=0,
            description="PRIORITY_HALFLIFE: after so many seconds a user's priority has come half "
            "the way to the number of CPUs that the user has. More compensates for longer neglect.",
        ),
    ] = 86_400.0


class UserPriority(Learns, Ranks, Policy[UserPrioritySettings]):
    """Negotiation cycle of an HTCondor pool whose users all have the same priority factor.

    A user's priority follows the CPUs that the user has: with h the half-life, after a time t it
    is 2^(-t/h) of what it was plus 1 - 2^(-t/h) of those CPUs, and never less than .5. Less is
    better. Users with waiting jobs are served in that order, each up to a slice of the pool: its
    CPUs times the inverse of the priority, over the sum of these inverses. The rest is dealt out in
    further rounds of the same. Jobs of one user start in the order of their arrival, and any free
    machine will do, as without a configured rank.

    Source: HTCondor manual, "User Priorities and Negotiation". Jobs of worse priorities are not
    preempted, which a pool does only where its PREEMPTION_REQUIREMENTS allow it.
    """

    name = "user_priority"
    description = "HTCondor's negotiator: the user of the best priority first, on any free machine"
    api_version = 1
    features = ("user", "submit_s")

    def __init__(self, settings: UserPrioritySettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._past: dict[str, tuple[float, float]] = {}
        """Decayed CPUs of ended runs and the time of that value, by user."""

    def group_key(self, job: Job, view: SiteView) -> tuple[str, int]:
        """Return the user and the CPUs, which `observe` needs when the run has ended."""
        return job.spec.user, job.spec.cpus

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Return positions from 0: by round of the dealing, then by priority, then by age."""
        users = [job.spec.user for job in queue.jobs]
        numbers = {user: n for n, user in enumerate(dict.fromkeys(users))}
        row_user = np.array([numbers[user] for user in users], dtype=np.int64)
        running, cpus = self._running(view)
        priorities = np.array([self._priority(user, running, view.now) for user in numbers])
        slices = cpus_of_site(view) / priorities / (1.0 / priorities).sum()
        had = _cpus_before(row_user, queue.cpus, [cpus.get(user, 0) for user in numbers])
        return places_by(np.floor(had / slices[row_user]), priorities[row_user])

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Draw any free machine; the propensity is that of the machine's cluster."""
        return any_free(view, self.rng)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """Add an ended run to its user's past usage; there is no reward."""
        if outcome.machine == NOWHERE or outcome.end_s <= outcome.start_s:
            return ()
        key: Any = outcome.key  # that of `group_key`
        user, cpus = key
        if user not in self._past:
            self._forget(outcome.end_s)
        decayed = cpus * (1.0 - self._kept(outcome.end_s - outcome.start_s))
        self._past[user] = (self._past_cpus(user, outcome.end_s) + decayed, outcome.end_s)
        return ()

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the priority of its user, as ``condor_userprio`` shows it."""
        priority = self._priority(job.spec.user, self._running(view)[0], view.now)
        return (
            f"the priority of its user is {priority:.2f} (lower is better); users are served in "
            "that order, each up to a slice of the pool, on any free machine"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the past usage as plain data."""
        return {"half_life_s": self.settings.half_life_s, "past": self._past}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned. Raises `ValueError` for another half-life."""
        half_life_s = self.settings.half_life_s
        if saved["half_life_s"] != half_life_s:
            raise ValueError(
                f"its priorities have a half-life of {saved['half_life_s']:g} s; expected "
                f"{half_life_s:g} s"
            )
        self._past = {user: (cpus, at_s) for user, (cpus, at_s) in saved["past"].items()}

    def _kept(self, seconds: float) -> float:
        return exp2(-max(0.0, seconds) / self.settings.half_life_s)

    def _past_cpus(self, user: str, now: float) -> float:
        cpus, at_s = self._past.get(user, (0.0, now))
        return cpus * self._kept(now - at_s)

    def _priority(self, user: str, running: Mapping[str, float], now: float) -> float:
        return max(_BEST, self._past_cpus(user, now) + running.get(user, 0.0))

    def _running(self, view: SiteView) -> tuple[Mapping[str, float], Mapping[str, int]]:
        """Return the decayed CPUs of present runs, and their CPUs, by user."""
        runs = list(view.running)  # in columns, because there are thousands in each pass
        numbers: dict[str, int] = {}
        users = [numbers.setdefault(job.spec.user, len(numbers)) for job in runs]
        start_s = np.array([job.start_s for job in runs], np.float64)
        cpus = np.array([job.cpus for job in runs], np.int64)
        kept = np.exp2(-np.maximum(0.0, view.now - start_s) / self.settings.half_life_s)
        decayed = np.bincount(users, cpus * (1.0 - kept), len(numbers)).tolist()
        cpus_n = np.bincount(users, cpus, len(numbers)).astype(np.int64).tolist()
        return dict(zip(numbers, decayed, strict=True)), dict(zip(numbers, cpus_n, strict=True))

    def _forget(self, now: float) -> None:
        self._past = {
            user: past
            for user, past in self._past.items()
            if self._past_cpus(user, now) > _MIN_PAST_CPUS
        }


def _cpus_before(
    row_user: NDArray[np.int64], cpus: NDArray[np.int64], running: Sequence[int]
) -> NDArray[np.float64]:
    """Return the CPUs that the user of each row has once the user's earlier rows have started."""
    by_user = np.argsort(row_user, kind="stable")
    before = cpus[by_user].cumsum() - cpus[by_user]
    begins = np.searchsorted(row_user[by_user], np.arange(len(running)))
    before -= before[begins][row_user[by_user]]
    had = np.empty(len(cpus))
    had[by_user] = before + np.asarray(running)[row_user[by_user]]
    return had
