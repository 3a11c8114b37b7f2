"""What energy costs: money and CO2, where a tariff is given; amounts as plain data."""

from math import isnan
from typing import Final, NamedTuple

_J_PER_KWH = 3.6e6


class Tariff(NamedTuple):
    """What a kilowatt-hour costs; the same at every hour.

    Attributes:
        price_per_kwh: None: not known.
        currency: of the price.
        co2_g_per_kwh: grams; None: not known.
    """

    price_per_kwh: float | None = None
    currency: str = "EUR"
    co2_g_per_kwh: float | None = None

    def of(self, kwh: float | None) -> dict[str, float | None]:
        """An amount of energy as ``kwh``, ``money`` and ``co2_kg``; None where not known."""
        if kwh is None:
            return {"kwh": None, "money": None, "co2_kg": None}
        price, grams = self.price_per_kwh, self.co2_g_per_kwh
        return {
            "kwh": kwh,
            "money": None if price is None else kwh * price,
            "co2_kg": None if grams is None else kwh * grams / 1000.0,
        }


UNKNOWN: Final = Tariff()
"""No tariff."""


def kwh(joules: float) -> float | None:
    """Kilowatt-hours; None for nan, which is unknown."""
    return None if isnan(joules) else joules / _J_PER_KWH
