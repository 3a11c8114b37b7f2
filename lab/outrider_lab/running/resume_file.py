"""File of finished runs, with which a stopped command resumes."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, NamedTuple, Self

from outrider import __version__
from outrider.model.errors import ConfigurationError
from outrider_lab.running.run_spec import RunSpec

RUNS_FILE: Final = "runs.jsonl"
_FIELDS: Final = {"key": str, "run": str, "version": str, "attempts": int}
_RESULT: Final = "result"


class KeptRun(NamedTuple):
    """A line of the file.

    Attributes:
        key: of the run's spec.
        run: the spec in words.
        version: of the Outrider that ran it.
        attempts: how often it was tried.
        result: what it brought.
    """

    key: str
    run: str
    version: str
    attempts: int
    result: Any


class ResumeFile:
    """Runs that ended well, a line of JSON each, on the disk before the next one counts.

    Args:
        path: of the file; its folder is made if need be.
        resume: continue with existing runs; None: there must be none; False: start over.
    """

    def __init__(self, path: Path, resume: bool | None) -> None:
        self.path = path
        self._resume = resume
        self._runs: dict[str, KeptRun] = {}

    def __enter__(self) -> Self:
        """Lock the file and read it; a last line cut off by a kill is removed.

        Raises:
            ConfigurationError: another process writes there; runs are there and nobody said what
                to do with them; or they cannot be read.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = LineFile(self.path)
        try:
            if self._resume is False:
                self._file.clear()
                self._file.lines = []
            if self._file.lines and self._resume is None:
                raise ConfigurationError(
                    f"{self.path}: holds {len(self._file.lines)} finished runs of a command that "
                    "was stopped; --resume continues with them, --no-resume starts over"
                )
            for number, line in enumerate(self._file.lines, 1):
                run = _read(line, f"{self.path}:{number}")
                self._runs[run.key] = run
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go of the file; an empty one goes."""
        self._file.close()

    def __len__(self) -> int:
        """Return how many runs are kept."""
        return len(self._runs)

    def known(self, specs: Mapping[str, RunSpec]) -> Mapping[str, KeptRun]:
        """Return the runs that are there, by key.

        Args:
            specs: of the command, by key.

        Raises:
            ConfigurationError: a run that is none of these (it would be lost when the command is
                done), or was made by another version.
        """
        for run in self._runs.values():
            if run.key not in specs:
                raise ConfigurationError(
                    f"{self.path}: holds a run of {run.run}, with settings that are not requested "
                    "now, or on a trace that has changed since; expected another file, or to "
                    "start over"
                )
            if run.version != __version__:
                raise ConfigurationError(
                    f"{self.path}: {run.run} was made by Outrider {run.version}, this is "
                    f"{__version__}, and the two cannot be compared; expected to start over"
                )
        return self._runs

    def add(self, key: str, spec: RunSpec, attempts: int, text: str) -> None:
        """Keep a run that has just ended; it is on the disk on return.

        Args:
            key: of the spec.
            spec: of the run.
            attempts: how often it was tried.
            text: what it brought, as JSON.
        """
        head = {"key": key, "run": str(spec), "version": __version__, "attempts": attempts}
        line = f'{json.dumps(head)[:-1]}, "{_RESULT}": {text}}}'
        self._runs[key] = KeptRun(key, str(spec), __version__, attempts, result=None)
        self._file.add(line.encode())

    def clear(self) -> None:
        """Remove the runs from the file: their results are stored elsewhere now."""
        self._file.clear()
        self._runs.clear()


def _read(line: bytes, where: str) -> KeptRun:
    """Return a run from its line. Raises `ConfigurationError`, which names the place."""
    right = "expected a finished run as the lab keeps it"
    try:
        given = json.loads(line)
    except ValueError as error:
        raise ConfigurationError(f"{where}: {error}; {right}") from error
    if not isinstance(given, dict) or given.keys() != {*_FIELDS, _RESULT}:
        raise ConfigurationError(f"{where}: no finished run; {right}")
    for name, kind in _FIELDS.items():
        if not isinstance(given[name], kind):
            raise ConfigurationError(f'{where}: "{name}" is {given[name]!r}; {right}')
    return KeptRun(**given)


# -- line file -------------------------------------------------------------------------------------
# A file of lines that one process appends to; what it holds outlives a kill -9.


class LineFile:
    """Lines on the disk, added one by one while the file is locked.

    Args:
        path: made if it is not there.

    Attributes:
        lines: those that were there, whole. A last one that was cut off by a kill is taken away.

    Raises:
        ConfigurationError: another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: BinaryIO = path.open("a+b")
        try:
            self._lock()
            self.lines = self._whole()
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(f"{self.path}: another process is writing to it") from error

    def _whole(self) -> list[bytes]:
        self._file.seek(0)
        content = self._file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._file.truncate(len(whole))
        return whole.splitlines()

    def add(self, line: bytes) -> None:
        """Append a line; it is on the disk on return."""
        self._file.write(line + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def clear(self) -> None:
        """Take all lines away."""
        self._file.truncate(0)

    def close(self) -> None:
        """Let go of the file; an empty one goes."""
        if os.fstat(self._file.fileno()).st_size == 0:
            self.path.unlink()
        self._file.close()
