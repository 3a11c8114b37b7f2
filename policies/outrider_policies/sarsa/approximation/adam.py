"""Adam: gradient descent with a step size per parameter."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MEAN_DECAY: Final = 0.9
_SQUARE_DECAY: Final = 0.999
_SMALLEST: Final = 1e-8


class Adam:
    """Adam for one vector of parameters (Kingma and Ba 2015, algorithm 1).

    m = .9 m + .1 g, v = .999 v + .001 g^2; the step is rate m' / (sqrt(v') + 1e-8), with m' and v'
    corrected for their initial 0.

    Args:
        size: number of parameters.
        rate: learning rate: about the length of a step, in units of the parameters.
    """

    def __init__(self, size: int, rate: float) -> None:
        self.rate = rate
        self._mean = np.zeros(size)
        self._square = np.zeros(size)
        self._steps = 0

    def step(self, parameters: Floats, gradient: Floats) -> None:
        """Move `parameters` in place against `gradient`; both (size,)."""
        self._steps += 1
        self._mean += (1.0 - _MEAN_DECAY) * (gradient - self._mean)
        self._square += (1.0 - _SQUARE_DECAY) * (gradient * gradient - self._square)
        mean_bias = 1.0 - _MEAN_DECAY**self._steps
        square_bias = 1.0 - _SQUARE_DECAY**self._steps
        length = np.sqrt(self._square / square_bias) + _SMALLEST
        parameters -= (self.rate / mean_bias) * self._mean / length

    def save(self) -> dict[str, Any]:
        """Both running means and the number of steps."""
        return {
            "mean": self._mean.tolist(),
            "square": self._square.tolist(),
            "steps": self._steps,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave for a vector of the same size."""
        self._mean[:] = saved["mean"]
        self._square[:] = saved["square"]
        self._steps = saved["steps"]
