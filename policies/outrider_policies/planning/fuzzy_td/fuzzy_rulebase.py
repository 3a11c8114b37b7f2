"""A fuzzy rulebase of two labels for each input: small and large (Vengerov 2005, section 3.2)."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LABELS: Final = "SL"


class FuzzyRulebase:
    """Maps k inputs in [0, 1] to a value, by one rule for each of the 2^k combinations of labels.

    An input x is *large* to the degree x and *small* to the degree 1 - x; a rule holds to the
    product of its degrees (product inference). These sum to 1 over the rules, so equation (1) is
    their weighted sum, and each is the basis function of its rule's output in equation (6).

    Attributes:
        outputs: (2^k,) output of each rule, in the paper's order: (S, S, S), (S, S, L), ...
    """

    def __init__(self, inputs_n: int) -> None:
        self.inputs_n = inputs_n
        self.outputs: Floats = np.zeros(2**inputs_n)

    @property
    def rules(self) -> list[str]:
        """The labels of each rule: ``SSS``, ``SSL``, ..."""
        width = self.inputs_n
        return [
            "".join(LABELS[number >> bit & 1] for bit in reversed(range(width)))
            for number in range(2**width)
        ]

    def degrees(self, inputs: Sequence[float]) -> Floats:
        """(2^k,) degree to which each rule holds. `inputs`: (k,) each in [0, 1]."""
        degrees: Floats = np.ones(1)
        for x in inputs:
            degrees = np.multiply.outer(degrees, (1.0 - x, x)).ravel()
        return degrees

    def value(self, inputs: Sequence[float]) -> float:
        """Equation (1) for one state: (k,) inputs in [0, 1]."""
        outputs: list[float] = self.outputs.tolist()  # of so few, half the cost of an array
        for x in inputs:
            half = len(outputs) // 2
            pairs = zip(outputs[:half], outputs[half:], strict=True)
            outputs = [small + x * (large - small) for small, large in pairs]
        return outputs[0]

    def values(self, inputs: Sequence[Floats | float]) -> Floats:
        """Equation (1) for many states at once.

        Args:
            inputs: k columns of equal length, or numbers for constant columns, in [0, 1].
        """
        outputs: Floats = self.outputs[:, np.newaxis]
        for column in inputs:
            half = len(outputs) // 2
            outputs = outputs[:half] + column * (outputs[half:] - outputs[:half])
        values: Floats = outputs[0]
        return values
