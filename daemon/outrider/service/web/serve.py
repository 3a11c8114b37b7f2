"""Opening the door: the socket, TLS, and closing both again."""

import asyncio
import contextlib
import fcntl
import resource
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

from outrider.model.errors import ConfigurationError
from outrider.service.host.logs import RateLimit
from outrider.service.web.unix_socket import Listening

# -- connections -----------------------------------------------------------------------------------
# Open connections, bounded: in number, in time without use, and in bytes that nobody reads.
#
# Whoever can reach the page's port can open connections, send nothing, or never read an answer.
# None of that may take the daemon's descriptors or memory, or keep a health check out. So a new
# client always gets in, and what goes instead is the connection on which nothing moved for
# longest.

MOST_CONNECTIONS: Final = 256
DESCRIPTORS_IN_RESERVE: Final = 128
"""For logs, the journal, snapshots and sources: the page must leave these many of the limit."""
FEWEST_CONNECTIONS: Final = 8
IDLE_S: Final = 60.0
MOST_UNREAD_BYTES: Final = 16 << 20
UNREAD_S: Final = 10.0
SWEEP_EVERY_S: Final = 1.0
_MOST_SPARED: Final = 64
"""So many connections at most are passed over for what their clients have asked just now."""

log = structlog.get_logger()


class Connections:
    """The connections of one server. Called, it makes the protocol of a new one.

    Args:
        make_protocol: the HTTP protocol of a connection (aiohttp's).
        most: open at once; the next one ends the one on which nothing moved for longest.
        idle_s: seconds after which a connection on which nothing moves is ended.
        unread_s: the same while the client has an answer to read.
        most_unread_bytes: of all answers that wait to be read; above, the largest is ended.
        clock: seconds that only grow.

    Attributes:
        ended: connections that were ended here, by why: ``too_many``, ``idle``, ``unread``.
    """

    def __init__(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        most: int | None = None,
        idle_s: float = IDLE_S,
        unread_s: float = UNREAD_S,
        most_unread_bytes: int = MOST_UNREAD_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make_protocol = make_protocol
        self._most = most_connections() if most is None else most
        self._idle_s, self._unread_s = idle_s, unread_s
        self._most_unread_bytes = most_unread_bytes
        self._clock = clock
        self._open: OrderedDict[Connection, None] = OrderedDict()  # that moved last stands last
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
        """A client came in; if there are too many, another has to go."""
        self.moved(connection)
        while len(self._open) > self._most:
            self._end(self._longest_still(), "too_many")

    def _longest_still(self) -> "Connection":
        """Return the connection on which nothing moved for longest, nor is about to.

        Of hundreds that come at once, the first may have asked already and not been heard yet.
        """
        for connection in list(islice(self._open, _MOST_SPARED)):
            if not connection.has_asked():
                return connection
            self._open.move_to_end(connection)
        return next(iter(self._open))

    def moved(self, connection: "Connection") -> None:
        """Bytes came from a client, or went to it."""
        connection.moved_s = self._clock()
        self._open[connection] = None
        self._open.move_to_end(connection)

    def closed(self, connection: "Connection") -> None:
        """A connection is no more."""
        self._open.pop(connection, None)

    def sweep(self) -> None:
        """End what is idle, and what nobody reads."""
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
        """A client does not keep up: nobody waits for the next sweep where all do that at once."""
        unread = {each: each.unread_bytes for each in self._open if each.unread_bytes}
        self._end_excess(unread)

    def _end_excess(self, unread: Mapping["Connection", int]) -> None:
        excess = sum(unread.values()) - self._most_unread_bytes
        for connection in sorted(unread, key=unread.__getitem__, reverse=True):
            if excess <= 0:
                break
            excess -= unread[connection]
            self._end(connection, "unread")

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Sweep every second as long as the context is open."""
        task = asyncio.create_task(self._sweep_for_ever(), name="sweep-connections")
        try:
            yield
        finally:
            task.cancel()

    async def _sweep_for_ever(self) -> None:
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
    """One connection: hands everything to the HTTP protocol, and tells when something moves.

    Attributes:
        moved_s: when bytes came or went last, by the clock of `Connections`.
    """

    moved_s = 0.0

    def __init__(self, owner: Connections, http: asyncio.Protocol) -> None:
        self._owner, self._http = owner, http
        self._transport: asyncio.Transport | None = None
        self._unread_before = 0

    @property
    def unread_bytes(self) -> int:
        """Bytes of answers that the client has not taken yet."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def has_read_more(self) -> bool:
        """Return whether the client took bytes since the last time that this was asked."""
        before, self._unread_before = self._unread_before, self.unread_bytes
        return self._unread_before < before

    def has_asked(self) -> bool:
        """Return whether bytes of the client wait that it was not heard yet with."""
        waiting = array("i", [0])
        try:
            fcntl.ioctl(self._transport.get_extra_info("socket"), termios.FIONREAD, waiting)  # type: ignore[union-attr]
        except (AttributeError, OSError, TypeError, ValueError):
            return False  # it is closed, or no socket
        return waiting[0] > 0

    def abort(self) -> None:
        """End it now; what was not read is thrown away."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """As in `asyncio.Protocol`; so are the following."""
        self._transport = cast(asyncio.Transport, transport)
        self._http.connection_made(transport)
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        """The client sent something."""
        self._owner.moved(self)
        self._http.data_received(data)

    def eof_received(self) -> bool | None:
        """Return the client will send no more."""
        return self._http.eof_received()

    def pause_writing(self) -> None:
        """The client does not keep up with reading."""
        self._http.pause_writing()
        self._owner.paused()

    def resume_writing(self) -> None:
        """It has read most of what was sent."""
        self._owner.moved(self)
        self._http.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self._owner.closed(self)
        self._http.connection_lost(exc)


def most_connections() -> int:
    """Return how many connections the process's limit on descriptors allows, with some in reserve."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, descriptors - DESCRIPTORS_IN_RESERVE))


# -- serve -----------------------------------------------------------------------------------------

HANDSHAKE_S: Final = 5.0
"""How long a client may take to agree on TLS; until then, `Connections` does not know of it."""
CLOSING_S: Final = 1.0
"""How long open requests may still take when the daemon stops; it has five seconds in all."""


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
        app: what `make_app` made.
        host: address to listen on.
        port: port to listen on; 0 takes a free one.
        cert: PEM file of a certificate (and its chain); with it, only TLS is spoken.
        key: PEM file of its private key.
        most: connections at once; None: as many as the limit on descriptors allows.
        local: a Unix socket on which the same is served, without TLS; or None.

    Yields:
        The port that is really listened on.

    Raises:
        ConfigurationError: the address cannot be had, or certificate or key is not right.
    """
    tls = None if cert is None else tls_context(cert, key)
    runner = web.AppRunner(
        app,
        handle_signals=False,
        access_log=None,
        shutdown_timeout=CLOSING_S,
        handler_cancellation=True,  # nobody waits behind the requests of clients that are gone
    )
    await runner.setup()
    try:
        connections = Connections(runner.server, most)  # type: ignore[arg-type]  # None before setup
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


async def _listen(
    connections: Connections, host: str, port: int, tls: ssl.SSLContext | None
) -> asyncio.Server:
    """Listen on an address. Raises `ConfigurationError`."""
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
    """Return a server's TLS, 1.2 or newer. Raises `ConfigurationError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # The passphrase of an encrypted key would be asked for on a terminal that is not there.
        context.load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigurationError(
            f'"tls_cert" = "{cert}", "tls_key" = "{key}": {error}; expected PEM files of a '
            "certificate and of its own private key, without a passphrase"
        ) from error
    return context
