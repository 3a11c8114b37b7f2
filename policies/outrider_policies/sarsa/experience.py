"""Decisions that wait for their reward and their successor before they can be learned from."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job
from outrider_policies.sarsa.replay_memory import ReplayMemory

Floats = NDArray[np.float64]


class Decision:
    """The start of a job, as a state-action pair.

    Attributes:
        inputs: (features,) of the state and of the job when it started.
        job_class, submit_s, cpus: of the job, for its reward.
        reward: None until the run has ended.
        next_inputs: `inputs` of the next decision; None until there is one.
    """

    __slots__ = ("cpus", "inputs", "job_class", "next_inputs", "reward", "submit_s")

    def __init__(self, inputs: Floats, job_class: str, submit_s: float, cpus: int) -> None:
        self.inputs = inputs
        self.job_class = job_class
        self.submit_s = submit_s
        self.cpus = cpus
        self.reward: float | None = None
        self.next_inputs: Floats | None = None

    @classmethod
    def of(cls, job: Job, inputs: Floats, now: float) -> "Decision":
        """The decision to start a job now; an unknown submission counts as now."""
        submit_s = now if job.submit_s is None else job.submit_s
        return cls(inputs, job.spec.job_class, submit_s, job.spec.cpus)


class Experience:
    """Decisions by job, until both their reward and their successor are known.

    Args:
        memory: receives complete transitions.
    """

    def __init__(self, memory: ReplayMemory) -> None:
        self._memory = memory
        self._open: dict[int, Decision] = {}
        self._last: int | None = None

    def decide(self, job: int, decision: Decision) -> None:
        """Add the start of a job; it is the successor of the last decision."""
        if self._last is not None:
            last = self._open[self._last]
            last.next_inputs = decision.inputs
            self._settle(self._last, last)
        self._open[job] = decision
        self._last = job

    def of(self, job: int) -> Decision | None:
        """The decision that started the present run of a job; None if unknown."""
        found = self._open.get(job)
        return None if found is None or found.reward is not None else found

    def reward(self, job: int, reward: float) -> None:
        """Set the reward of a job's decision."""
        decision = self._open[job]
        decision.reward = reward
        self._settle(job, decision)

    def drop(self, job: int) -> None:
        """Forget a decision: its job was removed by the user, so it has no reward."""
        self._open.pop(job, None)
        if self._last == job:
            self._last = None

    def _settle(self, job: int, decision: Decision) -> None:
        if decision.reward is not None and decision.next_inputs is not None:
            self._memory.add(decision.inputs, decision.reward, decision.next_inputs)
            del self._open[job]

    def save(self) -> dict[str, Any]:
        """Open decisions, as plain data."""
        return {
            "open": [
                [
                    job, d.inputs.tolist(), d.job_class, d.submit_s, d.cpus, d.reward,
                    None if d.next_inputs is None else d.next_inputs.tolist(),
                ]
                for job, d in self._open.items()
            ],
            "last": self._last,
        }  # fmt: skip

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._open = {}
        for job, inputs, job_class, submit_s, cpus, reward, next_inputs in saved["open"]:
            decision = self._open[job] = Decision(np.array(inputs), job_class, submit_s, cpus)
            decision.reward = reward
            decision.next_inputs = None if next_inputs is None else np.array(next_inputs)
        self._last = saved["last"]
