"""After a fault that could not be repaired the state is made anew, as a restart would.

So it is after the host's clock was ahead and has been put back: what the site's time moved on by is
undone, and what was recorded meanwhile is fed again with its times put right (`put_right`).
"""

import asyncio
import time
from typing import Final

import structlog

from outrider.service.core import Core
from outrider.service.daemon_state import DaemonState
from outrider.service.restart import bring_up

_AGAIN_AFTER_S: Final = 60.0
_STANDS_STILL: Final = " and stands still until the clock gets there; set the clock, if it is wrong"

log = structlog.get_logger()


class Rebuilder:
    """Replaces a core whose state is in doubt by one made of the last snapshot and the journal.

    Args:
        state: of the daemon.
    """

    def __init__(self, state: DaemonState) -> None:
        self._state = state
        self._not_before_s = 0.0
        self._waits_for_clock = False

    async def rebuild(self) -> None:
        """Try it, at most once a minute; until it works, no snapshot is written.

        The caller holds the lock, and has submitted everything that entered the core.
        """
        state, old = self._state, self._state.core
        if time.monotonic() < self._not_before_s:
            return
        self._not_before_s = time.monotonic() + _AGAIN_AFTER_S
        left_out = [key for key in old.unrepaired if key is not None]
        log.critical("rebuild_state", reason="a fault could not be repaired", events=len(left_out))
        try:
            await state.recording.settle()
            core, _, notes = await asyncio.to_thread(
                bring_up, state.new_core, state.recording, left_out, state.site_clock
            )
        except Exception as error:  # the daemon goes on with the state it has
            log.exception("keep_doubtful_state", again_in_s=_AGAIN_AFTER_S)
            state.view.add_note(f"the state is in doubt: {type(error).__name__}: {error}")
            return
        notes.insert(0, "the state was rebuilt after a fault that could not be repaired")
        await self._replace(core, notes)

    async def _replace(self, core: Core, notes: list[str]) -> None:
        state = self._state
        core.succeed(state.core, state.adapters)
        for label, source in core.sources.items():
            if not source.is_open:
                core.merger.excuse(label)
        state.replace_core(core)
        for note in notes:
            state.view.add_note(note)
        state.log_lost_policies()
        await state.record_set_aside()
        await state.snapshot()  # or a restart would have to do the same again

    async def follow_clock(self) -> None:
        """If the clock was ahead and is put back, the site's time goes back with it.

        Another core takes the old one's place then. If the state before the leap is gone, or this
        clock is what is wrong, it stays, and time at the site stands still until the clock gets
        there. The caller holds the lock, and has submitted everything that entered the core.
        """
        state, old = self._state, self._state.core
        latest_s = None if state.site_clock is None else state.site_clock.latest_site_s()
        if latest_s is None or old.merger.now <= latest_s:
            if self._waits_for_clock:
                self._waits_for_clock = False
                state.view.notes = [n for n in state.view.notes if not n.endswith(_STANDS_STILL)]
            return
        if self._waits_for_clock or old.engine.silent:
            return
        self._waits_for_clock = True  # what fails now would fail with every batch
        ahead_s = old.merger.now - state.clock.now_s
        log.critical("clock_put_back", site_ahead_s=round(ahead_s))
        core: Core | None = None
        notes: list[str] = []
        try:
            if state.recording.snapshots.dated_until(latest_s):
                await state.recording.settle()
                core, _, notes = await asyncio.to_thread(
                    bring_up, state.new_core, state.recording, (), state.site_clock
                )
        except Exception:  # the daemon goes on with the state it has
            log.exception("keep_site_time")
        if core is None or core.merger.now > latest_s:
            ahead = f"the site's time is {ahead_s / 3600:.0f} h ahead of this host's clock"
            state.view.add_note(ahead + _STANDS_STILL)
            return
        notes.insert(0, f"the clock was put back by {ahead_s / 3600:.0f} h, and the state with it")
        await self._replace(core, notes)
        self._waits_for_clock = False
