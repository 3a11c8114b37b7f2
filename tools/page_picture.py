"""Screenshot of the status page for the README: ``python -m tools.page_picture [FILE]``.

It runs the demo, waits for an estimate of a policy's savings, captures the first screen of the page
in a real Chromium, and stops the demo.
"""

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Final

from tests.service.web.browser import open_tab, started_browser

FILE: Final = Path(__file__).resolve().parents[1] / "docs/pictures/status-page.png"
_WIDTH, _HEIGHT = 1280, 1000
_TIMEOUT_S: Final = 300.0


def wait_for_the_twin(address: str) -> None:
    """Wait until the status contains the twin's answer. Raises `TimeoutError`."""
    deadline_s = time.monotonic() + _TIMEOUT_S
    while time.monotonic() < deadline_s:
        with urllib.request.urlopen(f"{address}/api/v1/status", timeout=30) as response:  # noqa: S310
            if json.load(response)["twin"] is not None:
                return
        time.sleep(1.0)
    raise TimeoutError(f"the demo's twin has not answered within {_TIMEOUT_S:g} s")


async def first_screen(address: str, chromium: Path, folder: Path) -> bytes:
    """Return a screenshot of the page in a window of usual size, as PNG."""
    with started_browser(chromium, folder) as browser:
        return await _picture_of(address, browser)


async def _picture_of(address: str, browser: str) -> bytes:
    async with open_tab(browser) as tab:
        await tab.look(_WIDTH, _HEIGHT)
        await tab.open(f"{address}/#/")
        await tab.wait_for("document.getElementById('connection').dataset.state === 'live'")
        await tab.wait_for("document.querySelectorAll('#examples button').length > 0")
        return await tab.picture(whole=False)


def main() -> int:
    """Write the picture and return the exit code."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium not found; use `apt-get install chromium`")
        return 1
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    command = [str(Path(sys.executable).with_name("outrider")), "demo", "--port", "0"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo,
    ):
        try:
            first = "" if demo.stdout is None else demo.stdout.readline().removeprefix("Open ")
            address = first.split()[0]
            wait_for_the_twin(address)
            file.write_bytes(asyncio.run(first_screen(address, Path(chromium), Path(folder))))
        finally:
            demo.terminate()
    print(f"written: {file}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
