"""Retraining in a background thread with reproducible results.

The data are fixed when a training begins, and its result is adopted after a given number of
further outcomes, not when the thread happens to finish. So a replay does not depend on the clock,
and a daemon waits only if the thread takes longer than that many outcomes.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider_policies.sarsa.approximation.value_functions import ValueFunction

Floats = NDArray[np.float64]


class Retraining:
    """At most one training at a time.

    Args:
        adopt_after: outcomes from the beginning of a training until its result is adopted.
    """

    def __init__(self, adopt_after: int) -> None:
        self._adopt_after = adopt_after
        self._left = 0
        self._task: tuple[Floats, Floats, int] | None = None
        self._result: Future[ValueFunction] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a training has begun whose result is not adopted yet."""
        return self._task is not None

    def begin(self, old: ValueFunction, inputs: Floats, targets: Floats, seed: int) -> None:
        """Start refitting a value function to these pairs; the caller must not change them."""
        self._left = self._adopt_after
        self._start(old, (inputs, targets, seed))

    def _start(self, old: ValueFunction, task: tuple[Floats, Floats, int]) -> None:
        self._task = task
        worker = ThreadPoolExecutor(1, thread_name_prefix="retraining")
        self._result = worker.submit(old.refitted, *task)
        worker.shutdown(wait=False)  # the thread ends with its task

    def count_outcome(self) -> ValueFunction | None:
        """Count an outcome; return the new value function if it is due now."""
        if self._result is None:
            return None
        self._left -= 1
        if self._left > 0:
            return None
        fitted = self._result.result()
        self._task = self._result = None
        return fitted

    def save(self) -> dict[str, Any] | None:
        """The training pairs in use, so that a restart can begin again; None without a training."""
        if self._task is None:
            return None
        inputs, targets, seed = self._task
        return {
            "inputs": inputs.tolist(),
            "targets": targets.tolist(),
            "seed": seed,
            "left": self._left,
        }

    def restore(self, saved: dict[str, Any] | None, old: ValueFunction) -> None:
        """Begin the saved training again."""
        if saved is None:
            self._task = self._result = None
            return
        inputs = np.array(saved["inputs"], dtype=float)
        self._left = saved["left"]
        self._start(old, (inputs, np.array(saved["targets"], dtype=float), saved["seed"]))
