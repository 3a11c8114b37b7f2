"""A client of a library's own making on the broker: what reaches the others on it."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, NamedTuple, Self

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from tests.fixtures.patience import patient
from tests.peers.mosquitto import USERS

THERE_WITHIN_S = patient(15.0)
HEARD_WITHIN_S = patient(30.0)


class Heard(NamedTuple):
    """A received MQTT message."""

    topic: str
    text: str
    retained: bool

    @property
    def fields(self) -> dict[str, Any]:
        """The JSON object in the payload."""
        fields: dict[str, Any] = json.loads(self.text)
        return fields


class Listener:
    """Hears everything below a topic, QoS 1, in a session that the broker keeps while it is away.

    Args:
        port: of the broker on 127.0.0.1.
        topic: what is subscribed to.
        name: its identifier: the same again takes its session over.
    """

    def __init__(self, port: int, topic: str = "outrider/#", name: str = "listener") -> None:
        self.heard: list[Heard] = []
        self._port, self._topic = port, topic
        self._subscribed = threading.Event()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, name, clean_session=False)
        self._client.username_pw_set("reader", USERS["reader"])
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = lambda client, *_: client.subscribe(topic, qos=1)
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.on_disconnect = lambda *_: self._subscribed.clear()
        self._client.on_message = lambda _, __, m: self.heard.append(
            Heard(m.topic, m.payload.decode(), m.retain)
        )

    def __enter__(self) -> Self:
        self._client.connect("127.0.0.1", self._port)
        self._client.loop_start()
        self.wait_until_there()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.disconnect()
        self._client.loop_stop()
        # the library closes its pair of sockets as it is collected, if the collector lets it
        self._client._reset_sockets()

    def wait_until_there(self, within_s: float = THERE_WITHIN_S) -> None:
        """Wait until the broker has taken the subscription, again after it was away."""
        assert self._subscribed.wait(within_s), f"no subscription to {self._topic}"

    def on(self, topic: str) -> list[Heard]:
        """Return the messages on the topic with this last part, in order."""
        return [one for one in list(self.heard) if one.topic.endswith(f"/{topic}")]

    def seqs(self, *topics: str) -> list[int]:
        """Return the sequence numbers on these topics, in order."""
        parts = tuple(f"/{topic}" for topic in topics)
        return [one.fields["seq"] for one in list(self.heard) if one.topic.endswith(parts)]

    def wait_for(
        self, what: str, found: Callable[[], Iterable[Heard]], within_s: float = HEARD_WITHIN_S
    ) -> Heard:
        """Return the first message that `found` returns. `AssertionError` after the time limit."""
        deadline_s = time.monotonic() + within_s
        while time.monotonic() < deadline_s:
            for one in found():
                return one
            time.sleep(0.02)
        said = "\n".join(f"{one.topic} {one.text}" for one in self.heard[-5:])
        raise AssertionError(f"not heard within {within_s:g} s: {what}; the last heard:\n{said}")

    def wait_for_state(self, state: str, after: int = 0, **expected: Any) -> Heard:
        """Return the first message of `status` beyond the first `after` that says this state."""
        wanted = {"state": state, **expected}
        return self.wait_for(
            f"status {wanted}",
            lambda: (s for s in self.on("status")[after:] if wanted.items() <= s.fields.items()),
        )
