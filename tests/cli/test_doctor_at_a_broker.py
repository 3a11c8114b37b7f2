"""`outrider doctor` beside a real broker: missing rights are found, though no broker says so."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from outrider.api import BrokerSettings, build, probe_topic
from outrider.service.demo.demo_broker import demo_broker
from tests.cli.running import outrider
from tests.peers.mosquitto import USERS, Mosquitto, require_mosquitto
from tests.service.mqtt.publishing_site import mqtt_table

pytestmark = pytest.mark.mosquitto
RIGHTS = {
    "both": "topic readwrite outrider/site/#\n",
    "write": "topic write outrider/site/#\n",
    "read": "topic read outrider/site/#\n",
    "none": "topic read elsewhere\n",
}


@pytest.fixture
def rights(request: pytest.FixtureRequest) -> str:
    """The rights that the broker gives; tests parametrize them."""
    return RIGHTS["both"]


@pytest.fixture
def broker(tmp_path: Path, rights: str) -> Iterator[Mosquitto]:
    """A real broker that gives these rights."""
    acl = f"user outrider\n{rights}"
    with Mosquitto(require_mosquitto(), tmp_path / "mosquitto", acl=acl) as running:
        yield running


def checks(folder: Path, tables: str) -> tuple[int, dict[str, dict[str, Any]]]:
    config = folder / "outrider.toml"
    config.write_text(f'state_dir = "{folder}/state"\nlisten = "127.0.0.1:0"\n{tables}')
    done = outrider("doctor", "--config", config, "--json")
    return done.code, {check["name"]: check for check in json.loads(done.out)["checks"]}


def adapter_table(broker: Mosquitto) -> str:
    return (
        mqtt_table(broker).replace("[mqtt]", "[adapters.mqtt]").replace("health_every_s = 1.0", "")
    )


@pytest.mark.parametrize(
    ("rights", "state", "told"),
    [
        (RIGHTS["both"], "ok", "may write and read outrider/site/#"),
        (RIGHTS["write"], "fail", "but not read it"),
        (RIGHTS["read"], "fail", "may not publish to outrider/site/doctor"),
        (RIGHTS["none"], "fail", "may not publish to outrider/site/doctor"),
    ],
    ids=RIGHTS,
)
def test_rights_to_publish(broker: Mosquitto, tmp_path: Path, state: str, told: str) -> None:
    log = tmp_path / "EventLog"
    log.touch()
    tables = f'[adapters.log]\ntype = "logtail"\npaths = ["{log}"]\n' + mqtt_table(broker)
    code, found = checks(tmp_path, tables)
    assert found["mqtt"]["state"] == state
    assert told in found["mqtt"]["found"]
    assert code == (state == "fail")
    if state == "fail":
        assert "topic readwrite outrider/site/#" in found["mqtt"]["remedy"]


@pytest.mark.parametrize(
    ("rights", "state", "told"),
    [
        ("topic readwrite outrider/in/#\n", "ok", "messages published below outrider/in/ arrive"),
        ("topic write outrider/in/#\n", "fail", "does not deliver it to outrider"),
        ("topic read outrider/in/#\n", "ok", "may not publish below outrider/in/, as it should be"),
    ],
    ids=["both", "write", "read"],
)
def test_rights_to_listen(broker: Mosquitto, tmp_path: Path, state: str, told: str) -> None:
    _, found = checks(tmp_path, adapter_table(broker))
    assert found["adapter mqtt: reading"]["state"] == state
    assert told in found["adapter mqtt: reading"]["found"]
    assert found["adapter mqtt"]["state"] == "ok"


def test_a_wrong_password_is_a_failure(broker: Mosquitto, tmp_path: Path) -> None:
    tables = adapter_table(broker)
    (broker.run_dir / "outrider.password").write_text("no" + USERS["outrider"])
    code, found = checks(tmp_path, tables)
    assert "refuses the password of outrider" in found["adapter mqtt: broker"]["found"]
    assert found["adapter mqtt: broker"]["state"] == "fail"
    assert "adapter mqtt: reading" not in found
    assert code == 1


async def test_a_broker_that_does_not_speak_mqtt_5_is_asked_in_3() -> None:
    """The demonstration's own: without rights, everything comes back."""
    pytest.importorskip("amqtt")
    with demo_broker() as port:
        settings = build(BrokerSettings, {"host": "127.0.0.1", "port": port}, "test")
        probe = await probe_topic(settings, "test", "outrider/site/doctor")
    assert probe == (True, True)
