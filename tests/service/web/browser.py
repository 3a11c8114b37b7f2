"""A real Chromium, driven over its debugging socket: one process, and fresh pages in it.

Starting the browser costs far more than a page does. So tests share a process, and its profile is
emptied when a test closes its page: no cookie, nothing stored and nothing cached is left to the
next one.
"""

import asyncio
import base64
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from tests.fixtures.patience import patient

STARTS_WITHIN_S = 60.0
ANSWERS_WITHIN_S = patient(30.0)

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # as root in a container there is none to be had
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--no-default-browser-check",
    "--remote-debugging-port=0",
)


class Tab:
    """One page of the browser, or the browser itself: what has a debugging socket.

    Attributes:
        origins: of the pages that were opened.
        complaints: what it wrote to its console as an error or warning, and what it threw.
        dialogs: messages of alert and its kin; each was closed.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.origins: set[str] = set()
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        self._socket = socket
        self._loaded = asyncio.Event()
        self._number = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the debugging protocol and return its result."""
        self._number += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = answer
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        message = await asyncio.wait_for(answer, ANSWERS_WITHIN_S)
        assert "error" not in message, f"{method}: {message['error']}"
        result: dict[str, Any] = message["result"]
        return result

    async def listen(self) -> None:
        """Sort what the browser says; runs until the socket closes."""
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                self._waiting.pop(said["id"]).set_result(said)
            elif said["method"] == "Page.loadEventFired":
                self._loaded.set()
            elif said["method"] == "Runtime.exceptionThrown":
                self.complaints.append(str(said["params"]["exceptionDetails"]))
            elif said["method"] == "Runtime.consoleAPICalled":
                if said["params"]["type"] in ("error", "warning", "assert"):
                    self.complaints.append(str(said["params"]["args"]))
            elif said["method"] == "Log.entryAdded":
                self.complaints.append(str(said["params"]["entry"]))
            elif said["method"] == "Page.javascriptDialogOpening":
                self.dialogs.append(said["params"]["message"])
                await self._socket.send_json(
                    {"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
                )
                self._waiting[0] = asyncio.get_running_loop().create_future()

    async def look(self, width: int, height: int, scheme: str = "light") -> None:
        """Set the size of the window, in CSS pixels, and the colour scheme."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        await self.send(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": scheme}],
        )

    async def open(self, address: str) -> None:
        """Go to an address and wait until the page and its parts are there."""
        self._loaded.clear()
        parts = urlsplit(address)
        self.origins.add(f"{parts.scheme}://{parts.netloc}")
        await self.send("Page.navigate", url=address)
        await asyncio.wait_for(self._loaded.wait(), ANSWERS_WITHIN_S)

    async def reload(self) -> None:
        """Reload the page at its address, and wait until it has loaded."""
        self._loaded.clear()
        await self.send("Page.reload")
        await asyncio.wait_for(self._loaded.wait(), ANSWERS_WITHIN_S)

    async def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        answer = await self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def text_of(self, selector: str) -> str:
        """Return the text that an element shows, in one line."""
        text = await self.run(f"document.querySelector({selector!r}).innerText")
        assert isinstance(text, str), f"{selector} shows no text: {text!r}"
        return " ".join(text.split())

    async def wait_for(self, script: str, within_s: float = ANSWERS_WITHIN_S) -> None:
        """Return once an expression is true; fail with the page's text if it never is."""
        deadline = asyncio.get_running_loop().time() + within_s
        while not await self.run(script):
            if asyncio.get_running_loop().time() > deadline:
                text = await self.run("document.body?.innerText")
                raise AssertionError(f"never true: {script}\n{self.complaints}\n{text}")
            await asyncio.sleep(0.05)

    async def forget(self) -> None:
        """Empty the profile of what its pages left: cookies, storage and cache."""
        await self.send("Network.clearBrowserCookies")
        await self.send("Network.clearBrowserCache")
        for origin in self.origins:
            await self.send("Storage.clearDataForOrigin", origin=origin, storageTypes="all")

    async def picture(self, whole: bool = True) -> bytes:
        """Return the whole page as PNG, or what its window shows."""
        answer = await self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(answer["data"])


@contextmanager
def started_browser(program: Path, folder: Path) -> Iterator[str]:
    """Start Chromium with a new profile in `folder`; yield its address, HOST:PORT."""
    with (folder / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield f"127.0.0.1:{_debugging_port(process, folder)}"
    finally:
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _debugging_port(process: subprocess.Popen[bytes], folder: Path) -> int:
    listening = folder / "profile" / "DevToolsActivePort"
    deadline = time.monotonic() + STARTS_WITHIN_S
    while True:
        if listening.is_file() and (lines := listening.read_text().splitlines()):
            return int(lines[0])
        log = (folder / "chromium.log").read_text(errors="replace")
        assert process.poll() is None, f"Chromium ended at once:\n{log}"
        assert time.monotonic() < deadline, f"Chromium never listened:\n{log}"
        time.sleep(0.05)


@asynccontextmanager
async def open_tab(browser: str) -> AsyncIterator[Tab]:
    """Open a page; it and all that the browser keeps of it are gone with this context."""
    async with aiohttp.ClientSession() as client:
        async with client.get(f"http://{browser}/json/version") as response:
            whole_browser = (await response.json())["webSocketDebuggerUrl"]
        async with _attached(client, whole_browser) as chromium:
            target = await chromium.send("Target.createTarget", url="about:blank")
            page = f"ws://{browser}/devtools/page/{target['targetId']}"
            async with _attached(client, page) as tab:
                for domain in ("Page", "Runtime", "Log"):
                    await tab.send(f"{domain}.enable")
                try:
                    yield tab
                finally:
                    await tab.forget()
                    await chromium.send("Target.closeTarget", targetId=target["targetId"])


@asynccontextmanager
async def _attached(client: aiohttp.ClientSession, address: str) -> AsyncIterator[Tab]:
    async with client.ws_connect(address, max_msg_size=0) as socket:
        tab = Tab(socket)
        listener = asyncio.create_task(tab.listen(), name=f"listen to {address}")
        try:
            yield tab
        finally:
            await socket.close()
            await listener
