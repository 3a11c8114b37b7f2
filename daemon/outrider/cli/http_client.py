"""One question to a daemon, over TCP, TLS or a Unix socket, and in words why it failed.

Nothing but the standard library, no proxy, no redirect: a token goes to whom it was given for. The
whole answer has to be there in time and may not be endless, whoever it is that answers.
"""

import contextlib
import http.client
import math
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from outrider.model.errors import ConfigurationError, PeerError

TIMEOUT_S: Final = 5.0
"""For the whole answer, not for each piece of it."""
MOST_BYTES: Final = 64 << 20
_PIECE: Final = 64 * 1024

_EXPIRED, _NOT_YET, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64
"""OpenSSL's numbers of why a certificate is refused; any other is one that nobody vouches for."""


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: bytes


def get(
    url: str, path: str, headers: Mapping[str, str], ca: Path | None, timeout_s: float = TIMEOUT_S
) -> Reply:
    """Ask for a path; see `ask`."""
    return ask(url, path, headers, ca, timeout_s)


def ask(
    url: str,
    path: str,
    headers: Mapping[str, str],
    ca: Path | None,
    timeout_s: float = TIMEOUT_S,
    *,
    method: str = "GET",
    body: bytes | None = None,
) -> Reply:
    """Ask for a path, or post something there.

    Args:
        url: ``http://``, ``https://`` or ``unix:PATH``; a path in it goes before `path`.
        path: under the address, its parts quoted.
        headers: sent with it.
        ca: PEM file whose certificates are trusted beside the system's; None: those alone.
        timeout_s: until the whole answer must be there.
        method: of HTTP.
        body: what is posted.

    Raises:
        PeerError: nothing, or nothing of use, came back; the message says why. Its cause is an
            `OSError` where no connection was made.
        ConfigurationError: the address is none, or `ca` cannot be read.
    """
    deadline = time.monotonic() + timeout_s
    connection, prefix = _connection(url, ca, timeout_s)
    last_word = threading.Timer(timeout_s, _hang_up, (connection,))  # a head may drip for ever
    last_word.daemon = True
    last_word.start()
    try:
        headers = {**headers, "Connection": "close"}
        connection.request(method, prefix + path, body, headers)
        with connection.getresponse() as response:
            return Reply(response.status, _read(response, connection.sock, deadline, url))
    except (OSError, http.client.HTTPException, ValueError) as error:
        is_late = time.monotonic() >= deadline
        why = _in_words(TimeoutError() if is_late else error, url, timeout_s)
        raise PeerError(f"{url}: {why}") from error
    finally:
        last_word.cancel()
        connection.close()


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
    """A client's TLS that trusts the system's authorities and those of a file.

    Raises:
        ConfigurationError: the file cannot be read, or is no PEM file of certificates.
    """
    context = ssl.create_default_context()
    if ca is not None:
        try:
            context.load_verify_locations(ca)
        except OSError as error:  # ssl.SSLError is an OSError
            why = "no PEM file of certificates" if isinstance(error, ssl.SSLError) else error
            raise ConfigurationError(f'"{ca}": {why}; --ca takes such a file') from error
    return context


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path, self._timeout_s = path, timeout_s

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self._timeout_s)
        self.sock.connect(self._path)


def _read(
    response: http.client.HTTPResponse, sock: socket.socket | None, deadline: float, url: str
) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        if sock is not None and sock.fileno() >= 0:
            sock.settimeout(left_s)
        piece = response.read1(_PIECE)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        if size > MOST_BYTES:
            raise PeerError(
                f"{url}: answers, but not as Outrider would: more than {MOST_BYTES >> 20} MB"
            )


def _in_words(error: Exception, url: str, timeout_s: float) -> str:
    """Why there is no answer, and what would be right."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _of_certificate(error)
    if isinstance(error, ssl.SSLError):
        return (
            f"answers, but speaks no TLS ({error.reason or error}); expected http:// or the "
            "port on which Outrider listens"
        )
    if isinstance(error, TimeoutError):
        return f"no daemon answers within {math.ceil(timeout_s)} s; it may be busy, or stopped"
    if isinstance(error, ConnectionRefusedError):
        return (
            "no daemon answers: the connection is refused; start one with `outrider run`, or name "
            "another address with --url or --config"
        )
    if isinstance(error, PermissionError) and url.startswith("unix:"):
        return "the socket is not open to you: expected root or a member of its group"
    if isinstance(error, FileNotFoundError) and url.startswith("unix:"):
        return "no daemon answers: there is no such socket; start one with `outrider run`"
    if isinstance(error, socket.gaierror):
        return f"no daemon answers: the name is not known ({error.strerror})"
    if isinstance(error, (http.client.RemoteDisconnected, ConnectionResetError)):
        tls = " over https:// if it has a certificate" if url.startswith("http:") else ""
        return f"hangs up without an answer; a daemon answers{tls}; is it Outrider's port?"
    if isinstance(error, (http.client.HTTPException, ValueError)):
        return f"answers, but not as Outrider would ({type(error).__name__})"
    return f"no daemon answers: {getattr(error, 'strerror', None) or error}"


def _of_certificate(error: ssl.SSLCertVerificationError) -> str:
    """Why a certificate is not accepted."""
    if error.verify_code == _EXPIRED:
        return "its certificate has expired; expected a new one (tls_cert)"
    if error.verify_code == _NOT_YET:
        return "its certificate is not valid yet; check the clocks of both hosts"
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        return (
            f"its certificate is for another name: {error.verify_message}; expected a name "
            "that the certificate has"
        )
    return (
        f"its certificate is not trusted: {error.verify_message}; --ca FILE names the authority "
        "that signed it, or the certificate itself"
    )
