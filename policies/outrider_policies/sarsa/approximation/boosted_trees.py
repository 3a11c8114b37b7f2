"""Gradient-boosted trees as a value function, refitted to the replay memory periodically."""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider_policies.sarsa.approximation.value_functions import ValueFunction

Floats = NDArray[np.float64]
_KIND: Final = "boosting"


@cache
def _one_core() -> Any:
    """Return a controller that limits OpenMP threads.

    With so few rows threads only slow each other down.
    """
    from threadpoolctl import ThreadpoolController  # scikit-learn needs it too

    return ThreadpoolController()


class BoostedTrees:
    """Value function by scikit-learn's `HistGradientBoostingRegressor`; 0 until it is fitted.

    Saved are the training pairs and the seed: the same trees can be grown from them, and nothing
    has to be unpickled.

    Args:
        inputs_n: number of features of an input.
    """

    def __init__(self, inputs_n: int) -> None:
        self._inputs_n = inputs_n
        self._inputs = np.zeros((0, inputs_n))
        self._targets = np.zeros(0)
        self._seed = 0
        self._trees: Any = None

    def values(self, inputs: Floats) -> Floats:
        """Return the value of each input (n, inputs_n)."""
        if self._trees is None:
            return np.zeros(len(inputs))
        with _one_core().limit(limits=1):
            values: Floats = self._trees.predict(inputs)
        return values

    def values_of_actions(self, state: Floats, actions: Floats) -> Floats:
        """Return the value of each action in one state."""
        inputs = np.empty((len(actions), self._inputs_n))
        inputs[:, : len(state)] = state
        inputs[:, len(state) :] = actions
        return self.values(inputs)

    def refitted(self, inputs: Floats, targets: Floats, seed: int) -> "BoostedTrees":
        """Return trees grown from scratch."""
        fresh = BoostedTrees(self._inputs_n)
        fresh._fit(inputs, targets, seed)
        return fresh

    def _fit(self, inputs: Floats, targets: Floats, seed: int) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor  # slow to import: only if needed

        self._inputs, self._targets, self._seed = inputs, targets, seed
        grower = HistGradientBoostingRegressor(
            max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=seed
        )
        with _one_core().limit(limits=1):
            self._trees = grower.fit(inputs, targets)

    def save(self) -> dict[str, Any]:
        """Return the pairs and the seed that it was fitted to."""
        return {
            "kind": _KIND,
            "inputs": self._inputs.tolist(),
            "targets": self._targets.tolist(),
            "seed": self._seed,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Fit the same trees to the saved pairs.

        Raises:
            ValueError: another kind of value function, or another number of features.
        """
        if saved.get("kind") != _KIND:
            raise ValueError(
                f"it holds a value function of kind {saved.get('kind')!r}, not {_KIND!r}"
            )
        inputs, targets = (np.array(saved[name], dtype=float) for name in ("inputs", "targets"))
        if not len(targets):
            self._trees = None
            return
        if inputs.shape != (len(targets), self._inputs_n):
            raise ValueError(
                f"it was fitted to inputs of shape {inputs.shape} and {len(targets)} targets; "
                f"expected {self._inputs_n} features for each"
            )
        self._fit(inputs, targets, saved["seed"])


# -- retraining ------------------------------------------------------------------------------------
# Retraining in a background thread with reproducible results.
#
# The data are fixed when a training begins, and its result is adopted after a given number of
# further outcomes, not when the thread happens to finish. So a replay does not depend on the clock,
# and a daemon waits only if the thread takes longer than that many outcomes.


class Retraining:
    """Background training of a value function, at most one at a time.

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
        """True if a training has begun whose result is not adopted yet."""
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
        """Return the training pairs in use; None without a training.

        A restart can begin the training again from them.
        """
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
