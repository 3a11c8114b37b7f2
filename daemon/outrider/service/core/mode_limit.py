"""Limit on the mode, set by a command or a broken guard below the configured mode.

It is a file in the state directory, so it persists over restarts and reloads. The configured mode
is the ceiling: the effective mode is the lower of the two.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from outrider.model.errors import LedgerError
from outrider.model.modes import MODES
from outrider.service.config.declarations import acting_of
from outrider.service.config.loaded import LoadedConfig
from outrider.service.host.private_folder import open_owned, read_owned

LIMIT_NAME: Final = "mode-limit.json"
"""The file in the state directory."""
BY_GUARD: Final = "guard"
BY_COMMAND: Final = "command"
_SHADOW: Final = "shadow"


class ModeLimit(msgspec.Struct, frozen=True):
    """The highest mode that is allowed, since when, and why.

    Attributes:
        most: the highest mode, one of `outrider.model.modes.MODES`.
        at_s: when the limit was set, in Unix seconds.
        was: the effective mode until then.
        by: `BY_GUARD` or `BY_COMMAND`.
        why: a sentence, or empty.
        uid: number of the user who set it; None: it was not set by a user.
        user: that user's name; empty if unknown.
    """

    most: str
    at_s: float
    was: str
    by: str
    why: str = ""
    uid: int | None = None
    user: str = ""


def limit_of(folder: Path) -> ModeLimit | None:
    """Return the limit of a state directory; an unreadable one limits the mode to shadow."""
    path = folder / LIMIT_NAME
    try:
        limit = msgspec.json.decode(read_owned(path), type=ModeLimit)
        if limit.most not in MODES:
            raise ValueError(f'"most" is "{limit.most}", known: {", ".join(MODES)}')
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # msgspec's errors are of the second kind
        return ModeLimit(_SHADOW, 0.0, "", BY_GUARD, f"{path} cannot be read: {error}")
    return limit


def keep_limit(limit: ModeLimit | None, folder: Path) -> None:
    """Store a limit, effective from the next start or reload; None: remove it.

    Raises:
        LedgerError: it cannot be written.
    """
    path = folder / LIMIT_NAME
    part = path.with_suffix(".part")
    try:
        if limit is None:
            path.unlink(missing_ok=True)
            return
        part.unlink(missing_ok=True)
        with os.fdopen(open_owned(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(msgspec.json.encode(limit))
        part.replace(path)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be written: {error.strerror}") from error


def effective_config(loaded: LoadedConfig, folder: Path) -> tuple[LoadedConfig, str | None]:
    """Return the configuration in its effective mode, and a note if that is not the configured."""
    configured = loaded.config.mode
    limit = limit_of(folder)
    if limit is not None:
        most, note = limit.most, note_of(limit, configured)
    elif acting_of(loaded.config).promote_first:
        most, note = _SHADOW, f"{_instead(_SHADOW, configured)}: `outrider promote` climbs"
    else:
        return loaded, None
    if rank(most) >= rank(configured):
        return loaded, None
    return in_mode(loaded, most), note


def in_mode(loaded: LoadedConfig, mode: str) -> LoadedConfig:
    """Return the same configuration in another mode."""
    other = msgspec.structs.replace(loaded.config, mode=mode)
    return msgspec.structs.replace(loaded, config=other)


def rank(mode: str) -> int:
    """Return the position of a mode in `MODES`: the higher, the more Outrider may do."""
    return MODES.index(mode)


def note_of(limit: ModeLimit, configured: str) -> str:
    """Return a note for operators on a limit below the configured mode.

    It contains no user's name: every client that may read the status sees it.
    """
    command = "by command" if limit.by == BY_COMMAND else ""
    why = ": ".join(filter(None, (command, limit.why)))
    return f"{_instead(limit.most, configured)}: {why}; `outrider promote` climbs"


def _instead(mode: str, configured: str) -> str:
    return f'mode "{mode}" in place of "{configured}"'
