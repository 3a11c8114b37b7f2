"""Commands over the Unix socket: only valid ones of authorised users are executed."""

import asyncio
import json
import os
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import pytest

from outrider.service.commands.command import (
    Command,
    Promote,
    Release,
    Result,
    SetMode,
    StillAtWorkError,
)
from outrider.service.web import serve
from outrider.service.web.unix_socket import Listening
from tests.service.web.small_site import SmallSite, visit

PATH = "/api/v1/commands"
SHADOW = {"command": "mode", "mode": "shadow", "why": "for once"}


class Port:
    """Writes down what it is commanded.

    Attributes:
        raises: what comes of the next command, in place of an answer.
    """

    def __init__(self) -> None:
        self.given: list[tuple[Command, int]] = []
        self.raises: Exception | None = None
        self.outcome: Any = "done"

    async def execute(self, command: Command, uid: int) -> Result:
        self.given.append((command, uid))
        if self.raises is not None:
            raise self.raises
        return Result(
            command="mode", outcome=self.outcome, from_mode="active", mode="shadow", text=["so"]
        )


class CommandedSite(SmallSite):
    """A site whose daemon takes commands."""

    def __init__(self) -> None:
        super().__init__()
        self.commands = Port()


@asynccontextmanager
async def client_of(site: SmallSite) -> AsyncIterator[aiohttp.ClientSession]:
    """A client over a Unix socket, as our own user."""
    with TemporaryDirectory(prefix="o") as folder:
        path = Path(folder) / "s"
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(str(path))
        listening.listen()
        listening.setblocking(False)
        connector = aiohttp.UnixConnector(str(path))
        async with (
            serve(site.app(), "127.0.0.1", 0, local=Listening(listening, None)),
            aiohttp.ClientSession("http://localhost", connector=connector) as client,
        ):
            yield client


@pytest.mark.parametrize(
    ("body", "command"),
    [
        (SHADOW, SetMode(mode="shadow", why="for once")),
        ({"command": "promote"}, Promote()),
        ({"command": "release", "why": "x" * 500}, Release(why="x" * 500)),
    ],
)
async def test_a_whole_command_is_carried_out_for_who_the_kernel_says(
    body: dict[str, Any], command: Command
) -> None:
    site = CommandedSite()
    async with client_of(site) as client, client.post(PATH, json=body) as answer:
        assert answer.status == 200
        assert (await answer.json())["text"] == ["so"]
    [(given, uid)] = site.commands.given
    assert given == command
    assert uid == os.geteuid()


@pytest.mark.parametrize(("outcome", "status"), [("done", 200), ("refused", 409), ("failed", 500)])
async def test_what_came_of_it_is_the_status(outcome: str, status: int) -> None:
    site = CommandedSite()
    site.commands.outcome = outcome
    async with client_of(site) as client, client.post(PATH, json=SHADOW) as answer:
        assert answer.status == status
        assert (await answer.json())["outcome"] == outcome


async def test_one_that_is_at_work_or_raises_ends_nothing() -> None:
    site = CommandedSite()
    async with client_of(site) as client:
        site.commands.raises = StillAtWorkError("release is at work")
        async with client.post(PATH, json=SHADOW) as answer:
            assert (answer.status, await answer.json()) == (503, {"error": "release is at work"})
        site.commands.raises = RuntimeError("the site caught fire")
        async with client.post(PATH, json=SHADOW) as answer:
            assert answer.status == 500
            assert "internal error (please report)" in (await answer.json())["error"]
        async with client.get("/healthz") as answer:
            assert answer.status == 200


BAD = [
    b"", b"null", b"[]", b"{", b'{"command": "mode"}', b'{"command": "reboot"}', b"\xff\xfe",
    b'{"command": "mode", "mode": "loud"}', b'{"command": "mode", "mode": 3}',
    b'{"command": "promote", "force": true}', b'{"mode": "shadow"}', b"[" * 16_000,
    b'{"command": "promote", "why": "' + b"x" * 501 + b'"}',
    b'{"command": "promote", "why": "\xff"}', b'{"command": ["promote"]}',
]  # fmt: skip


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
async def test_what_is_no_command_is_refused_with_what_would_be_right(body: bytes) -> None:
    site = CommandedSite()
    headers = {"Content-Type": "application/json"}
    async with (
        client_of(site) as client,
        client.post(PATH, data=body, headers=headers) as answer,
    ):
        assert answer.status == 400
        assert 'expected a body like {"command": "mode"' in (await answer.json())["error"]
    assert site.commands.given == []


async def test_garbled_commands_are_refused_or_whole_and_the_next_one_is_carried_out() -> None:
    chance = random.Random(7)
    site = CommandedSite()
    headers = {"Content-Type": "application/json"}
    async with client_of(site) as client:
        for _ in range(200):
            body = bytearray(json.dumps(SHADOW).encode())
            for _ in range(chance.randrange(1, 4)):
                place = chance.randrange(len(body))
                body[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
            async with client.post(PATH, data=bytes(body), headers=headers) as answer:
                assert answer.status in (200, 400), bytes(body)
        whole = len(site.commands.given)
        async with client.post(PATH, json=SHADOW) as answer:
            assert answer.status == 200
        assert len(site.commands.given) == whole + 1
    assert all(isinstance(command, SetMode) for command, _ in site.commands.given)


@pytest.mark.parametrize("length", [17_000, 1 << 20, 8 << 20])
async def test_too_long_a_body_is_refused_and_not_kept(length: int) -> None:
    site = CommandedSite()
    headers = {"Content-Type": "application/json"}
    async with client_of(site) as client:
        async with client.post(PATH, data=BytesIO(b" " * length), headers=headers) as answer:
            assert answer.status == 413
        async with client.post(PATH, json=SHADOW) as answer:
            assert answer.status == 200


async def test_a_body_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outrider.service.web.app.WITHIN_S", 0.1)
    site = CommandedSite()
    async with client_of(site) as client:
        connector: Any = client.connector
        reader, writer = await asyncio.open_unix_connection(connector.path)
        head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 60\r\n\r\n{{".encode())
        answer = await asyncio.wait_for(reader.read(4096), 20.0)
        assert answer.startswith(b"HTTP/1.1 408 ")
        writer.close()
    assert site.commands.given == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://localhost:9690"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
    ],
)
async def test_a_page_may_not_command(headers: dict[str, str]) -> None:
    """A page reaches the socket through `ssh -L`, with the rights of the logged-in user."""
    site = CommandedSite()
    headers = {"Content-Type": "application/json"} | headers
    async with client_of(site) as client:
        body = json.dumps(SHADOW).encode()
        async with client.post(PATH, data=body, headers=headers) as answer:
            assert answer.status in (403, 415)
        async with client.options(PATH, headers={"Origin": "http://localhost:9690"}) as answer:
            assert answer.status == 405, "a browser asks before it posts JSON"
            assert "Access-Control-Allow-Origin" not in answer.headers
    assert site.commands.given == []


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_other_methods_are_told_what_is_right(method: str) -> None:
    site = CommandedSite()
    async with client_of(site) as client, client.request(method, PATH, json=SHADOW) as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET,HEAD,POST"
        assert f"{method} is not allowed here" in (await answer.json())["error"]
    assert site.commands.given == []


@pytest.mark.parametrize("path", [PATH, "/api/v1/status", "/nothing"])
async def test_over_tcp_nothing_is_ever_commanded(path: str) -> None:
    site = CommandedSite()
    async with visit(site) as client, client.post(path, json=SHADOW) as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET,HEAD"
    assert site.commands.given == []
