"""Watching the sources: one that hangs holds up nobody, and the log says which is down, and why."""

import asyncio
from typing import Final

import structlog

from outrider.service.daemon_state import DaemonState
from outrider.service.pump import Pumps
from outrider.service.source_state import SourceState

_EVERY_S: Final = 1.0

log = structlog.get_logger()


class SourceWatch:
    """Looks at every source once a second.

    Args:
        state: of the daemon.
        pumps: read the sources.
    """

    def __init__(self, state: DaemonState, pumps: Pumps) -> None:
        self._state = state
        self._pumps = pumps
        self._told: dict[str, str] = {}  # of the sources that are down: the problem that was told

    async def run(self) -> None:
        """Watch, for ever."""
        while True:
            await asyncio.sleep(_EVERY_S)
            sources = dict(self._state.core.sources)
            for label in self._told.keys() - sources.keys():
                del self._told[label]
            for label, source in sources.items():
                self.tell(source)
                if source.hangs and not source.up:
                    await self._pumps.go_on_without(label)

    def tell(self, source: SourceState) -> None:
        """Write a line when a source goes down, for another reason, or is up again."""
        told = self._told.get(source.label)
        if source.up:
            if told is not None:
                del self._told[source.label]
                log.info("regain_source", adapter=source.label)
            return
        if not source.is_opening and told != source.problem:
            self._told[source.label] = source.problem
            log.error("lose_source", adapter=source.label, reason=source.down_because)
