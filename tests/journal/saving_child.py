"""Records, flushes and writes a snapshot as the daemon does; what it asks of the kernel is traced.

Run as ``python saving_child.py FOLDER``. A reader holds an old state of the journal meanwhile.
"""

import asyncio
import sys
from pathlib import Path

from outrider.journal import Journal
from outrider.service.journal.recording import Recording
from tests.fixtures.cores import core_of
from tests.journal.samples import numbered_entry


async def main(folder: Path) -> None:
    """One entry, then a snapshot; twice, the second time beside a reader."""
    recording = Recording(folder)
    core = core_of("log")
    with Journal(recording.path, read_only=True) as reader:
        for number in range(2):
            await recording.submit(numbered_entry(number))
            assert await recording.snapshot(core)
            if number == 0:
                reader._connection.execute("BEGIN")
                reader._connection.execute("SELECT count(*) FROM inputs").fetchone()
    recording.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
