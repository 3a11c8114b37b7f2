"""Watch over the guards: if one is broken, the daemon falls back to shadow."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from outrider.acting.gate import ACTING_MODES, Bounds, Figures, GuardWindow, Totals, breaches
from outrider.acting.lever_runner import LeverRunner
from outrider.model.errors import OutriderError
from outrider.service.config.declarations import acting_of
from outrider.service.config.optional_tables import ActingSettings
from outrider.service.core.core import Core
from outrider.service.daemon.daemon_state import DaemonState

_EVERY_S: Final = 10.0
_CHANGED: Final = ("applied", "renewed", "withdrawn")
_FAILED: Final = ("refused", "failed")

log = structlog.get_logger()


class GuardWatch:
    """Checks the guards' figures in every mode, and their bounds in acting modes.

    Args:
        state: the daemon's state.
        fall_back: ends the acting, called with the cause.

    Attributes:
        figures: the guards' figures at the last check.
    """

    def __init__(self, state: DaemonState, fall_back: Callable[[str], Awaitable[None]]) -> None:
        self._state = state
        self._fall_back = fall_back
        self._levers: LeverRunner | None = None
        self._window = GuardWindow(0.0)
        self._window_s = 0.0  # no window yet
        self.figures = Figures()

    async def run(self) -> None:
        """Check the guards periodically; an error in a figure must not end the daemon."""
        while True:
            await asyncio.sleep(_EVERY_S)
            try:
                await self.look()
            except OutriderError as error:
                log.error("fallback_failed", error=str(error))
            except Exception:
                log.exception("guards_failed")

    async def look(self) -> None:
        """Compare the figures with their bounds, and fall back if one exceeds its bound.

        Raises:
            OutriderError: the daemon cannot change to the mode shadow.
        """
        state = self._state
        config = state.core.config
        if state.core.engine.silent:
            return
        settings = acting_of(config)
        if self._levers is not state.levers or self._window_s != settings.guard_window_s:
            self._levers = state.levers  # earlier events are not caused by these levers
            self._window_s = settings.guard_window_s
            self._window = GuardWindow(self._window_s)
            self._window.figures(totals_of(state.core, None), None)  # whose counts began at 0
        fairness = state.core.accounting.fairness.report(state.core.site.now)["windowed"]
        self.figures = self._window.figures(totals_of(state.core, state.levers), fairness)
        if config.mode not in ACTING_MODES:
            return
        if found := breaches(bounds_of(settings), self.figures):
            why = f"a guard broke: {'; '.join(found)}"
            log.critical("shadow_fallback_applied", reason=why)
            await self._fall_back(why)


def bounds_of(settings: ActingSettings) -> Bounds:
    """Return the bounds of a configuration."""
    return Bounds(
        mean_wait_s=settings.guard_mean_wait_s,
        badput_ratio=settings.guard_badput_ratio,
        fairness_least=settings.guard_fairness_least,
        error_ratio=settings.guard_error_ratio,
    )


def totals_of(core: Core, levers: LeverRunner | None) -> Totals:
    """Return the counts so far."""
    accounting = core.accounting
    waits = accounting.waits.values()
    counts = [] if levers is None else [thread.counts for thread in levers.threads]
    return Totals(
        at_s=core.site.now,
        waited_s=sum(wait.total for wait in waits),
        starts=sum(sum(wait.buckets) for wait in waits),
        goodput_s=accounting.goodput_s,
        badput_s=accounting.badput_s,
        changes=sum(one[outcome] for one in counts for outcome in _CHANGED),
        failures=sum(one[outcome] for one in counts for outcome in _FAILED),
    )
