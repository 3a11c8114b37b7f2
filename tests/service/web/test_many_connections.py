"""Limits of connections: idle ones, half requests, and unread answers."""

import asyncio
import resource
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from outrider.service.web import serve
from outrider.service.web.serve import Connections
from tests.fixtures.clocks import SetClock
from tests.service.running.small_site import SmallSite as SiteWithALog
from tests.service.web.small_site import SmallSite

MOST = 20


@asynccontextmanager
async def clients(port: int, n: int, say: bytes = b"") -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open connections that each send the same bytes and then nothing."""
    opened = []
    try:
        for _ in range(n):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
            opened.append((reader, writer))
            writer.write(say)
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.close()


async def health(port: int) -> float:
    """Seconds that a health check takes, on a connection of its own."""
    began_s = time.monotonic()
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(10.0)) as client,
        client.get(f"http://127.0.0.1:{port}/healthz") as answer,
    ):
        assert answer.status == 200
    return time.monotonic() - began_s


@pytest.mark.parametrize(
    "say",
    [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"],
    ids=["silent", "half a request", "idle after an answer"],
)
async def test_a_health_check_gets_in_whatever_others_hold_open(say: bytes) -> None:
    async with (
        serve(SmallSite().app(), "127.0.0.1", 0, most=MOST) as port,
        clients(port, 5 * MOST, say) as readers,
    ):
        assert await health(port) < 2.0
        closed = await asyncio.wait_for(_closed(readers), 5.0)
        assert closed >= 4 * MOST, "the connections on which nothing moved for longest went"


async def _closed(readers: list[asyncio.StreamReader]) -> int:
    """Return how many the server has closed, as soon as those at the front are."""
    return sum(await asyncio.gather(*(_ends(reader) for reader in readers)))


async def _ends(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(1.0):
            while await reader.read(1000):
                pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@asynccontextmanager
async def answering(
    body: bytes, **bounds: float | int
) -> AsyncIterator[tuple[int, Connections, SetClock]]:
    """A server of one large answer: its port, its connections, and their clock."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body)

    app, clock = web.Application(), SetClock()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    connections = Connections(runner.server, clock=clock, **bounds)  # type: ignore[arg-type]
    listening = await asyncio.get_running_loop().create_server(connections, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1], connections, clock
    finally:
        listening.close()
        await runner.cleanup()


REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = bytes(4 << 20)


async def until(connections: Connections, unread: int) -> None:
    """Wait until so many connections have unread bytes."""
    async with asyncio.timeout(10.0):
        while sum(each.unread_bytes > 0 for each in connections) < unread:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # bytes left in a buffer are no event


async def test_an_answer_that_nobody_reads_is_thrown_away_after_a_while() -> None:
    async with (
        answering(LARGE, unread_s=10.0) as (port, connections, clock),
        clients(port, 3, REQUEST),
    ):
        await until(connections, 3)
        clock.now_s = 9.0
        connections.sweep()
        assert len(connections) == 3
        clock.now_s = 10.0
        connections.sweep()
        assert (len(connections), connections.ended["unread"]) == (0, 3)


async def test_who_reads_slowly_is_not_cut_off() -> None:
    async with (
        answering(LARGE, unread_s=10.0) as (port, connections, clock),
        clients(port, 1, REQUEST) as (reader,),
    ):
        await until(connections, 1)
        left = len(LARGE)
        while left > 0:
            clock.now_s += 6.0
            left -= len(await reader.read(600_000))
            await asyncio.sleep(0.02)
            connections.sweep()
        assert connections.ended["unread"] == 0


async def test_answers_that_nobody_reads_take_no_more_than_so_many_bytes() -> None:
    most = 12 << 20
    async with (
        answering(2 * LARGE, max_unread_bytes=most) as (port, connections, _),
        clients(port, 10, REQUEST),
    ):
        async with asyncio.timeout(10.0):
            while not connections.ended["unread"]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert sum(each.unread_bytes for each in connections) <= most
        assert 0 < len(connections) < 10


async def test_a_connection_on_which_nothing_moves_is_closed() -> None:
    async with (
        answering(b"", idle_s=60.0) as (port, connections, clock),
        clients(port, 2),
    ):
        while len(connections) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        clock.now_s = 59.0
        connections.sweep()
        assert len(connections) == 2
        clock.now_s = 60.0
        connections.sweep()
        assert (len(connections), connections.ended["idle"]) == (0, 2)


def descriptors_of(pid: int) -> int:
    """Return how many files a process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    """Limit processes started in this context to 200 descriptors."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, before[1]))
    yield 200
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def test_a_daemon_outlives_more_connections_than_it_may_have_descriptors(
    few_descriptors: int, tmp_path: Path
) -> None:
    site = SiteWithALog(tmp_path)
    with site.daemon as daemon:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        )
        port = int(daemon.url.rsplit(":", 1)[1])
        async with clients(port, 1030):
            assert await health(port) < 2.0
            site.log.submit(1, 2)
            await asyncio.to_thread(
                daemon.wait_until, "jobs come in", lambda s: s["jobs"]["queued"] == 2
            )
            assert daemon.process is not None
            assert descriptors_of(daemon.process.pid) < few_descriptors


async def test_of_hundreds_that_come_at_once_the_first_is_heard() -> None:
    """All are in the backlog before the loop turns: the first has asked and was not heard yet."""
    async with serve(SmallSite().app(), "127.0.0.1", 0, most=MOST) as port:
        first = socket.create_connection(("127.0.0.1", port), timeout=10.0)
        first.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        others = [socket.create_connection(("127.0.0.1", port)) for _ in range(3 * MOST)]
        try:
            answer = await asyncio.to_thread(first.recv, 64)
            assert answer.startswith(b"HTTP/1.1 200")
        finally:
            for one in (first, *others):
                one.close()
