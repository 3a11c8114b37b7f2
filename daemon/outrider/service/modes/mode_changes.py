"""Changes of the mode: immediately downwards, upwards to the configured mode."""

import time
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from outrider.acting.gate import ACTING_MODES
from outrider.journal import CommandRecord
from outrider.model.errors import ConfigurationError, LedgerError, OutriderError
from outrider.service.commands.command import CommandHistory
from outrider.service.commands.evidence import WatchedTime
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core.mode_limit import (
    BY_GUARD,
    ModeLimit,
    in_mode,
    keep_limit,
    limit_of,
    note_of,
)
from outrider.service.daemon.daemon_state import DaemonState
from outrider.service.daemon.levers import close_levers
from outrider.service.host.threads import in_own_thread

Reload = Callable[[Callable[[], LoadedConfig], str | None], Awaitable[None]]
_SHADOW: Final = "shadow"
_THREAD: Final = "mode"

log = structlog.get_logger()


class ModeChanges:
    """Changes the mode of a running daemon.

    Args:
        state: the daemon's state.
        reload: activates a configuration, with a note on it.
        history: where changes are recorded.
        watched: the watched time, reset when a guard breaks.
    """

    def __init__(
        self, state: DaemonState, reload: Reload, history: CommandHistory, watched: WatchedTime
    ) -> None:
        self._state = state
        self._reload = reload
        self._history = history
        self._watched = watched

    @property
    def mode(self) -> str:
        """The effective mode of the daemon."""
        return self._state.loaded.config.mode

    @property
    def configured(self) -> str:
        """The configured mode: the ceiling of the effective mode."""
        return self._state.configured.config.mode

    async def stop_acting(self, limit: ModeLimit) -> list[str]:
        """Store a limit that prevents changes, and revert earlier ones immediately.

        It waits only for the disk and briefly for the levers; `lower` does the rest.

        Returns:
            notes on the outcome, a sentence each.
        """
        notes = await self._keep(limit)
        levers, self._state.levers = self._state.levers, None
        active = 0 if levers is None else sum(len(one.standing) for one in levers.threads)
        left = await close_levers(levers)
        if left:
            notes.append(f"{', '.join(left)}: no answer yet; the changes expire automatically")
        elif active:
            notes.append(f"changes for {active:,} jobs were reverted")
        return notes

    async def _keep(self, limit: ModeLimit) -> list[str]:
        state = self._state
        state.limit, state.lowerings = limit, state.lowerings + 1
        try:
            await in_own_thread(lambda: keep_limit(limit, state.recording.folder), _THREAD)
        except LedgerError as error:  # a temporary limit is better than none
            log.error("mode_limit_not_saved", error=str(error))
            return [f"it holds only until the next restart or reload: {error}"]
        return []

    async def lower(self, limit: ModeLimit) -> list[str]:
        """Lower the mode to a limit, which also holds after a restart.

        Returns:
            notes on the outcome, a sentence each.

        Raises:
            OutriderError: a configuration of that mode cannot be activated. If the mode changes
                nothing in the batch system, changes have stopped nevertheless.
        """
        state, mode = self._state, self.mode
        ends_acting = limit.most not in ACTING_MODES
        notes = await (self.stop_acting(limit) if ends_acting else self._keep(limit))
        if limit.most == mode:
            return notes
        note = note_of(limit, self.configured)
        try:
            await self._reload(lambda: in_mode(state.configured, limit.most), note)
        except OutriderError:
            state.view.add_note(note)
            raise
        return notes

    @property
    def lowerings(self) -> int:
        """Number of times the mode was lowered since the start, to detect races with `climb`."""
        return self._state.lowerings

    async def climb(self, limit: ModeLimit | None, lowerings: int) -> None:
        """Raise the mode to a limit; None: to the configured mode.

        Args:
            limit: the mode, and the user who requested it.
            lowerings: value of `lowerings` when the request was decided.

        Raises:
            OutriderError: it cannot be activated, or the mode was lowered since; the previous
                limit holds.
        """
        state, folder = self._state, self._state.recording.folder
        if state.lowerings != lowerings:
            raise ConfigurationError("the mode has been lowered since")
        before = state.limit
        await in_own_thread(lambda: keep_limit(limit, folder), _THREAD)
        if state.lowerings != lowerings:
            await in_own_thread(lambda: keep_limit(state.limit, folder), _THREAD)
            raise ConfigurationError("the mode has been lowered since")
        state.limit = limit
        try:
            await self._reload(lambda: state.configured, None)
        except BaseException:
            if state.lowerings == lowerings:
                state.limit = before
                if await in_own_thread(lambda: limit_of(folder), _THREAD) == limit:
                    await in_own_thread(lambda: keep_limit(before, folder), _THREAD)
            raise

    async def fall_back(self, why: str) -> None:
        """Fall back to shadow because a guard broke, and record it.

        Raises:
            OutriderError: see `lower`.
        """
        before, at_s = self.mode, time.time()
        self._watched.reset()
        fell = CommandRecord(at_s, "fall_back", None, "", before, _SHADOW, why=why)
        try:
            await self.lower(ModeLimit(_SHADOW, at_s, before, BY_GUARD, why))
        except OutriderError as error:
            fell.outcome, fell.detail = "failed", f"nothing more is changed, but: {error}"
            raise
        finally:
            await self._history.record(fell)
