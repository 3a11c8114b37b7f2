"""Two learning automata schedule a grid: one over its users, one over its nodes.

Suganthi and Devi: "Two way proportional job scheduling in computational grids using learning
automata", sections 3 (LAJS, after Akbari Torkestani) and 4 (two-way).
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import (
    NO_MACHINE,
    NOWHERE,
    RUNNING,
    Choice,
    Job,
    Learns,
    Listens,
    Outcome,
    Policy,
    Queue,
    Ranks,
    SiteView,
    events,
)
from outrider_policies.automata.automaton import Automaton, pick, scheme
from outrider_policies.automata.nodes import AutomataSettings, Nodes

_SHOWN = 5


class Automata(Ranks, Learns, Listens, Policy[AutomataSettings]):
    """Scheduler in which one automaton polls users and another sends jobs to nodes.

    Polling: where more jobs wait than can start, users are polled; a poll that finds jobs moves
    one (or the backlog) into the scheduler's own line, which is first come, first served. Polls
    are learned from immediately. Node choice: a node that can run the job is drawn. It is rewarded
    or penalised when the job starts there, whichever scheduler sent it, so a shadow learns from
    what the batch system does. See docs/automata.md.
    """

    name = "automata"
    description = "learning automata: one polls the users, one draws the node for a job"
    api_version = 1
    presets: ClassVar = {
        "lajs": {"level": "computer"},
        "two_way": {"level": "computer", "user_reward": "jobs", "response": "ratio"},
        "literal": {
            "level": "computer", "user_reward": "jobs", "response": "ratio",
            "node_rule": "greedy", "floor_ratio": 0.0,
        },
    }  # fmt: skip
    features = ("cpus",)
    subscribes = frozenset({events.JOINED, events.LEFT})

    def __init__(self, settings: AutomataSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self._users = Users(settings)
        self._nodes = Nodes(settings)
        self._received: list[int] = []
        self._sent: dict[int, int] = {}
        self._sent_s = -1.0

    # -- users --------------------------------------------------------------------------------

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Return positions: received jobs in the order of the polls, then the others by arrival."""
        rows = {job.number: row for row, job in enumerate(queue.jobs)}
        self._received = [number for number in self._received if number in rows]
        wanted = _startable(len(rows), view) - len(self._received)
        if wanted > 0:
            self._receive(wanted, queue, view.now)
        places = np.full(len(rows), float(len(self._received)))
        places[[rows[number] for number in self._received]] = np.arange(len(self._received))
        return places

    def _receive(self, wanted: int, queue: Queue, now: float) -> None:
        """Add `wanted` more jobs by polls, or all jobs if all can start anyway."""
        received = set(self._received)
        ready: defaultdict[str, list[int]] = defaultdict(list)
        for job in queue.jobs:
            if job.number not in received:
                ready[job.spec.user].append(job.number)
        self._users.note_users(ready, now)
        ready_n = {user: len(jobs) for user, jobs in ready.items()}
        if sum(ready_n.values()) <= wanted:
            self._received += [job.number for job in queue.jobs if job.number not in received]
            return
        whole = self.settings.poll == "backlog"
        while wanted > 0 and ready_n:
            user = self._users.next_with_jobs(ready_n, self.rng)
            taken_n = ready_n[user] if whole else 1
            self._received += ready[user][:taken_n]
            del ready[user][:taken_n]
            wanted -= taken_n
            ready_n[user] -= taken_n
            if not ready_n[user]:
                del ready_n[user]

    def poll(self, ready_n: Mapping[str, int], now: float) -> str | None:
        """Poll one user, as `rank` does: for experiments that count polls.

        Args:
            ready_n: users who have jobs, and how many.
            now: seconds; users become known with their first job and are forgotten in time.

        Returns:
            the user, or None if the polled user has no job.
        """
        self._users.note_users(ready_n, now)
        return self._users.poll(ready_n, self.rng)

    # -- nodes --------------------------------------------------------------------------------

    def group_key(self, job: Job, view: SiteView) -> int:
        """Return the requested CPUs: jobs of equal width are alike."""
        return job.spec.cpus

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Draw a node from the automaton (or take the greedy rule's), and a machine of it."""
        nodes = self._nodes
        nodes.refresh(view)
        among = nodes.open_to(job.spec.cpus, view)
        if not len(among):
            return Choice(NOWHERE, NO_MACHINE)
        chances = nodes.chances(among)
        at = int(among[pick(chances, self.rng)])
        machine = nodes.machine(at, job.spec.cpus, view, self.rng)
        if self._sent_s != view.now:
            self._sent.clear()
            self._sent_s = view.now
        self._sent[job.number] = machine
        propensity = nodes.chance_of_cluster(view.cluster_of(machine), among, chances)
        scores = self._best(among, chances, view) if self.wants_scores else None
        return Choice(machine, self.settings.node_rule, propensity, scores)

    def on_dequeue(self, job: Job, view: SiteView) -> None:
        """Learn from where a job starts: it runs already, or was sent in this very pass."""
        machine = job.machine
        if job.state != RUNNING:
            machine = self._sent.pop(job.number, NOWHERE) if self._sent_s == view.now else NOWHERE
        if machine != NOWHERE:
            self.sent(job, machine, view)

    def sent(self, job: Job, machine: int, view: SiteView, own: bool = True) -> None:
        """Learn from a job that was sent to a machine.

        Args:
            job: the job.
            machine: the machine.
            view: the site.
            own: False if another scheduler of the same nodes sent it. The queue there is then
                longer, and nothing is learned.
        """
        self._nodes.refresh(view)
        self._nodes.started(machine, job.spec.cpus, view, learn=own)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> tuple[float, ...]:
        """Learn from a run that ended: its node has a job less.

        The node is penalised if the run was wasted.
        """
        if outcome.machine == NOWHERE:
            return ()
        self._nodes.refresh(view)
        return self._nodes.ended(outcome, view)

    def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
        """Note that machines joined or left."""
        self._nodes.is_stale = True

    # -- reporting ----------------------------------------------------------------------------

    def _best(
        self, among: NDArray[np.intp], chances: NDArray[np.float64], view: SiteView
    ) -> dict[str, float]:
        best = np.argsort(-chances, kind="stable")[:_SHOWN]
        return {self._nodes.name(int(among[each]), view): float(chances[each]) for each in best}

    def scores(self, key: Any, view: SiteView) -> dict[str, float]:
        """Return the learned probability of every node."""
        self._nodes.refresh(view)
        return self._nodes.probabilities(view)

    def learned(self, view: SiteView) -> dict[str, Any]:
        """Return the probability of each cluster; at level `computer` the sum of its machines'."""
        self._nodes.refresh(view)
        shares = self._nodes.by_cluster(view)
        return {
            "title": "where the next job is sent",
            "unit": "probability",
            "columns": ["probability"],
            "rows": [{"label": name, "values": [share]} for name, share in shares.items()],
        }

    def explain(self, job: Job, view: SiteView) -> str:
        """Return the user's share of polls, the job's place, its likeliest node, and the rule."""
        spec, nodes = job.spec, self._nodes
        nodes.refresh(view)
        polled = f"its user is polled in {self._users.chance(spec.user):.0%} of polls"
        if job.number in self._received:
            polled = f"{self._received.index(job.number)} received jobs start before it; {polled}"
        among = nodes.open_to(spec.cpus, view)
        if not len(among):
            return f"{polled}; no node has {spec.cpus} CPUs free now"
        chances = nodes.chances(among)
        best = int(np.argmax(chances))
        return f"{polled}; {nodes.explanation(int(among[best]), float(chances[best]), view)}"

    # -- state --------------------------------------------------------------------------------

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return both automata, the received jobs, and the jobs counted at every node."""
        return {
            "users": self._users.save(),
            "nodes": self._nodes.save(view),
            "received": list(self._received),
        }

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned.

        Raises:
            ValueError: nodes were saved at another level: clusters, or machines.
        """
        self._nodes.restore(saved["nodes"], view)
        self._users.restore(saved["users"])
        self._received = list(saved["received"])


def _startable(waiting_n: int, view: SiteView) -> int:
    """Return how many of the waiting jobs could start now if each needed one CPU."""
    cpus = 0
    for machine in view.free_since:
        cpus += view.cpus_left(machine)
        if cpus >= waiting_n:
            return waiting_n
    return cpus


# -- users -----------------------------------------------------------------------------------------
# The automaton over users: which user is polled next for a ready job.

_MAX_POLLS: Final = 32
"""Polls without a job after which only users with jobs are polled, to bound the time spent."""


class Users:
    """Poller of users, one by one (LAJS, section 3.1.1; two-way, section 4.1.1).

    A user who has a job ready is rewarded and one who has none is penalised, so the automaton
    learns to poll users with jobs. Users are added with their first job and removed when they
    have had none for `forget_user_s`.
    """

    def __init__(self, settings: AutomataSettings) -> None:
        learning_scheme = scheme(settings.scheme, settings.reward_step, settings.penalty_step)
        self.automaton = Automaton(learning_scheme)
        self._by_jobs = settings.user_reward == "jobs"
        self._floor_ratio = settings.floor_ratio
        self._forget_s = settings.forget_user_s
        self._seen_s: dict[str, float] = {}

    def note_users(self, users: Iterable[str], now: float) -> None:
        """Add users who have jobs now; remove those without a job for `forget_user_s`."""
        for user in users:
            if self._seen_s.pop(user, None) is None:
                self.automaton.add(user)
            self._seen_s[user] = now  # insertion order: the last was seen last
        while self._seen_s:
            oldest = next(iter(self._seen_s))
            if now - self._seen_s[oldest] <= self._forget_s:
                return
            del self._seen_s[oldest]
            self.automaton.remove(oldest)

    def poll(self, waiting_n: Mapping[str, int], rng: random.Random) -> str | None:
        """Poll one user, drawn by the automaton, and learn from the response.

        Args:
            waiting_n: number of ready jobs by user; others have none.
            rng: for the draw.

        Returns:
            the user, or None if the polled user has no job or no user is known.
        """
        if not len(self.automaton):
            return None
        at = self.automaton.draw(rng, self._floor_ratio)
        user = str(self.automaton.actions[at])
        ready_n = waiting_n.get(user, 0)
        if not ready_n:
            self.automaton.penalise(at)
            return None
        self.automaton.reward(at, times=ready_n if self._by_jobs else 1)
        return user

    def next_with_jobs(self, waiting_n: Mapping[str, int], rng: random.Random) -> str:
        """Poll until a user has a job. Users in `waiting_n` must be known and have jobs."""
        for _ in range(_MAX_POLLS):
            user = self.poll(waiting_n, rng)
            if user is not None:
                return user
        among = self.automaton.positions(waiting_n)
        return str(self.automaton.actions[self.automaton.draw(rng, self._floor_ratio, among)])

    def chance(self, user: str) -> float:
        """Return the probability that a poll chooses this user; 0 if unknown."""
        if user not in self.automaton:
            return 0.0
        return float(self.automaton.chances(self._floor_ratio)[self.automaton.position(user)])

    def save(self) -> dict[str, Any]:
        """Return the probabilities, and when each user last had a job."""
        return {"automaton": self.automaton.save(), "seen_s": list(self._seen_s.items())}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self.automaton.restore(saved["automaton"])
        self._seen_s = dict(saved["seen_s"])
