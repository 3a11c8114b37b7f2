"""Policy ``sarsa``: learns the order of the queue from the rewards of started jobs."""

import json
import random
from functools import cache
from importlib import resources
from math import exp, inf, log, nan
from pathlib import Path
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
    Learns,
    Listens,
    Outcome,
    Policy,
    Queue,
    Ranks,
    SiteView,
)
from outrider_policies.sarsa.experience import Decision, Experience, ReplayMemory
from outrider_policies.sarsa.explanations import QueuePosition, best_few, why
from outrider_policies.sarsa.features import SiteFeatures
from outrider_policies.sarsa.job_features import Guards, JobColumns, JobProperties, MeanRuns
from outrider_policies.sarsa.settings import LITERAL, SarsaSettings
from outrider_policies.sarsa.site_state import Shares, fairness
from outrider_policies.sarsa.training import make_training

Floats = NDArray[np.float64]

EXPLORE: Final = "explore"
BEST: Final = "best"
_MAP_MINUTES: Final = (1, 5, 15, 60, 240, 960)


class _First(NamedTuple):
    """Job that the latest ranking put first, and the reason."""

    job: int
    reason: str
    propensity: float
    scores: dict[str, float] | None


class Sarsa(Ranks, Learns, Listens, Policy[SarsaSettings]):
    """Policy in which each waiting job is an action; the one of the highest value starts first.

    It learns the value Q(s, a) of starting job a in state s on-policy, from the order in which jobs
    were started, by any scheduler, and from the rewards of their runs (`reward_of`): Q(s, a) <- r +
    gamma Q(s', a'), a' being the job started next (Perez et al. 2008, figure 1). In shadow it
    learns from the acting scheduler's decisions. The job goes to the free machine with the highest
    learned speed (`MachineSpeeds`).
    """

    name = "sarsa"
    description = "learns the value of starting each waiting job; the most valuable starts first"
    api_version = 1
    presets = {"literal": LITERAL}  # noqa: RUF012 - declared as a ClassVar by the base
    features = ("job_class", "vo", "estimate_s", "cpus")

    def __init__(self, settings: SarsaSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self.ranks_anew = True
        self._site = SiteFeatures(settings.encoding)
        self._training = make_training(settings, self._site.inputs_n, rng)
        start = start_values(settings)
        if start is not None:
            try:
                self._training.restore({"values": start})
            except ValueError as error:
                raise ConfigurationError(
                    f'start = "{settings.start}": {error}; expected a file that `outrider '
                    "train` wrote with these settings"
                ) from error
        self._memory = ReplayMemory(settings.memory_n, self._site.inputs_n)
        self._experience = Experience(self._memory)
        self._speeds = MachineSpeeds()
        self._first = _First(NOWHERE, BEST, 1.0, None)
        self._ranked = np.zeros(0)
        self._chosen = (NOWHERE, nan)

    # -- deciding -----------------------------------------------------------------------------

    def rank(self, queue: Queue, view: SiteView) -> Floats:
        """Return positions: a job that waited too long or is drawn, then by value."""
        jobs = JobColumns.of_queue(queue)
        self._ranked, shares = self._site.state(view)
        values = self._values(self._ranked, jobs, shares)
        places = -values
        guarded = self._guards(view).first(jobs, view.now)
        n, epsilon = len(jobs), self.settings.epsilon
        if guarded is not None:
            row, reason = guarded
            propensity = 1.0
        elif self.rng.random() < epsilon:
            row, reason = int(self.rng.random() * n), EXPLORE
            propensity = epsilon / n
        else:
            row, reason = int(places.argmin()), BEST
            propensity = 1.0 - epsilon + epsilon / n
        scores = best_few(row, jobs, values) if self.wants_scores else None
        self._first = _First(queue.jobs[row].number, reason, propensity, scores)
        places[row] = -inf
        return places

    def _values(self, state: Floats, jobs: JobColumns, shares: Shares) -> Floats:
        """Return Q of starting each of the jobs."""
        return self._training.values.values_of_actions(state, self._site.actions(jobs, shares))

    def _guards(self, view: SiteView) -> Guards:
        settings: SarsaSettings = self.settings
        if not settings.guards:
            return Guards()
        usual_s = settings.guard_drain_ratio * self._site.drain_s(view)
        return Guards.of(
            settings.guard_interactive_s, settings.guard_batch_ratio, usual_s, self._site.runs
        )

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose the fastest machine that suffices, of equals the tightest."""
        machine = self._speeds.fastest(job.spec.cpus, view)
        if machine == NOWHERE:
            return Choice(machine, NO_MACHINE, 1.0)
        self._chosen = (job.number, view.now)
        first = self._first
        if first.job != job.number:
            return Choice(machine, BEST)
        return Choice(machine, first.reason, first.propensity, first.scores)

    # -- learning -----------------------------------------------------------------------------

    def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
        """Note that CPUs were added or removed."""
        self._site.recount_cpus()

    def on_enqueue(self, job: Job, view: SiteView) -> None:
        """Add the job to the available actions."""
        self._site.enter(job, view)

    def on_dequeue(self, job: Job, view: SiteView) -> None:
        """Remove the job from the actions; a start is recorded as a decision.

        This policy or another scheduler chose it. This policy's choice is executed immediately;
        another scheduler's start is known when it happens.
        """
        ours = self._chosen == (job.number, view.now)
        if not ours and job.state != RUNNING:
            self._site.leave(job)
            return
        if self.settings.learn:
            state = self._ranked if ours else self._site.state(view)[0]
            inputs = self._site.inputs(job, state, view)
            self._experience.decide(job.number, Decision.of(job, inputs, view.now))
        self._site.start(job, view)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> tuple[float, ...]:
        """Learn from the end of a run: its reward belongs to the decision that started it."""
        if outcome.machine == NOWHERE:
            return ()
        self._site.end(outcome.job)
        completed = outcome.ending == COMPLETED_RUN
        if completed:
            self._take_length(outcome, view)
        decision = self._experience.of(outcome.job)
        if decision is None:
            return ()
        if not completed and outcome.ending != EVICTED_RUN:
            self._experience.drop(outcome.job)  # its user removed it
            return ()
        reward = reward_of(decision, outcome, self._site.runs, self.settings, view)
        self._experience.reward(outcome.job, reward)
        self._training.outcome(self._memory)
        return (reward,)

    def _take_length(self, outcome: Outcome, view: SiteView) -> None:
        """Learn mean run times, and the machine's speed if the job had an estimate."""
        key: Any = outcome.key
        interactive, _, estimate_s, cpus = key
        self._site.runs.take(interactive, outcome.run_s, cpus)
        if self.settings.learn and estimate_s and outcome.run_s > 0.0:
            self._speeds.take(outcome.machine, estimate_s, outcome.run_s, view)

    # -- explaining ---------------------------------------------------------------------------

    def group_key(self, job: Job, view: SiteView) -> tuple[bool, str, float | None, int]:
        """Return the properties on which a job's value depends, besides the state."""
        spec = job.spec
        return spec.job_class == "interactive", spec.vo, spec.estimate_s, spec.cpus

    def scores(self, key: Any, view: SiteView) -> dict[str, float]:
        """Return the value of starting such a job now, and that of the best queued job."""
        interactive, vo, estimate_s, cpus = key
        properties = JobProperties(
            interactive, vo, view.now, nan if estimate_s is None else estimate_s, cpus
        )
        queued = self._site.queued().values()
        state, shares = self._site.state(view)
        values = self._values(state, JobColumns.of_jobs([properties, *queued]), shares)
        by_label = {"such a job": float(values[0])}
        if queued:
            by_label["the best in the queue"] = float(values[1:].max())
        return by_label

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe its value and position among the waiting jobs, and which guard acts, or when."""
        queued = self._site.queued()
        queued.setdefault(job.number, JobProperties.of(job, view.now))
        at = list(queued).index(job.number)
        jobs = JobColumns.of_jobs(list(queued.values()))
        state, shares = self._site.state(view)
        values, guards = self._values(state, jobs, shares), self._guards(view)
        return why(QueuePosition(at, jobs, values, guards, guards.first(jobs, view.now), view.now))

    def learned(self, view: SiteView) -> dict[str, Any]:
        """Return values by class and run time, in this state, for a VO at its target share."""
        state, _ = self._site.state(view)
        rows = []
        for name, interactive in (("interactive", True), ("batch", False)):
            jobs = [JobProperties(interactive, "", view.now, 60.0 * m, 1) for m in _MAP_MINUTES]
            values = self._values(state, JobColumns.of_jobs(jobs), {})
            rows.append({"label": name, "values": values.tolist()})
        return {
            "title": "value of starting a job now, by expected minutes",
            "columns": [str(minutes) for minutes in _MAP_MINUTES],
            "rows": rows,
        }

    # -- state --------------------------------------------------------------------------------

    def start_state(self, view: SiteView) -> dict[str, Any]:
        """Return a start state for the setting ``start``: the value function alone."""
        values = self._training.values.save()
        return {"encoding": self.settings.encoding, "training": {"values": values}}

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the value function, the memory and the site's state; this is a start state too."""
        return {
            "encoding": self.settings.encoding,
            "training": self._training.save(),
            "memory": self._memory.save(),
            "experience": self._experience.save(),
            "site": self._site.save(),
            "speeds": self._speeds.save(),
        }

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned.

        Raises:
            ValueError: it was saved with another encoding, approximator or memory.
        """
        if saved["encoding"] != self.settings.encoding:
            raise ValueError(f"it was saved with the encoding {saved['encoding']!r}")
        memory = ReplayMemory(self.settings.memory_n, self._site.inputs_n)
        memory.restore(saved["memory"])
        experience = Experience(memory)
        experience.restore(saved["experience"])
        self._training.restore(saved["training"])
        self._memory, self._experience = memory, experience
        self._site.restore(saved["site"])
        self._speeds.restore(saved["speeds"])


# -- machine speeds --------------------------------------------------------------------------------
# Speeds of machines learned from run times: a node that slows down does not report it.

_STEP: Final = 0.2
_BIAS_STEP: Final = 0.01
_WIDEST: Final = log(20.0)
_EQUAL: Final = 0.1


class MachineSpeeds:
    """Speeds of machines, learned from runs that took more or less time than estimated.

    For a run on machine m, x = log(estimate / run time). The bias of estimates b is the mean of x
    less the log speeds, b += .01 (x - s_m - b); the machine's log speed follows s_m += .2 (x - b -
    s_m), starting at the declared speed. x is clipped to a factor of 20, because a job that failed
    immediately says nothing about its node.
    """

    def __init__(self) -> None:
        self._logs: dict[int, float] = {}
        self._bias = 0.0
        self._differ = False
        self._lowest, self._highest = inf, -inf

    def take(self, machine: int, estimate_s: float, run_s: float, view: SiteView) -> None:
        """Learn from a run that completed after `run_s` seconds, estimated at `estimate_s`; > 0."""
        known = self._log(machine, view)
        observed = min(max(log(estimate_s / run_s), -_WIDEST), _WIDEST)
        self._bias += _BIAS_STEP * (observed - known - self._bias)
        learned = known + _STEP * (observed - self._bias - known)
        was_extreme = self._logs.get(machine) in (self._lowest, self._highest)
        self._logs[machine] = learned
        if was_extreme:
            self._compare()
        else:
            self._lowest, self._highest = min(self._lowest, learned), max(self._highest, learned)
            self._differ = self._highest - self._lowest > _EQUAL

    def _compare(self) -> None:
        logs = self._logs.values()
        self._lowest, self._highest = min(logs, default=inf), max(logs, default=-inf)
        self._differ = self._highest - self._lowest > _EQUAL

    def _log(self, machine: int, view: SiteView) -> float:
        found = self._logs.get(machine)
        return log(max(view.speed_of(machine), 1e-3)) if found is None else found

    def speed(self, machine: int, view: SiteView) -> float:
        """Return the work that a CPU of the machine does per second."""
        return exp(self._log(machine, view))

    def fastest(self, cpus: int, view: SiteView) -> int:
        """Return the fastest free machine with so many CPUs left; among equals, the best fit.

        `NOWHERE` if there is none. Log speeds within 0.1 of the fastest count as equal.
        """
        if not self._differ or not (fit := view.fitting(cpus)):
            return view.tightest(cpus)
        best = max(self._log(machine, view) for machine in fit)
        as_fast = [machine for machine in fit if self._log(machine, view) >= best - _EQUAL]
        return min(as_fast, key=lambda machine: (view.cpus_left(machine), machine))

    def save(self) -> dict[str, Any]:
        """Return log speeds by machine number, and the bias."""
        return {"logs": [list(pair) for pair in self._logs.items()], "bias": self._bias}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self._logs = dict(saved["logs"])
        self._bias = saved["bias"]
        self._compare()


# -- rewards ---------------------------------------------------------------------------------------
# The reward of a run: user utility in relation to its work, plus fairness of the site.


def reward_of(
    decision: Decision, outcome: Outcome, runs: MeanRuns, settings: SarsaSettings, view: SiteView
) -> float:
    """Return weighted fairness F, plus, for a completed run, its unit utility U or its density.

    The density is U m / (m + w), with w the work of the run and m that of a mean run, because a run
    keeps CPUs from queued jobs for as long as it works. With U alone, a batch job of a day that
    earns .9 comes before an interactive one that has waited and earns .5, which then loses more.
    The plain density U m / w is not bounded: a few runs of seconds would dominate training.
    """
    reward = settings.fairness_weight * fairness(view.vo_shares())
    if outcome.ending != COMPLETED_RUN:
        return reward
    job = Job(outcome.job, JobSpec(job_class=decision.job_class), decision.submit_s)
    turnaround_s = outcome.end_s - decision.submit_s
    utility = float(view.utility(job).unit(turnaround_s, outcome.run_s))
    if settings.reward == "utility":
        return reward + utility
    return reward + utility * runs.work_s / (runs.work_s + outcome.run_s * decision.cpus)


# -- start states ----------------------------------------------------------------------------------
# Initial value functions: the shipped one, none, or one that `outrider train` wrote.
#
# A start state is a JSON object with ``encoding`` and ``training`` (``values``: the value
# function). `Sarsa.save` returns both, so a saved policy is a start state too; its other fields
# are ignored, because another site's open decisions mean nothing here.

SHIPPED: Final = "shipped"
NONE: Final = "none"
_FILES: Final = {"relative": "start_net.json", "literal": "start_net_literal.json"}


def start_values(settings: SarsaSettings) -> dict[str, Any] | None:
    """Return the saved value function selected by the settings; None: start untrained.

    Raises:
        ConfigurationError: missing file, not a start state, another encoding, or none is shipped
            for the approximator.
    """
    if settings.start == NONE:
        return None
    if settings.start == SHIPPED:
        if settings.approximator != "mlp":
            raise ConfigurationError(
                f'start = "shipped" is a net, approximator = "{settings.approximator}"; '
                'expected start = "none", or a file that `outrider train` wrote'
            )
        text = _shipped(_FILES[settings.encoding])
    else:
        text = _read(Path(settings.start))
    where = f'start = "{settings.start}"'
    try:
        state = json.loads(text)
        encoding, values = state["encoding"], state["training"]["values"]
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{where} is no start state; expected a file that `outrider train` wrote"
        ) from error
    if encoding != settings.encoding:
        raise ConfigurationError(
            f'{where} was trained with encoding = "{encoding}", not "{settings.encoding}"; '
            f'use encoding = "{encoding}"'
        )
    found: dict[str, Any] = values
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigurationError(
            f'start = "{path}" cannot be read: {why}; expected "shipped", "none" or a file '
            "that `outrider train` wrote"
        ) from error


@cache
def _shipped(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
