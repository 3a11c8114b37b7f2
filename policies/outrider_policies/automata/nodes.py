"""The automaton over nodes: where the next job is sent, and when a node is rewarded."""

import random
from collections.abc import Sequence
from math import inf
from typing import Annotated, Any, Final, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import COMPLETED_RUN, EVICTED_RUN, Outcome, PolicySettings, SiteView
from outrider_policies.automata.automaton import (
    REWARD_PENALTY,
    Automaton,
    Positions,
    SchemeName,
    scheme,
)
from outrider_policies.levels import LEVELS, Level

# -- settings --------------------------------------------------------------------------------------
# Settings of the learning automata.

PollTakes = Literal["one", "backlog"]
UserReward = Literal["poll", "jobs"]
NodeRule = Literal["automaton", "greedy"]
Response = Literal["queue", "ratio", "ending"]


class AutomataSettings(PolicySettings, frozen=True):
    """Learning schemes, what a poll takes, and when a node is rewarded."""

    scheme: Annotated[
        SchemeName,
        Meta(
            description="How responses move the probabilities: L_R-P (penalties weigh as much as "
            "rewards: follows a site that changes), L_R-eP (penalties weigh little: comes closer "
            "to the best) or L_R-I (penalties are ignored: may lock on a wrong node for good).",
        ),
    ] = REWARD_PENALTY
    reward_step: Annotated[
        float,
        Meta(
            gt=0,
            lt=1,
            description="a: how much one reward moves a probability towards 1. More learns faster "
            "and fluctuates more.",
        ),
    ] = 0.05
    penalty_step: Annotated[
        float,
        Meta(ge=0, lt=1, description="b of L_R-eP; L_R-P has b = a and L_R-I has none."),
    ] = 0.005
    floor_ratio: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Ratio of draws that are uniform over the enabled actions, so that no "
            "user starves and every node is still tried.",
        ),
    ] = 0.05
    poll: Annotated[
        PollTakes,
        Meta(
            description="What a poll that finds jobs takes from its user: the oldest one, or the "
            "whole backlog, behind which other users then wait.",
        ),
    ] = "one"
    user_reward: Annotated[
        UserReward,
        Meta(
            description="Whether a user who has jobs is rewarded once a poll (LAJS) or once for "
            "every job that waits (equation 4.1, corrected): users of many jobs come first.",
        ),
    ] = "poll"
    forget_user_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds without a queued job after which a user is no longer polled, "
            "until the next job.",
        ),
    ] = 604_800.0
    level: Annotated[
        Literal["cluster", "computer"],
        Meta(
            description="What a node is: a cluster, in which a free machine is drawn, or every "
            "machine. Many similar machines are learned faster as clusters.",
        ),
    ] = "cluster"
    node_rule: Annotated[
        NodeRule,
        Meta(
            description="Draw the node from the automaton, or take the one of the highest "
            "capacity per job, as section 4.1.2 reads (nothing learned is used then).",
        ),
    ] = "automaton"
    response: Annotated[
        Response,
        Meta(
            description="When a node is rewarded, otherwise penalised: `queue`, if it has no more "
            "jobs than the mean node when one is sent to it (LAJS); `ratio`, if its capacity per "
            "job stays above the lowest of any node (section 4.1.2); `ending`, if the job "
            "completes there. Evicted runs are penalties under each.",
        ),
    ] = "queue"


# -- nodes -----------------------------------------------------------------------------------------

Floats = NDArray[np.float64]
_MACHINE_LEVEL: Final = "computer"
_LEARNING_RULES: Final[dict[Response, str]] = {
    "queue": "a node's probability falls when it gets a job while it has more than the mean",
    "ratio": "a node's probability falls if its capacity per job becomes the lowest of any node",
    "ending": "a node's probability rises with each job completed there, falls with each evicted",
}


class Nodes:
    """Machines or clusters as actions, with the number of jobs at each.

    A cluster is added with its first machine and removed with its last.

    Attributes:
        automaton: one action per node.
        is_stale: True if machines joined or left since the last `refresh`.
    """

    def __init__(self, settings: AutomataSettings) -> None:
        learning_scheme = scheme(settings.scheme, settings.reward_step, settings.penalty_step)
        self.automaton = Automaton(learning_scheme)
        self.is_stale = True
        self._settings = settings
        self._level: Level = LEVELS[settings.level]()
        self._by_machine = settings.level == _MACHINE_LEVEL
        self._jobs: Floats = np.empty(0)
        self._machines: Floats = np.empty(0)
        self._capacity: Floats = np.empty(0)
        self._clusters: Positions = np.empty(0, dtype=np.intp)

    def refresh(self, view: SiteView) -> None:
        """Add nodes that joined and remove those that left, if `is_stale`."""
        if not self.is_stale:
            return
        self.is_stale = False
        automaton = self.automaton
        jobs = dict(zip(automaton.actions, self._jobs, strict=True))
        members = {node: machines for node, machines in self._members(view) if machines}
        for node in [node for node in automaton.actions if node not in members]:
            automaton.remove(node)
        for node in members:
            if node not in automaton:
                automaton.add(node)
        here = [members[self._node(at)] for at in range(len(automaton))]
        self._clusters = np.array([view.cluster_of(each[0]) for each in here], dtype=np.intp)
        self._jobs = np.array([jobs.get(node, 0.0) for node in automaton.actions])
        self._machines = np.array([float(len(machines)) for machines in here])
        self._capacity = np.array([sum(_capacity(m, view) for m in each) for each in here])

    def _members(self, view: SiteView) -> list[tuple[int, Sequence[int]]]:
        if self._by_machine:
            return [(machine, (machine,)) for each in view.members for machine in each]
        return list(enumerate(view.members))

    def _node(self, at: int) -> int:
        node: Any = self.automaton.actions[at]
        return int(node)

    def node_of(self, machine: int, view: SiteView) -> int:
        """Return the node of a machine."""
        return machine if self._by_machine else view.cluster_of(machine)

    # -- choosing -----------------------------------------------------------------------------

    def open_to(self, cpus: int, view: SiteView) -> Positions:
        """Return the positions of the nodes on which a job of so many CPUs can start now."""
        if cpus == 1:
            return self.automaton.positions(self._level.open_arms(view))
        nodes = dict.fromkeys(self.node_of(machine, view) for machine in view.fitting(cpus))
        return self.automaton.positions(nodes)

    def chances(self, among: Positions) -> Floats:
        """Return (among,) the probability with which each of these nodes is chosen.

        The greedy rule takes the most capacity per job, C / (q + machines), the new job included:
        by C / q every idle node, however slow, would come before every busy one.
        """
        if self._settings.node_rule == "automaton":
            return self.automaton.chances(self._settings.floor_ratio, among)
        per_job = self._capacity[among] / (self._jobs[among] + self._machines[among])
        chances = np.zeros(len(among))
        chances[np.argmax(per_job)] = 1.0
        return chances

    def chance_of_cluster(self, cluster: int, among: Positions, chances: Floats) -> float:
        """Return the sum of the probabilities of a cluster's nodes."""
        return float(chances[self._clusters[among] == cluster].sum())

    def cluster_of(self, at: int) -> int:
        """Return the cluster of a node; if nodes are clusters, the node itself."""
        return int(self._clusters[at])

    def machine(self, at: int, cpus: int, view: SiteView, rng: random.Random) -> int:
        """Return the machine on which a job starts; in a cluster, a free one drawn at random."""
        node = self._node(at)
        if cpus == 1:
            return self._level.machine(node, view, rng)
        fitting = [m for m in view.fitting(cpus) if self.node_of(m, view) == node]
        return fitting[int(rng.random() * len(fitting))]

    # -- learning -----------------------------------------------------------------------------

    def started(self, machine: int, cpus: int, view: SiteView, learn: bool) -> None:
        """Count a job that was sent to a machine, and learn the node's response."""
        node = self.node_of(machine, view)
        if node not in self.automaton:
            return  # the node has left
        at = self.automaton.position(node)
        response = self._settings.response
        if learn and response != "ending":
            is_good = self._queue_is_short(at) if response == "queue" else self._ratio_is_high(at)
            self._learn(at, is_good, cpus, view)
        self._jobs[at] += 1.0

    def ended(self, outcome: Outcome, view: SiteView) -> tuple[float, ...]:
        """Learn from a run that ended; return the reward, 1 or -1, if there is one."""
        node = self.node_of(outcome.machine, view)
        if node not in self.automaton:
            return ()
        at = self.automaton.position(node)
        self._jobs[at] = max(0.0, self._jobs[at] - 1.0)  # it may have begun uncounted
        is_evicted = outcome.ending == EVICTED_RUN
        is_done = outcome.ending == COMPLETED_RUN and self._settings.response == "ending"
        if not is_evicted and not is_done:
            return ()
        cpus: Any = outcome.key
        self._learn(at, is_done, cpus, view)
        return (1.0 if is_done else -1.0,)

    def _learn(self, at: int, is_good: bool, cpus: int, view: SiteView) -> None:
        """Update the automaton; enabled are the node and those that could run the job instead."""
        among = np.union1d(self.open_to(cpus, view), [at])
        if is_good:
            self.automaton.reward(at, among)
        else:
            self.automaton.penalise(at, among)

    def _queue_is_short(self, at: int) -> bool:
        """Return True if jobs per machine are at most the dynamic average (LAJS, section 3.1.2)."""
        length, mean = self._queue(at)
        return length <= mean

    def _ratio_is_high(self, at: int) -> bool:
        """Return True if, with the new job, capacity per job is not below any busy node's.

        Section 4.1.2.
        """
        busy = self._jobs > 0.0
        lowest = float(np.min(self._capacity[busy] / self._jobs[busy])) if busy.any() else -inf
        return bool(self._capacity[at] / (self._jobs[at] + 1.0) >= lowest)

    # -- explaining and state -----------------------------------------------------------------

    def _queue(self, at: int) -> tuple[float, float]:
        """Return the jobs per machine at a node, and the mean over all nodes."""
        lengths = self._jobs / self._machines
        return float(lengths[at]), float(lengths.mean())

    def name(self, at: int, view: SiteView) -> str:
        """Return a node's label: the cluster, with the number of a machine.

        Policies do not know the names of machines.
        """
        cluster = view.cluster_names[self.cluster_of(at)]
        return f"{cluster} no. {self._node(at)}" if self._by_machine else cluster

    def probabilities(self, view: SiteView) -> dict[str, float]:
        """Return the probabilities of all nodes, by label."""
        p = self.automaton.probabilities.tolist()
        return {self.name(at, view): each for at, each in enumerate(p)}

    def by_cluster(self, view: SiteView) -> dict[str, float]:
        """Return the sums of the nodes' probabilities, by cluster."""
        sums = dict.fromkeys(view.cluster_names, 0.0)
        for at, each in enumerate(self.automaton.probabilities.tolist()):
            sums[view.cluster_names[self.cluster_of(at)]] += each
        return sums

    def explanation(self, at: int, chance: float, view: SiteView) -> str:
        """Return one sentence: the most likely node, its queue, and what would change that."""
        length, mean = self._queue(at)
        rule = _LEARNING_RULES[self._settings.response]
        return (
            f"it would most likely go to {self.name(at, view)} (probability {chance:.0%}), which "
            f"has {length:.2g} jobs per machine (mean over all nodes: {mean:.2g}); {rule}"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return probabilities and counts; clusters by name, machines by number."""
        saved = self.automaton.save() | {"jobs": self._jobs.tolist(), "level": self._settings.level}
        if not self._by_machine:
            saved["actions"] = [view.cluster_names[node] for node in saved["actions"]]
        return saved

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned.

        Raises:
            ValueError: it was saved at another level.
        """
        if saved["level"] != self._settings.level:
            raise ValueError(f'learned at level "{saved["level"]}", not "{self._settings.level}"')
        actions = saved["actions"]
        if not self._by_machine:
            names = list(view.cluster_names)
            actions = [names.index(name) for name in actions]
        self.automaton.restore({**saved, "actions": actions})
        self._jobs = np.array(saved["jobs"], dtype=float)
        self.is_stale = True


def _capacity(machine: int, view: SiteView) -> float:
    """Return a machine's work per second; a closed machine counts as having one CPU or more."""
    return max(1, view.cpus_of(machine)) * view.speed_of(machine)
