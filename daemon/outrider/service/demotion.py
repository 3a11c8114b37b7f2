"""A guard has put the daemon back to shadow: that holds over restarts, until somebody lifts it."""

from pathlib import Path
from typing import Final

import msgspec

from outrider.acting.gate import ACTING_MODES
from outrider.model.errors import LedgerError
from outrider.service.config.loaded import LoadedConfig

DEMOTION_NAME: Final = "demotion.json"
"""The file in the state directory."""


class Demotion(msgspec.Struct):
    """Since when, from which mode, and why.

    Attributes:
        at_s: Unix seconds.
        mode: that was in force until then.
        why: a sentence.
    """

    at_s: float
    mode: str
    why: str


def demotion_of(folder: Path) -> Demotion | None:
    """The demotion that is in force in a state directory; one that cannot be read is one, too."""
    path = folder / DEMOTION_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=Demotion)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        return Demotion(0.0, "unknown", f"{path} cannot be read: {error}")


def keep(demotion: Demotion, folder: Path) -> None:
    """Let a demotion be in force after the next start or reload, too.

    Raises:
        LedgerError: it cannot be written.
    """
    path = folder / DEMOTION_NAME
    part = path.with_suffix(".part")
    try:
        part.write_bytes(msgspec.json.encode(demotion))
        part.replace(path)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be written: {error.strerror}") from error


def lift(folder: Path) -> Demotion | None:
    """End the demotion that is in force, and return it; None: there was none.

    Raises:
        LedgerError: its file cannot be removed.
    """
    found = demotion_of(folder)
    try:
        (folder / DEMOTION_NAME).unlink(missing_ok=True)
    except OSError as error:
        raise LedgerError(
            f"{folder / DEMOTION_NAME}: cannot be removed: {error.strerror}; right would be to ask "
            "as the daemon's user or as root"
        ) from error
    return found


def in_force(loaded: LoadedConfig, folder: Path) -> tuple[LoadedConfig, str | None]:
    """A configuration with the mode that a demotion leaves of it, and a note where that differs."""
    config = loaded.config
    demotion = demotion_of(folder) if config.mode in ACTING_MODES else None
    if demotion is None:
        return loaded, None
    return in_shadow(loaded), note_of(demotion)


def in_shadow(loaded: LoadedConfig) -> LoadedConfig:
    """The same configuration in the mode that changes nothing."""
    shadow = msgspec.structs.replace(loaded.config, mode="shadow")
    return msgspec.structs.replace(loaded, config=shadow)


def note_of(demotion: Demotion) -> str:
    """What the person on call should know."""
    instead = f'mode "shadow" in place of "{demotion.mode}"'
    return f"{instead}: {demotion.why}; `outrider promote` lifts that"
