"""Three hundred concurrent clients of a real daemon, on a site with many VOs and jobs."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.service.running.process import DaemonProcess
from tests.service.running.small_site import SmallSite

CLIENTS = 300
JOBS, VOS = 10_000, 3_000
TABLES = """
[adapters.log]
type = "logtail"
paths = ["{log}"]
start_at = "beginning"
poll_s = 0.1
settle_s = 0.1
format = "pbs"
"""
MOST_MORE_MIB = 96
"""Memory that clients without reading may cost.

It is 16 MiB of unread answers, a parser and buffers for each connection, and what Python's heap
keeps of them.
"""
PATHS = (
    "/api/v1/status",
    "/api/v1/jobs?limit=5000",
    "/api/v1/machines?limit=5000",
    "/metrics",
    "/api/v1/decisions?limit=1000",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallSite]:
    """A daemon that has seen 10,000 jobs of 3,000 accounts start on 2,000 machines."""
    site = SmallSite(tmp_path_factory.mktemp("site"), tables=TABLES)
    began_s = time.time() - 3600.0
    with site.daemon as daemon:
        with site.log.path.open("w") as log:
            for n in range(JOBS):
                at_s = began_s + n * 0.1
                stamp = time.strftime("%m/%d/%Y %H:%M:%S", time.gmtime(at_s))
                log.write(
                    f"{stamp};S;{n}.server;user=u{n % 500} account=vo{n % VOS} "
                    f"ctime={at_s - 10:.0f} start={at_s:.0f} exec_host=n{n % 2000}/0\n"
                )
        daemon.wait_until("all run", lambda s: s["jobs"]["running"] == JOBS, 120.0)
        yield site


def kib(daemon: DaemonProcess, name: str) -> int:
    """A line of the daemon's /proc/PID/status."""
    assert daemon.process is not None
    text = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(name)))


@asynccontextmanager
async def clients(daemon: DaemonProcess, says: list[bytes]) -> AsyncIterator[None]:
    """Open many connections from one address that each send a request and read nothing."""
    writers = []
    try:
        for say in says:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", int(daemon.url.rsplit(":", 1)[1]), limit=1
            )
            writers.append(writer)
            writer.write(say)
        yield
    finally:
        for writer in writers:
            writer.transport.abort()


async def longest_health_check_s(daemon: DaemonProcess, during_s: float) -> float:
    """Return the slowest of successive health checks, each on a new connection."""
    longest_s, until_s = 0.0, time.monotonic() + during_s
    while time.monotonic() < until_s:
        began_s = time.monotonic()
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(20.0)) as client,
            client.get(daemon.url + "/healthz") as answer,
        ):
            assert answer.status == 200
        longest_s = max(longest_s, time.monotonic() - began_s)
    return longest_s


def asking(path: str) -> bytes:
    """A request, by a client that takes nothing compressed."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


SAYS = {
    "idle": [b""],
    "half a request": [b"GET /api/v1/status HT"],
    "never reading": [asking(path) * 4 for path in PATHS],
}


@pytest.mark.parametrize("what", SAYS)
async def test_a_health_check_is_answered_whatever_three_hundred_clients_do(
    what: str, site: SmallSite
) -> None:
    says = [SAYS[what][n % len(SAYS[what])] for n in range(CLIENTS)]
    quiet_kib = kib(site.daemon, "VmRSS")
    async with clients(site.daemon, says):
        slowest_s = await longest_health_check_s(site.daemon, 4.0)
        more_kib = kib(site.daemon, "VmRSS") - quiet_kib
    print(f"{what}: slowest {slowest_s:.2f} s, VmRSS {quiet_kib} + {more_kib} KiB")  # noqa: T201
    assert slowest_s < 2.0
    assert more_kib < MOST_MORE_MIB * 1024
    assert site.daemon.process is not None
    assert site.daemon.process.poll() is None


async def test_the_status_of_many_vos_is_bounded_and_says_so(site: SmallSite) -> None:
    text = await asyncio.to_thread(site.daemon.text, "/api/v1/status")
    status = await asyncio.to_thread(site.daemon.status)
    assert len(text) < 1_000_000
    assert len(status["fairness"]["share"]) <= 1_001
    assert status["names"]["vo"]["folded"] >= VOS - 1_000
    assert any("named VOs beyond the limit of 1,000" in note for note in status["notes"])
    assert status["jobs"]["running"] == JOBS, "nobody's job is left out"
