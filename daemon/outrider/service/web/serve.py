"""Opening the door: the socket, TLS, and closing both again."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from aiohttp import web

from outrider.model.errors import ConfigurationError
from outrider.service.web.connections import Connections
from outrider.service.web.unix_socket import Listening

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
            f'"listen" = "{host}:{port}": cannot listen there: {error.strerror}; right would '
            "be an address of this machine and a free port"
        ) from error


def tls_context(cert: Path, key: Path | None) -> ssl.SSLContext:
    """A server's TLS, 1.2 or newer. Raises `ConfigurationError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # The passphrase of an encrypted key would be asked for on a terminal that is not there.
        context.load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigurationError(
            f'"tls_cert" = "{cert}", "tls_key" = "{key}": {error}; right would be PEM files of a '
            "certificate and of its own private key, without a passphrase"
        ) from error
    return context
