"""The cluster bandit of McGough and Forshaw (2015): dodge evictions, waste less energy.

Forshaw, McGough: "Reduction of wasted energy in a volunteer computing system through
Reinforcement Learning", CS-TR-1451, Newcastle University 2015; section 4.2. An n-armed bandit
per state; the state is the hour of the day and the hours a job has lost on earlier, evicted runs
(24 x 24), the arms are the clusters and leaving the job in the queue.
"""

from typing import Annotated, Any, ClassVar

from msgspec import Meta

from outrider.api import (
    COMPLETED_RUN,
    EVICTED_RUN,
    NOWHERE,
    Choice,
    Job,
    Outcome,
    Policy,
    PolicySettings,
    SiteView,
)
from outrider_policies.learners.arms import Arms

_QUEUE = 0
_MOST_HOURS = 23
_SHOWN = 4


class BanditSettings(PolicySettings, frozen=True):
    """Settings of the cluster bandit."""

    epsilon: Annotated[
        float,
        Meta(ge=0, le=1, description="Ratio of decisions drawn at random to explore (eq. 6)."),
    ] = 0.1
    sigma: Annotated[
        float,
        Meta(ge=0, le=1, description="Weight of energy against not being evicted (eq. 4)."),
    ] = 0.8
    reconsider_s: (
        Annotated[
            float,
            Meta(
                gt=0,
                description="Decision epoch: a job kept queued is decided again after this. "
                "Epsilon is spent per decision, so a shorter epoch explores more per hour. "
                "Unset: the site's own.",
            ),
        ]
        | None
    ) = None
    max_hold_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Starvation guard: longest time a job stays queued by choice. The plain "
            "method holds single jobs for weeks.",
        ),
    ] = 604_800.0


class Bandit(Policy):
    """Epsilon-greedy choice of a cluster, or of the queue, from mean observed rewards.

    Rewards (eq. 4), with E_a = (e_a - e_b) / (e_w - e_b) in [0, 1] (eq. 5; the paper says [-1, 1],
    but e_b <= e_a <= e_w) from the active watts of the cluster, the best and the worst:

    - completed on a: ``1 - sigma E_a``
    - evicted or killed on a: ``-1 + sigma (1 - E_a)``
    - kept queued although some machine, free then, stayed free long enough to run it: ``-1``
    - kept queued and no machine did: ``+1``

    A queue decision is judged when the job ends, from what was seen of the machines until then.
    A job that never completes was rightly kept. Full clusters are no arms (A' of eq. 6), equal
    values are drawn between, an untried arm is worth 0. In shadow it learns from the batch
    system's runs, and from its own queue decisions, which observation can judge; a start that
    was not carried out teaches nothing.
    """

    name = "bandit"
    description = "learns which cluster, at which hour, lets a job finish on few watts"
    settings_type = BanditSettings
    presets: ClassVar = {"literal": {"max_hold_s": float("inf")}}
    features = ("hour of day", "hours lost on evicted runs")

    def __init__(self, settings: BanditSettings, rng: Any) -> None:
        super().__init__(settings, rng)
        self.reconsider_s = settings.reconsider_s
        self.max_hold_s = settings.max_hold_s
        self._epsilon = settings.epsilon
        self._sigma = settings.sigma
        self._rows: dict[int, Arms] = {}
        self._kept: dict[int, list[tuple[float, int]]] = {}

    def alike(self, job: Job, view: SiteView) -> int:
        """The state s: hour of day x 24 + hours lost on evicted runs."""
        return view.hour_of_day() * 24 + min(_MOST_HOURS, int(job.consumed_s // 3600.0))

    def appraise(self, key: Any, view: SiteView) -> Arms:
        """The row of the state: arm 0 is the queue, arm c + 1 is cluster c."""
        n = len(view.free_n) + 1
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Arms(n)
        elif len(row.values) < n:
            row.grow(n)
        return row

    def choose(self, job: Job, appraisal: Arms, view: SiteView, may_keep: bool) -> Choice:
        """Epsilon-greedy over the clusters with a free machine and the queue (eq. 6)."""
        is_open = [may_keep, *view.free_n]
        open_n = len(is_open) - is_open.count(0)
        best = float("-inf")
        ties: list[int] = []
        for arm, value in enumerate(appraisal.values):
            if value >= best and is_open[arm]:
                if value > best:
                    best, ties = value, [arm]
                else:
                    ties.append(arm)
        rng, epsilon = self.rng, self._epsilon
        if rng.random() < epsilon:
            reason = "explore"
            arms = [arm for arm, free in enumerate(is_open) if free]
            if may_keep:
                arms.append(arms.pop(0))  # the queue is drawn last
            arm = arms[int(rng.random() * open_n)]
        else:
            reason = "best"
            arm = ties[0] if len(ties) == 1 else ties[int(rng.random() * len(ties))]
        propensity = epsilon / open_n + ((1.0 - epsilon) / len(ties) if arm in ties else 0.0)
        scores = self._top(appraisal, view) if self.wants_scores else None
        if arm == _QUEUE:
            self._kept.setdefault(job.number, []).append((view.now, self.alike(job, view)))
            return Choice(NOWHERE, "hold", propensity, scores)
        return Choice(view.draw_in(arm - 1, rng), reason, propensity, scores)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> list[float]:
        """Equation 4 for the run, and for every queue decision that can now be judged."""
        rewards: list[float] = []
        if outcome.machine != NOWHERE:
            energy = self._energy(outcome.cluster, view)
            reward = -1.0 + self._sigma * (1.0 - energy)
            if outcome.ending is COMPLETED_RUN:
                reward = 1.0 - self._sigma * energy
            self.appraise(outcome.key, view).learn(outcome.cluster + 1, reward)
            rewards.append(reward)
        if outcome.ending is not EVICTED_RUN:
            rewards += self._judge_keeps(outcome, view)
        return rewards

    def _judge_keeps(self, outcome: Outcome, view: SiteView) -> list[float]:
        """The job is gone: was it right to keep it, each time it was kept?"""
        rewards = []
        completed = outcome.ending is COMPLETED_RUN
        for kept_s, key in self._kept.pop(outcome.job, ()):
            could_run = completed and view.was_free_through(kept_s, kept_s + outcome.run_s)
            reward = -1.0 if could_run else 1.0
            self.appraise(key, view).learn(_QUEUE, reward)
            rewards.append(reward)
        return rewards

    def _energy(self, cluster: int, view: SiteView) -> float:
        """E_a of equation 5; 0 where watts are unknown or all alike."""
        least, most = view.watts_span()
        watts = view.active_w[cluster]
        return 0.0 if watts is None or most <= least else (watts - least) / (most - least)

    # -- explaining and remembering -----------------------------------------------------------

    def scores(self, key: Any, view: SiteView) -> dict[str, float]:
        """Mean reward of every arm in this state."""
        row = self.appraise(key, view)
        return dict(zip(("queue", *view.cluster_names), row.values, strict=True))

    def learned(self, view: SiteView) -> dict[str, Any]:
        """Value of the best cluster by hour of day and hours lost: when is a start worth it?"""
        rows = []
        for lost_h in range(24):
            values = [self._best_cluster(hour * 24 + lost_h) for hour in range(24)]
            if any(value is not None for value in values):
                rows.append({"label": f"{lost_h} h lost", "values": values})
        return {
            "title": "mean reward of the best cluster tried, by hour of day and hours lost",
            "columns": [f"{hour:02d}" for hour in range(24)],
            "rows": rows,
        }

    def _best_cluster(self, key: int) -> float | None:
        row = self._rows.get(key)
        if row is None:
            return None
        tried = [v for v, n in zip(row.values[1:], row.counts[1:], strict=True) if n]
        return max(tried, default=None)

    def _top(self, row: Arms, view: SiteView) -> dict[str, float]:
        """The queue and the best few open clusters: what the choice was between."""
        names, free_n = view.cluster_names, view.free_n
        top = {"queue": row.values[_QUEUE]}
        for arm in row.ranked():
            if arm != _QUEUE and free_n[arm - 1]:
                top[names[arm - 1]] = row.values[arm]
                if len(top) > _SHOWN:
                    break
        return top

    def explain(self, job: Job, view: SiteView) -> str:
        """What the job's state has taught so far, in words."""
        key = self.alike(job, view)
        row = self.appraise(key, view)
        seen = sum(row.counts)
        state = f"at {key // 24:02d} h with {key % 24} h lost on evicted runs"
        if not seen:
            return f"{state}: nothing observed yet, every choice is worth the same"
        scores = self.scores(key, view)
        name = max(scores, key=lambda arm: scores[arm])
        return (
            f"{state}: {seen} outcomes observed; best is {name} ({scores[name]:+.2f}), "
            f"the queue is worth {scores['queue']:+.2f}; {self._epsilon:.0%} of choices explore"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """Rows and unjudged queue decisions."""
        for row in self._rows.values():
            row.grow(len(view.free_n) + 1)
        return {
            "clusters": list(view.cluster_names),
            "rows": [[key, row.save()] for key, row in self._rows.items()],
            "kept": [[job, list(kept)] for job, kept in self._kept.items()],
        }

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on from what `save` gave; clusters are found again by name."""
        names = list(view.cluster_names)
        arms = [_QUEUE] + [names.index(name) + 1 for name in saved["clusters"]]
        n = len(names) + 1
        self._rows = {key: Arms.restore(row, arms, n) for key, row in saved["rows"]}
        self._kept = {job: [(t, key) for t, key in kept] for job, kept in saved["kept"]}
