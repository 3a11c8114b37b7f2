"""Needs of a configuration on its service: hosts to reach, files to read."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from outrider.model.errors import PluginError
from outrider.plugins.finding import load_adapter
from outrider.service.config.loaded import check_config
from outrider.service.unit import needs
from outrider.service.unit.drop_ins import capabilities_text
from outrider.service.unit.needs import Peer, UnitNeeds, needs_of

LOG: Mapping[str, Any] = {"pool": {"type": "logtail", "paths": ["/var/log/condor/EventLog*"]}}


def needed(source: str = "/nowhere/outrider.toml", **tables: Any) -> UnitNeeds:
    return needs_of(check_config({"adapters": LOG} | tables, source))


def broker(host: str, **more: str) -> dict[str, str]:
    return {"host": host, "site": "test"} | more


def test_who_only_reads_logs_reaches_nobody_and_has_no_secrets() -> None:
    found = needed()
    assert found.peers == []
    assert "/var/log/condor/EventLog*" in found.files
    assert (found.secrets, found.credentials, found.notes) == ([], [], [])


def test_a_broker_on_this_host_is_reached_anyway() -> None:
    assert needed(mqtt=broker("localhost")).peers == []
    assert needed(mqtt=broker("127.0.0.1")).peers == []


def test_an_address_needs_no_name_server_and_a_name_needs_them_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(needs, "nameservers", lambda: ("192.0.2.53",))
    by_address = Peer("192.0.2.9", "MQTT broker", ("192.0.2.9",))
    assert needed(mqtt=broker("192.0.2.9")).peers == [by_address]
    monkeypatch.setattr(needs, "resolve", lambda _: ("127.0.0.1", "198.51.100.7"))
    assert needed(mqtt=broker("broker.example.org")).peers == [
        Peer("broker.example.org", "MQTT broker", ("198.51.100.7",)),
        Peer("192.0.2.53", "name server, from resolv.conf", ("192.0.2.53",)),
    ]


def test_a_name_that_nobody_knows_is_a_note_with_what_it_is_for() -> None:
    found = needed(mqtt=broker("no.such.host.invalid"))
    assert found.peers == []
    [note] = found.notes
    assert note.startswith("MQTT broker: no.such.host.invalid: the name is not known")
    assert found.unknown_hosts == note, "nothing is denied that may turn out to be needed"


def test_who_listens_beyond_this_host_has_to_name_its_clients() -> None:
    for listen in ("127.0.0.1:9180", "localhost:9180", "[::1]:9180"):
        assert needed(listen=listen).notes == []
    found = needed(listen="0.0.0.0:9180", tls_cert="/c.pem", tls_key="/k.pem", token_file="/t")
    [note] = found.notes
    assert note.startswith('"listen" = "0.0.0.0:9180" is beyond loopback')
    assert "/c.pem" in found.files
    assert found.secrets == ["/t", "/k.pem"]


def test_an_adapter_that_is_broken_says_nothing_and_the_others_do() -> None:
    gone = {"type": "logtail", "paths": ["/var/log/gone"]}
    loaded = check_config({"adapters": {"gone": gone, **LOG}}, "/nowhere/outrider.toml")
    loaded.broken["adapters.gone"] = "no bindings"
    found = needs_of(loaded)
    assert "/var/log/condor/EventLog*" in found.files
    assert "/var/log/gone" not in found.files
    assert found.notes == []


@pytest.mark.parametrize(
    ("error", "said"),
    [(PluginError("no bindings"), "no bindings"), (KeyError("ap1"), "KeyError: 'ap1'")],
)
def test_an_adapter_that_fails_at_it_is_a_note(
    monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fails(_: object) -> None:
        raise error

    monkeypatch.setattr(load_adapter("logtail"), "service_needs", fails)
    assert needed().notes == [f"adapter pool: {said}"]


def test_the_configuration_is_read_where_there_is_one(tmp_path: Path) -> None:
    file = tmp_path / "outrider.toml"
    assert str(file) not in needed(str(file)).files
    file.write_text("")
    assert needed(str(file)).files[0] == str(file)


def test_the_python_that_runs_it_is_read_unless_every_service_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, only_here, gone = tmp_path / "plugins", tmp_path / "mine", tmp_path / "gone"
    within = here / "deep"
    for folder in (within, only_here):
        folder.mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", f"{only_here}")
    monkeypatch.setattr(sys, "path", ["", "/usr/lib", *map(str, (here, within, only_here, gone))])
    monkeypatch.setattr(sys, "prefix", "/usr")
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    assert needed().files == [str(here), "/var/log/condor/EventLog*"]


def test_secrets_are_files_or_what_systemd_hands_over(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("s3cret")
    password = broker("127.0.0.1", username="outrider", password_file=str(secret))
    found = needed(mqtt=password, token_file="$CREDENTIALS_DIRECTORY/http-token")
    assert (found.secrets, found.credentials) == ([str(secret)], ["http-token"])
    assert str(secret) not in found.files


@pytest.mark.parametrize(
    ("conf", "environment", "needs_port"),
    [
        ("PBS_SERVER=127.0.0.1\n", "", True),
        ("PBS_SERVER=127.0.0.1\nPBS_AUTH_METHOD=munge\n", "", False),
        ("PBS_SERVER=127.0.0.1\n#PBS_AUTH_METHOD=munge\n", "", True),
        ("PBS_SERVER=127.0.0.1\nPBS_AUTH_METHOD=munge\n", "resvport", True),
    ],
)
def test_a_pbs_needs_a_privileged_port_unless_it_uses_munge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conf: str, environment: str, needs_port: bool
) -> None:
    (tmp_path / "pbs.conf").write_text(conf)
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    monkeypatch.setenv("PBS_AUTH_METHOD", environment)
    found = needs_of(check_config({"adapters": {"pbs": {}}}, "/nowhere/outrider.toml"))
    assert list(found.capabilities) == ["CAP_NET_BIND_SERVICE"] * needs_port
    if needs_port:
        text = capabilities_text(found.capabilities)
        assert "\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n" in text
        assert text.startswith("# CAP_NET_BIND_SERVICE: pbs_iff names the user")
