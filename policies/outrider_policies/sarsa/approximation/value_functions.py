"""Interface of a value function: inputs in, values out, learned from (input, target) pairs."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class ValueFunction(Protocol):
    """Value Q(s, a) of an action in a state; an input has a state's features, then an action's.

    Shapes: n inputs of d features are (n, d); a state (s,) and k actions (k, d - s).
    """

    def values(self, inputs: Floats) -> Floats:
        """Return the value of each input, (n,)."""
        ...

    def values_of_actions(self, state: Floats, actions: Floats) -> Floats:
        """Return (k,) the value of each action in one state; work for the state is shared."""
        ...

    def refitted(self, inputs: Floats, targets: Floats, seed: int) -> "ValueFunction":
        """Return another value function of the same kind, fitted to pairs from scratch.

        The same pairs and seed give the same result. It does not change this object, so it may
        run in another thread.
        """
        ...

    def save(self) -> dict[str, Any]:
        """Return the whole state as plain data that JSON can also hold."""
        ...

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned. Raises `ValueError`, without any change, if it is unfit."""
        ...


class SteppingFunction(ValueFunction, Protocol):
    """Value function that can also be trained in small steps."""

    def step(self, inputs: Floats, targets: Floats) -> None:
        """Move a little towards the targets (n,) of the inputs (n, d)."""
        ...


def checked(saved: dict[str, Any], kind: str, size: int) -> Floats:
    """Return the saved parameters, (size,).

    Raises:
        ValueError: another kind of value function, another size, or non-finite numbers.
    """
    if saved.get("kind") != kind:
        raise ValueError(f"it holds a value function of kind {saved.get('kind')!r}, not {kind!r}")
    parameters = np.array(saved.get("parameters"), dtype=float)
    if parameters.shape != (size,) or not np.isfinite(parameters).all():
        raise ValueError(
            f"it holds parameters of shape {parameters.shape}; expected {size} finite numbers"
        )
    return parameters
