"""Speeds of machines learned from run times: a node that slows down does not report it."""

from math import exp, inf, log
from typing import Any, Final

from outrider.api import SiteView

_STEP: Final = 0.2
_BIAS_STEP: Final = 0.01
_WIDEST: Final = log(20.0)
_ALIKE: Final = 0.1


class MachineSpeeds:
    """Speeds learned from runs that took more or less time than estimated.

    For a run on machine m, x = log(estimate / run time). The bias of estimates b is the mean of x
    less the log speeds, b += .01 (x - s_m - b); the machine's log speed follows s_m += .2 (x - b -
    s_m), starting at the declared speed. x is clipped to a factor of 20, because a job that failed
    at once says nothing about its node.
    """

    def __init__(self) -> None:
        self._logs: dict[int, float] = {}
        self._bias = 0.0
        self._differ = False
        self._lowest, self._highest = inf, -inf

    def take(self, machine: int, estimate_s: float, run_s: float, view: SiteView) -> None:
        """Learn from a run that completed after `run_s` seconds, estimated at `estimate_s`; > 0."""
        known = self._log(machine, view)
        observed = min(max(log(estimate_s / run_s), -_WIDEST), _WIDEST)
        self._bias += _BIAS_STEP * (observed - known - self._bias)
        learned = known + _STEP * (observed - self._bias - known)
        was_extreme = self._logs.get(machine) in (self._lowest, self._highest)
        self._logs[machine] = learned
        if was_extreme:
            self._compare()
        else:
            self._lowest, self._highest = min(self._lowest, learned), max(self._highest, learned)
            self._differ = self._highest - self._lowest > _ALIKE

    def _compare(self) -> None:
        logs = self._logs.values()
        self._lowest, self._highest = min(logs, default=inf), max(logs, default=-inf)
        self._differ = self._highest - self._lowest > _ALIKE

    def _log(self, machine: int, view: SiteView) -> float:
        found = self._logs.get(machine)
        return log(max(view.speed_of(machine), 1e-3)) if found is None else found

    def speed(self, machine: int, view: SiteView) -> float:
        """Work that a CPU of the machine does per second."""
        return exp(self._log(machine, view))

    def fastest(self, cpus: int, view: SiteView) -> int:
        """The fastest free machine with so many CPUs left; of those about as fast, the best fit.

        `NOWHERE` if there is none. Log speeds within 0.1 of the fastest count as equal.
        """
        if not self._differ or not (fit := view.fitting(cpus)):
            return view.tightest(cpus)
        best = max(self._log(machine, view) for machine in fit)
        as_fast = [machine for machine in fit if self._log(machine, view) >= best - _ALIKE]
        return min(as_fast, key=lambda machine: (view.cpus_left(machine), machine))

    def save(self) -> dict[str, Any]:
        """Log speeds by machine number, and the bias."""
        return {"logs": [list(pair) for pair in self._logs.items()], "bias": self._bias}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._logs = dict(saved["logs"])
        self._bias = saved["bias"]
        self._compare()
