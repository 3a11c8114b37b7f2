"""Texts of the unit's drop-ins, from the needs of a configuration. Pure code."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from outrider.model.printable import printable_line
from outrider.service.unit.installed import HOMES
from outrider.service.unit.needs import Helper, Peer, UnitNeeds

_PLAIN: Final = re.compile(r"[\w@+=:,./-]+")


def command_text(words: Iterable[str | Path], user: str = "") -> str:
    """Return a drop-in that sets the command of a service, and its user if one is given."""
    command = " ".join(quoted(str(word)) for word in words)
    return (
        "# The Outrider that wrote this file, in place of the unit's command.\n"
        "# The empty line removes that: a service of this type may have only one command.\n"
        f"[Service]\nExecStart=\nExecStart={command}\n" + (f"User={user}\n" if user else "")
    )


def socket_text(path: str) -> str:
    """Return a drop-in that sets the path of a socket."""
    return (
        f"# The path in the daemon's configuration.\n[Socket]\nListenStream=\nListenStream={path}\n"
    )


def network_text(peers: Sequence[Peer], unknown: str = "") -> str:
    """Return a drop-in with the addresses beyond this host that the service may reach.

    Args:
        peers: hosts with known addresses.
        unknown: why there are hosts with unknown ones: then every address is allowed, because the
            service could otherwise never reach them.
    """
    if unknown:
        return (
            "# Every address: not all hosts were known when this file was written. Write it again\n"
            f"# once they are. {printable_line(unknown)}\n[Service]\nIPAddressAllow=any\n"
        )
    lines = [
        "# Hosts that Outrider connects to, with the addresses that their names had when this file",
        "# was written: systemd accepts no names. Write it again when an address changes.",
        "[Service]",
    ]
    listed: set[str] = set()
    for peer in peers:
        new = [address for address in peer.addresses if address not in listed]
        listed.update(new)
        if new:
            lines.append(f"# {peer.what}: {peer.host}")
            lines += [f"IPAddressAllow={address}" for address in new]
    return "\n".join(lines) + "\n"


def reading_text(
    groups: Iterable[str], hidden: Sequence[str], environment: Mapping[str, str]
) -> str:
    """Return a drop-in that lets the service read its files: groups, bound paths, variables."""
    lines = ["# Access to files that Outrider reads and that the unit alone denies.", "[Service]"]
    lines += [f"SupplementaryGroups={group}" for group in groups]
    if any(Path(path).is_relative_to(home) for path in hidden for home in HOMES):
        lines += ["# Empty homes, with only the paths bound below.", "ProtectHome=tmpfs"]
    if any(Path(path).is_relative_to("/root") for path in hidden):  # systemd 256 keeps its mode
        lines += ["# Root's may be entered.", "TemporaryFileSystem=/root:ro,mode=0755"]
    lines += [f"BindReadOnlyPaths=-{quoted(path)}" for path in hidden]
    lines += [f"Environment={quoted(f'{name}={value}')}" for name, value in environment.items()]
    return "\n".join(lines) + "\n"


def tmp_text(user: str, why: str) -> str:
    """Return a drop-in that lets the service use this host's ``/tmp``."""
    return (
        f"# This host's /tmp instead of an own one. {printable_line(why)}\n"
        "# DynamicUser= always brings an own one: the user of sysusers.d/outrider.conf is used.\n"
        f"[Service]\nDynamicUser=no\nUser={user}\nPrivateTmp=no\nReadWritePaths=/tmp\n"
    )


def capabilities_text(capabilities: Mapping[str, str]) -> str:
    """Return a drop-in that lets the service's programs have capabilities.

    Args:
        capabilities: by name, each with the reason.
    """
    names = " ".join(capabilities)
    reasons = "".join(f"# {name}: {printable_line(why)}\n" for name, why in capabilities.items())
    return (
        f"{reasons}# NoNewPrivileges= stays: nothing else comes with it, whatever is run.\n"
        f"[Service]\nCapabilityBoundingSet={names}\nAmbientCapabilities={names}\n"
    )


def user_text(user: str) -> str:
    """Return a drop-in for a service that shares the state folder of a daemon with `tmp_text`."""
    return (
        "# The daemon's user. With DynamicUser= the state folder would be moved at each start.\n"
        f"[Service]\nDynamicUser=no\nUser={user}\n"
    )


def secrets_text(credentials: Mapping[str, str], variables: Iterable[str]) -> str:
    """Return a drop-in with the credentials that systemd passes to the service.

    Args:
        credentials: from a name to a file, or to a folder whose files are all passed.
        variables: environment variables to set to the credentials folder.
    """
    lines = ["# Secrets that systemd passes to Outrider only.", "[Service]"]
    lines += [f"LoadCredential={name}:{quoted(path)}" for name, path in credentials.items()]
    lines += [f"Environment={variable}=%d" for variable in variables]
    return "\n".join(lines) + "\n"


def sysusers_text(user: str, groups: Iterable[str]) -> str:
    """Return a sysusers.d file with the service's user and the groups of its Unix socket."""
    lines = [
        "# The user that the daemon runs as, whose group may read over its Unix socket, and the",
        "# group whose members may also send commands there.",
        f'u {user} - "Outrider, a learning site scheduler"',
    ]
    lines += [f"g {group} -" for group in dict.fromkeys(groups) if group != user]
    return "\n".join(lines) + "\n"


def quoted(word: str) -> str:
    r"""Return a word quoted for a unit file: in quotes if needed, with specifiers doubled.

    >>> quoted("/opt/outrider/bin/outrider"), quoted('/srv/my "logs"/50%')
    ('/opt/outrider/bin/outrider', '"/srv/my \\"logs\\"/50%%"')
    """
    if _PLAIN.fullmatch(word):
        return word
    safe = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{safe}"'


# -- further units ---------------------------------------------------------------------------------
# Units next to the daemon's: the timer that reverts lasting changes, the twin, adapters' helpers.

RELEASE: Final = "outrider-release"
TWIN: Final = "outrider-twin.service"
SYSTEM: Final = Path("/etc/systemd/system")
_COMMAND: Final = "50-command.conf"
_NETWORK: Final = "50-network.conf"
_READING: Final = "50-reading.conf"
_TMP: Final = "50-tmp.conf"
Shipped = Callable[[str], str]
"""Maps the name of a unit to its text; raises `ConfigurationError` if the unit is missing."""


def release_texts(
    needs: UnitNeeds, command: Path, config: Path, drop_ins: Mapping[str, str], shipped: Shipped
) -> dict[Path, str]:
    """Return the files of the timer that reverts the changes of a dead daemon.

    Their texts are empty if all changes expire by themselves.

    Args:
        needs: needs of the configuration.
        command: `outrider` of this interpreter.
        config: the configuration's file.
        drop_ins: the daemon's, by name: the timer's service reaches and reads the same.
        shipped: returns the text of a unit.
    """
    folder = SYSTEM / f"{RELEASE}.service.d"
    units = {SYSTEM / f"{RELEASE}{kind}": f"{RELEASE}{kind}" for kind in (".service", ".timer")}
    runs = command_text((command, "release", "--stale", "--config", config))
    texts = {folder / _COMMAND: runs} | {folder / name: text for name, text in drop_ins.items()}
    if not needs.changes_last:
        return dict.fromkeys([*units, *texts], "")
    return {path: shipped(name) for path, name in units.items()} | texts


def twin_texts(
    needs: UnitNeeds,
    command: Path,
    config: Path,
    drop_ins: Mapping[str, str],
    shipped: Shipped,
    user: str,
) -> dict[Path, str]:
    """Return the files of the twin's service; empty texts if the twin is never run.

    Args:
        needs: needs of the configuration.
        command: `outrider` of this interpreter.
        config: the configuration's file.
        drop_ins: the daemon's, by name: the twin reads the same, and connects to no host.
        shipped: returns the text of a unit.
        user: user of the daemon, whose state folder the twin shares.
    """
    folder = SYSTEM / f"{TWIN}.d"
    if not needs.asks_twin:
        names = (_COMMAND, _READING, _TMP)
        return dict.fromkeys((SYSTEM / TWIN, *(folder / name for name in names)), "")
    return {
        SYSTEM / TWIN: shipped(TWIN),
        folder / _COMMAND: command_text((command, "run-twin", "--config", config)),
        folder / _READING: drop_ins[_READING],
        folder / _TMP: user_text(user) if drop_ins[_TMP] else "",
    }


def helper_texts(helper: Helper, user: str, shipped: Shipped) -> dict[Path, str]:
    """Return the unit files of a helper.

    Args:
        helper: the helper.
        user: user of the daemon, the only one whose requests the helper accepts.
        shipped: returns the text of a unit.
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
    """Return the names of the further units that have to be enabled."""
    timers = [f"{RELEASE}.timer"] if needs.changes_last else []
    sockets = [f"{helper.unit.name}.socket" for helper in needs.helpers]
    return [*timers, *sockets, *([TWIN] if needs.asks_twin else [])]
