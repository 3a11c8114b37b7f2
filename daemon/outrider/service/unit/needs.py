"""Needs of a configuration on the service that runs it: hosts to reach, files to read."""

import ipaddress
import os
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from outrider.model.credentials import is_credential
from outrider.model.deployment import HelperUnit, ServiceNeeds
from outrider.model.errors import OutriderError
from outrider.model.settings import build
from outrider.plugins.finding import load_adapter
from outrider.service.config.declarations import Config, adapter_of, listen_address, twin_of
from outrider.service.config.loaded import LoadedConfig
from outrider.service.host.threads import in_thread


class Peer(NamedTuple):
    """A remote host that the daemon connects to.

    Attributes:
        host: name or address, as configured.
        what: description for people.
        addresses: its addresses beyond loopback.
    """

    host: str
    what: str
    addresses: tuple[str, ...]


class Helper(NamedTuple):
    """A helper's unit, with the hosts it connects to."""

    unit: HelperUnit
    peers: list[Peer]


class UnitNeeds(NamedTuple):
    """All permissions and resources that the service needs.

    Attributes:
        peers: hosts that it connects to, without those on loopback.
        files: files, folders and patterns that it reads.
        secrets: files that no other user should be able to read.
        token_folders: the same for folders, with the environment variable that names each.
        credentials: names of systemd credentials, used as ``$CREDENTIALS_DIRECTORY/NAME``.
        environment: variables that it needs.
        helpers: further units.
        shared_tmp: why it needs this host's ``/tmp``; empty: it does not.
        capabilities: capabilities of its programs, and why each.
        unknown_hosts: why not all of its hosts are known; empty: they are.
        changes_last: true if a lever makes changes that do not expire by themselves.
        asks_twin: true if the shadow twin is ever run.
        notes: facts that could not be determined, a sentence each.
    """

    peers: list[Peer]
    files: list[str]
    secrets: list[str]
    token_folders: dict[str, str]
    credentials: list[str]
    environment: dict[str, str]
    helpers: list[Helper]
    shared_tmp: str
    capabilities: dict[str, str]
    unknown_hosts: str
    changes_last: bool
    asks_twin: bool
    notes: list[str]


def needs_of(loaded: LoadedConfig) -> UnitNeeds:
    """Return the needs of a configuration. Queries the batch systems, which takes seconds."""
    config = loaded.config
    parts = [*_of_adapters(loaded), *([config.mqtt.needs] if config.mqtt is not None else [])]
    notes = [note for one in parts for note in one.notes]
    hosts = {host: what for one in parts for host, what in one.hosts.items()}
    unresolved: list[str] = []
    peers = _with_name_servers(_peers(hosts, unresolved))
    notes += unresolved
    named = [*_secrets(config), *(path for one in parts for path in one.secrets)]
    listen, _ = listen_address(config)
    if not (listen == "localhost" or is_loopback(listen)):
        notes.append(
            f'"listen" = "{config.listen}" is beyond loopback: add the networks of its clients in '
            "your own drop-in (IPAddressAllow=)"
        )
    return UnitNeeds(
        peers=peers,
        files=list(dict.fromkeys([*_own_files(loaded), *(f for one in parts for f in one.files)])),
        secrets=[path for path in dict.fromkeys(named) if not is_credential(path)],
        token_folders={f: name for one in parts for f, name in one.token_folders.items()},
        credentials=[Path(name).name for name in dict.fromkeys(named) if is_credential(name)],
        environment={k: v for one in parts for k, v in one.environment.items()},
        helpers=[
            Helper(unit, _with_name_servers(_peers(one.hosts, [])))
            for one in parts
            for unit in one.helpers
        ],
        shared_tmp="; ".join(filter(None, (one.shared_tmp for one in parts))),
        capabilities={name: why for one in parts for name, why in one.capabilities.items()},
        unknown_hosts="; ".join([*filter(None, (one.unknown_hosts for one in parts)), *unresolved]),
        changes_last=any(one.changes_last for one in parts),
        asks_twin=twin_of(config).every_s > 0,
        notes=notes,
    )


def _of_adapters(loaded: LoadedConfig) -> Iterator[ServiceNeeds]:
    """Yield the needs of each adapter; an adapter that fails becomes a note."""
    for label, table in loaded.config.adapters.items():
        if f"adapters.{label}" in loaded.broken:
            continue
        kind, options = adapter_of(label, table)
        where = f"{loaded.source} [adapters.{label}]"
        try:
            adapter = load_adapter(kind)
            yield adapter(label, build(adapter.settings_type, options, where)).service_needs()
        except OutriderError as error:
            yield ServiceNeeds(notes=(f"adapter {label}: {error}",))
        except Exception as error:  # noqa: BLE001 - a plugin's code
            yield ServiceNeeds(notes=(f"adapter {label}: {type(error).__name__}: {error}",))


def _with_name_servers(peers: Iterable[Peer]) -> list[Peer]:
    """Return the peers, with the name servers if any peer is configured by name."""
    found = list(peers)
    if any(not is_address(peer.host) for peer in found):
        found += [Peer(a, "name server, from resolv.conf", (a,)) for a in nameservers()]
    return found


def _peers(hosts: Mapping[str, str], notes: list[str]) -> Iterator[Peer]:
    for host, what in hosts.items():
        try:
            addresses = resolve(host)
        except OSError as error:
            notes.append(f"{what}: {error}")
            continue
        beyond = tuple(address for address in addresses if not is_loopback(address))
        if beyond:
            yield Peer(host, what, beyond)


def _secrets(config: Config) -> Iterator[str]:
    yield from filter(None, (config.token_file, config.tls_key or config.tls_cert))


def _own_files(loaded: LoadedConfig) -> Iterator[str]:
    """Yield the configuration, the certificate, and Python's own folders."""
    if Path(loaded.source).exists():
        yield str(Path(loaded.source).absolute())
    if loaded.config.tls_key is not None and loaded.config.tls_cert is not None:
        yield loaded.config.tls_cert
    only_here = os.environ.get("PYTHONPATH", "").split(":")  # not set in a service
    folders: list[Path] = []
    for name in (sys.prefix, sys.base_prefix, *sys.path):
        folder = Path(name).absolute()
        is_new = folder.is_dir() and not any(folder.is_relative_to(f) for f in folders)
        if name and is_new and name not in only_here:
            folders.append(folder)
    yield from (str(folder) for folder in folders if not folder.is_relative_to("/usr"))


# -- addresses -------------------------------------------------------------------------------------
# Addresses in the network rules of a unit: ``IPAddressAllow=``, ``IPAddressDeny=``.

_WITHIN_S: Final = 5.0
_SYMBOLS: Final = {
    "any": ("0.0.0.0/0", "::/0"),
    "localhost": ("127.0.0.0/8", "::1/128"),
    "link-local": ("169.254.0.0/16", "fe80::/64"),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
}
RESOLVERS: Final = Path("/etc/resolv.conf")


def resolve(host: str, within_s: float = _WITHIN_S) -> tuple[str, ...]:
    """Return the addresses of a host, in order; loopback too.

    Raises:
        OSError: the name is unknown, or no name server answers in time.
    """
    look = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
    try:
        found = in_thread(look, "resolve").result(within_s)
    except TimeoutError as error:
        raise OSError(f"{host}: no name server answers within {within_s:g} s") from error
    except (OSError, UnicodeError) as error:
        raise OSError(f"{host}: the name is not known ({error})") from error
    return tuple(sorted({str(one[4][0]).partition("%")[0] for one in found}))


def is_loopback(address: str) -> bool:
    """Return True for a loopback address; False for any other, and for a name."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def is_address(host: str) -> bool:
    """Return True if a host is given as an address, not as a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_among(address: str, rules: Iterable[str]) -> bool:
    """Return True if a rule covers an address: networks, addresses, systemd's own words.

    >>> is_among("127.0.0.53", ["localhost"]), is_among("192.0.2.7", ["localhost", "192.0.2.0/24"])
    (True, True)
    >>> is_among("192.0.2.7", ["localhost", "2001:db8::/32", "nonsense"])
    False
    """
    wanted = ipaddress.ip_address(address)
    for rule in rules:
        for network in _SYMBOLS.get(rule, (rule,)):
            try:
                if wanted in ipaddress.ip_network(network, strict=False):
                    return True
            except (TypeError, ValueError):
                continue
    return False


def nameservers(file: Path = RESOLVERS) -> tuple[str, ...]:
    """Return the addresses of the name servers that this host uses, without loopback."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    words = [line.split() for line in lines]
    found = [w[1].partition("%")[0] for w in words if len(w) > 1 and w[0] == "nameserver"]
    return tuple(dict.fromkeys(a for a in found if is_address(a) and not is_loopback(a)))
