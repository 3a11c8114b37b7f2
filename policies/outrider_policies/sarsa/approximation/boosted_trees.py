"""Gradient-boosted trees as a value function, refitted to the replay memory from time to time."""

from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_KIND: Final = "boosting"


@cache
def _one_core() -> Any:
    """A controller that limits OpenMP threads: with so few rows they only slow each other down."""
    from threadpoolctl import ThreadpoolController  # scikit-learn needs it too

    return ThreadpoolController()


class BoostedTrees:
    """Scikit-learn's `HistGradientBoostingRegressor`; 0 everywhere until it is fitted.

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
        """The value of each input (n, inputs_n)."""
        if self._trees is None:
            return np.zeros(len(inputs))
        with _one_core().limit(limits=1):
            values: Floats = self._trees.predict(inputs)
        return values

    def values_of_actions(self, state: Floats, actions: Floats) -> Floats:
        """The value of each action in one state."""
        inputs = np.empty((len(actions), self._inputs_n))
        inputs[:, : len(state)] = state
        inputs[:, len(state) :] = actions
        return self.values(inputs)

    def refitted(self, inputs: Floats, targets: Floats, seed: int) -> "BoostedTrees":
        """Trees grown from scratch."""
        fresh = BoostedTrees(self._inputs_n)
        fresh._fit(inputs, targets, seed)
        return fresh

    def _fit(self, inputs: Floats, targets: Floats, seed: int) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor  # slow to import: only if asked

        self._inputs, self._targets, self._seed = inputs, targets, seed
        grower = HistGradientBoostingRegressor(
            max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=seed
        )
        with _one_core().limit(limits=1):
            self._trees = grower.fit(inputs, targets)

    def save(self) -> dict[str, Any]:
        """The pairs and the seed that it was fitted to."""
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
                f"right would be {self._inputs_n} features for each"
            )
        self._fit(inputs, targets, saved["seed"])
