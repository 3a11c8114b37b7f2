"""Access control of the HTTP server: who may read, see users' names, and send commands."""

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
from outrider.service.host.private_folder import open_owned

# -- hosts -----------------------------------------------------------------------------------------
# The host names that requests may use, against DNS rebinding.
#
# A web page elsewhere may make its own host name resolve to 127.0.0.1 and then read, in the browser
# of a user of this host, the daemon's answers (DNS rebinding). The browser sends the name in
# ``Host``, which no script can change: a request with any other name is refused.

_EVERYWHERE: Final = ("0.0.0.0", "::", "")  # noqa: S104 - compared, not bound


class Hosts:
    """The accepted host names: localhost, this host's own name, and those configured.

    Args:
        listen: the name or address that is listened on. If that is all addresses of this host, any
            address is accepted: a page cannot make its name into an address.
        declared: further names, from the configuration.
    """

    def __init__(self, listen: str = "127.0.0.1", declared: Iterable[str] = ()) -> None:
        self._any_address = listen in _EVERYWHERE
        own = ("localhost", socket.gethostname(), listen)
        self._names = {_plain(name) for name in (*own, *declared)}

    def is_ours(self, host: str) -> bool:
        """Return True if a ``Host`` header, with or without a port, has an accepted name."""
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
    """Return the name in ``NAME``, ``NAME:PORT`` or ``[ADDRESS]:PORT``, or None."""
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
    """A refused request, with the status and the reason."""

    status: int
    why: str


class Allowed(NamedTuple):
    """A client that may read.

    Attributes:
        sees_names: true if the client sees users' names; else it sees pseudonyms.
        uid: id of a user of this host who sees only its own name and reasons; None: no such user.
        known: true if the client has sent a token, or the kernel reports a user with rights.
    """

    sees_names: bool
    uid: int | None = None
    known: bool = False


class Commander(NamedTuple):
    """A client that may send commands.

    Attributes:
        uid: id of the user.
    """

    uid: int


class Access:
    """The active access rules. A reload changes them in place.

    Args:
        token: token that every client over TCP must send; None: no token is needed.
        names_token: token of clients that see names; None: there is none.
        show_users: the setting of that name.
        hosts: the accepted host names.
        admin_group: name of the group whose members may send commands.
        group: name of the group whose members see users' names over the socket.

    Attributes:
        gid: group that sees users' names over the Unix socket, or None.
        admin_gid: group that may also send commands there, or None.
        admin_group, group: names of these groups.
        socket: path of the Unix socket, or None.
        others: True if all users of this host may connect to it.
    """

    def __init__(
        self,
        token: str | None = None,
        names_token: str | None = None,
        show_users: str = "authorised",
        hosts: Hosts | None = None,
        admin_group: str = "",
        group: str = "",
    ) -> None:
        self._token = token
        self._names_token = names_token
        self._show_users = show_users
        self._hosts = Hosts() if hosts is None else hosts
        self.gid: int | None = None
        self.admin_gid: int | None = None
        self.admin_group = admin_group
        self.group = group
        self.socket: Path | None = None
        self.others = False

    @classmethod
    def configured(cls, config: Config, state_folder: Path) -> "Access":
        """Return the rules of a configuration.

        Raises:
            ConfigurationError: a token cannot be read, or is not valid.
        """
        host, _ = listen_address(config)
        token = None if config.token_file is None else _own_token(file_of(config.token_file))
        names_token = None if token is not None else _stored_token(state_folder / TOKEN_NAME)
        hosts = Hosts(host, config.host_names)
        return cls(
            token, names_token, config.show_users, hosts, config.admin_group, config.socket_group
        )

    def follow(self, other: "Access") -> None:
        """Replace these rules by others; the groups of the socket stay."""
        kept = ("gid", "admin_gid", "admin_group", "group", "socket", "others")
        stays = {key: getattr(self, key) for key in kept}
        vars(self).update(vars(other) | stays)

    @property
    def wants_token(self) -> bool:
        """True if only a client that sends the token sees users' names."""
        has_token = self._token is not None or self._names_token is not None
        return has_token and self._show_users == "authorised"

    @property
    def how_to_see_names(self) -> str:
        """Hint for a client that sees pseudonyms: how to see names."""
        if self._show_users == "nobody":
            return "users' names are never shown here (show_users)"
        if self.wants_token:
            return "users' names are shown to clients that send the token: sign in"
        return (
            "users' names are shown over the daemon's Unix socket, also through ssh -L, and to "
            "clients that send the token that `outrider token` makes (show_users)"
        )

    def how_to_see_reasons(self, request: web.Request, own: str) -> str:
        """Return a hint for a client that may not see the batch system's reason for a job.

        Args:
            request: its request.
            own: name of its own user, where it sees the reasons of its own jobs; or empty.
        """
        what = "the batch system's own reason, because it may name users"
        if self._show_users == "nobody":
            return f"{what}; names are never shown here (show_users)"
        local = _unix_socket_of(request)
        if local is None and self.wants_token:
            return f"{what}; send the token (--token-file FILE)"
        if local is None and self.others:
            return f"{what}; on its host, `outrider explain` shows it of your own jobs"
        if local is None:
            where = "" if self.socket is None else f" over {self.socket}"
            return (
                f"{what}; the daemon's user and root see it{where}; for other users set `socket`, "
                "or send the token that `outrider token` makes"
            )
        who = f"the user {own}" if own else "this user, who has no name here"
        if self.gid is None:
            return f"{what}: the job is not of {who}; ask as root or as the daemon's user"
        return (
            f"{what}: the job is not of {who}; members of the group {self.group} see it (gpasswd "
            f"--add {own or 'NAME'} {self.group})"
        )

    def misdirected(self, request: web.Request) -> Refused | None:
        """Refuse a request with an unknown host name; one without ``Host`` is not a browser's."""
        hosts: Sequence[str] = request.headers.getall("Host", ())
        if len(hosts) < 2 and all(map(self._hosts.is_ours, hosts)):
            return None
        return Refused(
            MISDIRECTED,
            f"{', '.join(hosts)!r} is not a name of this daemon; expected localhost, its "
            "host's own name, the address it listens on, or a name in its setting host_names",
        )

    def judge(self, request: web.Request) -> Allowed | Refused:
        """Return whether a client may read and sees names, or why it is refused."""
        local = _unix_socket_of(request)
        if local is not None:
            return self._judge_peer(local)
        sent = request.headers.get("Authorization", "")
        if self._token is not None:
            if not is_allowed(sent, self._token):
                return Refused(401, "a token is required: send it as Authorization: Bearer TOKEN")
            return self._allowed(authorised=True)
        if self._names_token is None or not sent:
            return self._allowed(authorised=False)
        if not is_allowed(sent, self._names_token):
            return Refused(401, "wrong token; without a token, users are shown as pseudonyms")
        return self._allowed(authorised=True)

    def _judge_peer(self, local: socket.socket) -> Allowed | Refused:
        try:
            peer = peer_of(local)
        except OSError as error:
            return Refused(403, f"the kernel does not report your user: {error.strerror}")
        if may_enter(peer, self.gid, self.admin_gid):
            return self._allowed(authorised=True)
        if self._token is not None:
            return Refused(
                403,
                f"user {peer.uid} is not root, not the daemon's own user, and not in socket_group",
            )
        allowed = self._allowed(authorised=False)
        return allowed._replace(uid=peer.uid if self._show_users == "authorised" else None)

    def judge_command(self, request: web.Request) -> Commander | Refused:
        """Return the client that may send commands, or why it is refused."""
        local = _unix_socket_of(request)
        if local is None:
            return Refused(405, "commands are only accepted over the Unix socket")
        try:
            peer = peer_of(local)
        except OSError as error:
            return Refused(403, f"the kernel does not report your user: {error.strerror}")
        if not may_enter(peer, self.admin_gid):
            return Refused(
                403,
                f"user {peer.uid} may read but not send commands; expected root, the daemon's own "
                f"user or a member of the group {self.admin_group} (gpasswd --add NAME "
                f"{self.admin_group})",
            )
        return Commander(peer.uid)

    def _allowed(self, *, authorised: bool) -> Allowed:
        sees_names = self._show_users == "everybody"
        sees_names |= self._show_users == "authorised" and authorised
        return Allowed(sees_names, known=authorised)

    def knows(self, local: socket.socket | TransportSocket | None) -> bool:
        """Return True if the peer of a Unix socket has rights there; False for other sockets."""
        if local is None or local.family != socket.AF_UNIX:
            return False
        try:
            return may_enter(peer_of(local), self.gid, self.admin_gid)
        except OSError:
            return False


def _own_token(path: Path) -> str:
    """Return the token that every client must send. Raises `ConfigurationError`."""
    token = read_token(path)
    try:
        found = path.stat()
    except OSError:
        return token
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
        raise ConfigurationError(
            f'"token_file" = "{path}": other users can write it; expected root or the daemon\'s '
            f"user as its owner, as after `chmod 600 {path}`"
        )
    return token


def _stored_token(path: Path) -> str | None:
    """Return the token in the state directory; None if there is none or it cannot be read."""
    try:
        if not path.exists():
            return None
        os.close(open_owned(path))
        return read_token(path)
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
    """Return True if a client is connected over the Unix socket."""
    return _unix_socket_of(request) is not None


def is_from_this_host(request: web.Request) -> bool:
    """Return True if a TCP client is on this host."""
    try:
        return ipaddress.ip_address(request.remote or "").is_loopback
    except ValueError:
        return False


ACCESS: Final = web.AppKey("ACCESS", Access)
"""Key of the access rules in an application."""
# -- peer credentials ------------------------------------------------------------------------------
# Credentials of the process at the other end of a Unix socket, from the kernel.
#
# They are those of the moment at which the client connected; the client cannot forge them.

_CREDENTIALS: Final = struct.Struct("iII")
_SO_PEERGROUPS: Final = 59
"""Socket option of Linux since 4.13, which the `socket` module does not define."""
_MAX_BYTES: Final = 1024
"""Largest result of Python's `getsockopt`: 256 groups."""


class Peer(NamedTuple):
    """Credentials of a connected process.

    Attributes:
        pid: its process id.
        uid: id of its user.
        gids: ids of its groups, the primary one first.
    """

    pid: int
    uid: int
    gids: tuple[int, ...]


def peer_of(connection: socket.socket | TransportSocket) -> Peer:
    """Return the credentials of the peer. Raises `OSError` if the kernel has none."""
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, gid = _CREDENTIALS.unpack(packed)
    try:
        groups = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_BYTES)
    except OSError:  # an old kernel, or more groups than fit: only the primary one is known
        return Peer(pid, uid, (gid,))
    return Peer(pid, uid, (gid, *struct.unpack(f"{len(groups) // 4}I", groups)))


def may_enter(peer: Peer, *gids: int | None) -> bool:
    """Return True if a peer is root, the daemon's own user, or in one of these groups.

    Args:
        peer: credentials of the peer.
        gids: ids of groups; None: no group.
    """
    return peer.uid in (0, os.geteuid()) or any(gid in peer.gids for gid in gids if gid is not None)


# -- auth ------------------------------------------------------------------------------------------
# Authentication by a token: if one is configured, only clients that send it may read.

CHALLENGES: Final = ('Bearer realm="outrider"', 'Basic realm="outrider", charset="UTF-8"')
"""``WWW-Authenticate`` values. Basic lets a browser ask its user for the token."""
SHORTEST_TOKEN: Final = 16


def read_token(path: Path) -> str:
    """Return the token in a file, without the white space around it.

    Raises:
        ConfigurationError: the file cannot be read, or its token is not valid.
    """
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ConfigurationError(
            f'"token_file" = "{path}": cannot be read: {error.strerror}'
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f'"token_file" = "{path}": expected ASCII only') from error
    if len(token) < SHORTEST_TOKEN or len(token.split()) != 1:
        raise ConfigurationError(  # never shows the value: a token must not be logged
            f'"token_file" = "{path}": expected one word of {SHORTEST_TOKEN} characters or more, '
            "as `openssl rand -hex 32` prints"
        )
    return token


def is_allowed(authorization: str, token: str) -> bool:
    """Return True if an Authorization header has the token.

    As ``Bearer TOKEN``, or as the password of ``Basic`` with any user. The comparison takes
    constant time.
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
