"""A broker that is dead, silent or refuses us: the adapter is down, and says why."""

import asyncio
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from outrider.api import Batch, build
from outrider_adapters.mqtt import MqttAdapter, MqttSettings
from outrider_adapters.mqtt import adapter as adapter_module
from tests.adapters.mqtt.listening import adapter, listening
from tests.adapters.mqtt.raw_broker import RawBroker
from tests.free_port import free_port
from tests.peers.mosquitto import USERS, Mosquitto
from tests.service.running.small_site import SmallSite

BAD_PASSWORD = b"\x20\x02\x00\x05"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the adapter down after half a second."""
    monkeypatch.setattr(adapter_module, "DOWN_AFTER_S", 0.5)


def adapter_on(port: int, **more: Any) -> MqttAdapter:
    made = build(MqttSettings, {"host": "127.0.0.1", "port": port} | more, "test")
    return MqttAdapter("lab", made, heartbeat_s=0.1, rng=random.Random(7))


async def batch_that(source: MqttAdapter, is_down: bool) -> Batch:
    async with asyncio.timeout(20), source:
        batches = source.batches(None)
        try:
            async for batch in batches:
                if bool(batch.problem) == is_down:
                    return batch
        finally:
            await batches.aclose()  # type: ignore[attr-defined]
    raise AssertionError("no batch at all")


async def test_a_broker_that_is_not_there_is_down(impatient: None) -> None:
    port = free_port()
    batch = await batch_that(adapter_on(port), True)
    assert f"127.0.0.1:{port}" in batch.problem
    assert "refused" in batch.problem
    assert batch.age_s >= 0.5
    assert batch.seen_until_s is None


async def test_a_broker_that_takes_the_call_and_says_nothing_is_down(impatient: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        batch = await batch_that(adapter_on(mute.getsockname()[1]), True)
    assert "does not answer" in batch.problem


async def test_one_that_refuses_us_is_down_at_once() -> None:
    with RawBroker(answer=BAD_PASSWORD) as broker:
        batch = await batch_that(adapter_on(broker.port, username="who"), True)
    assert "refuses the password of who" in batch.problem
    assert batch.age_s < 5.0


@pytest.mark.mosquitto
async def test_a_restart_of_the_broker_is_not_down_and_a_long_one_is(
    broker: Mosquitto, impatient: None
) -> None:
    async with listening(adapter(broker)) as received:
        await received.until_connected()
        assert received.last.problem == ""
        broker.kill()
        await received.until(lambda: received.last.problem, "down")
        broker.start()
        await received.until(lambda: not received.last.problem, "up again")
        assert received.last.seen_until_s is not None


@pytest.mark.mosquitto
def test_the_daemon_shows_it_everywhere(broker: Mosquitto, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.password"
    wrong.write_text("no" + USERS["outrider"])
    table = (
        f'[adapters.mqtt]\nhost = "127.0.0.1"\nport = {broker.port}\nusername = "outrider"\n'
        f'password_file = "{wrong}"\n'
    )
    site = SmallSite(tmp_path, tables=table)
    with site.daemon:
        status = site.daemon.wait_until(
            "refused", lambda s: "refuses the password" in s["adapters"][0]["note"], 20.0
        )
        assert not status["adapters"][0]["up"]
        assert 'outrider_adapter_up{adapter="mqtt"} 0' in site.daemon.text("/metrics")
        wrong.write_text(USERS["outrider"])  # and it is mended in its file
        site.daemon.wait_until("up", lambda s: s["adapters"][0]["up"])
        assert 'outrider_adapter_up{adapter="mqtt"} 1' in site.daemon.text("/metrics")
