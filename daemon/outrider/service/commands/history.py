"""The last commands and changes of the mode, and their way into journal and log."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import structlog

from outrider.journal import CommandRecord, Entry, Journal
from outrider.model.errors import LedgerError
from outrider.service.journal.recording import Recording

CONFIGURATION: Final = "configuration"
"""Of a record: the mode in force is another, though nobody commanded that."""
MOST_SHOWN: Final = 100
_SUBMIT_S: Final = 2.0
"""How long the journal may have no room for a command before it is in the log alone."""

log = structlog.get_logger()


class CommandHistory:
    """What was commanded, the newest at the end.

    Args:
        recording: the journal.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._records: deque[CommandRecord] = deque(maxlen=MOST_SHOWN)
        try:
            with Journal(recording.path, read_only=True) as journal:
                found = [record for _, record in journal.latest_commands(MOST_SHOWN)]
            self._records.extend(reversed(found))
        except (LedgerError, TypeError, ValueError) as error:
            log.error("lose_commands", reason=str(error))

    @property
    def records(self) -> Sequence[CommandRecord]:
        """The last hundred."""
        return list(self._records)

    @property
    def last_mode(self) -> str:
        """The mode that was in force last, as far as is known; else empty."""
        return self._records[-1].to_mode if self._records else ""

    def since_s(self, mode: str) -> float | None:
        """Since when this mode has been in force (Unix seconds); None where that is not known."""
        since_s = None
        for record in reversed(self._records):
            if record.to_mode != mode:
                break
            since_s = record.at_s
        return since_s

    async def record(
        self, record: CommandRecord, meta: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Write it to the log, and to the journal as soon as that has room.

        Args:
            record: what is to be recorded.
            meta: kept by the journal in the same transaction, by name.
        """
        tell = log.info if record.command == CONFIGURATION else log.warning
        tell(
            "change_mode" if record.from_mode != record.to_mode else "note_command",
            command=record.command, uid=record.uid, user=record.user, outcome=record.outcome,
            from_mode=record.from_mode, to_mode=record.to_mode, why=record.why,
            detail=record.detail,
        )  # fmt: skip
        self._records.append(record)
        try:
            async with asyncio.timeout(_SUBMIT_S):
                await self._recording.submit(Entry(commands=[record], meta=dict(meta)))
        except TimeoutError:
            log.critical("forget_command", command=record.command, reason="the journal is full")
