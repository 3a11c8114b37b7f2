"""The service manager hears, on a real socket, what sd_notify(3) promises it."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from outrider.api import ConfigurationError
from outrider.service.host.sdnotify import ServiceManager


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    """A datagram socket such as systemd's; `address` as the kernel wants it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address)
        listener.settimeout(5)
        yield listener


def test_each_message_arrives_as_one_datagram(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    manager = ServiceManager({"NOTIFY_SOCKET": path})
    with listening(path) as listener:
        assert manager.ready("shadow, 3 jobs")
        assert listener.recv(4096) == b"READY=1\nSTATUS=shadow, 3 jobs"
        assert manager.status("quiet")
        assert listener.recv(4096) == b"STATUS=quiet"
        assert manager.alive()
        assert listener.recv(4096) == b"WATCHDOG=1"
        assert manager.stopping("SIGTERM")
        assert listener.recv(4096) == b"STOPPING=1\nSTATUS=SIGTERM"


def test_a_long_start_asks_for_more_time_and_keeps_the_watchdog_quiet(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with listening(path) as listener:
        assert ServiceManager({"NOTIFY_SOCKET": path}).starting("still starting: 1 %", 60.0)
        asked = b"EXTEND_TIMEOUT_USEC=60000000\nWATCHDOG=1\nSTATUS=still starting: 1 %"
        assert listener.recv(4096) == asked


def test_a_reload_carries_the_monotonic_time_that_systemd_asks_for(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with listening(path) as listener:
        before = time.monotonic_ns() // 1000
        assert ServiceManager({"NOTIFY_SOCKET": path}).reloading()
        after = time.monotonic_ns() // 1000
        reloading, _, stamp = listener.recv(4096).decode().partition("\n")
    assert reloading == "RELOADING=1"
    name, _, usec = stamp.partition("=")
    assert name == "MONOTONIC_USEC"
    assert before <= int(usec) <= after


def test_an_abstract_socket_is_reached_by_its_at_sign() -> None:
    name = f"outrider-test-{os.getpid()}"
    with listening(f"\0{name}") as listener:
        assert ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).alive()
        assert listener.recv(4096) == b"WATCHDOG=1"


def test_a_status_of_several_lines_cannot_forge_a_field(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with listening(path) as listener:
        ServiceManager({"NOTIFY_SOCKET": path}).status("trouble:\nSTOPPING=1\udce9")
        assert listener.recv(4096) == b"STATUS=trouble: STOPPING=1?"


def test_without_a_service_manager_nothing_is_told() -> None:
    manager = ServiceManager({})
    assert not manager.ready("nobody listens")
    assert not manager.alive()
    assert manager.watchdog_every_s is None


def test_a_service_manager_that_went_away_is_no_error(tmp_path: Path) -> None:
    assert not ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")}).alive()


def test_a_service_manager_that_does_not_listen_never_blocks_us(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    manager = ServiceManager({"NOTIFY_SOCKET": path})
    with listening(path):
        told = [manager.alive() for _ in range(10_000)]
    assert told[0]
    assert not told[-1]


def test_an_address_that_is_no_local_socket_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r'NOTIFY_SOCKET = "vsock:2:1234"'):
        ServiceManager({"NOTIFY_SOCKET": "vsock:2:1234"})


@pytest.mark.parametrize(
    ("environ", "every_s"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_is_fed_twice_in_the_time_it_allows(
    environ: dict[str, str], every_s: float | None
) -> None:
    assert ServiceManager(environ).watchdog_every_s == every_s
