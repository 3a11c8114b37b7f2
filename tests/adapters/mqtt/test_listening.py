"""The adapter on a real broker: what comes, what is kept for it, who may send."""

import asyncio
import json
import subprocess
import sys
import time
from typing import Any

import pytest

from outrider.api import events
from tests.adapters.mqtt.listening import adapter, listening, publisher
from tests.peers.mosquitto import USERS, Mosquitto

MACHINE = """\
import os, sys
import paho.mqtt.client as mqtt

client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
client.username_pw_set("machine", sys.argv[2])
client.will_set("outrider/in/state/lab-7", b'{"state": "left"}', 1)
client.on_connect = lambda *_: os._exit(0)
client.connect("127.0.0.1", int(sys.argv[1]))
client.loop_forever()
"""
pytestmark = pytest.mark.mosquitto


async def test_events_come_in_the_order_in_which_they_were_sent(broker: Mosquitto) -> None:
    now_s = time.time()
    sent = [
        ("machine", {"cluster": "library"}),
        ("owner", {"present": True, "time": now_s}),
        ("power", {"watts": 63.5, "time": now_s + 1}),
        ("owner", {"present": False, "time": now_s + 2}),
        ("state", {"state": "asleep", "time": now_s + 3}),
    ]
    async with listening(adapter(broker)) as received, publisher(broker) as client:
        await received.until_connected()
        for what, said in sent:
            await client.publish(f"outrider/in/{what}/lab-7", json.dumps(said), qos=1)
        await received.until(lambda: len(received.events) == 6, "all of them")
    assert [event[1] for event in received.events] == [
        events.JOINED,
        events.OWNER_CAME,
        events.POWER,
        events.OWNER_WENT,
        events.USABLE,
        events.ASLEEP,
    ]
    assert received.last.note == ""
    assert received.last.age_s == 0.0


async def test_what_is_sent_while_it_is_away_is_kept_for_it(broker: Mosquitto) -> None:
    async with listening(adapter(broker)) as received:
        await received.until_connected()
    async with publisher(broker) as client:
        for number in range(100):
            said = {"watts": number, "time": time.time()}
            await client.publish("outrider/in/power/lab-7", json.dumps(said), qos=1)
    async with listening(adapter(broker)) as received:
        await received.until(lambda: len(received.events) >= 100, "the hundred")
    assert [event[3] for event in received.events] == list(range(100))


async def test_what_was_handed_out_but_not_taken_comes_again(broker: Mosquitto) -> None:
    """The daemon is killed between being handed a batch and having written it."""
    source = adapter(broker)
    batches = source.batches(None)
    async with asyncio.timeout(20), publisher(broker) as client:
        while (await anext(batches)).seen_until_s is None:
            pass
        await client.publish("outrider/in/power/lab-7", b'{"watts": 1, "time": 1}', qos=1)
        said = {"watts": 63, "time": time.time()}
        await client.publish("outrider/in/power/lab-7", json.dumps(said), qos=1)
        while not (batch := await anext(batches)).events:
            pass
    await batches.aclose()  # type: ignore[attr-defined]
    async with listening(source) as received:
        await received.until(lambda: received.events, "the same again")
    assert received.events == batch.events


async def test_readings_of_foreign_meters_do_not_wait_for_us(broker: Mosquitto) -> None:
    meters: dict[str, Any] = {"shellies/+/relay/0/power": {}}
    async with listening(adapter(broker, meters=meters)) as received, publisher(broker) as client:
        await received.until_connected()
        await client.publish("shellies/lab-7/relay/0/power", b"58.2", qos=1)
        await received.until(lambda: received.events, "the reading")
    async with publisher(broker) as client:
        await client.publish("shellies/lab-7/relay/0/power", b"1.0", qos=1)
    async with listening(adapter(broker, meters=meters)) as received, publisher(broker) as client:
        await received.until_connected()
        await client.publish("shellies/lab-7/relay/0/power", b"58.3", qos=1)
        await received.until(lambda: received.events, "the present reading")
    assert [event[3] for event in received.events] == [58.3], "an old one would get a wrong time"


async def test_a_storm_of_nonsense_is_counted_and_does_no_harm(broker: Mosquitto) -> None:
    said = {
        "outrider/in/nonsense/lab-7": b"{}",
        "outrider/in/owner/lab-1": b"\xff\xfe\x00",
        "outrider/in/owner/lab-2": b'{"present": true, "x": ' + b"[" * 60_000,
        "outrider/in/owner/lab-3": b"x" * 1_000_000,
        "outrider/in/power/lab-4": b'{"watts": -1e308}',
        "outrider/in/state/lab-5": b'{"state": "on fire"}',
        "outrider/in/owner/lab 6": b'{"present": true}',
    }
    async with listening(adapter(broker)) as received, publisher(broker) as client:
        await received.until_connected()
        for _ in range(10):
            for topic, payload in said.items():
                await client.publish(topic, payload, qos=1)
        await client.publish("outrider/in/owner/lab-7", b'{"present": true}', qos=1)
        await received.until(lambda: received.events, "the one good message after them")
    assert [event[1:3] for event in received.events] == [(events.OWNER_CAME, "lab-7")]
    assert received.rejected == {
        "unknown_topic": 10,
        "not_json": 20,
        "too_long": 10,
        "wrong_watts": 10,
        "unknown_state": 10,
        "machine_name": 10,
    }
    assert "lab 6" in received.last.note


async def test_who_may_only_read_cannot_make_events(broker: Mosquitto) -> None:
    async with listening(adapter(broker)) as received:
        await received.until_connected()
        async with publisher(broker, "reader") as outsider:
            await outsider.publish("outrider/in/owner/lab-7", b'{"present": true}', qos=1)
        async with publisher(broker, "machine") as client:
            await client.publish("outrider/in/owner/lab-8", b'{"present": true}', qos=1)
        await received.until(lambda: received.events, "the permitted one")
    assert [event[2] for event in received.events] == ["lab-8"]


async def test_a_wrong_password_is_shown_and_mended_without_a_restart(broker: Mosquitto) -> None:
    secret = broker.password_file("outrider")
    source = adapter(broker, password_file=str(secret))
    secret.write_text("wrong\n")
    async with listening(source) as received:
        await received.until(lambda: "password of outrider" in received.last.note, "the reason")
        age_s = received.last.age_s
        await received.until(lambda: received.last.age_s > age_s, "a growing age")
        assert received.last.seen_until_s is None
        secret.write_text(USERS["outrider"] + "\n")
        await received.until_connected()
        assert received.last.note == ""


async def test_a_cursor_of_somebody_else_is_refused(broker: Mosquitto) -> None:
    with pytest.raises(ValueError, match="no cursor of the mqtt adapter"):
        await anext(adapter(broker).batches({"offset": 17}))


async def test_the_last_will_of_a_machine_may_be_a_message(broker: Mosquitto) -> None:
    """A machine that loses power cannot say so; the broker says it in its place."""
    async with listening(adapter(broker)) as received:
        await received.until_connected()
        machine = [sys.executable, "-c", MACHINE, str(broker.port), USERS["machine"]]
        await asyncio.to_thread(subprocess.run, machine, check=True, timeout=20)
        await received.until(lambda: received.events, "the last will")
    assert received.events[0][1:3] == (events.LEFT, "lab-7")
