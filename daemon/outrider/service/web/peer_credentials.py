"""Who is at the other end of a Unix socket, as the kernel says it.

The credentials are those of the moment at which the client connected; it cannot make them up.
"""

import os
import socket
import struct
from asyncio.trsock import TransportSocket
from typing import Final, NamedTuple

_CREDENTIALS: Final = struct.Struct("iII")
_SO_PEERGROUPS: Final = 59
"""Linux since 4.13; the `socket` module has no name for it."""
_MOST_BYTES: Final = 1024
"""What Python's `getsockopt` can take: 256 groups."""


class Peer(NamedTuple):
    """A process that has connected.

    Attributes:
        pid: its number.
        uid: its user.
        gids: its groups, the primary one first.
    """

    pid: int
    uid: int
    gids: tuple[int, ...]


def peer_of(connection: socket.socket | TransportSocket) -> Peer:
    """Who connected. Raises `OSError` where the kernel does not tell."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(told)
    try:
        groups = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MOST_BYTES)
    except OSError:  # an old kernel, or more groups than fit: only the primary one is known
        return Peer(pid, uid, (gid,))
    return Peer(pid, uid, (gid, *struct.unpack(f"{len(groups) // 4}I", groups)))


def may_enter(peer: Peer, *gids: int | None) -> bool:
    """Whether a peer is root, our own user, or a member of one of these groups.

    Args:
        peer: who connected.
        gids: numbers of groups; None: of no group.
    """
    return peer.uid in (0, os.geteuid()) or any(gid in peer.gids for gid in gids if gid is not None)
