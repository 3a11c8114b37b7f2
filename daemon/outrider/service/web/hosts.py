"""The names under which the daemon may be asked, so that no other page's name can stand for it.

A web page anywhere may point a name of its own at 127.0.0.1 and then read, in the browser of
somebody on this host, what that name answers (DNS rebinding). The browser tells the name in
``Host``, which no script can change: whoever asks under a name that is not ours is refused.
"""

import ipaddress
import socket
from collections.abc import Iterable
from typing import Final

_EVERYWHERE: Final = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound


class Hosts:
    """The names that are ours: localhost, the name that this host has itself, and those given.

    Args:
        listen: the host that is listened on; a name, or an address. Where that is every address of
            this host, any address is ours: a page cannot make its name into an address.
        declared: further names, as the configuration has them.
    """

    def __init__(self, listen: str = "127.0.0.1", declared: Iterable[str] = ()) -> None:
        self._any_address = listen in _EVERYWHERE
        own = ("localhost", socket.gethostname(), listen)
        self._names = {_plain(name) for name in (*own, *declared)}

    def is_ours(self, host: str) -> bool:
        """Whether a ``Host`` header, with or without a port, names us."""
        name = _name_of(host)
        if name is None:
            return False
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._any_address or address.is_loopback


def _name_of(host: str) -> str | None:
    """The name in ``NAME``, ``NAME:PORT`` or ``[ADDRESS]:PORT``; None where it is none of these."""
    if host.startswith("["):
        name, bracket, rest = host[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            return None
        port = rest[1:]
    else:
        name, _, port = host.partition(":")
    if port and not (port.isascii() and port.isdigit()):
        return None
    return _plain(name) or None


def _plain(name: str) -> str:
    return name.strip().strip("[]").lower().removesuffix(".")
