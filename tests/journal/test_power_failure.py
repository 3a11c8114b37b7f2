"""Order of the flushes to disk, which only a power failure would reveal."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.presence import require_program

ROOT = Path(__file__).parents[2]
CALLS = re.compile(r"\b(fsync|fdatasync)\(\d+<([^>]+)>\)|\brename(?:at2?)?\((.*)\) = 0")
QUOTED = re.compile(r"\"([^\"]+)\"")


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    """Return the system calls of a process that writes snapshots, such as ``sync NAME``."""
    require_program("strace", "strace")
    trace, folder = tmp_path / "trace", tmp_path / "state"
    words = ["strace", "-f", "-y", "-o", trace, "-e", "trace=fsync,fdatasync,/rename"]
    child = [sys.executable, Path(__file__).with_name("saving_child.py"), folder]
    done = subprocess.run(
        [*map(str, words), *map(str, child)],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    if "ptrace" in done.stderr and "not permitted" in done.stderr:
        pytest.skip("this machine does not let a process be traced")
    assert done.returncode == 0, done.stderr
    calls = []
    for line in trace.read_text().splitlines():
        if (found := CALLS.search(line)) is None:
            continue
        if found[3] is not None:
            old, new = (Path(name).name for name in QUOTED.findall(found[3]))
            calls.append(f"rename {old} {new}")
        else:
            calls.append(f"sync {Path(found[2]).name}")
    return calls


def test_a_snapshot_takes_its_name_after_all_that_it_stands_on_is_safe(asked: list[str]) -> None:
    renames = [n for n, call in enumerate(asked) if call.startswith("rename snapshot-")]
    assert len(renames) == 2
    before = 0
    for n in renames:
        _, part, name = asked[n].split()
        assert (Path(part).suffix, Path(name).suffix) == (".part", ".bin")
        assert Path(part).stem == Path(name).stem
        assert asked[n - 1] == f"sync {part}"  # the contents first
        assert asked[n + 1] == "sync snapshots"  # the name in the folder after
        # and the journal up to the number at which it stands before either, reader or not
        assert "sync journal.sqlite-wal" in asked[before : n - 1]
        before = n


def test_the_log_is_safe_before_a_checkpoint_copies_it_into_the_journal(asked: list[str]) -> None:
    log = asked.index("sync journal.sqlite-wal")
    copied = [n for n in range(log, len(asked)) if asked[n] == "sync journal.sqlite"]
    assert len(copied) >= 2
    for n in copied:
        assert asked[n - 1] == "sync journal.sqlite-wal"
