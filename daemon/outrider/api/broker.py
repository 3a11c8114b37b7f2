"""Connection to an MQTT broker, shared by adapters and outputs: settings, TLS, clear errors.

The MQTT client is imported when a connection is made, not before: commands that need no broker
start without it.
"""

import asyncio
import logging
import random
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from outrider.model.credentials import file_of
from outrider.model.deployment import BrokerSettings
from outrider.model.errors import ConfigurationError, PeerError

if TYPE_CHECKING:
    import aiomqtt

_ANSWER_WITHIN_S: Final = 10.0
_REFUSALS: Final = {133: "client identifier", 134: "password", 135: "password"}
"""Reason codes of MQTT 5; paho uses them for refusals under MQTT 3.1.1 too."""
_SILENT: Final = logging.getLogger("outrider.mqtt")
_SILENT.setLevel(logging.CRITICAL)  # the client's messages arrive as errors, with their cause


@asynccontextmanager
async def connected(
    settings: BrokerSettings,
    identifier: str,
    will: "aiomqtt.Will | None" = None,
    clean_session: bool = True,
    acknowledge: bool = True,
    speaks_5: bool = False,
) -> "AsyncIterator[aiomqtt.Client]":
    """Connect to the broker until the context is left.

    The connection is never restored automatically: when it is lost, whatever uses it inside the
    context ends with an error, and the caller decides when to retry (`backoff`).

    Args:
        settings: the broker and the credentials.
        identifier: the second part of the client identifier; different for each connection.
        will: what the broker publishes if this client vanishes.
        clean_session: False keeps subscriptions and messages of QoS 1 for the next connection of
            the same identifier.
        speaks_5: use MQTT 5 instead of 3.1.1; not every broker supports it.
        acknowledge: False leaves messages of QoS 1 unacknowledged until `acknowledge_message`.

    Raises:
        PeerError: the broker cannot be reached, refuses the connection or is lost; names address
            and reason. Not `transient` where only a person can fix it: password, certificate,
            files.
    """
    import aiomqtt

    from outrider.api.mqtt_client import CancellableClient

    password = await asyncio.to_thread(_password, settings)
    context = await asyncio.to_thread(_tls_context, settings)
    host, _, port = settings.address.rpartition(":")
    client = CancellableClient(
        host,
        int(port),
        username=settings.username,
        password=password,
        identifier=f"{settings.client_id}-{identifier}",
        will=will,
        protocol=aiomqtt.ProtocolVersion.V5 if speaks_5 else None,
        clean_session=None if speaks_5 else clean_session,
        keepalive=settings.keepalive_s,
        timeout=_ANSWER_WITHIN_S,
        tls_context=context,
        logger=_SILENT,
    )
    if not acknowledge:
        client._client.manual_ack_set(True)  # aiomqtt does not offer it; paho's is public
    entered = False
    try:
        async with client:
            entered = True
            yield client
    except aiomqtt.MqttError as error:
        raise _explained(error, settings) from error
    finally:
        if not entered:
            _hang_up(client)
        elif client._disconnected.done():
            client._disconnected.exception()  # reported by then; asyncio would log it again


class ReceivedMessage(NamedTuple):
    """One message as it was received."""

    topic: str
    payload: bytes
    retained: bool
    mid: int
    qos: int


async def receive_messages(
    client: "aiomqtt.Client", keep: Callable[[ReceivedMessage], None]
) -> None:
    """Pass each message to `keep` on arrival, until the connection is lost.

    This bypasses the client's queue, which has no bound and is emptied more slowly than it is
    filled. `keep` must neither wait nor raise.

    Raises:
        aiomqtt.MqttError: the connection is lost.
    """
    import aiomqtt

    def on_message(paho: Any, data: Any, message: Any) -> None:
        keep(
            ReceivedMessage(
                message.topic, message.payload, message.retain, message.mid, message.qos
            )
        )

    while not client._queue.empty():  # what a broker sent before it answered
        early = client._queue.get_nowait()
        payload = early.payload if isinstance(early.payload, bytes) else b""
        keep(ReceivedMessage(early.topic.value, payload, early.retain, early.mid, early.qos))
    client._client.on_message = on_message
    await asyncio.wait({client._disconnected})
    raise aiomqtt.MqttError("the connection was lost")


def acknowledge_message(client: "aiomqtt.Client", message: ReceivedMessage) -> None:
    """Acknowledge a message to the broker, which may then forget it (QoS 0: no effect).

    For connections made with ``acknowledge=False``. If the connection is lost before that, the
    broker sends the message again over the next one.
    """
    client._client.ack(message.mid, message.qos)


def backoff(rng: random.Random, first_s: float = 1.0, longest_s: float = 60.0) -> Iterator[float]:
    """Yield growing pauses between retries, in seconds, without end.

    Each is drawn at random from the upper half of a span that doubles up to `longest_s`, so that
    many clients of a restarted broker do not reconnect at the same moment.
    """
    span_s = first_s
    while True:
        yield span_s * (0.5 + 0.5 * rng.random())
        span_s = min(2 * span_s, longest_s)


def _hang_up(client: "aiomqtt.Client") -> None:
    """Close what a refused or cancelled attempt leaves open: aiomqtt keeps its socket and task."""
    paho = client._client
    paho.on_socket_open = paho.on_disconnect = None
    paho._sock_close()


class _ClosingSocket(ssl.SSLSocket):
    """Socket that is closed if its handshake fails; paho would leave it to the collector."""

    def do_handshake(self, block: bool = False) -> None:
        """Perform the handshake; close the socket if it fails."""
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


def _password(settings: BrokerSettings) -> str | None:
    if settings.password_file is None:
        return None
    try:
        path = file_of(settings.password_file)
    except ConfigurationError as error:
        raise PeerError(f"password_file {error}", transient=False) from error
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise PeerError(
            f"password_file {path}: cannot be read: {error}", transient=False
        ) from error
    if not lines or not lines[0]:
        raise PeerError(f"password_file {path}: its first line is empty", transient=False)
    return lines[0]


def _tls_context(settings: BrokerSettings) -> ssl.SSLContext | None:
    if not settings.tls:
        return None
    try:
        context = ssl.create_default_context(cafile=_file(settings.ca_file))
    except (OSError, ConfigurationError) as error:  # also ssl.SSLError: not a PEM file
        raise PeerError(f"ca_file {settings.ca_file}: {error}", transient=False) from error
    context.sslsocket_class = _ClosingSocket
    if settings.cert_file is not None:
        try:
            context.load_cert_chain(file_of(settings.cert_file), _file(settings.key_file))
        except (OSError, ConfigurationError) as error:
            files = " with key_file ".join(filter(None, (settings.cert_file, settings.key_file)))
            raise PeerError(f"cert_file {files}: {error}", transient=False) from error
    return context


def _file(setting: str | None) -> Path | None:
    return None if setting is None else file_of(setting)


def _explained(error: Exception, settings: BrokerSettings) -> PeerError:
    """Return an error with the cause in words for the person on call."""
    place = f"MQTT broker {settings.address}"
    cause: Any = error.__context__  # aiomqtt hides the socket's own error behind `from None`
    code = getattr(getattr(error, "rc", None), "value", None)
    if code in _REFUSALS:
        who = settings.username or "an anonymous client (no username is set)"
        return PeerError(f"{place}: refuses the {_REFUSALS[code]} of {who}", transient=False)
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = cause.verify_message
        return PeerError(f"{place}: its certificate is not trusted: {why}", transient=False)
    if isinstance(cause, ssl.SSLError):
        return PeerError(f"{place}: no TLS: {cause}; is that its TLS port?", transient=False)
    if isinstance(cause, OSError):
        return PeerError(f"{place}: cannot be reached: {cause}")
    if "timed out" in str(error):
        hint = "" if settings.tls else "; if that is a TLS port, set tls = true"
        return PeerError(f"{place}: does not answer{hint}")
    return PeerError(f"{place}: {error}")


# -- broker probe ----------------------------------------------------------------------------------
# Check with one message whether a broker permits writing to a topic and reading from it.
#
# A broker that speaks MQTT 3.1.1 confirms messages that it then drops, and grants subscriptions to
# which it delivers nothing. MQTT 5 has a reason code for a refused message. A refused subscription
# shows only by the message that does not come back.

_ECHO_WITHIN_S: Final = 3.0
_REFUSED_CODE: Final = 128


class Probe(NamedTuple):
    """Result of publishing one test message.

    Attributes:
        may_write: whether the broker accepted it; None: it confirms messages even if it drops them.
        comes_back: whether it was delivered back.
    """

    may_write: bool | None
    comes_back: bool


async def probe_topic(settings: BrokerSettings, identifier: str, topic: str) -> Probe:
    """Publish an empty message, not retained, and wait until it comes back.

    Args:
        settings: the broker and the credentials.
        identifier: the second part of the client identifier, not used by another connection.
        topic: without wildcards.

    Raises:
        PeerError: the broker cannot be reached, refuses the connection or is lost.
    """
    try:
        return await _probe(settings, identifier, topic, speaks_5=True)
    except PeerError:
        return await _probe(settings, identifier, topic, speaks_5=False)


async def _probe(settings: BrokerSettings, identifier: str, topic: str, speaks_5: bool) -> Probe:
    received = asyncio.Event()
    refused = False

    def keep(message: ReceivedMessage) -> None:
        if message.topic == topic:
            received.set()

    async with connected(settings, identifier, speaks_5=speaks_5) as client:
        paho: Any = client._client
        paho_on_publish = paho.on_publish

        def on_publish(who: Any, data: Any, mid: int, reason: Any, properties: Any) -> None:
            nonlocal refused
            refused = reason.value >= _REFUSED_CODE
            paho_on_publish(who, data, mid, reason, properties)

        paho.on_publish = on_publish
        await client.subscribe(topic, qos=1)
        listener = asyncio.create_task(receive_messages(client, keep), name="probe")
        try:
            await client.publish(topic, b"", qos=1)
            waits = asyncio.create_task(received.wait())
            if not refused:
                await asyncio.wait({waits, listener}, timeout=_ECHO_WITHIN_S)
            waits.cancel()
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)
    if received.is_set():
        return Probe(True, True)
    return Probe(not refused if speaks_5 else None, False)
