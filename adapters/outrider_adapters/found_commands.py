"""Looking for a batch system's commands on this host, as far as a service would find them."""

import os
import shutil
from pathlib import Path
from typing import Any, Final

from outrider.api import FoundSystem, PeerError
from outrider_adapters.polling.commands import Commands

_OF_SERVICES: Final = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)
"""PATH of a service of systemd, which reads no profile."""
_WITHIN_S: Final = 10.0
HTCONDOR: Final = "HTCondor"
_ASKED: Final = "condor_config_val"


def found_by_commands(system: str, command: str, signs: tuple[str, ...]) -> FoundSystem | None:
    """A batch system whose command is on PATH, and of whose configuration a file is there.

    Nobody is asked: commands of a system that is only installed may hang for a minute.

    Args:
        system: what people call it.
        command: one that its adapter needs.
        signs: paths of its configuration; empty ones are passed over.
    """
    path = shutil.which(command)
    sign = next((sign for sign in signs if sign and Path(sign).is_file()), None)
    if path is None or sign is None:
        return None
    folder = str(Path(path).parent)
    settings: dict[str, Any] = {} if folder in _OF_SERVICES else {"commands": folder}
    return FoundSystem(system=system, sign=sign, settings=settings)


def condor_value(name: str) -> str:
    """A value of HTCondor's configuration on this host; empty: it has none, or is not here."""
    if shutil.which(_ASKED) is None:
        return ""
    try:
        said = Commands(None, os.environ, _WITHIN_S).run(_ASKED, name)
    except PeerError:
        return ""
    return said.strip()


def found_pool() -> FoundSystem | None:
    """The HTCondor pool that this host is configured for."""
    collector = condor_value("COLLECTOR_HOST")
    if not collector:
        return None
    return FoundSystem(system=HTCONDOR, sign=f"{_ASKED} COLLECTOR_HOST: {collector}")


def found_event_log() -> FoundSystem | None:
    """The event log of an access point here, for where the pool itself cannot be asked."""
    log = condor_value("EVENT_LOG")
    if not log or not Path(log).is_file():
        return None
    missing = (
        "HTCondor's Python library is not installed, so only its event log is followed: machines "
        "are inferred, and why a job waits is not known. pip install 'outrider[htcondor]', then "
        "[adapters.htcondor] in place of the log"
    )
    settings = {"paths": [log]}
    return FoundSystem(
        system=HTCONDOR, sign=f"{_ASKED} EVENT_LOG: {log}", settings=settings, review=(missing,)
    )
