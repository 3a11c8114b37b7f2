"""After a fault that could not be repaired the state is made anew, as a restart would."""

import asyncio
import time
from typing import Final

import structlog

from outrider.service.daemon_state import DaemonState
from outrider.service.restart import bring_up

_AGAIN_AFTER_S: Final = 60.0

log = structlog.get_logger()


class Rebuilder:
    """Replaces a core whose state is in doubt by one made of the last snapshot and the journal.

    Args:
        state: of the daemon.
    """

    def __init__(self, state: DaemonState) -> None:
        self._state = state
        self._not_before_s = 0.0

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
                bring_up, state.new_core, state.recording, left_out
            )
        except Exception as error:  # the daemon goes on with the state it has
            log.exception("keep_doubtful_state", again_in_s=_AGAIN_AFTER_S)
            state.view.add_note(f"the state is in doubt: {type(error).__name__}: {error}")
            return
        core.succeed(old, state.adapters)
        for label, source in core.sources.items():
            if not source.is_open:
                core.merger.excuse(label)
        state.replace_core(core)
        for note in ["the state was rebuilt after a fault that could not be repaired", *notes]:
            state.view.add_note(note)
        state.log_lost_policies()
        await state.snapshot()  # or a restart would have to leave the same events out again
