"""A wrong table `[mqtt]` is refused with place, value and expectation; a valid one is shown."""

import json
import socket
from pathlib import Path

import pytest

from outrider.model.errors import ConfigurationError
from outrider.service.config.loaded import load_config
from tests.cli.running import outrider
from tests.peers.mosquitto import Mosquitto
from tests.service.mqtt.publishing_site import mqtt_table

RIGHT = '[adapters.log]\ntype = "logtail"\npaths = ["{log}"]\n'

WRONG = {
    "a_misspelt_setting": ('hots = "broker"', ["[mqtt]", "hots", 'did you mean "host"?']),
    "a_port_out_of_range": ("port = 70000", ["[mqtt]", "port", "70000"]),
    "a_site_with_a_slash": ('site = "north/lab"', ["[mqtt]", "north/lab", "north-campus"]),
    "a_site_with_a_wildcard": ('site = "+"', ["[mqtt]", "site", "'+'"]),
    "a_site_that_begins_with_a_space": ('site = " north"', ["[mqtt]", "site", "' north'"]),
    "a_site_that_ends_with_a_space": ('site = "north "', ["[mqtt]", "site", "'north '"]),
    "a_topic_that_ends_with_a_space": ('topic = "site/a "', ["[mqtt]", "topic", "'site/a '"]),
    "a_topic_of_the_broker_s_own": ('topic = "$SYS"', ["[mqtt]", "topic", "$SYS"]),
    "no_time_between_two_healths": (
        "health_every_s = 0",
        ["[mqtt]", "health_every_s", "1 or more"],
    ),
    "a_password_of_nobody": ('password_file = "/p"', ["[mqtt]", "username"]),
}


def site_file(folder: Path, table: str) -> Path:
    (folder / "EventLog").touch()
    file = folder / "outrider.toml"
    file.write_text(
        f'state_dir = "{folder / "state"}"\nlisten = "127.0.0.1:0"\n'
        + RIGHT.format(log=folder / "EventLog")
        + table
    )
    return file


@pytest.mark.parametrize(("line", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_setting_is_refused(tmp_path: Path, line: str, said: list[str]) -> None:
    file = site_file(tmp_path, f"[mqtt]\n{line}\n")
    with pytest.raises(ConfigurationError) as refused:
        load_config(file)
    for words in (str(file), *said):
        assert words in str(refused.value)


def test_check_config_says_where_it_publishes(tmp_path: Path) -> None:
    file = site_file(tmp_path, '[mqtt]\nhost = "broker.example.org"\ntls = true\nsite = "north"\n')
    done = outrider("check-config", file)
    assert done.code == 0
    assert "publishes  outrider/north/# at broker.example.org:8883" in done.out
    told = outrider("check-config", file, "--json").json()
    assert told["publishes"] == {"broker": "broker.example.org:8883", "topics": "outrider/north/#"}


def mqtt_check(file: Path) -> dict[str, str]:
    checks = json.loads(outrider("doctor", "--config", file, "--json").out)["checks"]
    (found,) = [check for check in checks if check["name"] == "mqtt"]
    return dict(found)


@pytest.mark.mosquitto
def test_the_doctor_knocks_at_the_broker(tmp_path: Path, broker: Mosquitto) -> None:
    found = mqtt_check(site_file(tmp_path, mqtt_table(broker)))
    assert found["state"] == "ok", found
    wrong = mqtt_table(broker, password_file=str(broker.password_file("reader")))
    found = mqtt_check(site_file(tmp_path, wrong))
    assert found["state"] == "fail"
    assert "password" in found["found"]
    assert found["remedy"]


def test_the_doctor_says_that_no_broker_answers(tmp_path: Path) -> None:
    with socket.socket() as bound:  # and nobody listens
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        found = mqtt_check(site_file(tmp_path, f'[mqtt]\nhost = "127.0.0.1"\nport = {port}\n'))
    assert found["state"] == "fail"
    assert f"127.0.0.1:{port}: cannot be reached" in found["found"]
