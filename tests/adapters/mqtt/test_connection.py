"""The connection itself: who is let in, and what the person on call reads if not."""

import asyncio
import random
import socket
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from outrider.api import BrokerSettings, PeerError, backoff, build, connected
from tests.free_port import free_port
from tests.peers.mosquitto import USERS, Mosquitto


async def problem(**given: Any) -> PeerError:
    settings = build(BrokerSettings, {"host": "127.0.0.1"} | given, "test")
    with pytest.raises(PeerError) as caught:
        async with connected(settings, "test"):
            pass
    return caught.value


def login(broker: Mosquitto, **more: Any) -> dict[str, Any]:
    password_file = str(broker.password_file("outrider"))
    return {"port": broker.port, "username": "outrider", "password_file": password_file} | more


def secret(tmp_path: Path, text: str) -> str:
    path = tmp_path / "password"
    path.write_text(text)
    return str(path)


async def test_a_broker_that_is_not_there_is_named_and_tried_again() -> None:
    port = free_port()
    error = await problem(port=port)
    assert f"127.0.0.1:{port}" in str(error)
    assert "refused" in str(error)
    assert error.transient


async def test_a_name_that_nobody_knows_is_named() -> None:
    error = await problem(host="no-such-host.invalid")
    assert "no-such-host.invalid:1883" in str(error)
    assert "cannot be reached" in str(error)


@pytest.mark.parametrize(
    ("text", "part"), [("", "its first line is empty"), ("\n", "its first line is empty")]
)
async def test_an_empty_password_file_is_told(tmp_path: Path, text: str, part: str) -> None:
    path = secret(tmp_path, text)
    error = await problem(username="outrider", password_file=path)
    assert path in str(error)
    assert part in str(error)
    assert not error.transient


async def test_a_password_that_systemd_hands_over_lets_us_in(
    broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = broker.password_file("outrider")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(file.parent))
    handed = {"password_file": f"$CREDENTIALS_DIRECTORY/{file.name}"}
    settings = build(BrokerSettings, {"host": "127.0.0.1"} | login(broker) | handed, "test")
    async with connected(settings, "test"):
        pass


@pytest.mark.parametrize(
    "given",
    [
        {"username": "outrider", "password_file": "$CREDENTIALS_DIRECTORY/mqtt"},
        {"tls": True, "ca_file": "${CREDENTIALS_DIRECTORY}/ca"},
        {"tls": True, "cert_file": "$CREDENTIALS_DIRECTORY/cert"},
    ],
)
async def test_a_secret_that_nobody_handed_over_is_told(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    error = await problem(**given)
    assert "$CREDENTIALS_DIRECTORY is not set; expected a service" in str(error)
    assert not error.transient


async def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    for given in (
        {"username": "outrider", "password_file": absent},
        {"tls": True, "ca_file": absent},
        {"tls": True, "cert_file": absent},
    ):
        error = await problem(**given)
        assert absent in str(error)
        assert not error.transient


async def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    path = secret(tmp_path, "not a certificate\n")
    assert path in str(await problem(tls=True, ca_file=path))


async def test_a_connection_given_up_half_way_leaves_nothing_behind() -> None:
    """Test that the daemon can stop while a server accepts a connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        settings = build(BrokerSettings, {"host": "127.0.0.1", "port": mute.getsockname()[1]}, "t")

        async def connect() -> None:
            async with connected(settings, "test"):
                pytest.fail("nobody ever said that we are connected")

        before = asyncio.all_tasks()
        attempt = asyncio.create_task(connect())
        call, _ = await asyncio.to_thread(mute.accept)
        with call:
            await asyncio.to_thread(call.recv, 1)  # it has introduced itself, and waits
            attempt.cancel()
            with pytest.raises(asyncio.CancelledError):
                await attempt
            call.settimeout(5.0)
            while await asyncio.to_thread(call.recv, 4096):
                pass  # to the end: it has hung up
        await asyncio.sleep(0)
        assert asyncio.all_tasks() <= before


def test_commands_without_a_broker_do_not_load_the_mqtt_client() -> None:
    code = "import sys, outrider.api; sys.exit('aiomqtt' in sys.modules or 'paho' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pauses_grow_to_a_bound_and_differ() -> None:
    pauses = list(islice(backoff(random.Random(1), first_s=1.0, longest_s=60.0), 200))
    assert all(0.5 <= pause <= 60.0 for pause in pauses)
    assert 0.5 <= pauses[0] <= 1.0
    assert all(pause >= 30.0 for pause in pauses[7:])
    assert len(set(pauses)) == len(pauses)


@pytest.mark.mosquitto
class TestARealBroker:
    async def test_a_right_password_is_let_in(self, broker: Mosquitto) -> None:
        settings = build(BrokerSettings, {"host": "127.0.0.1"} | login(broker), "test")
        async with connected(settings, "one") as client:
            await client.subscribe("outrider/in/#", qos=1)
            await client.publish("outrider/in/power/lab-7", b"63", qos=1)
            message = await asyncio.wait_for(anext(aiter(client.messages)), 10.0)
        assert message.payload == b"63"

    async def test_a_wrong_password_is_told_apart(self, broker: Mosquitto, tmp_path: Path) -> None:
        error = await problem(**login(broker, password_file=secret(tmp_path, "wrong\n")))
        assert f"127.0.0.1:{broker.port}" in str(error)
        assert "password of outrider" in str(error)
        assert "wrong" not in str(error), "a password must not be shown"
        assert not error.transient

    async def test_nobody_is_not_let_in(self, broker: Mosquitto) -> None:
        error = await problem(port=broker.port)
        assert "no username is set" in str(error)

    async def test_tls_with_the_right_authority(self, broker: Mosquitto) -> None:
        given = login(broker, port=broker.tls_port, tls=True, ca_file=str(broker.ca_file))
        settings = build(BrokerSettings, given, "test")
        assert settings.host == "localhost"
        async with connected(settings, "tls") as client:
            await client.publish("outrider/status", b"here", qos=1)

    async def test_tls_with_another_authority_is_refused(self, broker: Mosquitto) -> None:
        error = await problem(**login(broker, port=broker.tls_port, tls=True))
        assert "certificate is not trusted" in str(error)
        assert not error.transient

    async def test_tls_on_a_plain_port_is_guessed(self, broker: Mosquitto) -> None:
        error = await problem(**login(broker, tls=True, ca_file=str(broker.ca_file)))
        assert "no TLS" in str(error) or "cannot be reached" in str(error)

    async def test_a_broker_that_is_killed_ends_the_connection(self, broker: Mosquitto) -> None:
        settings = build(BrokerSettings, {"host": "127.0.0.1"} | login(broker), "test")

        async def listen() -> None:
            async with connected(settings, "one") as client:
                broker.kill()
                async for _ in client.messages:
                    pytest.fail("nobody sent anything")

        with pytest.raises(PeerError, match=str(broker.port)):
            await listen()

    def test_the_fixture_has_a_password_for_everybody(self, broker: Mosquitto) -> None:
        for user, password in USERS.items():
            assert broker.password_file(user).read_text().strip() == password
            assert password not in (broker.run_dir / "passwords").read_text(), "hashed"
