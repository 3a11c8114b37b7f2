"""Where a policy would start a job if it had to start now: the probability of each machine.

For estimates from records, which weigh what happened by how likely a policy makes it. Outside of
passes: nothing is reserved, recorded or carried out.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from outrider.api.capabilities import Groups
from outrider.api.policy import Policy
from outrider.engine.scheduling.open_places import OpenPlaces
from outrider.model.jobs import Job

ASKS: Final = 16
"""How often a policy that draws is asked: its probabilities are the frequencies of its choices."""


class WatchedPlaces(OpenPlaces):
    """The machines on which a job may start, and what a policy drew its machine from.

    A machine that a policy leaves to chance stands for all that could have been drawn, so that one
    choice tells of all of them.

    Attributes:
        drawn: the machine drawn last; None before.
        drawn_from: those of which it was one.
    """

    drawn: int | None = None
    drawn_from: Sequence[int] = ()

    def draw(self, rng: random.Random) -> int:
        """One of them, uniformly. Raises `LookupError` if there is none."""
        self.drawn_from = list(self.free_since)
        self.drawn = super().draw(rng)
        return self.drawn

    def draw_in(self, cluster: int, rng: random.Random) -> int:
        """One of a cluster, uniformly. Raises `LookupError` if there is none."""
        of = self.site.machine_cluster
        self.drawn_from = [machine for machine in self.free_since if of[machine] == cluster]
        self.drawn = super().draw_in(cluster, rng)
        return self.drawn

    def meant_by(self, machine: int) -> Sequence[int]:
        """The machines between which a choice made no difference.

        All, where it is none of them: as in a pass, one is drawn for a policy that names no machine
        although the job must start.
        """
        if machine not in self.free_since:
            return list(self.free_since)
        return self.drawn_from if machine == self.drawn else (machine,)


def start_odds(policy: Policy, job: Job, places: WatchedPlaces) -> dict[int, float]:
    """The probability with which a policy that may not defer a job starts it on each machine.

    Args:
        policy: decides job by job (`Policy.choose`); it draws from its own `rng`.
        job: is queued.
        places: where it may start; at least one machine.

    Returns:
        Probability by machine, of those above 0; their sum is 1. Exact where the policy draws from
        the view alone and its propensity is 1; elsewhere the frequency in `ASKS` choices, which is
        right in the mean.
    """
    odds: defaultdict[int, float] = defaultdict(float)
    asked_n = 0
    is_certain = len(places.free_since) == 1
    while asked_n < ASKS and not (is_certain and asked_n):
        asked_n += 1
        evaluation = None
        if isinstance(policy, Groups):
            evaluation = policy.evaluate_group(policy.group_key(job, places), places)
        choice = policy.choose(job, evaluation, places, False)
        alike = places.meant_by(choice.machine)
        for machine in alike:
            odds[machine] += 1.0 / len(alike)
        is_certain = is_certain or choice.propensity == 1.0  # of the machine's cluster
    return {machine: chance / asked_n for machine, chance in odds.items()}
