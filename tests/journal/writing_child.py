"""A process that writes numbered entries until it is killed, and says which are recorded.

    python writing_child.py JOURNAL FIRST_NUMBER LIMIT

Several entries are always under way, so that a kill falls between them and inside them.
"""

import os
import sys
from collections import deque
from concurrent.futures import Future
from pathlib import Path

from outrider.journal import Journal, Writer
from tests.journal.samples import numbered_entry

UNDER_WAY = 8


def main(path: Path, first: int, limit: int) -> None:
    writer = Writer(Journal(path))
    under_way: deque[tuple[int, Future[int]]] = deque()
    for number in range(first, first + limit):
        under_way.append((number, writer.submit(numbered_entry(number, rows=1 + number % 40))))
        if len(under_way) >= UNDER_WAY:
            done, future = under_way.popleft()
            future.result()
            os.write(1, b"%d\n" % done)
    writer.stop(30)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
