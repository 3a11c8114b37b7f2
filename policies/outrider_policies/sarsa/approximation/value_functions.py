"""What a value function is, whoever approximates it: inputs in, values out, learned from pairs."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class ValueFunction(Protocol):
    """Q(s, a): the value of an action in a state. An input is a state's features, then an action's.

    Shapes: n inputs of d features are (n, d); a state (s,) and k actions (k, d - s).
    """

    def values(self, inputs: Floats) -> Floats:
        """The value of each input, (n,)."""
        ...

    def values_of_actions(self, state: Floats, actions: Floats) -> Floats:
        """The value of each action in one state, (k,): what of the state they share, done once."""
        ...

    def refitted(self, inputs: Floats, targets: Floats, seed: int) -> "ValueFunction":
        """Another value function of the same kind, fitted to pairs from scratch.

        The same pairs and seed give the same one. It changes nothing of this one: another thread
        may do it.
        """
        ...

    def save(self) -> dict[str, Any]:
        """Everything, as plain data that JSON can hold too."""
        ...

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError` if it does not fit; nothing changed."""
        ...


class SteppingFunction(ValueFunction, Protocol):
    """A value function that also learns a little from a few pairs at a time."""

    def step(self, inputs: Floats, targets: Floats) -> None:
        """Move a little towards the targets (n,) of the inputs (n, d)."""
        ...


def checked(saved: dict[str, Any], kind: str, size: int) -> Floats:
    """The parameters that were saved of a kind of value function.

    Raises:
        ValueError: of another kind, or not so many finite numbers.
    """
    if saved.get("kind") != kind:
        raise ValueError(f"it holds a value function of kind {saved.get('kind')!r}, not {kind!r}")
    parameters = np.array(saved.get("parameters"), dtype=float)
    if parameters.shape != (size,) or not np.isfinite(parameters).all():
        raise ValueError(
            f"it holds parameters of shape {parameters.shape}; right would be {size} finite numbers"
        )
    return parameters
