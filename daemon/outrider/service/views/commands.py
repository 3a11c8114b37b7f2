"""The mode: since when, what lowers it, and what was commanded last."""

from typing import Any, Final

import msgspec

from outrider.journal import CommandRecord
from outrider.service.commands.port import CommandPort

_LAST: Final = 5


def command_rows(commands: CommandPort | None, most: int) -> list[dict[str, Any]]:
    """The last commands and changes of the mode, the newest first."""
    records = [] if commands is None else commands.history.records
    return [_row(record) for record in reversed(records[-most:])]


def _row(record: CommandRecord) -> dict[str, Any]:
    return msgspec.structs.asdict(record)


def mode_shown(mode: str, configured: str, commands: CommandPort | None) -> dict[str, Any]:
    """The part of the status that is about the mode, and names nobody but in `commands`."""
    return {
        "configured_mode": configured,
        "mode_since_s": None if commands is None else commands.history.since_s(mode),
        "commands": command_rows(commands, _LAST),
    }
