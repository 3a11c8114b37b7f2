"""What the arms of a bandit are: single computers, clusters of them, or the site as a whole.

Sections 4.1 to 4.3 of McGough and Forshaw (CS-TR-1451). An arm is `QUEUE`, or the number of a
place to which a job can be sent: of a machine, of a cluster, or 0 for "any machine".
"""

import random
from collections.abc import Callable, Sequence
from itertools import compress
from typing import ClassVar, Final, Literal, Protocol

from outrider.api import NOWHERE, Outcome, SiteView

LevelName = Literal["computer", "cluster", "cluster_week", "system"]

QUEUE: Final = NOWHERE
ANYWHERE: Final = 0
HOURS_LOST: Final = 24
_DAY_H: Final = 24


class Openness(Protocol):
    """Tells of a place whether a job can be sent there now.

    Indexed, not called: many places are looked at for a decision, and of clusters there is a list.
    """

    def __getitem__(self, arm: int, /) -> int:
        """True, or a number above 0, if it can."""
        ...


class AskedOneByOne:
    """An `Openness` where there is no list.

    Args:
        is_open: tells it of a place.
    """

    __slots__ = ("_is_open",)

    def __init__(self, is_open: Callable[[int], bool]) -> None:
        self._is_open = is_open

    def __getitem__(self, arm: int) -> bool:
        return self._is_open(arm)


class Level:
    """Base of the levels. The state is the hour of day and the hours a job has lost (24 x 24).

    Hours lost are those of its longest run that was thrown away, 23 standing for more: machines
    reboot every night, so no run is longer than a day.

    Class variables:
        hours: how many hours the state tells apart, of the day or of the week.
    """

    hours: ClassVar[int] = _DAY_H

    def arms(self, view: SiteView) -> Sequence[int]:
        """Every place there is."""
        raise NotImplementedError

    def name(self, arm: int, view: SiteView) -> str:
        """The name of a place, for people."""
        raise NotImplementedError

    def arm_of(self, outcome: Outcome) -> int:
        """The arm that leads to where a run was."""
        raise NotImplementedError

    def renumbered(self, arm: int, clusters: Sequence[int]) -> int:
        """A saved arm's number today; `clusters[i]` is that of saved cluster i."""
        return arm

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Places to which a job can be sent now."""
        raise NotImplementedError

    def open_n(self, view: SiteView) -> int:
        """Return how many places are open."""
        raise NotImplementedError

    def is_open(self, view: SiteView) -> Openness:
        """Return which places these are."""
        raise NotImplementedError

    def draw(self, view: SiteView, rng: random.Random, may_defer: bool) -> int:
        """An open place or, where it is allowed, the queue: uniformly."""
        raise NotImplementedError

    def draw_chance(self, cluster: int, view: SiteView, may_defer: bool) -> float:
        """Probability that a job so drawn starts in a cluster, or (`NOWHERE`) is kept."""
        raise NotImplementedError

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """The same, if drawn uniformly from these arms."""
        raise NotImplementedError

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """The machine on which a job sent to an open place starts."""
        raise NotImplementedError


class ComputerLevel(Level):
    """Every computer is an arm (section 4.1)."""

    def arms(self, view: SiteView) -> Sequence[int]:
        """Every machine there is."""
        return [machine for members in view.members for machine in members]

    def name(self, arm: int, view: SiteView) -> str:
        """A policy does not know the names of machines: cluster and number."""
        return f"{view.cluster_names[view.cluster_of(arm)]} no. {arm}"

    def arm_of(self, outcome: Outcome) -> int:
        """The machine."""
        return outcome.machine

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Free machines."""
        free = view.free_since
        if len(free) == view.free_total:
            return list(free)
        return list(filter(view.is_free, free))  # some were given away in this round

    def open_n(self, view: SiteView) -> int:
        """Number of free machines."""
        return view.free_total

    def is_open(self, view: SiteView) -> Openness:
        """Free machines."""
        free = view.free_since
        return AskedOneByOne(free.__contains__ if len(free) == view.free_total else view.is_free)

    def draw(self, view: SiteView, rng: random.Random, may_defer: bool) -> int:
        """A free machine or the queue."""
        if may_defer and rng.random() * (view.free_total + 1) < 1.0:
            return QUEUE
        return view.draw(rng)

    def draw_chance(self, cluster: int, view: SiteView, may_defer: bool) -> float:
        """In proportion to free machines."""
        ways = may_defer if cluster == NOWHERE else view.free_n[cluster]
        return ways / (view.free_total + may_defer)

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """Ratio of arms that are machines of the cluster."""
        if cluster == NOWHERE:
            return arms.count(QUEUE) / len(arms)
        places = map(view.cluster_of, filter(QUEUE.__ne__, arms))
        return list(places).count(cluster) / len(arms)

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """The arm itself."""
        return arm


class ClusterLevel(Level):
    """Every cluster is an arm; within it a free machine is drawn (section 4.2)."""

    def arms(self, view: SiteView) -> Sequence[int]:
        """Every cluster."""
        return range(len(view.free_n))

    def name(self, arm: int, view: SiteView) -> str:
        """The cluster's."""
        return view.cluster_names[arm]

    def arm_of(self, outcome: Outcome) -> int:
        """The cluster."""
        return outcome.cluster

    def renumbered(self, arm: int, clusters: Sequence[int]) -> int:
        """Clusters are saved by name; machines keep their numbers."""
        return clusters[arm]

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Clusters with a free machine."""
        free_n = view.free_n
        return list(compress(range(len(free_n)), free_n))

    def open_n(self, view: SiteView) -> int:
        """Number of clusters with a free machine."""
        free_n = view.free_n
        return len(free_n) - free_n.count(0)

    def is_open(self, view: SiteView) -> Openness:
        """Clusters with a free machine."""
        return view.free_n

    def draw(self, view: SiteView, rng: random.Random, may_defer: bool) -> int:
        """A cluster with a free machine or the queue."""
        arms = [*self.open_arms(view), QUEUE] if may_defer else self.open_arms(view)
        return arms[int(rng.random() * len(arms))]

    def draw_chance(self, cluster: int, view: SiteView, may_defer: bool) -> float:
        """One way into every open cluster, and one into the queue."""
        free_n = view.free_n
        return 1.0 / (len(free_n) - free_n.count(0) + may_defer)

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """Arms and places have the same numbers, also the queue."""
        return arms.count(cluster) / len(arms)

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """A free machine of the cluster, uniformly."""
        return view.draw_in(arm, rng)


class ClusterWeekLevel(ClusterLevel):
    """`ClusterLevel`, but the state has the hour of the week (168 x 24)."""

    hours = 7 * _DAY_H


class SystemLevel(Level):
    """Only whether to run a job is learned; any free machine will do (section 4.3)."""

    def arms(self, view: SiteView) -> Sequence[int]:
        """The site."""
        return (ANYWHERE,)

    def name(self, arm: int, view: SiteView) -> str:
        """The site."""
        return "run"

    def arm_of(self, outcome: Outcome) -> int:
        """The site."""
        return ANYWHERE

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """The site: a policy is only asked while some machine is free."""
        return (ANYWHERE,)

    def open_n(self, view: SiteView) -> int:
        """1."""
        return 1

    def is_open(self, view: SiteView) -> Openness:
        """The site."""
        return (True,)

    def draw(self, view: SiteView, rng: random.Random, may_defer: bool) -> int:
        """The site or the queue."""
        return QUEUE if may_defer and rng.random() < 0.5 else ANYWHERE

    def draw_chance(self, cluster: int, view: SiteView, may_defer: bool) -> float:
        """The cluster's part of the free machines, half of it if the job may be kept."""
        ways = 1 + may_defer
        return (may_defer if cluster == NOWHERE else view.free_n[cluster] / view.free_total) / ways

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """The cluster's part of the free machines, if the job runs."""
        if cluster == NOWHERE:
            return arms.count(QUEUE) / len(arms)
        return arms.count(ANYWHERE) / len(arms) * view.free_n[cluster] / view.free_total

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """Any free machine, uniformly."""
        return view.draw(rng)


LEVELS: Final[dict[LevelName, type[Level]]] = {
    "computer": ComputerLevel,
    "cluster": ClusterLevel,
    "cluster_week": ClusterWeekLevel,
    "system": SystemLevel,
}
