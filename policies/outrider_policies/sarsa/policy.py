"""SARSA orders the queue: which of the waiting jobs to start is learned from what starts earned."""

import random
from math import inf, nan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import (
    COMPLETED_RUN,
    EVICTED_RUN,
    NO_MACHINE,
    NOWHERE,
    RUNNING,
    Choice,
    ConfigurationError,
    Job,
    JobSpec,
    Outcome,
    Policy,
    Queue,
    SiteView,
)
from outrider_policies.learners.replay_memory import ReplayMemory
from outrider_policies.sarsa.asks import Ask, Asks
from outrider_policies.sarsa.encodings import ENCODINGS
from outrider_policies.sarsa.experience import Decision, Experience
from outrider_policies.sarsa.guards import Guards
from outrider_policies.sarsa.mean_runs import MeanRuns
from outrider_policies.sarsa.sentences import Standing, kind_of, why
from outrider_policies.sarsa.settings import LITERAL, SarsaSettings
from outrider_policies.sarsa.site_state import Shares, SiteBooks, fairness
from outrider_policies.sarsa.start_states import start_values
from outrider_policies.sarsa.training import make_training

Floats = NDArray[np.float64]

EXPLORE: Final = "explore"
BEST: Final = "best"
_SHOWN: Final = 4


class _First(NamedTuple):
    """Who was put first in line by the latest ranking, and why."""

    job: int
    reason: str
    propensity: float
    scores: dict[str, float] | None


_NOBODY: Final = _First(-1, BEST, 1.0, None)


class Sarsa(Policy):
    """Each waiting job is an action; the one of the highest value starts when a machine frees.

    Learns the value Q(s, a) of starting job a in state s on-policy, from the order in which jobs
    were started, by whomever, and what their runs earned: Q(s, a) <- r + gamma Q(s', a'), a' being
    the job started next (Perez et al. 2008, figure 1). The reward r of a run that completes
    is its time utility by the work it took (`density`), and the fairness of equation 4. A run
    that was thrown away earned the fairness alone.

    Beside another policy it learns all the same, from that one's decisions.
    """

    name = "sarsa"
    description = "learns the value of starting each waiting job; the most valuable starts first"
    settings_type = SarsaSettings
    presets = {"literal": LITERAL}  # noqa: RUF012 - declared as a ClassVar by the base
    features = ("job_class", "vo", "estimate_s", "cpus")

    def __init__(self, settings: SarsaSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self.ranks_anew = True
        self._encoding = ENCODINGS[settings.encoding]()
        self._inputs_n = inputs_n = self._encoding.state_n + self._encoding.action_n
        self._training = make_training(settings, inputs_n, rng)
        start = start_values(settings)
        if start is not None:
            try:
                self._training.restore({"values": start})
            except ValueError as error:
                raise ConfigurationError(f'sarsa: start = "{settings.start}": {error}') from error
        self._memory = ReplayMemory(settings.memory_n, inputs_n)
        self._experience = Experience(self._memory)
        self._books = SiteBooks()
        self._runs = MeanRuns()
        self._first = _NOBODY
        self._ranked: Floats | None = None
        self._chosen = (-1, nan)

    # -- deciding -----------------------------------------------------------------------------

    def rank(self, queue: Queue, view: SiteView) -> Floats:
        """Places by value, the highest first; before all, who waited too long or is drawn."""
        asks = Asks.of_queue(queue)
        self._ranked, shares = self._state(view)
        values = self._values(self._ranked, asks, shares)
        places = -values
        guarded = self._guards().first(asks, view.now)
        n, epsilon = len(asks), self.settings.epsilon
        if guarded is not None:
            row, reason = guarded
            propensity = 1.0
        elif self.rng.random() < epsilon:
            row, reason = int(self.rng.random() * n), EXPLORE
            propensity = epsilon / n
        else:
            row, reason = int(places.argmin()), BEST
            propensity = 1.0 - epsilon + epsilon / n
        scores = _best_few(row, asks, values) if self.wants_scores else None
        self._first = _First(queue.jobs[row].number, reason, propensity, scores)
        places[row] = -inf
        return places

    def _state(self, view: SiteView) -> tuple[Floats, Shares]:
        """The features of the site as it is, and what of the VOs' shares a job's need."""
        state = self._books.state(view)
        return self._encoding.state(state, self._runs), state.shares

    def _values(self, state: Floats, asks: Asks, shares: Shares) -> Floats:
        """Q of starting each of the jobs."""
        actions = self._encoding.actions(asks, shares, self._runs)
        return self._training.values.values_of_actions(state, actions)

    def _guards(self) -> Guards:
        settings: SarsaSettings = self.settings
        if not settings.guards:
            return Guards()
        return Guards.of(settings.guard_interactive_s, settings.guard_batch_ratio, self._runs)

    def choose(self, job: Job, appraisal: Any, view: SiteView, may_keep: bool) -> Choice:
        """The tightest machine that suffices."""
        machine = view.tightest(job.spec.cpus)
        if machine == NOWHERE:
            return Choice(machine, NO_MACHINE, 1.0)
        self._chosen = (job.number, view.now)
        first = self._first
        if first.job != job.number:
            return Choice(machine, BEST)
        return Choice(machine, first.reason, first.propensity, first.scores)

    # -- learning -----------------------------------------------------------------------------

    def notice(self, kind: int, machine: int, view: SiteView) -> None:
        """CPUs came or went."""
        self._books.count_cpus_anew()

    def entered(self, job: Job, view: SiteView) -> None:
        """It is among the actions."""
        ask = Ask.of(job, view.now)
        self._books.enter(job.number, ask, self._expected_s(ask) * ask.cpus)

    def _expected_s(self, ask: Ask) -> float:
        asks = Asks.of_jobs([ask])
        return float(self._runs.expected_s(asks.estimate_s, asks.interactive)[0])

    def withdrew(self, job: Job, view: SiteView) -> None:
        """It left the line. If it starts, somebody chose this action: this policy or another.

        This one's choice is carried out at once; another's start is heard of when it happens.
        """
        ours = self._chosen == (job.number, view.now)
        if ours or job.state == RUNNING:
            ask = Ask.of(job, view.now)
            if self.settings.learn:
                self._note_decision(job, ask, view, ours)
            run_s = self._expected_s(ask)
            utility = view.utility(job).unit(view.now - ask.submit_s + run_s, run_s)
            self._books.start(job.number, view.now + run_s, float(utility))
        self._books.leave(job.number)

    def _note_decision(self, job: Job, ask: Ask, view: SiteView, ours: bool) -> None:
        """What was decided, in which state: the one it was ranked in, if this policy did."""
        if ours and self._ranked is not None:
            state, shares = self._ranked, view.vo_shares()
        else:
            state, shares = self._state(view)
        action = self._encoding.actions(Asks.of_jobs([ask]), shares, self._runs)[0]
        inputs = np.concatenate([state, action])
        decision = Decision(inputs, job.spec.job_class, ask.submit_s, ask.cpus)
        self._experience.decide(job.number, decision)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> tuple[float, ...]:
        """A run ended: what it earned is the reward of the decision that started it."""
        if outcome.machine == NOWHERE:
            return ()
        self._books.end(outcome.job)
        completed = outcome.ending == COMPLETED_RUN
        if completed:
            key: Any = outcome.key
            interactive, _, _, cpus = key
            self._runs.take(interactive, outcome.run_s, cpus)
        decision = self._experience.of(outcome.job)
        if decision is None:
            return ()
        if not completed and outcome.ending != EVICTED_RUN:
            self._experience.drop(outcome.job)  # its user took it away
            return ()
        reward = self._reward(decision, outcome, view)
        self._experience.reward(outcome.job, reward)
        self._training.outcome(self._memory)
        return (reward,)

    def _reward(self, decision: Decision, outcome: Outcome, view: SiteView) -> float:
        """Fairness, and of a run that completed its utility, by the work it took."""
        settings: SarsaSettings = self.settings
        reward = settings.fairness_weight * fairness(view.vo_shares())
        if outcome.ending != COMPLETED_RUN:
            return reward
        job = Job(outcome.job, JobSpec(job_class=decision.job_class), decision.submit_s)
        turnaround_s = outcome.end_s - decision.submit_s
        utility = float(view.utility(job).unit(turnaround_s, outcome.run_s))
        if settings.reward == "utility":
            return reward + utility
        work_s = max(outcome.run_s * decision.cpus, 1e-9)
        return reward + utility * min(self._runs.work_s / work_s, settings.densest_ratio)

    # -- telling ------------------------------------------------------------------------------

    def alike(self, job: Job, view: SiteView) -> tuple[bool, str, float | None, int]:
        """What its value depends on beside the state."""
        spec = job.spec
        return spec.job_class == "interactive", spec.vo, spec.estimate_s, spec.cpus

    def scores(self, key: Any, view: SiteView) -> dict[str, float]:
        """The value of starting such a job now, and that of the best job in line."""
        interactive, vo, estimate_s, cpus = key
        ask = Ask(interactive, vo, view.now, nan if estimate_s is None else estimate_s, cpus)
        line = [waiting for waiting, _ in self._books.waiting.values()]
        state, shares = self._state(view)
        values = self._values(state, Asks.of_jobs([ask, *line]), shares)
        told = {"such a job": float(values[0])}
        if line:
            told["the best in line"] = float(values[1:].max())
        return told

    def explain(self, job: Job, view: SiteView) -> str:
        """Its value and place among those that wait, and which guard acts, or when."""
        number = job.number
        line = {n: ask for n, (ask, _) in self._books.waiting.items()}
        line.setdefault(number, Ask.of(job, view.now))
        at = list(line).index(number)
        asks = Asks.of_jobs(list(line.values()))
        state, shares = self._state(view)
        values = self._values(state, asks, shares)
        guards = self._guards()
        return why(Standing(at, asks, values, guards, guards.first(asks, view.now), view.now))

    def learned(self, view: SiteView) -> dict[str, Any]:
        """Value by class and run time, in the state of now, for a VO that got its share."""
        state, _ = self._state(view)
        minutes = (1, 5, 15, 60, 240, 960)
        rows = []
        for name, interactive in (("interactive", True), ("batch", False)):
            asks = [Ask(interactive, "", view.now, 60.0 * m, 1) for m in minutes]
            values = self._values(state, Asks.of_jobs(asks), {})
            rows.append({"label": name, "values": values.tolist()})
        return {
            "title": "value of starting a job now, by expected minutes",
            "unit": "reward",
            "columns": [str(m) for m in minutes],
            "rows": rows,
        }

    # -- remembering --------------------------------------------------------------------------

    def start_state(self, view: SiteView) -> dict[str, Any]:
        """What another may start from (setting ``start``): the value function alone."""
        values = self._training.values.save()
        return {"encoding": self.settings.encoding, "training": {"values": values}}

    def save(self, view: SiteView) -> dict[str, Any]:
        """Value function, what is remembered, and what is known of the site; also a start state."""
        return {
            "encoding": self.settings.encoding,
            "places": self._encoding.save(),
            "training": self._training.save(),
            "memory": self._memory.save(),
            "experience": self._experience.save(),
            "books": self._books.save(),
            "runs": self._runs.save(),
        }

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on from what `save` gave.

        Raises:
            ValueError: it was saved with another encoding, approximator or memory.
        """
        if saved["encoding"] != self.settings.encoding:
            raise ValueError(f"it was saved with the encoding {saved['encoding']!r}")
        memory = ReplayMemory(self.settings.memory_n, self._inputs_n)
        memory.restore(saved["memory"])
        self._training.restore(saved["training"])
        self._memory = memory
        self._experience = Experience(memory)
        self._experience.restore(saved["experience"])
        self._encoding.restore(saved["places"])
        self._books.restore(saved["books"])
        self._runs.restore(saved["runs"])


def _best_few(row: int, asks: Asks, values: Floats) -> dict[str, float]:
    """What was chosen and the best of the others, by kind, and their values."""
    best = [row, *(int(at) for at in np.argsort(-values)[:_SHOWN])]
    told: dict[str, float] = {}
    for at in best:
        told.setdefault(kind_of(asks, at), float(values[at]))
    return told
