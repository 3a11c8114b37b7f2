"""Tests of floods: memory stays bounded, losses are reported, and the age grows."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from outrider.api import Batch, build
from outrider.api import events as ev
from outrider_adapters.mqtt import MqttAdapter, MqttSettings
from outrider_adapters.mqtt.adapter import BATCH_MESSAGES, MAX_WAITING
from tests.adapters.mqtt.listening import adapter, listening, publisher
from tests.adapters.mqtt.raw_broker import RawBroker, packet
from tests.peers.mosquitto import Mosquitto

SENT = 60_000


def adapter_on(port: int, **more: Any) -> MqttAdapter:
    made = build(MqttSettings, {"host": "127.0.0.1", "port": port} | more, "test")
    return MqttAdapter("lab", made, heartbeat_s=0.2, rng=random.Random(7))


async def first_batches(source: MqttAdapter, still_s: float) -> AsyncIterator[Batch]:
    """Take one batch, nothing until more has come than waits, and then all that waits."""
    async with source:
        batches = source.batches(None)
        yield await anext(batches)
        await asyncio.sleep(still_s)
        arrived = source._arrived
        while not (arrived.dropped or arrived.replaced):  # noqa: ASYNC110 - it wakes nobody
            await asyncio.sleep(0.02)
        async for batch in batches:
            yield batch
        await batches.aclose()  # type: ignore[attr-defined]


async def test_a_flood_of_invented_meters_is_bounded_counted_and_logged_once() -> None:
    flood = b"".join(packet(f"outrider/in/power/junk{n}", b"63.5") for n in range(SENT))
    with RawBroker(flood) as broker, structlog.testing.capture_logs() as lines:
        source = adapter_on(broker.port, max_machines=100_000)
        taken, lost, reported, ages = 0, 0, [], []
        async with asyncio.timeout(120):
            async for batch in first_batches(source, 0.5):
                taken += len(batch.events)
                lost += batch.rejected.get("too_many_waiting", 0)
                ages.append(batch.age_s)
                reported.append(batch.note)
                await asyncio.sleep(0.02)
                assert len(source._arrived) <= MAX_WAITING / 2
                if taken + lost == SENT:
                    break
    assert lost > 0
    assert any("messages are dropped" in note for note in reported)
    assert [line["event"] for line in lines].count("messages_dropped") == 1
    assert max(ages) > 0.1
    assert ages[-1] == pytest.approx(0.0, abs=0.5)


async def test_the_newest_reading_of_each_meter_survives_a_flood() -> None:
    flood = b"".join(packet(f"tele/p{n % 700}/SENSOR", b"%d" % n) for n in range(SENT))
    with RawBroker(flood) as broker:
        source = adapter_on(broker.port, meters={"tele/+/SENSOR": {}})
        newest: dict[str, float] = {}
        dropped, replaced, taken = 0, 0, 0
        async with asyncio.timeout(120):
            async for batch in first_batches(source, 0.5):
                for _, kind, machine, watts in batch.events:
                    assert kind == ev.POWER
                    assert watts > newest.get(machine, -1.0), "a reading came after a newer one"
                    newest[machine] = watts
                    taken += 1
                dropped += batch.rejected.get("too_many_waiting", 0)
                replaced += batch.ignored.get("replaced_by_newer", 0)
                assert len(source._arrived) <= BATCH_MESSAGES + 700
                if taken + replaced == SENT:
                    break
    assert dropped == 0
    assert replaced > 0
    assert newest == {f"p{n % 700}": float(n) for n in range(SENT - 700, SENT)}


@pytest.mark.mosquitto
async def test_a_backlog_of_many_batches_shows_in_the_age_until_it_is_taken(
    broker: Mosquitto,
) -> None:
    """Test that all log-ins are reported, and that the source is not current until then."""
    sent = 5 * BATCH_MESSAGES
    source = adapter(broker)
    reported, ages, seen_s = 0, [], []
    async with asyncio.timeout(60), source, publisher(broker) as client:
        batches = source.batches(None)
        while (await anext(batches)).seen_until_s is None:
            pass
        for n in range(sent):
            await client.publish(f"outrider/in/owner/m{n}", b'{"present": true}', qos=0)
        await asyncio.sleep(1.0)
        async for batch in batches:
            reported += len(batch.events)
            ages.append(batch.age_s)
            assert batch.seen_until_s is not None
            seen_s.append(time.time() - batch.seen_until_s)
            if reported == sent:
                break
        await batches.aclose()  # type: ignore[attr-defined]
    assert len(ages) == 5
    assert min(ages[:-1]) > 0.9
    assert min(seen_s[:-1]) > 0.9
    assert ages[-1] == 0.0


@pytest.mark.mosquitto
async def test_the_flood_ends_and_the_adapter_hears_again(broker: Mosquitto) -> None:
    async with listening(adapter(broker)) as received, publisher(broker) as client:
        await received.until_connected()
        for n in range(5_000):
            await client.publish(f"outrider/in/power/m{n % 50}", b"%d" % n, qos=0)
        await client.publish("outrider/in/owner/m1", b'{"present": true}', qos=1)
        await received.until(
            lambda: any(event[1] == ev.OWNER_CAME for event in received.events), "the log-in"
        )
