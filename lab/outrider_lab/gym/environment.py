"""``Outrider-v0``: an agent selects jobs out of a window of the queue, in a replay."""

import random
import threading
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Generic, NamedTuple, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from outrider.api import WINDOW_FEATURES, Job, Observation, PolicySettings, WindowPolicy
from outrider.engine.accounting.report import energy_wh
from outrider.formats.workload import Workload
from outrider.journal import LedgerHash
from outrider.model.errors import ConfigurationError, nearest
from outrider.plugins.finding import stream
from outrider.python_api.reading import shares_of, terms_of
from outrider.replay.run import TraceRun, hashed
from outrider.replay.trials import Terms, Trace, Trial, run_of, stop_s
from outrider_lab.gym.episodes import Episode, EpisodeSource, TraceMaker

# -- agent policy ----------------------------------------------------------------------------------
# The policy through which an agent decides: it asks, and waits for the answer.

NAME = "agent"


class Question(NamedTuple):
    """Question to the agent: which job of the window is tried next.

    Attributes:
        observation: of the window.
        jobs_n: rows that hold a job; 2 or more.
    """

    observation: Observation
    jobs_n: int


class AgentPolicy(WindowPolicy[PolicySettings]):
    """Asks an agent outside which job is tried next; everything else is `WindowPolicy`."""

    name = NAME
    description = "an agent outside selects the next job among the oldest that wait"
    api_version = 1

    def __init__(self, rng: random.Random, window: int, ask: Callable[[Question], int]) -> None:
        super().__init__(PolicySettings(), rng, window)
        self._ask = ask
        self.wants_scores = False

    def select(self, jobs: list[Job], observation: Observation) -> int:
        """Return the answer of the agent."""
        return self._ask(Question(observation, len(jobs)))


# -- environment -----------------------------------------------------------------------------------

Report = dict[str, Any]

_TRIES: Final = 20
"""Drawn traces without any choice that are passed over before that is an error."""


class OutriderEnv(gymnasium.Env[Observation, np.int64]):
    """Job selection over a window of the queue, on the engine of `outrider.replay`.

    A step decides which of the oldest `window` jobs is tried next; the machine, who may pass a job
    that does not fit, and the check of every placement are those of a replay. There is a step
    whenever a CPU is free and two jobs or more wait.

    Observation: (window, features) of `outrider.api.WINDOW_FEATURES`, each 0 to 1, a row a job,
    oldest first. Action: a row; one without a job means the oldest. `info["mask"]`: (window,) int8,
    1 where a row holds a job; at the end of an episode also `info["run"]`, what `outrider.replay`
    reports.

    Args:
        trace: a campus or a workload, its path, or a function that makes one of a seed; None: a
            small generated grid, another one for each episode.
        window: jobs to select from, 2 to 4096.
        reward: a name of `outrider_lab.gym.REWARDS`.
        jobs: an episode runs so many consecutive jobs of the trace, from a row that is drawn.
        until_s: stop after this second of the trace.
        shares: as of `outrider.replay`.
        terms: others as of `outrider.replay`: machines, estimates, discipline, class_by, vo,
            group_vos_below, utilities.

    Raises:
        ConfigurationError: an argument is wrong, or does not fit the trace.
        TraceError: the trace cannot be read.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - declared so by its base

    def __init__(
        self,
        trace: Trace | Path | str | TraceMaker | None = None,
        *,
        window: int = 32,
        reward: str = "bounded_slowdown",
        jobs: int | None = None,
        until_s: float | None = None,
        shares: Mapping[str, float] | None = None,
        **terms: Any,
    ) -> None:
        if not 2 <= window <= 4096:
            raise ConfigurationError(f"window = {window}; expected 2 to 4096")
        self._reward_name = reward
        self._reward = reward_named(reward)
        self._source = EpisodeSource(trace, jobs, terms_of(**terms))
        self._terms = Terms(
            {NAME: {}}, {NAME: None}, until_s, shares_of(shares), self._source.terms
        )
        shape = (window, len(WINDOW_FEATURES))
        self.observation_space = spaces.Box(0.0, 1.0, shape, np.float32)
        self.action_space = spaces.Discrete(window)
        self._window = window
        self._handover: Handover[Question, Report] | None = None
        self._run: TraceRun | None = None
        self._question: Question | None = None
        self._jobs_n = 1
        self._figure = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; the same seed begins the same one.

        Returns:
            The first observation, and info: ``mask``, ``trace`` (its name) and ``seed`` (of the
            estimates), with which `outrider.replay` runs the same under any policy.

        Raises:
            ConfigurationError: the trace leaves nothing to select, or has no watts for the reward.
        """
        super().reset(seed=seed)
        self.close()
        for _ in range(_TRIES):
            episode = self._source.draw(self.np_random)
            question = self._begin(episode)
            if question is not None:
                info = {"trace": episode.label, "seed": episode.seed, "mask": self._mask(question)}
                return question.observation, info
            if not episode.is_drawn:
                break
        raise ConfigurationError(
            f"{episode.label}: no two jobs ever wait while a CPU is free, so there is nothing to "
            "select; expected more jobs, or fewer machines"
        )

    def _begin(self, episode: Episode) -> Question | None:
        """Run up to the first question; None: there is none in this trace."""
        check_known(self._reward_name, episode.trace, episode.label)
        channel: Channel[Question] = Channel()
        rng = stream(episode.seed, f"policy:{NAME}")
        policy = AgentPolicy(rng, self._window, channel.ask)
        trial = Trial(episode.label, NAME, episode.seed, None)
        digest = LedgerHash()
        until_s = stop_s(episode.trace, self._terms)
        keep = hashed(digest, episode.trace)
        self._run = run_of(trial, episode.trace, policy, self._terms, until_s, keep)
        self._jobs_n = max(1, len(episode.trace.submit_s))
        self._figure = 0.0
        about = {"trace": episode.label, "policy": NAME, "seed": episode.seed, "until_s": until_s}
        self._handover = Handover(channel, partial(_run_to_the_end, self._run, digest, about))
        received = self._handover.begin()
        if isinstance(received, Finished):
            self._handover = None
            return None
        self._question = received
        return received

    def step(self, action: np.int64 | int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Try the job of a row next, and run up to the next choice.

        Returns:
            Observation, reward, whether the trace ended, whether `until_s` cut it off with jobs
            left, and info.

        Raises:
            ValueError: no such row.
            gymnasium.error.ResetNeeded: no episode goes on.
            OutriderError: the engine raised it; the episode is over.
        """
        if self._handover is None or self._run is None or self._question is None:
            raise gymnasium.error.ResetNeeded("no episode goes on; expected env.reset()")
        row = int(action)
        if not 0 <= row < self._window:
            raise ValueError(f"action {action}; expected a row, 0 to {self._window - 1}")
        try:
            received = self._handover.answer(row if row < self._question.jobs_n else 0)
        except BaseException:
            self._handover = None
            raise
        if isinstance(received, Finished):
            return self._end(received.result)
        self._question = received
        reward = self._settle(self._reward.until_now(self._run, self._jobs_n))
        return received.observation, reward, False, False, {"mask": self._mask(received)}

    def _end(self, report: Report) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._handover = self._question = None
        published = self._reward.published(report, self._jobs_n)
        reward = self._settle(0.0 if published is None else published)
        is_cut_off = report["until_s"] is not None and report["jobs"]["unfinished"] > 0
        nothing = np.zeros((self._window, len(WINDOW_FEATURES)), dtype=np.float32)
        info = {"mask": np.zeros(self._window, dtype=np.int8), "run": report}
        return nothing, reward, not is_cut_off, is_cut_off, info

    def _settle(self, figure: float) -> float:
        """Return the reward of a step: the change of the figure, with its sign."""
        change, self._figure = figure - self._figure, figure
        return self._reward.sign * change

    def _mask(self, question: Question) -> NDArray[np.int8]:
        mask = np.zeros(self._window, dtype=np.int8)
        mask[: question.jobs_n] = 1
        return mask

    def close(self) -> None:
        """End the episode, if one goes on."""
        if self._handover is not None:
            self._handover.give_up()
            self._handover = None


def _run_to_the_end(run: TraceRun, digest: LedgerHash, about: Report) -> Report:
    """Execute the run in the episode's thread; return the report as `outrider.replay` does."""
    measured = run.run()
    return about | measured | {"ledger_sha256": digest.hexdigest()}


# -- handover --------------------------------------------------------------------------------------
# An episode in a thread of its own that stands still whenever the agent is to decide.
#
# The engine asks its policy and goes on with the answer; an environment is asked for a step and
# answers with the next question. Of the two threads exactly one runs at any time, and they take
# turns at the same places every time: nothing depends on how the system schedules them. See
# docs/decisions/0052-an-environment-waits-inside-the-policy.md.

Asked = TypeVar("Asked")
Result = TypeVar("Result")

_GIVE_UP: Final = -1


class Finished(NamedTuple, Generic[Result]):
    """The episode is over, and this came of it."""

    result: Result


class _Failed(NamedTuple):
    error: BaseException


class _GivenUp(BaseException):
    """Signal that the agent has left; no error of a policy, so that no guard may catch it."""


class Channel(Generic[Asked]):
    """Channel between the two threads: questions and the end one way, answers the other."""

    def __init__(self) -> None:
        self.questions: SimpleQueue[Any] = SimpleQueue()
        self.answers: SimpleQueue[int] = SimpleQueue()

    def ask(self, question: Asked) -> int:
        """Return send a question from the episode's thread, and wait for the answer."""
        self.questions.put(question)
        answer = self.answers.get()
        if answer == _GIVE_UP:
            raise _GivenUp
        return answer


class Handover(Generic[Asked, Result]):
    """Turns work that asks into work that is answered.

    Args:
        channel: through which the work asks.
        work: called in a thread of its own; what it returns is the result. It must not refer to
            who holds the handover, so that an episode that is dropped unfinished can be ended.
    """

    def __init__(self, channel: Channel[Asked], work: Callable[[], Result]) -> None:
        self._channel = channel
        self._thread = threading.Thread(
            target=_execute, args=(channel, work), name="outrider-episode", daemon=True
        )
        self._give_up = weakref.finalize(self, channel.answers.put, _GIVE_UP)

    def begin(self) -> Asked | Finished[Result]:
        """Run up to the first question. Raises what the work raised."""
        self._thread.start()
        return self._next()

    def answer(self, answer: int) -> Asked | Finished[Result]:
        """Answer the question, 0 or more, and run up to the next. Raises what the work raised."""
        self._channel.answers.put(answer)
        return self._next()

    def _next(self) -> Asked | Finished[Result]:
        received: Asked | Finished[Result] | _Failed = self._channel.questions.get()
        if isinstance(received, _Failed):
            self._thread.join()
            raise received.error
        if isinstance(received, Finished):
            self._thread.join()
        return received

    def give_up(self) -> None:
        """End the episode where it stands; its thread is gone afterwards."""
        self._give_up()
        self._thread.join()


def _execute(channel: Channel[Asked], work: Callable[[], Result]) -> None:
    try:
        channel.questions.put(Finished(work()))
    except _GivenUp:
        return
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
        channel.questions.put(_Failed(error))


# -- rewards ---------------------------------------------------------------------------------------
# Rewards by name: each is the change of a figure that reports publish, so that their sum is it.

Figure = Callable[[TraceRun, int], float]
"""The figure until now, of a run whose trace has so many jobs."""


class Reward(NamedTuple):
    """One kind of reward.

    Attributes:
        sign: 1 where more is better, -1 where less is.
        until_now: the figure while the run goes on.
        published: the figure in the report of the finished run; None where it is unknown.
        words: what the rewards of an episode sum up to.
    """

    sign: float
    until_now: Figure
    published: Callable[[Mapping[str, Any], int], float | None]
    words: str


def _slowdown(run: TraceRun, jobs_n: int) -> float:
    return run.accounting.slowdown.total / jobs_n


def _wait_s(run: TraceRun, jobs_n: int) -> float:
    return sum(waits.total for waits in run.accounting.waits.values()) / jobs_n


def _utilisation(run: TraceRun, jobs_n: int) -> float:
    site, accounting = run.site, run.accounting
    cpu_s = (site.now - (accounting.begin_s or 0.0)) * sum(site.cpus)
    return (accounting.goodput_s + accounting.badput_s) / cpu_s if cpu_s > 0.0 else 0.0


def _energy_wh(run: TraceRun, jobs_n: int) -> float:
    return sum(wh or 0.0 for wh in energy_wh(run.accounting, run.site).values())


def _utility(run: TraceRun, jobs_n: int) -> float:
    return run.accounting.utility.total


def _mean_over(jobs_n: int, summary: Mapping[str, Any]) -> float:
    """Return the published mean; 0 for jobs that have none yet."""
    mean: float | None = summary["mean"]
    return 0.0 if mean is None else mean * summary["n"] / jobs_n


def _published_energy_wh(report: Mapping[str, Any], jobs_n: int) -> float | None:
    wh = list(report["energy_wh"].values())
    return None if None in wh else sum(wh)


REWARDS: Final[Mapping[str, Reward]] = {
    "bounded_slowdown": Reward(
        -1.0, _slowdown, lambda report, n: _mean_over(n, report["bounded_slowdown"]["all"]),
        "minus the mean bounded slowdown",
    ),
    "wait": Reward(
        -1.0, _wait_s, lambda report, n: _mean_over(n, report["wait_s"]["all"]),
        "minus the mean wait, seconds",
    ),
    "utilisation": Reward(
        1.0, _utilisation, lambda report, n: report["utilisation_ratio"] or 0.0,
        "the utilisation, 0 to 1",
    ),
    "energy": Reward(
        -1.0, _energy_wh, _published_energy_wh, "minus the energy of all purposes, watt-hours",
    ),
    "utility": Reward(
        1.0, _utility, lambda report, n: report["utility"]["total"],
        "the utility of completed jobs, CPU-seconds",
    ),
}  # fmt: skip
"""Rewards by name.

Means are over all jobs of the episode's trace. In an episode that is cut off, jobs that were not
reached count 0.
"""


def reward_named(name: str) -> Reward:
    """Return the reward of a name. Raises `ConfigurationError`."""
    if name not in REWARDS:
        raise ConfigurationError(f'reward "{name}": {nearest(name, REWARDS)}')
    return REWARDS[name]


def check_known(name: str, trace: Trace, label: str) -> None:
    """Check that a trace contains what a reward needs. Raises `ConfigurationError`."""
    if name != "energy":
        return
    if isinstance(trace, Workload):
        known = all(machine.active_w is not None for machine in trace.machines)
    else:
        known = not np.isnan(trace.active_w).any()
    if not known:
        raise ConfigurationError(
            f'reward "energy": {label} has no watts of its machines; expected a '
            "campus with watts in machines.csv, or another reward"
        )
