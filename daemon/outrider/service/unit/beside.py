"""Units beside the daemon's: what takes back what lasts, what asks the twin, others' helpers."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from outrider.service.unit.drop_ins import command_text, network_text, socket_text
from outrider.service.unit.needs import Helper, UnitNeeds

RELEASE: Final = "outrider-release"
TWIN: Final = "outrider-twin.service"
SYSTEM: Final = Path("/etc/systemd/system")
_COMMAND: Final = "50-command.conf"
_NETWORK: Final = "50-network.conf"
_READING: Final = "50-reading.conf"
Shipped = Callable[[str], str]
"""From the name of a unit to its text; raises `ConfigurationError` where it did not come along."""


def release_texts(
    needs: UnitNeeds, command: Path, config: Path, drop_ins: Mapping[str, str], shipped: Shipped
) -> dict[Path, str]:
    """Files of the timer that takes back what a dead daemon left; empty texts: nothing lasts.

    Args:
        needs: of the configuration.
        command: `outrider` of this interpreter.
        config: the configuration's file.
        drop_ins: the daemon's, by name: the timer's service reaches and reads the same.
        shipped: texts of units.
    """
    folder = SYSTEM / f"{RELEASE}.service.d"
    units = {SYSTEM / f"{RELEASE}{kind}": f"{RELEASE}{kind}" for kind in (".service", ".timer")}
    runs = command_text((command, "release", "--stale", "--config", config))
    texts = {folder / _COMMAND: runs} | {folder / name: text for name, text in drop_ins.items()}
    if not needs.changes_last:
        return dict.fromkeys([*units, *texts], "")
    return {path: shipped(name) for path, name in units.items()} | texts


def twin_texts(
    needs: UnitNeeds, command: Path, config: Path, drop_ins: Mapping[str, str], shipped: Shipped
) -> dict[Path, str]:
    """Files of the service that asks the twin; empty texts: it is never asked.

    Args:
        needs: of the configuration.
        command: `outrider` of this interpreter.
        config: the configuration's file.
        drop_ins: the daemon's, by name: it reads the same, and reaches nobody.
        shipped: texts of units.
    """
    folder = SYSTEM / f"{TWIN}.d"
    if not needs.asks_twin:
        return dict.fromkeys((SYSTEM / TWIN, folder / _COMMAND, folder / _READING), "")
    return {
        SYSTEM / TWIN: shipped(TWIN),
        folder / _COMMAND: command_text((command, "run-twin", "--config", config)),
        folder / _READING: drop_ins[_READING],
    }


def helper_texts(helper: Helper, user: str, shipped: Shipped) -> dict[Path, str]:
    """Files of a helper.

    Args:
        helper: it.
        user: of the daemon, whom alone it hears.
        shipped: texts of units.
    """
    unit = helper.unit
    folder = SYSTEM / f"{unit.name}.service.d"
    runs = command_text((sys.executable, "-m", *unit.words, "--user", user), unit.user)
    return {
        SYSTEM / f"{unit.name}.socket": shipped(f"{unit.name}.socket"),
        SYSTEM / f"{unit.name}.socket.d" / "50-socket.conf": socket_text(unit.socket),
        SYSTEM / f"{unit.name}.service": shipped(f"{unit.name}.service"),
        folder / _COMMAND: runs,
        folder / _NETWORK: network_text(helper.peers) if helper.peers else "",
    }


def units_to_enable(needs: UnitNeeds) -> list[str]:
    """Those of them that have to be enabled, once they are written."""
    timers = [f"{RELEASE}.timer"] if needs.changes_last else []
    sockets = [f"{helper.unit.name}.socket" for helper in needs.helpers]
    return [*timers, *sockets, *([TWIN] if needs.asks_twin else [])]
