"""Requests that are refused before any work: bodies that nothing needs, and malformed ones."""

import asyncio
import logging
import time
import zlib
from collections.abc import Iterator

import aiohttp
import pytest
from aiohttp.http_exceptions import BadHttpMessage
from structlog.testing import capture_logs

from outrider.service.web import serve
from outrider.service.web.serve import RefusedRequests, request_logger
from tests.fixtures.patience import patient
from tests.service.web.small_site import SmallSite, visit

TOKEN = "0123456789abcdef0123456789abcdef"
BLOCKS = 2_000
BODIES = {
    "length": "Content-Length: 2147483648\r\n",
    "chunked": "Transfer-Encoding: chunked\r\n",
    "expected": "Content-Length: 60\r\nExpect: 100-continue\r\n",
    **{name: f"Content-Length: 60\r\nContent-Encoding: {name}\r\n" for name in ("gzip", "br")},
}


def bomb() -> bytes:
    """Return 2 MB of gzip that inflate to 2,000 MiB of zeros."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + block * BLOCKS


async def answer_to(port: int, head: str, body: bytes = b"") -> bytes:
    """Send a request and return everything until the daemon closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"{head}\r\n".encode() + body)
        return await asyncio.wait_for(reader.read(), patient(20.0))
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("headers", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/status", "/api/v1/commands"])
async def test_a_body_is_refused_before_it_is_sent(path: str, headers: str) -> None:
    async with serve(SmallSite().app(), "127.0.0.1", 0) as port:
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}"
        answer = await answer_to(port, head)  # which returns since the daemon hangs up
    status, _, rest = answer.partition(b"\r\n")
    assert status == b"HTTP/1.1 413 Request Entity Too Large", "and no 100 Continue before it"
    assert b"Connection: close" in rest
    assert b'{"error":"GET takes no body; send none"}' in rest


@pytest.mark.parametrize(
    ("method", "host", "status"),
    [("GET", "evil.example", b"421"), ("GET", "localhost", b"401"), ("POST", "localhost", b"401")],
)
async def test_what_refuses_a_client_anyhow_comes_before_its_body(
    method: str, host: str, status: bytes
) -> None:
    async with serve(SmallSite().app(TOKEN), "127.0.0.1", 0) as port:
        head = f"{method} /api/v1/status HTTP/1.1\r\nHost: {host}\r\nContent-Length: 99\r\n"
        answer = await answer_to(port, head)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"Connection: close" in answer


async def test_an_empty_body_is_none() -> None:
    async with visit(SmallSite()) as client:
        for _ in range(2):
            async with client.get("/healthz", headers={"Content-Length": "0"}) as answer:
                assert answer.status == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_no_body_is_inflated(method: str) -> None:
    body = bomb()
    head = (
        f"{method} /api/v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n"
        f"Content-Length: {len(body)}\r\n"
    )
    async with serve(SmallSite().app(), "127.0.0.1", 0) as port:
        began_s = time.process_time()
        tasks = [asyncio.create_task(answer_to(port, head, body)) for _ in range(8)]
        await asyncio.wait(tasks)
        took_s = time.process_time() - began_s
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"http://127.0.0.1:{port}/healthz") as answer,
        ):
            assert answer.status == 200
    for task in tasks:
        task.exception()  # a client that still sends may see a reset
    assert took_s < 2.0, "one alone takes longer if it is inflated"


# -- malformed requests ----------------------------------------------------------------------------

HEAD = b"GET / HTTP/1.1\r\n"
MALFORMED = {
    "control characters": b"GET /\x1b]0;PWNED\x07 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no host": HEAD + b"\r\n",
    "two hosts": HEAD + b"Host: localhost\r\nHost: localhost\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 90 + b"\r\n\r\n",
    "many headers": HEAD + b"".join(b"X%d: 1\r\n" % n for n in range(5_000)) + b"\r\n",
    "a long line": b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "two lengths": HEAD + b"Host: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    "no number": HEAD + b"Host: localhost\r\nContent-Length: x\r\n\r\n",
}


@pytest.fixture
def relayed() -> Iterator[list[logging.LogRecord]]:
    """Records that aiohttp's own logger wrote."""
    records: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    logger, handler = logging.getLogger("aiohttp.server"), Keep()
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)


@pytest.mark.parametrize("token", [None, TOKEN])
async def test_malformed_requests_write_one_line_together(
    token: str | None, relayed: list[logging.LogRecord]
) -> None:
    with capture_logs() as lines:
        async with serve(SmallSite().app(token), "127.0.0.1", 0) as port:
            for _ in range(3):
                for request in MALFORMED.values():
                    reader, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.write(request)
                    answer = await asyncio.wait_for(reader.read(64), patient(20.0))
                    assert answer.split()[1] == b"400"
                    writer.transport.abort()
    assert relayed == []
    [line] = [each for each in lines if each["event"] == "requests_refused"]
    assert line["log_level"] == "warning"
    assert line["reason"] == "malformed: Invalid char in url path"


def test_the_next_line_counts_those_before_it() -> None:
    clock = iter((0.0, 1.0, 59.0, 61.0))
    judge = RefusedRequests(lambda: next(clock))

    def written(error: Exception) -> bool:
        info = (type(error), error, None)
        return judge.filter(logging.LogRecord("a", logging.ERROR, "", 0, "m", None, info))

    with capture_logs() as lines:
        for _ in range(4):
            assert not written(BadHttpMessage("Missing 'Host' header:\n\n  b'GET /'"))
    assert [line["more_since"] for line in lines] == [0, 2]
    assert {line["reason"] for line in lines} == {"malformed: Missing 'Host' header"}


def test_other_errors_are_written_once_a_minute_each() -> None:
    logger, kept = request_logger(), []
    logger.parent = None
    logger.addHandler(logging.NullHandler())
    judge = logger.filters[0]
    for error in (ValueError("a"), ValueError("b"), KeyError("c")):
        info = (type(error), error, None)
        record = logging.LogRecord("a", logging.ERROR, "", 0, "m", None, info)
        kept.append(logging.Filterer.filter(logger, record))
    assert isinstance(judge, RefusedRequests)
    assert kept == [True, False, True]
    assert logger.filter(logging.LogRecord("a", logging.INFO, "", 0, "m", None, None))
