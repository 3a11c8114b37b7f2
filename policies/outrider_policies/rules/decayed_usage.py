"""What each VO used lately: CPU-seconds of which older ones count less."""

from math import exp2, inf, log
from typing import Any, Final

from outrider.api import SiteView

_LN2: Final = log(2.0)


class DecayedUsage:
    """CPU-seconds delivered to each VO, a second that lies `half_life_s` back counting half.

    It is brought forward when a policy looks, as Slurm does every PriorityCalcPeriod: what was
    delivered between two looks counts as spread evenly over the time between them, and what was
    delivered before the first look as delivered then.

    Args:
        half_life_s: seconds.
    """

    def __init__(self, half_life_s: float) -> None:
        self._half_life_s = half_life_s
        self._at_s = inf
        self._usage: dict[str, float] = {}
        self._delivered: dict[str, float] = {}

    def bring_forward(self, view: SiteView) -> dict[str, float]:
        """CPU-seconds by VO, as of now; the next look goes on from here."""
        if view.now != self._at_s:
            self._usage, self._delivered = self._until_now(view)
            self._at_s = view.now
        return self._usage

    def now(self, view: SiteView) -> dict[str, float]:
        """The same, for those who only ask: nothing changes."""
        return self._until_now(view)[0]

    def _until_now(self, view: SiteView) -> tuple[dict[str, float], dict[str, float]]:
        """Usage, and all that was delivered, by VO."""
        elapsed = max(0.0, view.now - self._at_s) / self._half_life_s
        kept = exp2(-elapsed)
        spread = (1.0 - kept) / (elapsed * _LN2) if elapsed > 0.0 else 1.0
        total = view.delivered_cpu_s
        delivered = {vo: share * total for vo, (share, _) in view.vo_shares().items()}
        usage = {
            vo: self._usage.get(vo, 0.0) * kept
            + max(0.0, cpu_s - self._delivered.get(vo, 0.0)) * spread
            for vo, cpu_s in delivered.items()
        }
        return usage, delivered

    def save(self) -> dict[str, Any]:
        """Everything that changes, as plain data."""
        return {
            "half_life_s": self._half_life_s,
            "at_s": None if self._at_s == inf else self._at_s,
            "usage": self._usage,
            "delivered": self._delivered,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError`: it is of another half-life."""
        if saved["half_life_s"] != self._half_life_s:
            raise ValueError(
                f"its usage halves in {saved['half_life_s']:g} s; right would be "
                f"{self._half_life_s:g} s"
            )
        self._at_s = inf if saved["at_s"] is None else saved["at_s"]
        self._usage, self._delivered = dict(saved["usage"]), dict(saved["delivered"])
