"""Adapters of a stranger that hang in different ways, as an installed distribution."""

import os
from pathlib import Path

MODULE = '''\
"""Sources that hang. FIFO simulates a dead mount: opened to read, it blocks in the kernel."""

import asyncio
import os
import time

from outrider.api import Adapter, Batch
from outrider_adapters.readers.htcondor import HTCondorLogReader


def alive():
    return Batch(events=[], cursor=None, seen_until_s=time.time())


class Mute(Adapter):
    """Never yields."""

    name = "mute"
    description = "never yields"
    api_version = 1
    sees = ("submitted",)

    async def batches(self, cursor):
        await asyncio.Event().wait()
        yield alive()


class Fading(Adapter):
    """Yields batches while a file exists, and nothing while it does not."""

    name = "fading"
    description = "gives a sign of life while a file is there"
    api_version = 1
    sees = ("submitted",)

    async def batches(self, cursor):
        while True:
            if os.path.exists(os.environ["ALIVE"]):
                yield alive()
            await asyncio.sleep(0.2)


class Blocked(Adapter):
    """Blocks in a thread of the event loop's own pool, in a system call that never returns."""

    name = "blocked"
    description = "blocks in a system call"
    api_version = 1
    sees = ("submitted",)

    async def batches(self, cursor):
        yield alive()
        await asyncio.to_thread(open, os.environ["FIFO"])


class Clinging(Adapter):
    """Lives, and never ends once it is asked to."""

    name = "clinging"
    description = "never closes"
    api_version = 1
    sees = ("submitted",)

    async def __aexit__(self, *raised):
        await asyncio.Event().wait()

    async def batches(self, cursor):
        while True:
            yield alive()
            await asyncio.sleep(0.2)


class Stuck(HTCondorLogReader):
    """Reads as HTCondor's, but blocks in the kernel while FIFO has no writer."""

    name = "stuck"
    description = "blocks at the log named StuckLog"
    api_version = 1

    def read(self, data, final=False):
        if self.options.log_name == "StuckLog":
            open(os.environ["FIFO"]).close()
        return super().read(data, final)
'''
ENTRY_POINTS = """\
[outrider.adapters]
mute = hanging_adapters:Mute
fading = hanging_adapters:Fading
blocked = hanging_adapters:Blocked
clinging = hanging_adapters:Clinging

[outrider.readers]
stuck = hanging_adapters:Stuck
"""


def install(folder: Path) -> dict[str, str]:
    """Put the distribution into a folder; returns the environment in which it is found."""
    (folder / "hanging_adapters.py").write_text(MODULE)
    information = folder / "hanging_adapters-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: hanging-adapters\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
    path = [str(folder), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(part for part in path if part)}
