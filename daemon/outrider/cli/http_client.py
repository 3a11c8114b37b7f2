"""HTTP client for a daemon over TCP, TLS or a Unix socket, with readable errors.

It uses the standard library alone and follows no proxy or redirect, so that a token reaches only
its daemon. Time and size of the whole answer are limited, also against a hostile server.
"""

import contextlib
import http.client
import ipaddress
import math
import pwd
import socket
import ssl
import struct
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from outrider.model.errors import ConfigurationError, PeerError
from outrider.service.host.private_folder import socket_address

TIMEOUT_S: Final = 5.0
"""Time limit for the whole answer, not for each chunk."""
MAX_BYTES: Final = 64 << 20
_CHUNK: Final = 64 * 1024

_EXPIRED, _NOT_YET, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64
"""OpenSSL's codes of certificate errors; any other code means an unknown authority."""


class Reply(NamedTuple):
    """Answer to an HTTP request.

    Attributes:
        status: its status.
        body: its body.
        socket: path of the daemon's Unix socket, as the daemon reports it to clients on its host.
    """

    status: int
    body: bytes
    socket: str = ""


def get(
    url: str,
    path: str,
    headers: Mapping[str, str],
    ca: Path | None,
    timeout_s: float = TIMEOUT_S,
    *,
    trusted: Collection[int] | None = None,
) -> Reply:
    """Send a GET request; see `ask`."""
    return ask(url, path, headers, ca, timeout_s, trusted=trusted)


def ask(
    url: str,
    path: str,
    headers: Mapping[str, str],
    ca: Path | None,
    timeout_s: float = TIMEOUT_S,
    *,
    method: str = "GET",
    body: bytes | None = None,
    trusted: Collection[int] | None = None,
) -> Reply:
    """Send one HTTP request and return the answer.

    Args:
        url: ``http://``, ``https://`` or ``unix:PATH``; a path in it goes before `path`.
        path: below the address, its parts quoted.
        headers: headers of the request.
        ca: PEM file whose certificates are trusted in addition to the system's; None: no others.
        timeout_s: seconds until the whole answer must have arrived.
        method: HTTP method.
        body: body of the request.
        trusted: users of this host who may listen there; None: any. It is for the addresses
            ``unix:`` and ``http://`` of this host, and nothing is sent before the check.

    Raises:
        PeerError: no valid answer came back; the message gives the cause. Its ``__cause__`` is an
            `OSError` if no connection was made.
        ConfigurationError: the address is invalid, or `ca` cannot be read.
    """
    deadline = time.monotonic() + timeout_s
    connection, prefix = _connection(url, ca, timeout_s)
    timer = threading.Timer(timeout_s, _hang_up, (connection,))  # for headers that never end
    timer.daemon = True
    timer.start()
    try:
        headers = {**headers, "Connection": "close"}
        if trusted is not None:
            check_listener(connection, trusted)
        connection.request(method, prefix + path, body, headers)
        with connection.getresponse() as response:
            body = _read(response, connection.sock, deadline, url)
            return Reply(response.status, body, unquote(response.getheader("Outrider-Socket", "")))
    except (OSError, http.client.HTTPException, ValueError) as error:
        is_late = time.monotonic() >= deadline
        why = _failure_text(TimeoutError() if is_late else error, url, timeout_s)
        raise PeerError(f"{url}: {why}") from error
    finally:
        timer.cancel()
        connection.close()


def check_listener(connection: http.client.HTTPConnection, trusted: Collection[int]) -> None:
    """Connect, and refuse a listener of another user: any user can take a port or a path.

    The kernel reports who listens. The port is looked up before and after the connection is made:
    a program that takes the port in between is found, too.

    Raises:
        StrangerError: another user listens there, or the kernel does not report who does.
        OSError: no connection can be made.
    """
    over_tcp = not isinstance(connection, _UnixConnection)
    before = listeners(connection.port) if over_tcp else {}
    connection.connect()
    if over_tcp:
        address = ipaddress.ip_address(connection.sock.getpeername()[0])
        found = {
            uid
            for known in (before, listeners(connection.port))
            for uid in _at(address, known) or (-1,)
        }
    else:
        packed = connection.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        found = {_PEER.unpack(packed)[1]}
    for uid in found - set(trusted):
        raise StrangerError("an unknown user" if uid < 0 else f"user {name_of_user(uid)}")


class StrangerError(OSError):
    """Another user than the daemon's listens; the first argument names that user."""


Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_PEER: Final = struct.Struct("iII")
_LISTEN: Final = "0A"
"""State of a listening socket in the kernel's table."""


def listeners(port: int) -> dict[Address, set[int]]:
    """Return the users who listen at a port of this host, by address, as the kernel reports."""
    found: dict[Address, set[int]] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                host, _, own_port = fields[1].partition(":")
                if fields[3] == _LISTEN and int(own_port, 16) == port:
                    found.setdefault(_address(host), set()).add(int(fields[7]))
    return found


def _address(text: str) -> Address:
    """Return an address of the kernel's table: words of four bytes in this host's order."""
    raw = bytes.fromhex(text)
    words = struct.unpack(f"={len(raw) // 4}I", raw)
    address = ipaddress.ip_address(struct.pack(f">{len(words)}I", *words))
    return _plain(address)


def _plain(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _at(address: Address, known: Mapping[Address, set[int]]) -> set[int]:
    """Return the users who may get connections to an address: those of it, and of all."""
    everywhere = (ipaddress.ip_address("0.0.0.0"), ipaddress.ip_address("::"))  # noqa: S104
    meant = (_plain(address), *everywhere)
    return {uid for one in meant for uid in known.get(one, ())}


def name_of_user(uid: int) -> str:
    """Return the name of a user, or the number if there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OSError):
        return str(uid)


def _hang_up(connection: http.client.HTTPConnection) -> None:
    if connection.sock is not None:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)


def _connection(
    url: str, ca: Path | None, timeout_s: float
) -> tuple[http.client.HTTPConnection, str]:
    if url.startswith("unix:"):
        return _UnixConnection(url.removeprefix("unix:"), timeout_s), ""
    try:
        parts = urlsplit(url)
        host, port, scheme = parts.hostname, parts.port, parts.scheme
    except ValueError:  # no host, or no port, by any reading
        host, port, scheme = None, None, ""
    if scheme not in ("http", "https") or not host or port == 0:
        raise ConfigurationError(
            f'--url "{url}": expected one like http://127.0.0.1:9690, or '
            "unix:/run/outrider/outrider.sock"
        )
    prefix = parts.path.rstrip("/")
    if scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=timeout_s), prefix
    context = trusting(ca)
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context), prefix


def trusting(ca: Path | None) -> ssl.SSLContext:
    """Return a TLS context that trusts the system's authorities and those of a file.

    Raises:
        ConfigurationError: the file cannot be read, or is not a PEM file of certificates.
    """
    context = ssl.create_default_context()
    if ca is not None:
        try:
            context.load_verify_locations(ca)
        except OSError as error:  # ssl.SSLError is an OSError
            why = "not a PEM file of certificates" if isinstance(error, ssl.SSLError) else error
            raise ConfigurationError(
                f'"{ca}": {why}; expected a PEM file of certificates for --ca'
            ) from error
    return context


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path, self._timeout_s = path, timeout_s

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self._timeout_s)
        with socket_address(Path(self._path)) as address:
            self.sock.connect(address)


def _read(
    response: http.client.HTTPResponse, sock: socket.socket | None, deadline: float, url: str
) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        if sock is not None and sock.fileno() >= 0:
            sock.settimeout(left_s)
        chunk = response.read1(_CHUNK)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BYTES:
            raise PeerError(
                f"{url}: is not an Outrider server (answer of more than {MAX_BYTES >> 20} MB)"
            )


def _failure_text(error: Exception, url: str, timeout_s: float) -> str:
    """Return why a request failed, and what to do."""
    if isinstance(error, StrangerError):
        return (
            f"{error.args[0]} listens there, who is not trusted, so nothing is sent; expected "
            "root, the daemon's user or you; start the daemon, or use its socket or https://"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_failure_text(error)
    if isinstance(error, ssl.SSLError):
        return (
            f"answers, but without TLS ({error.reason or error}); use http://, or the "
            "port on which Outrider listens"
        )
    if isinstance(error, TimeoutError):
        return f"no daemon answers within {math.ceil(timeout_s)} s; it may be busy, or stopped"
    if isinstance(error, ConnectionRefusedError):
        return (
            "no daemon answers: connection refused; start one with `outrider run`, or set another "
            "address with --url or --config"
        )
    if isinstance(error, PermissionError) and url.startswith("unix:"):
        return "permission denied on the socket: run as root, as its user, or join its group"
    if isinstance(error, FileNotFoundError) and url.startswith("unix:"):
        return "no daemon answers: the socket does not exist; start one with `outrider run`"
    if isinstance(error, socket.gaierror):
        return f"no daemon answers: unknown host name ({error.strerror})"
    if isinstance(error, (http.client.RemoteDisconnected, ConnectionResetError)):
        tls = " over https:// if it has a certificate" if url.startswith("http:") else ""
        return f"closes the connection without an answer; a daemon answers{tls}; check the port"
    if isinstance(error, (http.client.HTTPException, ValueError)):
        return f"is not an Outrider server ({type(error).__name__})"
    return f"no daemon answers: {getattr(error, 'strerror', None) or error}"


def _certificate_failure_text(error: ssl.SSLCertVerificationError) -> str:
    """Return why a certificate is not accepted, and what to do."""
    if error.verify_code == _EXPIRED:
        return "its certificate has expired; renew it (tls_cert)"
    if error.verify_code == _NOT_YET:
        return "its certificate is not valid yet; check the clocks of both hosts"
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        return (
            f"its certificate is for another name: {error.verify_message}; use a name that the "
            "certificate contains"
        )
    return (
        f"its certificate is not trusted: {error.verify_message}; use --ca FILE with the authority "
        "that signed it, or the certificate itself"
    )
