"""The texts of the unit's drop-ins, made of what a configuration needs. Pure code."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from outrider.service.unit.installed import HOMES
from outrider.service.unit.needs import Helper, Peer, UnitNeeds

_PLAIN: Final = re.compile(r"[\w@+=:,./-]+")


def command_text(words: Iterable[str | Path], user: str = "") -> str:
    """Return which program runs, with which words; as whom, where that is not the unit's own."""
    told = " ".join(quoted(str(word)) for word in words)
    return (
        "# The Outrider that wrote this, in place of the unit's own.\n"
        "# The empty line takes that back: a service of this type may have one command only.\n"
        f"[Service]\nExecStart=\nExecStart={told}\n" + (f"User={user}\n" if user else "")
    )


def socket_text(path: str) -> str:
    """Return where a socket is, in place of the unit's own."""
    return (
        f"# As the daemon's configuration has it.\n[Socket]\nListenStream=\nListenStream={path}\n"
    )


def network_text(peers: Sequence[Peer]) -> str:
    """Whom it may reach beyond this host."""
    lines = [
        "# Whom Outrider connects to beyond this host, by the addresses that their names had when",
        "# this was written: systemd knows no names. Write it anew when they move.",
        "[Service]",
    ]
    told: set[str] = set()
    for peer in peers:
        new = [address for address in peer.addresses if address not in told]
        told.update(new)
        if new:
            lines.append(f"# {peer.what}: {peer.host}")
            lines += [f"IPAddressAllow={address}" for address in new]
    return "\n".join(lines) + "\n"


def reading_text(
    groups: Iterable[str], hidden: Sequence[str], environment: Mapping[str, str]
) -> str:
    """What it may read: by groups, through what the unit hides, by variables."""
    lines = ["# What Outrider reads, and may not as the unit stands.", "[Service]"]
    lines += [f"SupplementaryGroups={group}" for group in groups]
    if any(Path(path).is_relative_to(home) for path in hidden for home in HOMES):
        lines += ["# Empty homes, in which what is bound below can be seen.", "ProtectHome=tmpfs"]
    lines += [f"BindReadOnlyPaths=-{quoted(path)}" for path in hidden]
    lines += [f"Environment={quoted(f'{name}={value}')}" for name, value in environment.items()]
    return "\n".join(lines) + "\n"


def secrets_text(credentials: Mapping[str, str], variables: Iterable[str]) -> str:
    """What systemd hands over to it alone.

    Args:
        credentials: from a name to the file, or the folder of which every file is handed over.
        variables: that name the folder in which all of it is.
    """
    lines = ["# Secrets that systemd hands to Outrider alone.", "[Service]"]
    lines += [f"LoadCredential={name}:{quoted(path)}" for name, path in credentials.items()]
    lines += [f"Environment={variable}=%d" for variable in variables]
    return "\n".join(lines) + "\n"


def sysusers_text(user: str, groups: Iterable[str]) -> str:
    """The service's user, with a group of the same name, and groups whose members may do more."""
    lines = [
        "# The user that the daemon runs as, and whose group may look over its Unix socket;",
        "# and the group whose members may also command it there.",
        f'u {user} - "Outrider, a learning site scheduler"',
    ]
    lines += [f"g {group} -" for group in dict.fromkeys(groups) if group != user]
    return "\n".join(lines) + "\n"


def quoted(word: str) -> str:
    r"""A word as systemd reads it back: in quotes where it has to be, its specifiers doubled.

    >>> quoted("/opt/outrider/bin/outrider"), quoted('/srv/my "logs"/50%')
    ('/opt/outrider/bin/outrider', '"/srv/my \\"logs\\"/50%%"')
    """
    if _PLAIN.fullmatch(word):
        return word
    safe = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{safe}"'


# -- beside ----------------------------------------------------------------------------------------
# Units beside the daemon's: what takes back what lasts, what asks the twin, others' helpers.

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
