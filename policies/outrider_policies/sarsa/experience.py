"""Decisions to start a job that are stored until their reward and successor are known."""

import random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job

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
        """Return the decision to start a job now; an unknown submission counts as now."""
        submit_s = now if job.submit_s is None else job.submit_s
        return cls(inputs, job.spec.job_class, submit_s, job.spec.cpus)


# -- replay memory ---------------------------------------------------------------------------------
# Experience replay: a buffer of the latest transitions.


class Transitions(NamedTuple):
    """State-action pairs, their rewards, and the next pairs.

    Attributes:
        inputs: (n, d) features of state and action.
        rewards: (n,).
        next_inputs: (n, d) features of the next state and the action chosen in it.
    """

    inputs: Floats
    rewards: Floats
    next_inputs: Floats


class ReplayMemory:
    """A ring buffer of the latest transitions (Lin 1992).

    Args:
        capacity: maximum of transitions; a small buffer adapts sooner to changes.
        inputs_n: number of features of state and action together.
    """

    def __init__(self, capacity: int, inputs_n: int) -> None:
        self._capacity = capacity
        self._all = Transitions(
            np.zeros((capacity, inputs_n)), np.zeros(capacity), np.zeros((capacity, inputs_n))
        )
        self._added = 0

    def __len__(self) -> int:
        return min(self._added, self._capacity)

    def add(self, inputs: Floats, reward: float, next_inputs: Floats) -> None:
        """Add one transition, in place of the oldest if full."""
        at = self._added % self._capacity
        self._all.inputs[at] = inputs
        self._all.rewards[at] = reward
        self._all.next_inputs[at] = next_inputs
        self._added += 1

    def sample(self, n: int, rng: random.Random) -> Transitions:
        """Draw `n` transitions with replacement. Raises `ValueError` if there are none."""
        size = len(self)
        if not size:
            raise ValueError("the replay memory is empty")
        drawn = np.array([int(rng.random() * size) for _ in range(n)])
        return Transitions(*(column[drawn] for column in self._all))

    def whole(self) -> Transitions:
        """Return a copy of all transitions."""
        return Transitions(*(column[: len(self)].copy() for column in self._all))

    def save(self) -> dict[str, Any]:
        """Return every transition as plain data."""
        return {
            "added": self._added,
            **{name: c.tolist() for name, c in self.whole()._asdict().items()},
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned.

        Raises:
            ValueError: another number of features or transitions; nothing changed.
        """
        n, inputs_n = min(saved["added"], self._capacity), self._all.inputs.shape[1]
        given = Transitions(*(np.array(saved[name], dtype=float) for name in Transitions._fields))
        shapes = ((n, inputs_n), (n,), (n, inputs_n))
        if n and tuple(column.shape for column in given) != shapes:
            raise ValueError(
                f"it remembers transitions of shapes {[column.shape for column in given]}, "
                f"{saved['added']} in all; expected {list(shapes)} here"
            )
        for column, values in zip(self._all, given, strict=True):
            column[:n] = values[:n].reshape(column[:n].shape)
        self._added = saved["added"]


class Experience:
    """Decisions by job, stored until both their reward and their successor are known.

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
        """Return the decision that started the present run of a job; None if unknown."""
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
        """Return open decisions as plain data."""
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
        """Restore what `save` returned."""
        self._open = {}
        for job, inputs, job_class, submit_s, cpus, reward, next_inputs in saved["open"]:
            decision = self._open[job] = Decision(np.array(inputs), job_class, submit_s, cpus)
            decision.reward = reward
            decision.next_inputs = None if next_inputs is None else np.array(next_inputs)
        self._last = saved["last"]
