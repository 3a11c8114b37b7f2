"""What a service needs beside a Slurm: the addresses of its controllers, its configuration."""

import os
import re
from pathlib import Path
from typing import Final

from outrider.api import HelperUnit, ServiceNeeds
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.partitions import settings_of
from outrider_adapters.slurm.settings import SlurmSettings

_USUAL: Final = "/etc/slurm/slurm.conf"
_CONTROLLER: Final = re.compile(
    r"SlurmctldHost(\[\d+\])?|ControlMachine|BackupController", re.IGNORECASE
)
_DATABASE: Final = re.compile(r"AccountingStorage(Backup)?Host", re.IGNORECASE)
_IN_BRACKETS: Final = re.compile(r"(?P<name>[^(]+)\((?P<address>[^)]+)\)")
_SLURM_USER: Final = "slurm"
"""Whom the unit runs as where Slurm does not say."""
_UNSET: Final = ("", "(null)", "none")


def needs_of(settings: SlurmSettings, commands: SlurmCommands) -> ServiceNeeds:
    """Who is asked, and which files the commands read, as far as it can be found out."""
    config = settings.config or os.environ.get("SLURM_CONF") or _USUAL
    notes: list[str] = []
    try:
        shown = commands.run("scontrol", "show", "config")
    except CommandError as error:
        shown = _text_of(Path(config))
        if not shown:
            notes.append(f"addresses of controllers are not known: {error}")
    environment = {}
    if settings.config is None and "SLURM_CONF" in os.environ:
        environment["SLURM_CONF"] = os.environ["SLURM_CONF"]
    files = [config] if Path(config).exists() else []
    return ServiceNeeds(
        hosts=hosts_in(shown),
        files=(*files, *([settings.commands] if settings.commands else [])),
        environment=environment,
        helpers=() if settings.helper is None else (_helper(settings.helper, settings, shown),),
        changes_last=settings.changes_last,
        notes=tuple(notes),
    )


def _helper(socket: str, settings: SlurmSettings, shown: str) -> HelperUnit:
    """What updates jobs as the user who may, by the same commands."""
    config = settings.config or os.environ.get("SLURM_CONF")
    words = ["outrider_adapters.slurm.acting.helper"]
    words += ["--slurm-config", config] if config else []
    words += ["--commands", settings.commands] if settings.commands else []
    user = settings_of(shown).get("SlurmUser", _SLURM_USER).partition("(")[0]
    return HelperUnit(name="outrider-slurm", words=tuple(words), user=user, socket=socket)


def hosts_in(config: str) -> dict[str, str]:
    r"""Whom Slurm's commands ask, by its configuration, and what each is.

    >>> hosts_in("SlurmctldHost[0] = ctl(192.0.2.7)\nAccountingStorageHost = db\n")
    {'192.0.2.7': "Slurm's controller ctl", 'db': "Slurm's database"}
    """
    found: dict[str, str] = {}
    for key, value in settings_of(config).items():
        what = "controller" if _CONTROLLER.fullmatch(key) else ""
        what = what or ("database" if _DATABASE.fullmatch(key) else "")
        if not what or value in _UNSET:
            continue
        if (named := _IN_BRACKETS.fullmatch(value)) is not None:
            found[named["address"]] = f"Slurm's {what} {named['name']}"
        else:
            found[value] = f"Slurm's {what}"
    return found


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
