"""kill -9 at any moment: what was acknowledged is there, whole, once, in order."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from outrider.journal import Journal, verify

LIMIT = 200_000
CHILD = Path(__file__).with_name("writing_child.py")


def write_until_killed(path: Path, first: int, after_s: float) -> int:
    """Let a child write from an entry on, kill it; return the last entry it acknowledged."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD), str(path), str(first), str(LIMIT)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )
    assert child.stdout is not None
    try:
        acknowledged = child.stdout.readline()
        assert acknowledged, "the child ended before it wrote anything"
        # Its pipe holds 64 KiB; that is more than it writes in this time.
        time.sleep(after_s)
        assert child.poll() is None, "the child ended before it was killed"
    finally:
        child.kill()
        rest = child.stdout.read()
        child.stdout.close()
        child.wait()
    lines = (acknowledged + rest).split(b"\n")
    return int(lines[-2])  # a last line cut in two was no acknowledgement


@pytest.mark.parametrize("rounds", [5, pytest.param(20, marks=pytest.mark.long)])
def test_kill_minus_9_loses_nothing_acknowledged_and_doubles_nothing(
    rounds: int, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    rng = random.Random(seed)
    path = tmp_path / "journal.sqlite"
    first = 0
    for _ in range(rounds):
        acknowledged = write_until_killed(path, first, rng.uniform(0.0, 0.15))
        with Journal(path) as journal:
            found: dict[int, list[str]] = {}
            for _seq, _adapter, event in journal.inputs_after(0):
                found.setdefault(int(event[0]), []).append(event[2])
            decided = [int(decision.time_s) for _, decision in journal.decisions()]
            cursor = journal.cursor("log")
        last = max(found)
        assert last >= acknowledged, f"acknowledged {acknowledged}, found up to {last}"
        assert list(found) == list(range(last + 1))
        for number, subjects in found.items():
            assert subjects == [f"{number}.{part}" for part in range(1 + number % 40)]
        assert decided == list(found)
        assert cursor == last
        report = verify(path)
        assert report.ok, report.as_text()
        first = last + 1
    assert first > rounds
