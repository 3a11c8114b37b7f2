"""The listening sockets: connection limits, TLS, and closing."""

import asyncio
import contextlib
import fcntl
import logging
import resource
import socket
import ssl
import termios
import time
from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Final, cast

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from outrider.model.errors import ConfigurationError
from outrider.service.host.logs import RateLimit
from outrider.service.web.access import ACCESS
from outrider.service.web.unix_socket import Listening

# -- connections -----------------------------------------------------------------------------------
# Limits of open connections: their number, idle time, and unread bytes.
#
# Any client of the page's port can open connections, send nothing, or never read an answer. None of
# that may exhaust the daemon's descriptors or memory, or block a health check. So a new client is
# always accepted, and the connection that has been inactive for longest is closed instead.

MAX_CONNECTIONS: Final = 256
DESCRIPTORS_IN_RESERVE: Final = 128
"""Descriptors of the limit that are left for logs, the journal, snapshots and sources."""
MIN_CONNECTIONS: Final = 8
IDLE_S: Final = 60.0
MAX_UNREAD_BYTES: Final = 16 << 20
UNREAD_S: Final = 10.0
SWEEP_EVERY_S: Final = 1.0
_MAX_SPARED: Final = 64
"""Most connections that are spared because a new request waits on them."""

log = structlog.get_logger()


class Connections:
    """The open connections of one server; calling it returns the protocol of a new one.

    Args:
        make_protocol: returns the HTTP protocol of a connection (aiohttp's).
        most: most open connections; one more closes the one that was inactive for longest.
        idle_s: seconds of inactivity after which a connection is closed.
        unread_s: the same while the client has an answer to read.
        max_unread_bytes: most bytes of all unread answers; above, the largest is closed.
        clock: returns monotonic seconds.
        spares: returns whether a socket is that of a client with rights, which is closed last.

    Attributes:
        ended: connections closed here, by reason: ``too_many``, ``idle``, ``unread``.
    """

    def __init__(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        most: int | None = None,
        idle_s: float = IDLE_S,
        unread_s: float = UNREAD_S,
        max_unread_bytes: int = MAX_UNREAD_BYTES,
        clock: Callable[[], float] = time.monotonic,
        spares: Callable[[socket.socket | None], bool] = lambda found: False,
    ) -> None:
        self.spares = spares
        self._make_protocol = make_protocol
        self._most = max_connections() if most is None else most
        self._idle_s, self._unread_s = idle_s, unread_s
        self._max_unread_bytes = max_unread_bytes
        self._clock = clock
        self._open: OrderedDict[Connection, None] = OrderedDict()  # ordered by last activity
        self._limit = RateLimit(clock)
        self.ended = {"too_many": 0, "idle": 0, "unread": 0}

    def __call__(self) -> "Connection":
        """Return the protocol of a new connection."""
        return Connection(self, cast(asyncio.Protocol, self._make_protocol()))

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator["Connection"]:
        return iter(list(self._open))

    def opened(self, connection: "Connection") -> None:
        """Register a new connection; if there are too many, close another."""
        self.moved(connection)
        while len(self._open) > self._most:
            self._end(self._longest_inactive(), "too_many")

    def _longest_inactive(self) -> "Connection":
        """Return the connection that is inactive for longest, without a waiting request.

        If hundreds of clients connect at the same time, the first may have sent requests that are
        not read yet. A client with rights is closed only if there are no others.
        """
        others = (connection for connection in self._open if not connection.is_spared)
        for connection in list(islice(others, _MAX_SPARED)):
            if not connection.has_asked():
                return connection
            self._open.move_to_end(connection)
        others = (connection for connection in self._open if not connection.is_spared)
        return next(others, next(iter(self._open)))

    def moved(self, connection: "Connection") -> None:
        """Record activity: bytes were received from a client or sent to it."""
        connection.moved_s = self._clock()
        self._open[connection] = None
        self._open.move_to_end(connection)

    def closed(self, connection: "Connection") -> None:
        """Remove a closed connection."""
        self._open.pop(connection, None)

    def sweep(self) -> None:
        """Close idle connections, and those whose clients do not read."""
        for connection in [each for each in self._open if each.has_read_more()]:
            self.moved(connection)
        now = self._clock()
        unread = {each: each.unread_bytes for each in self._open if each.unread_bytes}
        for connection in list(self._open):
            quiet_s = now - connection.moved_s
            if connection in unread and quiet_s >= self._unread_s:
                self._end(connection, "unread")
                del unread[connection]
            elif quiet_s >= self._idle_s:
                self._end(connection, "idle")
        self._end_excess(unread)

    def paused(self) -> None:
        """Check the unread bytes now, when a client does not keep up, not at the next sweep."""
        unread = {each: each.unread_bytes for each in self._open if each.unread_bytes}
        self._end_excess(unread)

    def _end_excess(self, unread: Mapping["Connection", int]) -> None:
        excess = sum(unread.values()) - self._max_unread_bytes
        for connection in sorted(unread, key=unread.__getitem__, reverse=True):
            if excess <= 0:
                break
            excess -= unread[connection]
            self._end(connection, "unread")

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Sweep every second as long as the context is open."""
        task = asyncio.create_task(self._sweep_periodically(), name="sweep-connections")
        try:
            yield
        finally:
            task.cancel()

    async def _sweep_periodically(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            try:
                self.sweep()
            except Exception:
                log.exception("connection_sweep_failed")

    def _end(self, connection: "Connection", why: str) -> None:
        self._open.pop(connection, None)
        connection.abort()
        self.ended[why] += 1
        if self._limit.allows("connection_ended"):
            log.warning(
                "connection_ended", reason=why, ended=dict(self.ended), open=len(self._open)
            )


class Connection(asyncio.Protocol):
    """One connection: it passes everything to the HTTP protocol, and records activity.

    Attributes:
        moved_s: time of the last activity, by the clock of `Connections`.
        is_spared: the client has rights, and is closed last.
    """

    moved_s = 0.0
    is_spared = False

    def __init__(self, owner: Connections, http: asyncio.Protocol) -> None:
        self._owner, self._http = owner, http
        self._transport: asyncio.Transport | None = None
        self._unread_before = 0

    @property
    def unread_bytes(self) -> int:
        """Bytes of answers that the client has not read yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def has_read_more(self) -> bool:
        """Return True if the client has read bytes since the last call."""
        before, self._unread_before = self._unread_before, self.unread_bytes
        return self._unread_before < before

    def has_asked(self) -> bool:
        """Return True if the client has sent bytes that are not read yet."""
        waiting = array("i", [0])
        try:
            fcntl.ioctl(self._transport.get_extra_info("socket"), termios.FIONREAD, waiting)  # type: ignore[union-attr]
        except (AttributeError, OSError, TypeError, ValueError):
            return False  # it is closed, or not a socket
        return waiting[0] > 0

    def abort(self) -> None:
        """Close the connection immediately and discard unread answers."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Handle a new connection, see `asyncio.Protocol`, like the following methods."""
        self._transport = cast(asyncio.Transport, transport)
        self.is_spared = self._owner.spares(transport.get_extra_info("socket"))
        self._http.connection_made(transport)
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        """Pass on received bytes."""
        self._owner.moved(self)
        self._http.data_received(data)

    def eof_received(self) -> bool | None:
        """Handle the end of the client's requests."""
        return self._http.eof_received()

    def pause_writing(self) -> None:
        """Handle a client that does not read fast enough."""
        self._http.pause_writing()
        self._owner.paused()

    def resume_writing(self) -> None:
        """Handle a client that has read most of its answers."""
        self._owner.moved(self)
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        self._owner.closed(self)
        self._http.connection_lost(exc)


def max_connections() -> int:
    """Return the number of connections that the limit on descriptors allows, less a reserve."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(MIN_CONNECTIONS, min(MAX_CONNECTIONS, descriptors - DESCRIPTORS_IN_RESERVE))


# -- serve -----------------------------------------------------------------------------------------

HANDSHAKE_S: Final = 5.0
"""Time limit of a TLS handshake; until it ends, `Connections` does not see the connection."""
CLOSING_S: Final = 1.0
"""Time limit of open requests when the daemon stops, which has five seconds in total."""


@asynccontextmanager
async def serve(
    app: web.Application,
    host: str,
    port: int,
    cert: Path | None = None,
    key: Path | None = None,
    most: int | None = None,
    local: Listening | None = None,
) -> AsyncIterator[int]:
    """Serve an application as long as the context is open.

    Args:
        app: the application, from `make_app`.
        host: address to listen on.
        port: port to listen on; 0 takes a free one.
        cert: PEM file of a certificate (and its chain); with it, only TLS is accepted.
        key: PEM file of its private key.
        most: most open connections; None: as many as the limit on descriptors allows.
        local: a Unix socket on which the same is served, without TLS; or None.

    Yields:
        The port that is listened on.

    Raises:
        ConfigurationError: the address is unavailable, or certificate or key is not valid.
    """
    tls = None if cert is None else tls_context(cert, key)
    runner = web.AppRunner(
        app,
        handle_signals=False,
        access_log=None,
        shutdown_timeout=CLOSING_S,
        handler_cancellation=True,  # requests of disconnected clients must not delay others
        auto_decompress=False,  # 2 MB of a compressed body can be 2 GB
        lingering_time=0,  # a body that nothing needs is not read
        logger=request_logger(),
    )
    await runner.setup()
    try:
        spares = app[ACCESS].knows if ACCESS in app else lambda found: False
        connections = Connections(runner.server, most, spares=spares)  # type: ignore[arg-type]  # None before setup
        async with connections.watched():
            listening = [await _listen(connections, host, port, tls)]
            try:
                bound = int(listening[0].sockets[0].getsockname()[1])
                if local is not None:
                    loop = asyncio.get_running_loop()
                    listening.append(await loop.create_unix_server(connections, sock=local.socket))
                yield bound
            finally:
                for server in listening:
                    server.close()
    finally:
        await runner.cleanup()


class RefusedRequests(logging.Filter):
    """Filter of aiohttp's log: faults of requests become one line a minute, with a count.

    Any client can send malformed requests, also before its rights are known. aiohttp logs each of
    them with a traceback.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._limit = RateLimit(clock)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written as it is."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return True
        if not isinstance(error, HttpProcessingError):
            return self._limit.allows(type(error).__name__)
        if self._limit.allows(_MALFORMED):
            reason = error.message.strip().partition("\n")[0].rstrip(":")
            more = self._limit.take_suppressed(_MALFORMED)
            log.warning("requests_refused", reason=f"malformed: {reason}", more_since=more)
        return False


_MALFORMED: Final = "malformed request"


def request_logger() -> logging.Logger:
    """Return the logger of one server, which passes on to aiohttp's what the filter allows."""
    logger = logging.Logger("aiohttp.server")
    logger.parent = logging.getLogger("aiohttp.server")
    logger.addFilter(RefusedRequests())
    return logger


async def _listen(
    connections: Connections, host: str, port: int, tls: ssl.SSLContext | None
) -> asyncio.Server:
    """Listen on an address and port. Raises `ConfigurationError`."""
    loop = asyncio.get_running_loop()
    handshake_s = None if tls is None else HANDSHAKE_S
    try:
        return await loop.create_server(
            connections, host, port, ssl=tls, ssl_handshake_timeout=handshake_s
        )
    except OSError as error:
        raise ConfigurationError(
            f'"listen" = "{host}:{port}": cannot listen there: {error.strerror}; expected '
            "an address of this machine and a free port"
        ) from error


def tls_context(cert: Path, key: Path | None) -> ssl.SSLContext:
    """Return a server's TLS context, 1.2 or newer. Raises `ConfigurationError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without this, OpenSSL would ask for a passphrase on a terminal that does not exist.
        context.load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigurationError(
            f'"tls_cert" = "{cert}", "tls_key" = "{key}": {error}; expected PEM files of a '
            "certificate and of its own private key, without a passphrase"
        ) from error
    return context
