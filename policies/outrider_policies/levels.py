"""Arms of a bandit: single computers, clusters of them, or the site as a whole.

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
    """Mapping of places to whether a job can be sent there now.

    Indexed, not called: a decision reads many places, and for clusters there is a list.
    """

    def __getitem__(self, arm: int, /) -> int:
        """Return True, or a number above 0, if a job can be sent there."""
        ...


class AskedOneByOne:
    """An `Openness` that calls a function, where there is no list.

    Args:
        is_open: returns True for an open place.
    """

    __slots__ = ("_is_open",)

    def __init__(self, is_open: Callable[[int], bool]) -> None:
        self._is_open = is_open

    def __getitem__(self, arm: int) -> bool:
        return self._is_open(arm)


class Level:
    """Base of the levels. The state is the hour of day and the hours a job has lost (24 x 24).

    Hours lost are those of its longest wasted run; 23 includes all above. Machines
    reboot every night, so no run is longer than a day.

    Class variables:
        hours: number of hours that the state distinguishes, of the day or of the week.
    """

    hours: ClassVar[int] = _DAY_H

    def arms(self, view: SiteView) -> Sequence[int]:
        """Return every place, open or full."""
        raise NotImplementedError

    def name(self, arm: int, view: SiteView) -> str:
        """Return the name of a place, for people."""
        raise NotImplementedError

    def arm_of(self, outcome: Outcome) -> int:
        """Return the arm that leads to where a run was."""
        raise NotImplementedError

    def renumbered(self, arm: int, clusters: Sequence[int]) -> int:
        """Return a saved arm's present number; `clusters[i]` is that of saved cluster i."""
        return arm

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Return the places to which a job can be sent now."""
        raise NotImplementedError

    def open_n(self, view: SiteView) -> int:
        """Return the number of open places."""
        raise NotImplementedError

    def is_open(self, view: SiteView) -> Openness:
        """Return which places are open."""
        raise NotImplementedError

    def draw(self, view: SiteView, rng: random.Random, may_defer: bool) -> int:
        """Draw an open place or, where it is allowed, the queue: uniformly."""
        raise NotImplementedError

    def draw_chance(self, cluster: int, view: SiteView, may_defer: bool) -> float:
        """Return the probability that a job so drawn starts in a cluster, or (`NOWHERE`) waits."""
        raise NotImplementedError

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """Return the same probability, if drawn uniformly from these arms."""
        raise NotImplementedError

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """Return the machine on which a job sent to an open place starts."""
        raise NotImplementedError


class ComputerLevel(Level):
    """Level on which every computer is an arm (section 4.1)."""

    def arms(self, view: SiteView) -> Sequence[int]:
        """Return every machine, free or not."""
        return [machine for members in view.members for machine in members]

    def name(self, arm: int, view: SiteView) -> str:
        """Return cluster and number: a policy does not know the names of machines."""
        return f"{view.cluster_names[view.cluster_of(arm)]} no. {arm}"

    def arm_of(self, outcome: Outcome) -> int:
        """Return the machine of the run."""
        return outcome.machine

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Return the free machines."""
        free = view.free_since
        if len(free) == view.free_total:
            return list(free)
        return list(filter(view.is_free, free))  # some were taken in this round

    def open_n(self, view: SiteView) -> int:
        """Return the number of free machines."""
        return view.free_total

    def is_open(self, view: SiteView) -> Openness:
        """Return which machines are free."""
        free = view.free_since
        return AskedOneByOne(free.__contains__ if len(free) == view.free_total else view.is_free)

    def draw(self, view: SiteView, rng: random.Random, may_defer: bool) -> int:
        """Draw a free machine or the queue."""
        if may_defer and rng.random() * (view.free_total + 1) < 1.0:
            return QUEUE
        return view.draw(rng)

    def draw_chance(self, cluster: int, view: SiteView, may_defer: bool) -> float:
        """Return the probability in proportion to free machines."""
        ways = may_defer if cluster == NOWHERE else view.free_n[cluster]
        return ways / (view.free_total + may_defer)

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """Return the ratio of arms that are machines of the cluster."""
        if cluster == NOWHERE:
            return arms.count(QUEUE) / len(arms)
        places = map(view.cluster_of, filter(QUEUE.__ne__, arms))
        return list(places).count(cluster) / len(arms)

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """Return the arm itself, which is a machine."""
        return arm


class ClusterLevel(Level):
    """Level on which every cluster is an arm; within it a free machine is drawn (section 4.2)."""

    def arms(self, view: SiteView) -> Sequence[int]:
        """Return every cluster, full or not."""
        return range(len(view.free_n))

    def name(self, arm: int, view: SiteView) -> str:
        """Return the name of the cluster."""
        return view.cluster_names[arm]

    def arm_of(self, outcome: Outcome) -> int:
        """Return the cluster of the run."""
        return outcome.cluster

    def renumbered(self, arm: int, clusters: Sequence[int]) -> int:
        """Return the present number: clusters are saved by name, machines by number."""
        return clusters[arm]

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Return the clusters with a free machine."""
        free_n = view.free_n
        return list(compress(range(len(free_n)), free_n))

    def open_n(self, view: SiteView) -> int:
        """Return the number of clusters with a free machine."""
        free_n = view.free_n
        return len(free_n) - free_n.count(0)

    def is_open(self, view: SiteView) -> Openness:
        """Return the number of free machines of each cluster."""
        return view.free_n

    def draw(self, view: SiteView, rng: random.Random, may_defer: bool) -> int:
        """Draw a cluster with a free machine or the queue."""
        arms = [*self.open_arms(view), QUEUE] if may_defer else self.open_arms(view)
        return arms[int(rng.random() * len(arms))]

    def draw_chance(self, cluster: int, view: SiteView, may_defer: bool) -> float:
        """Return the probability: one way into every open cluster, and one into the queue."""
        free_n = view.free_n
        return 1.0 / (len(free_n) - free_n.count(0) + may_defer)

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """Return the ratio of arms that are the cluster; the queue has the number `NOWHERE` too."""
        return arms.count(cluster) / len(arms)

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """Draw a free machine of the cluster uniformly."""
        return view.draw_in(arm, rng)


class ClusterWeekLevel(ClusterLevel):
    """Like `ClusterLevel`, but the state has the hour of the week (168 x 24)."""

    hours = 7 * _DAY_H


class SystemLevel(Level):
    """Level that learns only whether to run a job; any free machine will do (section 4.3)."""

    def arms(self, view: SiteView) -> Sequence[int]:
        """Return the site as the only place."""
        return (ANYWHERE,)

    def name(self, arm: int, view: SiteView) -> str:
        """Return the name of the only place."""
        return "run"

    def arm_of(self, outcome: Outcome) -> int:
        """Return the site, where every run was."""
        return ANYWHERE

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Return the site: a policy is called only while some machine is free."""
        return (ANYWHERE,)

    def open_n(self, view: SiteView) -> int:
        """Return 1: the site is open."""
        return 1

    def is_open(self, view: SiteView) -> Openness:
        """Return True for the site."""
        return (True,)

    def draw(self, view: SiteView, rng: random.Random, may_defer: bool) -> int:
        """Draw the site or the queue."""
        return QUEUE if may_defer and rng.random() < 0.5 else ANYWHERE

    def draw_chance(self, cluster: int, view: SiteView, may_defer: bool) -> float:
        """Return the cluster's part of the free machines, half of it if the job may wait."""
        ways = 1 + may_defer
        return (may_defer if cluster == NOWHERE else view.free_n[cluster] / view.free_total) / ways

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """Return the cluster's part of the free machines, if the job runs."""
        if cluster == NOWHERE:
            return arms.count(QUEUE) / len(arms)
        return arms.count(ANYWHERE) / len(arms) * view.free_n[cluster] / view.free_total

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """Draw any free machine uniformly."""
        return view.draw(rng)


LEVELS: Final[dict[LevelName, type[Level]]] = {
    "computer": ComputerLevel,
    "cluster": ClusterLevel,
    "cluster_week": ClusterWeekLevel,
    "system": SystemLevel,
}
