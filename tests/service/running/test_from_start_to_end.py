"""The whole daemon in this process: start, answers, reload and end."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from outrider.service.config.loaded import load_config
from outrider.service.config.reading import state_folder
from outrider.service.host.logs import Mode
from outrider.service.process import app
from outrider.service.process.app import _Daemon, report_status
from tests.service.running.event_log import EventLog
from tests.service.views.test_service_manager import listening

CONFIG = """\
state_dir = "{folder}/state"
listen = "127.0.0.1:0"
{head}
[adapters.log]
type = "logtail"
paths = ["{folder}/EventLog"]
start_at = "beginning"
poll_s = 0.05
settle_s = 0.05
[policies.fifo]
"""


class Running:
    """A daemon, its page and what the service manager heard."""

    def __init__(self, folder: Path, notify: socket.socket) -> None:
        self.folder, self.notify = folder, notify
        self.log = EventLog(folder / "EventLog")
        self.log.run([0])
        self.file = folder / "outrider.toml"
        self.configure()
        self.mode = Mode("shadow")
        self.url = ""
        self.daemon = _Daemon(load_config(self.file), self.mode, self._announced)

    def configure(self, head: str = "") -> None:
        self.file.write_text(CONFIG.format(folder=self.folder, head=head))

    def _announced(self, url: str) -> None:
        self.url = url

    async def message_with(self, sign: bytes) -> bytes:
        """The service manager's next message with this in it."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(20):
            while True:
                message = await loop.sock_recv(self.notify, 4096)
                if sign in message:
                    return message

    async def get(self, path: str) -> tuple[int, Any]:
        async with aiohttp.ClientSession() as client, client.get(self.url + path) as answer:
            return answer.status, await answer.json()

    async def until(self, holds: Callable[[Any], Any]) -> Any:
        """The status once something holds of it."""
        async with asyncio.timeout(20):
            while True:
                _, status = await self.get("/api/v1/status")
                if holds(status):
                    return status
                await asyncio.sleep(0.02)


@asynccontextmanager
async def daemon(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    """Run a daemon, stop it at the end, and check its exit code 0."""
    monkeypatch.setattr(app, "tune_interpreter", lambda: None)  # it is for a separate process
    monkeypatch.setattr(app, "_STATUS_EVERY_S", 0.02)
    monkeypatch.delenv("STATE_DIRECTORY", raising=False)
    monkeypatch.delenv("RUNTIME_DIRECTORY", raising=False)
    monkeypatch.setenv("NOTIFY_SOCKET", str(folder / "notify"))
    loop = asyncio.get_running_loop()
    with listening(str(folder / "notify")) as notify:
        notify.setblocking(False)
        running = Running(folder, notify)
        work = asyncio.create_task(running.daemon.live())
        try:
            message = await running.message_with(b"READY=1")
            assert message == b"READY=1\nSTATUS=shadow: watching log"
            yield running
            signal.raise_signal(signal.SIGTERM)
            assert b"STATUS=stop requested" in await running.message_with(b"STOPPING=1")
            assert await asyncio.wait_for(work, 20) == 0
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)


async def test_it_answers_and_tells_systemd_what_it_does_until_it_is_told_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with daemon(tmp_path, monkeypatch) as running:
        assert running.url.startswith("http://127.0.0.1:")
        assert await running.get("/healthz") == (200, {"ok": True})
        running.log.run([1])
        status = await running.until(lambda s: s["jobs"]["completed"] == 2)
        assert (status["mode"], status["users"]) == ("shadow", "pseudonyms")
        assert await running.get("/readyz") == (200, {"ready": True, "reasons": []})
        assert b"shadow since " in await running.message_with(b" 2 jobs seen")
    assert list((tmp_path / "state" / "snapshots").iterdir()), "the state is kept at the end"


async def test_a_reload_is_announced_put_in_force_and_told_or_refused_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with daemon(tmp_path, monkeypatch) as running:
        await running.until(lambda s: s["adapters"][0]["up"])
        running.configure('mode = "observe"\nshow_users = "everybody"')
        signal.raise_signal(signal.SIGHUP)
        assert b"MONOTONIC_USEC=" in await running.message_with(b"RELOADING=1")
        assert (
            await running.message_with(b"READY=1")
            == b"READY=1\nSTATUS=observe: configuration reloaded"
        )
        assert running.mode.name == "observe"
        status = await running.until(lambda s: s["mode"] == "observe")
        assert (status["policies"], status["users"]) == ([], "names")
        left = "nothing is decided: the policies are paused and keep what they learned"
        assert status["notes"] == [left], "the address is as it was"
        for wrong in ('mode = "awake"', 'mode = "asleep"'):
            running.configure(wrong)
            with capture_logs() as lines:
                signal.raise_signal(signal.SIGHUP)
                message = await running.message_with(b"READY=1")
            assert b"STATUS=kept the old configuration: " in message
            assert wrong.split('"')[1].encode() in message
            assert [line["event"] for line in lines].count("config_reload_failed") == 1
            [_, note] = (await running.until(lambda s: s["notes"][1:]))["notes"]
            assert note.startswith("reload refused: ")
            assert wrong.split('"')[1] in note, "the newest takes the place of the one before"
        running.configure()
        signal.raise_signal(signal.SIGHUP)
        await running.message_with(b"READY=1\nSTATUS=shadow: configuration reloaded")
        status = await running.until(lambda s: s["mode"] == "shadow")
        assert status["notes"] == [], "what it learned before it rested is there again"
        assert status["users"] == "pseudonyms"


async def test_a_sentence_that_cannot_be_made_is_logged_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(app, "_STATUS_EVERY_S", 0.01)
    sentences: list[Any] = [ZeroDivisionError("a figure"), "all is well"]
    statuses: list[str] = []

    class View:
        def sentence(self) -> str:
            sentence = sentences.pop(0) if len(sentences) > 1 else sentences[0]
            if isinstance(sentence, Exception):
                raise sentence
            return str(sentence)

    class Manager:
        def status(self, status: str) -> None:
            statuses.append(status)

    made: Any = (Manager(), View())
    with capture_logs() as lines:
        telling = asyncio.create_task(report_status(*made))
        async with asyncio.timeout(20):
            while not statuses:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        telling.cancel()
    assert statuses[0] == "all is well"
    assert [line["event"] for line in lines] == ["status_line_failed"]


def test_the_state_directory_is_systemds_or_the_configured_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "outrider.toml"
    file.write_text(CONFIG.format(folder=tmp_path, head=""))
    loaded = load_config(file)
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/outrider:/var/lib/other")
    assert state_folder(loaded) == Path("/var/lib/outrider")
    monkeypatch.setenv("STATE_DIRECTORY", "")
    assert state_folder(loaded) == tmp_path / "state"
