"""Watts that slot ads tell: what a machine draws now, and what it draws in each state."""

from collections.abc import Iterable
from math import isfinite
from typing import Any, Final, NamedTuple

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.pool_calls import Ad, number
from outrider_adapters.htcondor.settings import WatchSettings

_SAME_FOR_S: Final = 300.0
"""A reading that has not changed is told again after so long: it holds for 15 minutes."""

_MOST_WATTS: Final = 1e6


class StateWatts(NamedTuple):
    """Watts of a machine while it works, idles and sleeps; None: its ads do not say."""

    active_w: float | None = None
    idle_w: float | None = None
    sleep_w: float | None = None

    def or_else(self, other: "StateWatts") -> "StateWatts":
        """These, and where they are not known the other's."""
        pairs = zip(self, other, strict=True)
        return StateWatts(*(theirs if own is None else own for own, theirs in pairs))


class WattsOfAds:
    """Reads the attributes that a site names; without a name nothing is read.

    All slots of a machine tell of the whole machine.

    Args:
        settings: the names of the attributes.

    Attributes:
        attributes: that slots have to be asked for.
    """

    def __init__(self, settings: WatchSettings) -> None:
        self._now = settings.watts_attribute
        states = (
            settings.active_w_attribute, settings.idle_w_attribute, settings.sleep_w_attribute,
        )  # fmt: skip
        self._states = states
        self.attributes = [name for name in (self._now, *states) if name is not None]
        self._told: dict[str, tuple[float, float]] = {}

    def of_states(self, ad: Ad) -> StateWatts:
        """What an ad says of its machine's states."""
        return StateWatts(*(_watts(ad, name) for name in self._states))

    def news(self, machine: str, ads: Iterable[Any], at_s: float) -> list[NamedEvent]:
        """The reading of a machine, where it is another or the one before is growing old.

        Args:
            machine: its name.
            ads: of its slots.
            at_s: when the newest was made.
        """
        if self._now is None:
            return []
        newest = max(ads, key=lambda ad: number(ad, "MyCurrentTime"))
        watts = _watts(newest, self._now)
        before_w, before_s = self._told.get(machine, (None, at_s))
        if watts is None or (watts == before_w and at_s - before_s < _SAME_FOR_S):
            return []
        self._told[machine] = watts, at_s
        return [(at_s, events.POWER, machine, watts)]

    def forget(self, machine: str) -> None:
        """The machine has left."""
        self._told.pop(machine, None)


def _watts(ad: Any, name: str | None) -> float | None:
    """Watts of an attribute; None where there is none, or what cannot be watts."""
    if name is None or name not in ad:
        return None
    watts = ad.eval(name) if hasattr(ad, "eval") else ad[name]
    is_number = type(watts) in (int, float) and isfinite(watts)
    return float(watts) if is_number and 0.0 <= watts <= _MOST_WATTS else None
