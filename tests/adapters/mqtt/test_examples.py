"""The examples for lab machines and the broker, as they are, against a real broker."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import aiomqtt
import pytest

from outrider.api import events
from tests.adapters.mqtt.listening import adapter, listening
from tests.cli.running import outrider
from tests.peers.mosquitto import Mosquitto, require_mosquitto
from tests.peers.presence import require_program
from tests.service.mqtt.publishing_site import mqtt_table
from tests.service.running.small_site import SmallSite

USERS = {"outrider": "0utr1der", "lab-7": "s3cret", "plugs": "pl7g"}
pytestmark = pytest.mark.mosquitto


@pytest.fixture
def examples(repository: Path) -> Path:
    """The folder of the examples for MQTT."""
    return repository / "examples" / "mqtt"


@pytest.fixture
def site_broker(tmp_path: Path, examples: Path) -> Iterator[Mosquitto]:
    """A broker whose users may do what the example allows."""
    acl = (examples / "acl.example").read_text()
    run_dir = tmp_path / "mosquitto"
    with Mosquitto(require_mosquitto(), run_dir, users=USERS, acl=acl) as running:
        yield running


def run_script(examples: Path, broker: Mosquitto, machine: str, **environment: str) -> int:
    require_program("mosquitto_pub", "Mosquitto's clients")
    options = broker.run_dir / "mosquitto_pub"
    options.write_text(f"-h 127.0.0.1\n-p {broker.port}\n-u lab-7\n-P {USERS['lab-7']}\n")
    reported = {"OUTRIDER_CONFIG": str(broker.run_dir), "OUTRIDER_MACHINE": machine}
    script = examples / "outrider-owner"
    done = subprocess.run([script], env={**os.environ, **reported, **environment}, check=False)
    return done.returncode


async def test_the_log_in_script_tells_who_came_but_not_the_name(
    examples: Path, site_broker: Mosquitto
) -> None:
    async with listening(adapter(site_broker)) as received:
        await received.until_connected()
        code = run_script(
            examples, site_broker, "lab-7", PAM_TYPE="open_session", PAM_USER="jane.doe"
        )
        assert code == 0
        await received.until(lambda: received.events, "the log-in")
    assert received.events[0][1:] == (events.OWNER_CAME, "lab-7", None)
    assert not received.rejected


async def test_the_log_in_script_waits_for_a_broker_that_is_away(
    examples: Path, site_broker: Mosquitto
) -> None:
    async with listening(adapter(site_broker)) as received:
        await received.until_connected()
        site_broker.kill()
        assert run_script(examples, site_broker, "lab-7", PAM_TYPE="open_session") == 0
        await received.until(lambda: received.last.age_s > 0.2, "the broker away")
        back_s = time.time()
        site_broker.start()
        await received.until(lambda: received.events, "the log-in")
    assert received.events[0][0] < back_s, "its own time, not that of its arrival"


async def test_a_machine_may_speak_of_itself_alone(examples: Path, site_broker: Mosquitto) -> None:
    async with listening(adapter(site_broker)) as received:
        await received.until_connected()
        run_script(examples, site_broker, "lab-8", PAM_TYPE="open_session")
        run_script(examples, site_broker, "lab-7", PAM_TYPE="open_session")
        await received.until(lambda: received.events, "its own")
    assert {event[2] for event in received.events} == {"lab-7"}


async def test_a_plug_may_tell_its_watts(site_broker: Mosquitto) -> None:
    meters = {"tele/+/SENSOR": {"watts": "ENERGY.Power", "machines": {"plug7": "lab-7"}}}
    said = b'{"Time": "2026-11-21T10:00:00", "ENERGY": {"Power": 63}}'
    async with listening(adapter(site_broker, meters=meters)) as received:
        await received.until_connected()
        async with aiomqtt.Client(
            "127.0.0.1", site_broker.port, username="plugs", password=USERS["plugs"]
        ) as plug:
            await plug.publish("tele/plug7/SENSOR", said, qos=1)
        await received.until(lambda: received.events, "the reading")
    assert received.events[0][1:] == (events.POWER, "lab-7", 63.0)


def test_the_rights_suffice_for_listening_and_publishing(
    site_broker: Mosquitto, tmp_path: Path
) -> None:
    table = mqtt_table(site_broker)
    listens = table.replace("[mqtt]", "[adapters.mqtt]").replace("health_every_s = 1.0", "")
    site = SmallSite(tmp_path, tables=listens + table)
    with site.daemon:
        status = site.daemon.wait_until(
            "both", lambda s: s["mqtt"]["connected"] and s["adapters"][0]["up"]
        )
        assert status["mqtt"]["failure"] is None
    done = outrider("doctor", "--config", site.config)
    assert "ok    mqtt: " in done.out
    assert "fail" not in done.out


def test_the_log_in_script_says_how_it_is_used(examples: Path) -> None:
    script = [str(examples / "outrider-owner"), "arrived"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage" in done.stderr
