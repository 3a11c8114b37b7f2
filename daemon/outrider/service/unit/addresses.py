"""Addresses as the network rules of a unit know them: ``IPAddressAllow=``, ``IPAddressDeny=``."""

import ipaddress
import queue
import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_WITHIN_S: Final = 5.0
_SYMBOLS: Final = {
    "any": ("0.0.0.0/0", "::/0"),
    "localhost": ("127.0.0.0/8", "::1/128"),
    "link-local": ("169.254.0.0/16", "fe80::/64"),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
}
RESOLVERS: Final = Path("/etc/resolv.conf")


def resolve(host: str, within_s: float = _WITHIN_S) -> tuple[str, ...]:
    """The addresses of a host, in order; loopback too.

    Raises:
        OSError: nobody knows it, or not in time; the message says so.
    """
    told: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def look() -> None:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            told.put(OSError(f"{host}: the name is not known ({error})"))
        else:
            told.put([str(one[4][0]).partition("%")[0] for one in found])

    threading.Thread(target=look, name="resolve", daemon=True).start()
    try:
        answer = told.get(timeout=within_s)
    except queue.Empty as error:
        raise OSError(f"{host}: no name server answers within {within_s:g} s") from error
    if isinstance(answer, OSError):
        raise answer
    return tuple(sorted(set(answer)))


def is_loopback(address: str) -> bool:
    """Whether an address never leaves this host; what is none does."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def is_address(host: str) -> bool:
    """Whether it is an address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_among(address: str, rules: Iterable[str]) -> bool:
    """Whether one of these rules covers an address: networks, addresses, systemd's own words.

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
    """The name servers of this host that are not on it, which names are looked up with."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    words = [line.split() for line in lines]
    found = [w[1].partition("%")[0] for w in words if len(w) > 1 and w[0] == "nameserver"]
    return tuple(dict.fromkeys(a for a in found if is_address(a) and not is_loopback(a)))
