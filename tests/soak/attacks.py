"""Attacks on a daemon through its port or its logs, some seconds each."""

import contextlib
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tests.adapters.mqtt.raw_broker import packet
from tests.peers.mosquitto import USERS, Mosquitto
from tests.service.running.process import DaemonProcess
from tests.soak.site import SoakSite

CLIENTS: Final = 300
GROUPS: Final = 12_000
COSTLY_BYTES: Final = 150_000
MESSAGES_A_SECOND: Final = 20_000
SMALL_BUFFER: Final = 4_096
STARTS_WITHIN_S: Final = 180.0
_JOBS: Final = count(1)

Attack = Callable[[SoakSite, DaemonProcess, float], None]
"""Function that attacks a daemon on a site for some seconds; its name says how."""


def idle_connections(site: SoakSite, daemon: DaemonProcess, seconds: float) -> None:
    """Clients of one address hold connections; half of them sent half a request."""
    with _connections(daemon.url) as sockets:
        for one in sockets[::2]:
            with contextlib.suppress(OSError):  # the daemon may have hung up
                one.sendall(b"GET /api/v1/status HTTP/1.1\r\nHost: ")
        time.sleep(seconds)


def unread_answers(site: SoakSite, daemon: DaemonProcess, seconds: float) -> None:
    """Clients ask for long answers and never read them; who was cut off comes again."""
    asks = b"GET /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 8
    ends_s = time.monotonic() + seconds
    while (left_s := ends_s - time.monotonic()) > 0:
        with _connections(daemon.url) as sockets:
            for one in sockets:
                with contextlib.suppress(OSError):
                    one.sendall(asks)
            time.sleep(min(left_s, 5.0))


def no_log(site: SoakSite, daemon: DaemonProcess, seconds: float) -> None:
    """Replace a log by a FIFO without a writer, a folder, a device; then restore it."""
    for put in (os.mkfifo, Path.mkdir, _link_to_zeros):
        site.other.unlink()
        put(site.other)
        time.sleep(seconds / 3)
        if site.other.is_dir():
            shutil.rmtree(site.other)
            site.other.touch()
    site.other.unlink()
    site.other.touch()


def costly_records(site: SoakSite, daemon: DaemonProcess, seconds: float) -> None:
    """Records of 150 kB of what a careless pattern tries in every division."""
    for filler in (" ", "\t", "1", "a", "=", '"', "(", "a=", "1 ", "\n\t", "<"):
        text = filler * (COSTLY_BYTES // len(filler))
        _append(site.users, "".join(_record(code, text) for code in ("000", "001", "005", "028")))
        time.sleep(seconds / 11)


def many_groups(site: SoakSite, daemon: DaemonProcess, seconds: float) -> None:
    """Twelve thousand jobs, each of an accounting group of its own; their ads say so."""
    for _ in range(100):
        text = ""
        for _ in range(GROUPS // 100):
            number = next(_JOBS)
            text += _record("000", "Job submitted from host: <10.0.0.201:9618>", number)
            ad = f'Job ad information event triggered.\nOwner = "u{number}"\n'
            text += _record("028", f'{ad}AccountingGroup = "group{number}.u{number}"', number)
            text += _record("009", "Job was aborted by the user.", number)
        _append(site.users, text)
        time.sleep(seconds / 100)


def far_future(site: SoakSite, daemon: DaemonProcess, seconds: float) -> None:
    """Jobs of the year 2099 and of 1960 among those of today."""
    for year in (2099, 1960):
        number = next(_JOBS)
        record = _record("000", "Job submitted from host: <10.0.0.201:9618>", number)
        _append(site.users, record.replace(f"{datetime.now(UTC).year}-", f"{year}-", 1))
        time.sleep(seconds / 2)


def junk_meters(site: SoakSite, daemon: DaemonProcess, seconds: float) -> None:
    """Send messages faster than the daemon takes them, half of them from invented meters."""
    made_up = count()
    with _machine_at(site.broker) as connection:
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            began_s = time.monotonic()
            connection.sendall(
                b"".join(
                    packet(f"outrider/in/power/{name}", b"63.5")
                    for _ in range(MESSAGES_A_SECOND // 40)
                    for name in ("meter", f"junk{next(made_up)}")
                )
            )
            time.sleep(max(0.0, began_s + 0.05 - time.monotonic()))


def no_snapshot(site: SoakSite, daemon: DaemonProcess, seconds: float) -> None:
    """A kill, after which no snapshot can be read: the state comes from the journal.

    When it is tried again the oldest one is left: all of a long journal takes minutes.
    """
    daemon.kill()
    snapshots = sorted((daemon.config.parent / "state" / "snapshots").iterdir())
    for snapshot in snapshots[site.spared_snapshots :]:
        snapshot.write_bytes(b"\0" * 100)
    site.spared_snapshots = 1
    daemon.start(STARTS_WITHIN_S)
    time.sleep(seconds)


ATTACKS: Final[tuple[Attack, ...]] = (
    idle_connections, unread_answers, no_log, costly_records, many_groups, far_future, junk_meters,
    no_snapshot,
)  # fmt: skip


def _record(code: str, text: str, number: int = 0) -> str:
    now = datetime.now(UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", "Z")
    return f"{code} ({number:03d}.000.000) {now} {text}\n...\n"


def _append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


def _link_to_zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


@contextlib.contextmanager
def _machine_at(broker: Mosquitto) -> Iterator[socket.socket]:
    """A connection over which a machine that may publish does so, with QoS 0."""

    def text(value: str) -> bytes:
        return len(value).to_bytes(2, "big") + value.encode()

    asked = text("MQTT") + b"\x04\xc2\x00\x3c" + text("soak")  # version 3.1.1, a clean session
    asked += text("machine") + text(USERS["machine"])
    with socket.create_connection(("127.0.0.1", broker.port), timeout=30.0) as connection:
        connection.sendall(bytes([0x10, len(asked)]) + asked)
        assert connection.recv(4) == b"\x20\x02\x00\x00", "the broker refuses the machine"
        yield connection


@contextlib.contextmanager
def _connections(url: str) -> Iterator[list[socket.socket]]:
    """Connections that read as little as the system allows."""
    address = urlsplit(url)
    assert address.hostname is not None
    sockets: list[socket.socket] = []
    try:
        for _ in range(CLIENTS):
            one = socket.socket()
            sockets.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            one.settimeout(2.0)
            with contextlib.suppress(OSError):
                one.connect((address.hostname, address.port))
        yield sockets
    finally:
        for one in sockets:
            one.close()
