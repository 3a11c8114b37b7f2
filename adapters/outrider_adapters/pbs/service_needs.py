"""What a service needs beside a PBS server: its address, the configuration of its commands."""

import os
import re
from pathlib import Path
from typing import Final

from outrider.api import ServiceNeeds
from outrider_adapters.pbs.settings import PBSSettings

_VARIABLES: Final = ("PBS_CONF_FILE", "PBS_DEFAULT", "PBS_SERVER")
_CONFIG: Final = "/etc/pbs.conf"
_SERVER_NAME: Final = "/var/spool/torque/server_name"
_LINE: Final = re.compile(
    r"^\s*PBS_(?:SERVER|PRIMARY|SECONDARY|SERVER_HOST_NAME)\s*=\s*(\S+)", re.MULTILINE
)


def needs_of(settings: PBSSettings) -> ServiceNeeds:
    """Who is asked, and which files the commands read, as far as it can be found out."""
    environment = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}
    config = environment.get("PBS_CONF_FILE", _CONFIG)
    named = settings.server or environment.get("PBS_DEFAULT") or environment.get("PBS_SERVER")
    hosts = (
        [named] if named else [*_LINE.findall(_text_of(config)), *_text_of(_SERVER_NAME).split()]
    )
    notes = () if hosts else (f"the server's address is not known: {config} names none",)
    files = [path for path in (config, settings.commands) if path and Path(path).exists()]
    return ServiceNeeds(
        hosts={host.partition(":")[0].partition("@")[0]: "PBS server" for host in hosts},
        files=tuple(files),
        environment=environment,
        notes=notes,
    )


def signs_of_pbs() -> tuple[str, ...]:
    """Files of which one is there where a host is configured for PBS."""
    return os.environ.get("PBS_CONF_FILE", ""), _CONFIG, _SERVER_NAME


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
