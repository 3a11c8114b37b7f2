"""Put a mutant into the copy of the tree, and ask the tests."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from tests.mutation import selecting
from tests.mutation.choosing import Choice, hangs_after_s

_UNSURE_ABOVE_S: Final = 1.0
"""Seconds above which a test is considered slow.

Such a test starts a daemon or waits for something, and may fail at random on a busy machine. Its
failure counts if it fails again, alone."""
_MOST_BYTES: Final = 6 << 30
_MOST_FILE_BYTES: Final = 1 << 30
_STARTING_S: Final = 60.0
_changes = count(1)


@contextmanager
def mutant_in_place(file: Path, changed: str) -> Iterator[None]:
    """The file with a fault in it, for a while."""
    before = file.read_bytes()
    try:
        _write(file, changed.encode())
        yield
    finally:
        _write(file, before)


def _write(file: Path, content: bytes) -> None:
    """Write a file with a new timestamp, by which Python recognises stale compiled files."""
    file.write_bytes(content)
    moment_s = 1_000_000_000 + next(_changes)
    os.utime(file, (moment_s, moment_s))


def who_notices(
    choice: Choice, durations_s: Mapping[str, float], tree: Path, folder: Path
) -> str | None:
    """The test that fails (or what failed otherwise); None if none does.

    Args:
        choice: the tests.
        durations_s: seconds that each takes without a mutant.
        tree: the copy in which the mutant is.
        folder: for what the tests write.
    """
    for stage in (choice.first, choice.then):
        left = list(stage)
        while left:
            failed = ask(left, durations_s, tree, folder)
            if failed is None:
                break
            if durations_s.get(failed, 0.0) <= _UNSURE_ABOVE_S:
                return failed
            if ask([failed], durations_s, tree, folder) == failed:
                return failed
            left.remove(failed)
    return None


def ask(
    tests: Collection[str], durations_s: Mapping[str, float], tree: Path, folder: Path
) -> str | None:
    """Run these tests until one fails: its id, or in words what kept them from running."""
    listed = {test: hangs_after_s(durations_s[test]) for test in tests}
    listed_file, failed_file = folder / "listed.json", folder / "failed"
    listed_file.write_text(json.dumps(listed))
    failed_file.unlink(missing_ok=True)
    environ = os.environ | {selecting.LISTED: str(listed_file), selecting.FAILED: str(failed_file)}
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
        "-p", selecting.__name__, f"--basetemp={folder / 't'}", *files,
    ]  # fmt: skip
    within_s = _STARTING_S + 3.0 * sum(durations_s[test] for test in tests)
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            command, cwd=tree, env=environ, stdout=said, stderr=said,
            stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_limit,  # noqa: PLW1509 - no thread runs
        )  # fmt: skip
        try:
            code = process.wait(within_s + max(listed.values()))
        except subprocess.TimeoutExpired:
            return "all of them, which hang"
        finally:
            _end(process)
    if failed_file.exists():
        return failed_file.read_text()
    return None if code in (0, 5) else f"pytest itself, with exit code {code}"


def _limit() -> None:
    """Limit memory and file size, which a fault may exhaust."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_MOST_FILE_BYTES, _MOST_FILE_BYTES))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what was started, and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
