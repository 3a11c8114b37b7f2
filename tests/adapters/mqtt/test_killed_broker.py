"""A broker that is killed under load, again and again."""

import asyncio
import random

import pytest

from outrider.api import NamedEvent
from outrider.engine.ingest.event_merger import EventMerger
from outrider.model.events import JOINED, POWER
from outrider.model.machines import MachineSpec
from tests.adapters.mqtt.listening import PatientPublisher, adapter, listening
from tests.peers.mosquitto import Mosquitto

KILLS = 5
pytestmark = pytest.mark.mosquitto


async def test_nothing_is_lost_or_doubled_when_the_broker_is_killed(broker: Mosquitto) -> None:
    """The broker saves each message; the publisher repeats what it sent just before the break."""
    chance = random.Random(11)
    source = PatientPublisher(broker, pause_s=0.01)
    async with listening(adapter(broker)) as received:
        await received.until_connected()
        sending = asyncio.create_task(source.run())
        for kill in range(1, KILLS + 1):
            await asyncio.sleep(chance.uniform(0.3, 0.9))  # any moment may be the wrong one
            before_n, breaks = len(received.events), source.breaks
            broker.kill()
            await received.until(
                lambda n=breaks: received.last.age_s > 0.0 and source.breaks > n,  # type: ignore[misc]
                f"noticed kill {kill} at both ends",
            )
            await asyncio.to_thread(broker.start)
            await received.until(
                lambda n=before_n: len(received.events) > n,  # type: ignore[misc]
                f"on after kill {kill}",
            )
        source.finish()
        await asyncio.wait_for(sending, 30.0)
        await received.until(lambda: len(received.events) >= len(source.sent), "all of them")
    reported = [(machine, time_s) for time_s, _, machine, _ in received.events]
    assert not set(source.sent) - set(reported), "lost"
    assert len(reported) == len(set(reported)), "doubled"
    assert counted(received.events) == len(source.sent)


def counted(reported: list[NamedEvent]) -> int:
    """Return how many readings the engine gets, of machines that it knows."""
    merger = EventMerger(["mqtt"], lambda name: MachineSpec())
    began_s = min(event[0] for event in reported)
    merger.arrive(
        "mqtt", [(began_s - 1, JOINED, m, MachineSpec()) for m in {e[2] for e in reported}]
    )
    merger.arrive("mqtt", reported)
    engine_gets = [event[1] for event in merger.seen("mqtt", reported[-1][0] + 1)]
    return engine_gets.count(POWER)


async def test_a_broker_that_is_away_makes_only_its_own_input_old(broker: Mosquitto) -> None:
    async with listening(adapter(broker)) as received:
        await received.until_connected()
        broker.kill()
        await received.until(lambda: received.last.age_s > 0.5, "its age")
        assert str(broker.port) in received.last.note
        assert received.last.seen_until_s is None, "the other sources must not wait for it"
        await asyncio.to_thread(broker.start)
        await received.until(lambda: received.last.age_s == 0.0, "young again")
        await received.until_connected()
