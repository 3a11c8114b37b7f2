"""Whether a broker lets us write to a topic and read from it, tried with one message.

A broker that speaks MQTT 3.1.1 confirms what it then drops, and grants subscriptions to which it
delivers nothing. MQTT 5 has a reason code for a refused message; what was refused to read shows
only by the message that does not come back.
"""

import asyncio
from typing import Any, Final, NamedTuple

from outrider.api.broker import ReceivedMessage, connected, receive_messages
from outrider.model.broker_settings import BrokerSettings
from outrider.model.errors import PeerError

_ECHO_WITHIN_S: Final = 3.0
_REFUSED_CODE: Final = 128


class Probe(NamedTuple):
    """What one message showed.

    Attributes:
        may_write: whether the broker took it; None: it confirms whatever it does with it.
        comes_back: whether it was delivered to us.
    """

    may_write: bool | None
    comes_back: bool


async def probe_topic(settings: BrokerSettings, identifier: str, topic: str) -> Probe:
    """Publish an empty message, not retained, and wait for it.

    Args:
        settings: the broker, and who we are.
        identifier: the second part of the client identifier, of no other connection.
        topic: without wildcards.

    Raises:
        PeerError: the broker cannot be reached, refuses us or is lost.
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
        told = paho.on_publish

        def on_publish(who: Any, data: Any, mid: int, reason: Any, properties: Any) -> None:
            nonlocal refused
            refused = reason.value >= _REFUSED_CODE
            told(who, data, mid, reason, properties)

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
