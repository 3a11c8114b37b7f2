"""Who may look, and who sees users' names: decided for every request, before anything else."""

import base64
import binascii
import hmac
import ipaddress
import os
import socket
import struct
from asyncio.trsock import TransportSocket
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import structlog
from aiohttp import web

from outrider.model.credentials import file_of
from outrider.model.errors import ConfigurationError
from outrider.service.config.declarations import Config, listen_address
from outrider.service.config.reading import TOKEN_NAME

# -- hosts -----------------------------------------------------------------------------------------
# The names under which the daemon may be asked, so that no other page's name can stand for it.
#
# A web page anywhere may point a name of its own at 127.0.0.1 and then read, in the browser of
# somebody on this host, what that name answers (DNS rebinding). The browser tells the name in
# ``Host``, which no script can change: whoever asks under a name that is not ours is refused.

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
        """Return whether a ``Host`` header, with or without a port, names us."""
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


# -- access ----------------------------------------------------------------------------------------

MISDIRECTED: Final = 421
log = structlog.get_logger()


class Refused(NamedTuple):
    """Why somebody may not look."""

    status: int
    why: str


class Allowed(NamedTuple):
    """Somebody may look.

    Attributes:
        sees_names: users are shown by their names; else by pseudonyms.
    """

    sees_names: bool


class Commander(NamedTuple):
    """Somebody may command.

    Attributes:
        uid: number of the user.
    """

    uid: int


class Access:
    """The rules in force. A reload changes them in place.

    Args:
        token: who comes over TCP must send it; None: nobody must.
        names_token: who sends it sees names; None: there is none.
        show_users: as the setting of that name.
        hosts: the names under which the daemon may be asked.
        admin_group: whose members may command, by name.

    Attributes:
        gid: the group that the Unix socket is for, or None.
        admin_gid: the group that may also command there, or None.
        admin_group: the name of that group.
    """

    def __init__(
        self,
        token: str | None = None,
        names_token: str | None = None,
        show_users: str = "authorised",
        hosts: Hosts | None = None,
        admin_group: str = "",
    ) -> None:
        self._token = token
        self._names_token = names_token
        self._show_users = show_users
        self._hosts = Hosts() if hosts is None else hosts
        self.gid: int | None = None
        self.admin_gid: int | None = None
        self.admin_group = admin_group

    @classmethod
    def configured(cls, config: Config, state_folder: Path) -> "Access":
        """Return the rules of a configuration.

        Raises:
            ConfigurationError: a token cannot be read, or is none.
        """
        host, _ = listen_address(config)
        token = None if config.token_file is None else read_token(file_of(config.token_file))
        names_token = None if token is not None else _token_beside(state_folder / TOKEN_NAME)
        hosts = Hosts(host, config.host_names)
        return cls(token, names_token, config.show_users, hosts, config.admin_group)

    def follow(self, other: "Access") -> None:
        """From now on the rules of another hold; the groups of the socket stay."""
        stays = {key: getattr(self, key) for key in ("gid", "admin_gid", "admin_group")}
        vars(self).update(vars(other) | stays)

    @property
    def wants_token(self) -> bool:
        """True if a client that sends the token is shown users by their names, and no other."""
        has_token = self._token is not None or self._names_token is not None
        return has_token and self._show_users == "authorised"

    @property
    def how_to_see_names(self) -> str:
        """What a client does that is shown pseudonyms and wants names."""
        if self._show_users == "nobody":
            return "nobody is shown users' names here (show_users)"
        if self.wants_token:
            return "users' names are shown to who sends the token: sign in"
        return (
            "users' names are shown over the daemon's Unix socket, also through ssh -L, and to who "
            "sends the token that `outrider token` makes (show_users)"
        )

    def misdirected(self, request: web.Request) -> Refused | None:
        """Refuses whoever asks under a name that is not ours; one that names nobody is no page."""
        hosts: Sequence[str] = request.headers.getall("Host", ())
        if len(hosts) < 2 and all(map(self._hosts.is_ours, hosts)):
            return None
        return Refused(
            MISDIRECTED,
            f"{', '.join(hosts)!r} is no name of this daemon; expected localhost, its "
            "host's own name, the address it listens on, or a name in its setting host_names",
        )

    def judge(self, request: web.Request) -> Allowed | Refused:
        """Return whether a client may look, and what it sees."""
        local = _unix_socket_of(request)
        if local is not None:
            return self._judge_peer(local)
        sent = request.headers.get("Authorization", "")
        if self._token is not None:
            if not is_allowed(sent, self._token):
                return Refused(401, "a token is needed: send it as Authorization: Bearer TOKEN")
            return self._allowed(authorised=True)
        if self._names_token is None or not sent:
            return self._allowed(authorised=False)
        if not is_allowed(sent, self._names_token):
            return Refused(401, "this is not the token; without any, users are shown by pseudonyms")
        return self._allowed(authorised=True)

    def _judge_peer(self, local: socket.socket) -> Allowed | Refused:
        try:
            peer = peer_of(local)
        except OSError as error:
            return Refused(403, f"the system does not say who you are: {error.strerror}")
        if not may_enter(peer, self.gid, self.admin_gid):
            return Refused(
                403, f"user {peer.uid} is neither root nor the daemon's own, nor in its group"
            )
        return self._allowed(authorised=True)

    def judge_command(self, request: web.Request) -> Commander | Refused:
        """Return whether a client may change something."""
        local = _unix_socket_of(request)
        if local is None:
            return Refused(405, "commands are given over the Unix socket alone")
        try:
            peer = peer_of(local)
        except OSError as error:
            return Refused(403, f"the system does not say who you are: {error.strerror}")
        if not may_enter(peer, self.admin_gid):
            return Refused(
                403,
                f"user {peer.uid} may look but not command; expected root, the daemon's own "
                f"user or a member of the group {self.admin_group} (gpasswd --add NAME "
                f"{self.admin_group})",
            )
        return Commander(peer.uid)

    def _allowed(self, *, authorised: bool) -> Allowed:
        return Allowed(
            self._show_users == "everybody" or (self._show_users == "authorised" and authorised)
        )


def _token_beside(path: Path) -> str | None:
    """Return the token in the state directory; one that cannot be read shows nobody's name."""
    try:
        return read_token(path) if path.exists() else None
    except (ConfigurationError, OSError) as error:
        log.warning("token_ignored", error=str(error), hint="`outrider token --new` makes another")
        return None


def _unix_socket_of(request: web.Request) -> socket.socket | None:
    transport = request.transport
    found: socket.socket | None = None
    if transport is not None:
        found = transport.get_extra_info("socket")
    return found if found is not None and found.family == socket.AF_UNIX else None


def is_local(request: web.Request) -> bool:
    """Return whether a client came over the Unix socket."""
    return _unix_socket_of(request) is not None


ACCESS: Final = web.AppKey("ACCESS", Access)
"""Where an application keeps the rules."""
# -- peer credentials ------------------------------------------------------------------------------
# Who is at the other end of a Unix socket, as the kernel says it.
#
# The credentials are those of the moment at which the client connected; it cannot make them up.

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
    """Return whether a peer is root, our own user, or a member of one of these groups.

    Args:
        peer: who connected.
        gids: numbers of groups; None: of no group.
    """
    return peer.uid in (0, os.geteuid()) or any(gid in peer.gids for gid in gids if gid is not None)


# -- auth ------------------------------------------------------------------------------------------
# Authentication: with a token configured, only clients that send it may read.

CHALLENGES: Final = ('Bearer realm="outrider"', 'Basic realm="outrider", charset="UTF-8"')
"""What a refused client is told to send. Basic lets a browser ask its user for the token."""
SHORTEST_TOKEN: Final = 16


def read_token(path: Path) -> str:
    """Return the token in a file, without the white space around it.

    Raises:
        ConfigurationError: the file cannot be read, or what it holds is no good token.
    """
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ConfigurationError(
            f'"token_file" = "{path}": cannot be read: {error.strerror}'
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f'"token_file" = "{path}": only ASCII would be right') from error
    if len(token) < SHORTEST_TOKEN or len(token.split()) != 1:
        raise ConfigurationError(  # never shows the value: a token belongs in no log
            f'"token_file" = "{path}": one word of {SHORTEST_TOKEN} characters or more would be '
            "right, such as `openssl rand -hex 32` prints"
        )
    return token


def is_allowed(authorization: str, token: str) -> bool:
    """Return whether an Authorization header carries the token.

    As ``Bearer TOKEN``, or as the password of ``Basic``, whoever the user. The time this takes
    does not depend on how much of the token is right.
    """
    scheme, _, credentials = authorization.partition(" ")
    credentials = credentials.strip()
    if scheme.lower() == "basic":
        credentials = _password(credentials)
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(
        credentials.encode(errors="surrogateescape"), token.encode(errors="surrogateescape")
    )


def _password(credentials: str) -> str:
    try:
        pair = base64.b64decode(credentials, validate=True).decode(errors="replace")
    except (binascii.Error, ValueError):
        return ""
    return pair.partition(":")[2]
