"""``Outrider-v0``: an agent selects jobs out of a window of the queue, in a replay."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from outrider.api import WINDOW_FEATURES, Observation
from outrider.ledger import LedgerHash
from outrider.model.errors import ConfigurationError
from outrider.plugins.random_streams import stream
from outrider.replay.keeping import hashed
from outrider.replay.run import TraceRun
from outrider.replay.traces import Trace
from outrider.replay.trials import Terms, Trial, run_of, stop_s
from outrider.scripting.terms import shares_of, terms_of
from outrider_lab.gym.agent_policy import NAME, AgentPolicy, Question
from outrider_lab.gym.episodes import Episode, EpisodeSource, TraceMaker
from outrider_lab.gym.handover import Channel, Finished, Handover
from outrider_lab.gym.rewards import check_known, reward_named

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
            raise ConfigurationError(f"window = {window}; right would be 2 to 4096")
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
            "select; right would be more jobs, or fewer machines"
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
        told = self._handover.begin()
        if isinstance(told, Finished):
            self._handover = None
            return None
        self._question = told
        return told

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
            raise gymnasium.error.ResetNeeded("no episode goes on; right would be env.reset()")
        row = int(action)
        if not 0 <= row < self._window:
            raise ValueError(f"action {action}; right would be a row, 0 to {self._window - 1}")
        try:
            told = self._handover.answer(row if row < self._question.jobs_n else 0)
        except BaseException:
            self._handover = None
            raise
        if isinstance(told, Finished):
            return self._end(told.result)
        self._question = told
        reward = self._settle(self._reward.until_now(self._run, self._jobs_n))
        return told.observation, reward, False, False, {"mask": self._mask(told)}

    def _end(self, report: Report) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        self._handover = self._question = None
        published = self._reward.published(report, self._jobs_n)
        reward = self._settle(0.0 if published is None else published)
        is_cut_off = report["until_s"] is not None and report["jobs"]["unfinished"] > 0
        nothing = np.zeros((self._window, len(WINDOW_FEATURES)), dtype=np.float32)
        info = {"mask": np.zeros(self._window, dtype=np.int8), "run": report}
        return nothing, reward, not is_cut_off, is_cut_off, info

    def _settle(self, figure: float) -> float:
        """The reward of a step: the change of the figure, with its sign."""
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
    """In the thread of the episode: the run as `outrider.replay` reports it."""
    measured = run.run()
    return about | measured | {"ledger_sha256": digest.hexdigest()}
