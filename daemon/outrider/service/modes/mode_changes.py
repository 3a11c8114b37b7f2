"""Putting another mode in force: down at once, up as far as the configuration's."""

import asyncio
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

Reload = Callable[[Callable[[], LoadedConfig], str | None], Awaitable[None]]
_SHADOW: Final = "shadow"

log = structlog.get_logger()


class ModeChanges:
    """Changes the mode of a running daemon.

    Args:
        state: of the daemon.
        reload: puts a configuration in force, with a note on it.
        history: where changes are recorded.
        watched: begins anew where a guard broke.
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
        """In force now."""
        return self._state.loaded.config.mode

    @property
    def configured(self) -> str:
        """The configuration's: no mode goes beyond it."""
        return self._state.configured.config.mode

    async def stop_acting(self, limit: ModeLimit) -> list[str]:
        """Keep a limit that lets nothing be changed, and take back what was: at once.

        It waits for nothing but the disk and, for a moment, the levers; `lower` does the rest.

        Returns:
            what is not as it should be, a sentence each.
        """
        told = await self._keep(limit)
        levers, self._state.levers = self._state.levers, None
        standing = 0 if levers is None else sum(len(one.standing) for one in levers.threads)
        left = await close_levers(levers)
        if left:
            told.append(f"{', '.join(left)}: no answer yet; what was changed lapses by itself")
        elif standing:
            told.append(f"what stood for {standing:,} jobs was taken back")
        return told

    async def _keep(self, limit: ModeLimit) -> list[str]:
        state = self._state
        state.limit, state.lowerings = limit, state.lowerings + 1
        try:
            await asyncio.to_thread(keep_limit, limit, state.recording.folder)
        except LedgerError as error:  # better for a while than not at all
            log.error("mode_limit_not_saved", error=str(error))
            return [f"it holds until the next restart or reload alone: {error}"]
        return []

    async def lower(self, limit: ModeLimit) -> list[str]:
        """Let no mode above a limit be in force; also after a restart.

        Returns:
            what else there is to say, a sentence each.

        Raises:
            OutriderError: a configuration of that mode cannot be put in force. Where the mode is
                one that changes nothing, nothing is changed any more all the same.
        """
        state, mode = self._state, self.mode
        ends_acting = limit.most not in ACTING_MODES
        told = await (self.stop_acting(limit) if ends_acting else self._keep(limit))
        if limit.most == mode:
            return told
        note = note_of(limit, self.configured)
        try:
            await self._reload(lambda: in_mode(state.configured, limit.most), note)
        except OutriderError:
            state.view.add_note(note)
            raise
        return told

    @property
    def lowerings(self) -> int:
        """How often the mode was lowered since the start: a climb is of one moment."""
        return self._state.lowerings

    async def climb(self, limit: ModeLimit | None, lowerings: int) -> None:
        """Let the mode go as high as a limit; None: as high as the configuration's.

        Args:
            limit: the mode, and who wants it.
            lowerings: as it was when somebody decided to climb.

        Raises:
            OutriderError: that cannot be put in force, or somebody lowered the mode since; the
                limit of before holds.
        """
        state, folder = self._state, self._state.recording.folder
        if state.lowerings != lowerings:
            raise ConfigurationError("the mode was lowered meanwhile")
        before = state.limit
        await asyncio.to_thread(keep_limit, limit, folder)
        if state.lowerings != lowerings:
            await asyncio.to_thread(keep_limit, state.limit, folder)
            raise ConfigurationError("the mode was lowered meanwhile")
        state.limit = limit
        try:
            await self._reload(lambda: state.configured, None)
        except BaseException:
            if state.lowerings == lowerings:
                state.limit = before
                if await asyncio.to_thread(limit_of, folder) == limit:
                    await asyncio.to_thread(keep_limit, before, folder)
            raise

    async def fall_back(self, why: str) -> None:
        """A guard broke: fall to shadow, and say so.

        Raises:
            OutriderError: as `lower`.
        """
        before, at_s = self.mode, time.time()
        self._watched.begin_anew()
        fell = CommandRecord(at_s, "fall_back", None, "", before, _SHADOW, why=why)
        try:
            await self.lower(ModeLimit(_SHADOW, at_s, before, BY_GUARD, why))
        except OutriderError as error:
            fell.outcome, fell.detail = "failed", f"nothing is changed any more, but: {error}"
            raise
        finally:
            await self._history.record(fell)
