"""Base of the bandits that learn where and when jobs are not evicted.

A subclass adds the rule by which an arm is selected.

Forshaw, McGough: "Reduction of wasted energy in a volunteer computing system through
Reinforcement Learning", CS-TR-1451, Newcastle University 2015, sections 4.1 to 4.3.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Annotated, Any, Generic, TypeAlias, TypeVar

from msgspec import Meta

from outrider.api import (
    COMPLETED_RUN,
    EVICTED_RUN,
    NOWHERE,
    Choice,
    Groups,
    Job,
    Learns,
    Outcome,
    Policy,
    PolicySettings,
    SiteView,
)
from outrider_policies.bandits.arms import Arms
from outrider_policies.levels import HOURS_LOST, LEVELS, QUEUE, Level, LevelName

# -- settings --------------------------------------------------------------------------------------
# Settings shared by bandits of any selection rule.

_WEEK_S = 604_800.0


class EvictionBanditSettings(PolicySettings, frozen=True):
    """Settings of the arms, the reward, and the longest deferral."""

    level: Annotated[
        LevelName,
        Meta(
            description="What is chosen, besides the queue: a `computer`, a `cluster`, a cluster "
            "by the hour of the week (`cluster_week`), or only whether to run at all (`system`). "
            "Finer levels learn more, but more slowly.",
        ),
    ] = "cluster"
    sigma: Annotated[
        float,
        Meta(ge=0, le=1, description="Weight of energy against not being evicted (eq. 4)."),
    ] = 0.8
    avoid_reboot: Annotated[
        bool,
        Meta(
            description="Defer a job that would still run at the nightly reboot, judged by its "
            "longest lost run (section 4.4.3, local knowledge).",
        ),
    ] = False
    reconsider_s: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="Decision epoch: a deferred job is decided again after this. "
                "Epsilon is spent per decision, so a shorter epoch explores more per hour. "
                "Unset: the site's own.",
            ),
        ]
        | None
    ) = None
    max_defer_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Starvation guard: longest time a job is deferred. The plain method "
            "defers single jobs for weeks.",
        ),
    ] = _WEEK_S


# -- eviction bandit -------------------------------------------------------------------------------

Row = TypeVar("Row", bound=Arms)
BanditSettingsT = TypeVar("BanditSettingsT", bound=EvictionBanditSettings)
Evaluation: TypeAlias = tuple[int, Row, Any]
"""A state, its row of values, and what else the selection rule needs in this pass."""
_SHOWN = 4
_HOUR_S = 3600
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
Selection: TypeAlias = tuple[int, str, Sequence[int] | None, float]
"""Result of a selection rule; a plain tuple for speed, because every decision makes one:

- the arm: `QUEUE` or a place
- the reason: ``best``, ``explore``, ...
- the arms between which it was drawn; None if the probabilities are unknown
- epsilon: the probability with which an arm was drawn from all open ones instead
"""


class EvictionBandit(Groups, Learns, Policy[BanditSettingsT], Generic[Row, BanditSettingsT]):
    """Base of eviction bandits: states, arms, rewards and memory.

    A subclass selects an arm and defines what a row holds.

    The state and the arms are those of the level: see `outrider_policies.levels`. Rewards are those
    of equation 4: see `outrider_policies.bandits.eviction_bandit`. In shadow it learns
    from the batch system's runs, and from its own queue decisions, which observation can judge; a
    start that was not executed teaches nothing.

    Attributes:
        level: the places on which a job can start.
        offered: the places that can be chosen while a job may be deferred; a subclass may add some.
        rows: what was learned in each state.
    """

    features = ("hour of day or week", "hours of the longest lost run")
    untried_reward: float = 0.0
    """The value of an untried arm, for explanations and for selection (section 4.4.3)."""

    def __init__(self, settings: BanditSettingsT, rng: Any) -> None:
        super().__init__(settings, rng)
        self.reconsider_s = settings.reconsider_s
        self.max_defer_s = settings.max_defer_s
        self.level: Level = LEVELS[settings.level]()
        self.offered = self.level
        self._sigma: float = settings.sigma
        self._avoid_reboot: bool = settings.avoid_reboot
        self.rows: defaultdict[int, Row] = defaultdict(self.new_row)
        self._deferred = DeferredJobs()

    # -- for subclasses -----------------------------------------------------------------------

    @abstractmethod
    def new_row(self) -> Row:
        """Return an empty row of values."""

    @abstractmethod
    def select(
        self, evaluation: Evaluation[Row], level: Level, view: SiteView, may_defer: bool
    ) -> Selection:
        """Select an arm among those that are open on a level."""

    def rule(self, state: int) -> str:
        """Return how it selects in a state, as a part of a sentence."""
        return self.description

    def learn(self, state: Any, arm: int, reward: float) -> None:
        """Learn the reward of an arm in a state."""
        self.rows[state].learn(arm, reward)

    # -- deciding -----------------------------------------------------------------------------

    def group_key(self, job: Job, view: SiteView) -> int:
        """Return the state s: hour of day or week x 24 + hours lost on evicted runs."""
        hour = int(view.week_second()) // _HOUR_S % self.level.hours
        lost_h = int(job.consumed_s / _HOUR_S)
        return hour * HOURS_LOST + (lost_h if lost_h < HOURS_LOST else HOURS_LOST - 1)

    def evaluate_group(self, key: Any, view: SiteView) -> Evaluation[Row]:
        """Return the state and its row; a subclass may add to them."""
        return key, self.rows[key], None

    def choose(
        self, job: Job, evaluation: Evaluation[Row], view: SiteView, may_defer: bool
    ) -> Choice:
        """Return the rule's selection; defer a job that could not end before the reboot."""
        if may_defer and self._avoid_reboot and self._crosses_reboot(job, view):
            self._deferred.add(job.number, view.now, evaluation[0])
            return Choice(NOWHERE, "reboot", 1.0)
        level = self.offered if may_defer else self.level
        arm, reason, ties, epsilon = self.select(evaluation, level, view, may_defer)
        if arm == QUEUE:
            machine, reason = NOWHERE, "hold"
            self._deferred.add(job.number, view.now, evaluation[0])
        else:
            machine = level.machine(arm, view, self.rng)
            if machine == NOWHERE:
                reason = "full"
        if not self.wants_scores:  # then the propensity is not read either
            return Choice(machine, reason)
        propensity = None
        if ties is not None:
            place = NOWHERE if machine == NOWHERE else view.cluster_of(machine)
            propensity = (1.0 - epsilon) * level.share(ties, place, view)
            if epsilon:
                propensity += epsilon * level.draw_chance(place, view, may_defer)
        return Choice(machine, reason, propensity, self._top(evaluation[1], view))

    def _crosses_reboot(self, job: Job, view: SiteView) -> bool:
        return view.now + job.consumed_s >= view.next_reboot_s()

    # -- learning -----------------------------------------------------------------------------

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> list[float]:
        """Learn equation 4 for the run, and for every queue decision that can now be judged."""
        rewards: list[float] = []
        if outcome.machine != NOWHERE:
            reward = run_reward(outcome, self._sigma, view)
            self.learn(outcome.key, self.level.arm_of(outcome), reward)
            rewards.append(reward)
        if outcome.ending is not EVICTED_RUN:
            for state, reward in self._deferred.judge(outcome, view):
                self.learn(state, QUEUE, reward)
                rewards.append(reward)
        return rewards

    # -- explaining and state -----------------------------------------------------------------

    def scores(self, key: Any, view: SiteView) -> dict[str, float]:
        """Return the value of every arm in this state."""
        level, values, untried = self.level, self._known(key).values, self.untried_reward
        scores = {"queue": values.get(QUEUE, untried)}
        for arm in level.arms(view):
            scores[level.name(arm, view)] = values.get(arm, untried)
        return scores

    def _known(self, state: int) -> Row:
        """Return the row of a state; reading an unknown state adds no row."""
        return self.rows[state] if state in self.rows else self.new_row()

    def _top(self, row: Row, view: SiteView) -> dict[str, float]:
        """Return the values of the queue and of the best few open places."""
        level = self.level
        is_open = level.is_open(view)
        top = {"queue": row.values.get(QUEUE, self.untried_reward)}
        for value, arm in row.ranked():
            if is_open[arm]:
                top[level.name(arm, view)] = value
                if len(top) > _SHOWN:
                    break
        return top

    def learned(self, view: SiteView) -> dict[str, Any]:
        """Return the value of the best place by hour of day and hours lost."""
        return hours_lost_map(self._best_place, self.level.hours)

    def _best_place(self, state: int) -> float | None:
        ranked = self.rows[state].ranked() if state in self.rows else ()
        return next((value for value, _ in ranked), None)

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe what was learned in the job's state, in one sentence."""
        state = self.group_key(job, view)
        hour, lost_h = divmod(state, HOURS_LOST)
        day = f"{_DAYS[hour // _DAY_H]} " if self.level.hours > _DAY_H else ""
        where = f"{day}at {hour % _DAY_H:02d}:00, for jobs whose longest lost run took {lost_h} h"
        if self._avoid_reboot and self._crosses_reboot(job, view):
            return f"{where}: it would still run at the reboot, so it is deferred until then"
        seen_n = self._known(state).seen_n()
        if not seen_n:
            return f"{where}: nothing was observed yet, so all choices have equal value"
        scores = self.scores(state, view)
        name = max(scores, key=lambda arm: scores[arm])
        best = "to wait in the queue" if name == "queue" else f"to start ({name})"
        return (
            f"{where}, the best choice is {best} with a mean reward of {scores[name]:+.2f} (from "
            f"-1 to +1; {scores['queue']:+.2f} for waiting; {seen_n} observations); "
            f"{self.rule(state)}"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return rows and unjudged queue decisions; clusters by name, machines by number."""
        arms = self.level.arms(view)
        learned = {
            "level": self.settings.level,
            "rows_are": type(self.new_row()).__name__,
            "clusters": list(view.cluster_names),
            "arms": list(arms),
            "rows": [[state, row.save((QUEUE, *arms))] for state, row in self.rows.items()],
        }
        return learned | self._deferred.save()

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned; clusters are matched by name.

        Raises:
            ValueError: it was saved at another level, with another kind of history, or with a
                cluster that no longer exists.
        """
        rows_are = type(self.new_row()).__name__
        level = saved.get("level", "cluster")  # version 0.1 had no other
        if (level, saved.get("rows_are", "MeanArms")) != (self.settings.level, rows_are):
            raise ValueError("saved at another level or with another history")
        _, arms = self.saved_arms(saved, view)
        self.rows.clear()
        for state, row in saved["rows"]:
            self.rows[state].restore(row, arms)
        self._deferred.restore(saved)

    def saved_arms(self, saved: dict[str, Any], view: SiteView) -> tuple[list[int], list[int]]:
        """Return the arms as numbered in what `save` returned, and their present numbers.

        Raises:
            ValueError: a cluster no longer exists.
        """
        names = list(view.cluster_names)
        clusters = [names.index(name) for name in saved["clusters"]]
        places = saved.get("arms", range(len(clusters)))
        today = (self.level.renumbered(arm, clusters) for arm in places)
        return [QUEUE, *places], [QUEUE, *today]


# -- hours lost map --------------------------------------------------------------------------------
# A heat map of a bandit's values, by hour of day and hours lost.

_DAY_H = 24


def hours_lost_map(best: Callable[[int], float | None], hours: int) -> dict[str, Any]:
    """Return the value of the best place by hour and hours lost, as `Learns.learned` shows it.

    Args:
        best: value of the best tried place in a state (hour x 24 + hours lost); None if untried.
        hours: number of hours that states distinguish; if more than 24, days are averaged.
    """
    rows = []
    for lost_h in range(HOURS_LOST):
        values = []
        for hour in range(_DAY_H):
            states = [at * HOURS_LOST + lost_h for at in range(hour, hours, _DAY_H)]
            known = [value for value in map(best, states) if value is not None]
            values.append(fmean(known) if known else None)
        if any(value is not None for value in values):
            rows.append({"label": f"{lost_h} h lost", "values": values})
    return {
        "title": "mean reward of the best place tried, by hour of day and hours lost",
        "columns": [f"{hour:02d}" for hour in range(_DAY_H)],
        "rows": rows,
    }


# -- rewards ---------------------------------------------------------------------------------------
# Rewards for avoiding evictions and saving energy: equations 4 and 5 of McGough and Forshaw.

RIGHTLY_DEFERRED = 1.0
WRONGLY_DEFERRED = -1.0


def run_reward(outcome: Outcome, sigma: float, view: SiteView) -> float:
    """Return the reward of a run, in [-1, 1] (equation 4).

    ``1 - sigma E`` if it completed, ``-1 + sigma (1 - E)`` if it was evicted or killed.

    Args:
        outcome: the end of a run.
        sigma: weight of energy against not being evicted, in [0, 1].
        view: the site.
    """
    energy = relative_watts(outcome.cluster, view)
    if outcome.ending is COMPLETED_RUN:
        return 1.0 - sigma * energy
    return -1.0 + sigma * (1.0 - energy)


def relative_watts(cluster: int, view: SiteView) -> float:
    """Return ``E = (e - e_b) / (e_w - e_b)`` from active watts.

    0 is the best cluster, 1 the worst. Equation 5 as printed. The paper's text puts E into [-1, 1],
    but e_b <= e <= e_w leaves [0, 1], and only so do rewards stay in [-1, 1]. 0 where watts are
    unknown or all equal.
    """
    least, most = view.watts_span()
    watts = view.active_w[cluster]
    return 0.0 if watts is None or most <= least else (watts - least) / (most - least)


class DeferredJobs:
    """Decisions to defer a job that cannot be judged yet.

    They are judged when the job has left: then its run time is known, and so is what happened to
    the machines. Deferring was wrong if some machine was available (no owner, no reboot) for as
    long as the job runs. Jobs that ran on that machine later do not matter: they would not have
    been there. Deferring a job that never completed was right.
    """

    def __init__(self) -> None:
        self._deferred: dict[int, list[tuple[float, int]]] = {}

    def add(self, job: int, now: float, state: int) -> None:
        """Add a decision to defer a job, made in this state."""
        self._deferred.setdefault(job, []).append((now, state))

    def judge(self, outcome: Outcome, view: SiteView) -> list[tuple[int, float]]:
        """Judge the decisions to defer a job that has left: (state, reward) of each."""
        deferred = self._deferred.pop(outcome.job, None)
        if deferred is None:
            return []
        if outcome.ending is not COMPLETED_RUN:
            return [(state, RIGHTLY_DEFERRED) for _, state in deferred]
        run_s, was_available = outcome.run_s, view.was_available
        return [
            (state, WRONGLY_DEFERRED if was_available(at, at + run_s) else RIGHTLY_DEFERRED)
            for at, state in deferred
        ]

    def save(self) -> dict[str, Any]:
        """Return the whole state as plain data."""
        return {"kept": [[job, list(decisions)] for job, decisions in self._deferred.items()]}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self._deferred = {
            job: [(at, state) for at, state in deferred] for job, deferred in saved["kept"]
        }
