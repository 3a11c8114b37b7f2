"""What the arms of a bandit are: single computers, clusters of them, or the site as a whole.

Sections 4.1 to 4.3 of McGough and Forshaw (CS-TR-1451). An arm is `QUEUE`, or the number of a
place to which a job can be sent: of a machine, of a cluster, or 0 for "any machine".
"""

import random
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Literal

from outrider.api import NOWHERE, Job, Outcome, SiteView

LevelName = Literal["computer", "cluster", "cluster_week", "system"]

QUEUE: Final = NOWHERE
ANYWHERE: Final = 0
HOURS_LOST: Final = 24
_DAY_H: Final = 24
_HOUR_S: Final = 3600.0


class Level:
    """Base of the levels. The state is the hour of day and the hours a job has lost (24 x 24).

    Hours lost are those of its longest run that was thrown away, 23 standing for more: machines
    reboot every night, so no run is longer than a day.

    Class variables:
        hours: how many hours the state tells apart, of the day or of the week.
    """

    hours: ClassVar[int] = _DAY_H

    def state(self, job: Job, view: SiteView) -> int:
        """The job's state now: hour x 24 + hours lost."""
        lost_h = int(job.consumed_s / _HOUR_S)
        return self.hour(view) * HOURS_LOST + (lost_h if lost_h < HOURS_LOST else HOURS_LOST - 1)

    def hour(self, view: SiteView) -> int:
        """The hour that the state tells, of the day or of the week."""
        return view.hour_of_day()

    def arms(self, view: SiteView) -> Sequence[int]:
        """Every place there is."""
        raise NotImplementedError

    def names(self, view: SiteView) -> list[str]:
        """Names of `arms`, for people."""
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
        """How many places are open."""
        raise NotImplementedError

    def is_open(self, view: SiteView, may_keep: bool) -> Callable[[int], int]:
        """Tells of an arm, the queue included, whether it can be chosen now."""
        raise NotImplementedError

    def draw(self, view: SiteView, rng: random.Random, may_keep: bool) -> int:
        """An open place or, where it is allowed, the queue: uniformly."""
        raise NotImplementedError

    def draw_chance(self, cluster: int, view: SiteView, may_keep: bool) -> float:
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

    def names(self, view: SiteView) -> list[str]:
        """A policy does not know the names of machines: cluster and number."""
        names = view.cluster_names
        return [f"{names[view.cluster_of(m)]} no. {m}" for m in self.arms(view)]

    def arm_of(self, outcome: Outcome) -> int:
        """The machine."""
        return outcome.machine

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Free machines."""
        return [machine for machine in view.free_since if view.is_free(machine)]

    def open_n(self, view: SiteView) -> int:
        """Number of free machines."""
        return view.free_total

    def is_open(self, view: SiteView, may_keep: bool) -> Callable[[int], int]:
        """Whether a machine is free, or the queue allowed."""
        return lambda arm: may_keep if arm == QUEUE else view.is_free(arm)

    def draw(self, view: SiteView, rng: random.Random, may_keep: bool) -> int:
        """A free machine or the queue."""
        if may_keep and rng.random() * (view.free_total + 1) < 1.0:
            return QUEUE
        return view.draw(rng)

    def draw_chance(self, cluster: int, view: SiteView, may_keep: bool) -> float:
        """In proportion to free machines."""
        ways = may_keep if cluster == NOWHERE else view.free_n[cluster]
        return ways / (view.free_total + may_keep)

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """Ratio of arms that are machines of the cluster."""
        places = (NOWHERE if arm == QUEUE else view.cluster_of(arm) for arm in arms)
        return sum(place == cluster for place in places) / len(arms)

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """The arm itself."""
        return arm


class ClusterLevel(Level):
    """Every cluster is an arm; within it a free machine is drawn (section 4.2)."""

    def arms(self, view: SiteView) -> Sequence[int]:
        """Every cluster."""
        return range(len(view.free_n))

    def names(self, view: SiteView) -> list[str]:
        """Names of the clusters."""
        return list(view.cluster_names)

    def arm_of(self, outcome: Outcome) -> int:
        """The cluster."""
        return outcome.cluster

    def renumbered(self, arm: int, clusters: Sequence[int]) -> int:
        """Clusters are saved by name; machines keep their numbers."""
        return clusters[arm]

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """Clusters with a free machine."""
        return [cluster for cluster, free in enumerate(view.free_n) if free]

    def open_n(self, view: SiteView) -> int:
        """Number of clusters with a free machine."""
        free_n = view.free_n
        return len(free_n) - free_n.count(0)

    def is_open(self, view: SiteView, may_keep: bool) -> Callable[[int], int]:
        """Whether a cluster has a free machine, or the queue is allowed."""
        return [*view.free_n, may_keep].__getitem__  # QUEUE, which is -1, finds the last

    def draw(self, view: SiteView, rng: random.Random, may_keep: bool) -> int:
        """A cluster with a free machine or the queue."""
        arms = [*self.open_arms(view), QUEUE] if may_keep else self.open_arms(view)
        return arms[int(rng.random() * len(arms))]

    def draw_chance(self, cluster: int, view: SiteView, may_keep: bool) -> float:
        """One way into every open cluster, and one into the queue."""
        free_n = view.free_n
        return 1.0 / (len(free_n) - free_n.count(0) + may_keep)

    def share(self, arms: Sequence[int], cluster: int, view: SiteView) -> float:
        """Arms and places have the same numbers, also the queue."""
        return arms.count(cluster) / len(arms)

    def machine(self, arm: int, view: SiteView, rng: random.Random) -> int:
        """A free machine of the cluster, uniformly."""
        return view.draw_in(arm, rng)


class ClusterWeekLevel(ClusterLevel):
    """`ClusterLevel`, but the state has the hour of the week (168 x 24)."""

    hours = 7 * _DAY_H

    def hour(self, view: SiteView) -> int:
        """The hour of the week, Monday's first is 0."""
        return int(view.week_second() / _HOUR_S)


class SystemLevel(Level):
    """Only whether to run a job is learned; any free machine will do (section 4.3)."""

    def arms(self, view: SiteView) -> Sequence[int]:
        """The site."""
        return (ANYWHERE,)

    def names(self, view: SiteView) -> list[str]:
        """The site."""
        return ["run"]

    def arm_of(self, outcome: Outcome) -> int:
        """The site."""
        return ANYWHERE

    def open_arms(self, view: SiteView) -> Sequence[int]:
        """The site: a policy is only asked while some machine is free."""
        return (ANYWHERE,)

    def open_n(self, view: SiteView) -> int:
        """1."""
        return 1

    def is_open(self, view: SiteView, may_keep: bool) -> Callable[[int], int]:
        """Whether the queue is allowed; the site is open."""
        return (True, may_keep).__getitem__  # QUEUE, which is -1, finds the last

    def draw(self, view: SiteView, rng: random.Random, may_keep: bool) -> int:
        """The site or the queue."""
        return QUEUE if may_keep and rng.random() < 0.5 else ANYWHERE

    def draw_chance(self, cluster: int, view: SiteView, may_keep: bool) -> float:
        """The cluster's part of the free machines, half of it if the job may be kept."""
        return self.share((ANYWHERE, QUEUE) if may_keep else (ANYWHERE,), cluster, view)

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
