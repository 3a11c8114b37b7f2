"""Follow several logs and patterns of logs as one source."""

import fnmatch
import glob
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from outrider.api import InProgress
from outrider_adapters.logtail.identity import is_rotated_name
from outrider_adapters.logtail.readers import Readers
from outrider_adapters.logtail.settings import LogtailSettings
from outrider_adapters.logtail.steps import Pending, Steps
from outrider_adapters.logtail.suspects import Suspects
from outrider_adapters.logtail.tail import Slice, Tail
from outrider_adapters.logtail.troubles import Troubles

_VERSION = 1


class Tails:
    """All logs that the settings name.

    Args:
        settings: which logs, and how.
        clock: Unix seconds now.
        steps: runs everything that accesses a file, which may hang.

    Attributes:
        troubles: logs that cannot be read.

    Raises:
        ConfigurationError, PluginError: see `Readers`.
    """

    def __init__(self, settings: LogtailSettings, clock: Callable[[], float], steps: Steps) -> None:
        self.troubles = Troubles(clock)
        self._settings = settings
        self._clock = clock
        self._steps = steps
        self._readers = Readers(settings.format)
        self._plain = [path for path in settings.paths if not glob.has_magic(path)]
        self._matches: dict[str, list[str]] = {}
        self._unmatched: set[str] = set()  # patterns that have not been looked up yet
        self._tails: dict[str, Tail] = {}
        self._saved: dict[
            str, dict[str, Any]
        ] = {}  # state of each tail after its last complete step
        self._saved_at: dict[str, int] = {}
        self._modes: dict[str, bool] = {}  # running steps: True if they read history
        self._history = False
        self._lives: set[str] = set()
        self._suspects: Suspects | None = None

    def start(self, cursor: Any, in_progress: InProgress | None = None) -> None:
        """Begin at a cursor; without one, at the beginning of every log. Accesses no log.

        Args:
            cursor: the value of `save`.
            in_progress: where to record what is being read; used only at the first start.

        Raises:
            ValueError: the cursor was not made by this adapter.
        """
        if in_progress is not None and self._suspects is None:
            self._suspects = Suspects(in_progress)
        self._history = cursor is None and self._settings.start_at == "now"
        self._unmatched = {path for path in self._settings.paths if path not in self._plain}
        try:
            saved = {} if cursor is None else {entry["path"]: entry for entry in cursor["files"]}
            self._lives |= set(saved).union(self._plain)
            for path in [*self._plain, *filter(self._is_named, saved)]:
                if path not in self._tails:
                    self._add(path, self._history, saved.get(path))
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise ValueError(f"no cursor of the logtail adapter: {error}") from error

    def _is_named(self, path: str) -> bool:
        """Return whether the settings (still) name a log, even if it does not exist."""
        named = self._settings.paths
        return path in named or any(fnmatch.fnmatchcase(path, pattern) for pattern in named)

    def save(self) -> dict[str, Any]:
        """Return the cursor: the position in every log."""
        return {"version": _VERSION, "files": [self._saved[path] for path in self._tails]}

    def close(self) -> None:
        """Close all files and forget them; a new start resumes from a cursor.

        A file whose reading hangs is closed by the thread of that step, once it ends.
        """
        for path, tail in self._tails.items():
            if not self._steps.is_hanging(path):
                tail.close()
        for known in (self._tails, self._saved, self._modes, self._matches, self.troubles):
            known.clear()

    @property
    def paths(self) -> list[Path]:
        """Live logs that are followed now."""
        return [tail.path for tail in self._tails.values()]

    def look_for_files(self) -> None:
        """Follow new matches of patterns; drop logs that no longer match and are gone."""
        for pattern in self._settings.paths:
            if pattern not in self._plain:
                self._look_up(pattern)
        matched = {path for paths in self._matches.values() for path in paths}
        self._lives |= matched  # and stay so while a rotation renames them
        for pattern, paths in self._matches.items():
            mine = self._matches[pattern] = [
                path for path in paths if not _is_left_of_another(path, self._lives)
            ]
            self.troubles.note(pattern, "" if mine else f"{pattern}: no file matches it")
            for path in mine:
                if path not in self._tails:
                    self._add(path, self._history and pattern in self._unmatched)
            self._unmatched.discard(pattern)
        troubles = self.troubles.names()
        named = self._followed() if troubles else set()
        for path in troubles:
            gone = path in self._tails and path not in named
            if gone and path not in self._modes and not self._tails[path].is_open:
                del self._tails[path], self._saved[path], self._saved_at[path]
                self.troubles.drop(path)

    def _followed(self) -> set[str]:
        """Return the logs that the settings name or a pattern matches now."""
        return {*self._plain, *(path for paths in self._matches.values() for path in paths)}

    def _look_up(self, pattern: str) -> None:
        found = self._steps.make(f"pattern {pattern}", lambda: _files(pattern), list)
        if not isinstance(found, Pending):
            self._matches[pattern] = found
        elif pattern not in self._matches:
            self.troubles.note(pattern, f"{pattern}: looking for files hangs", may_pass=True)

    def step_all(self, history: bool) -> Iterator[Slice]:
        """Yield one step along each log that is still in its history, or along each that is not."""
        for path, tail in self._tails.items():
            mode = self._modes.get(path)
            if (tail.in_history if mode is None else mode) == history:
                self._modes[path] = history
                yield self._step(path, tail)

    def _step(self, path: str, tail: Tail) -> Slice:
        try:
            part = self._steps.make(path, tail.step, tail.close)
        except OSError as error:
            part = Slice(problem=f"{path}: {error.strerror or error}")
        if isinstance(part, Pending):
            part = Slice(problem=f"{path}: reading it hangs", may_pass=True)
        else:
            del self._modes[path]
            if part.progress or tail.changes != self._saved_at[path]:
                self._save(path, tail)
        self.troubles.note(path, part.problem, part.may_pass)
        if part.problem:
            part.notes.append(part.problem)
        return part

    @property
    def groups(self) -> dict[str, list[str]]:
        """Files of each path in the settings now; a pattern without a match maps to itself."""
        return {path: self._matches.get(path) or [path] for path in self._settings.paths}

    def written_s(self) -> dict[str, float]:
        """Return when each path of the settings was last written, where known."""
        tails = self._tails
        found_s = {
            named: max((tails[path].modified_s for path in paths if path in tails), default=0.0)
            for named, paths in self.groups.items()
        }
        return {named: time_s for named, time_s in found_s.items() if time_s}

    @property
    def state_words(self) -> Mapping[str, str]:
        """The batch system's names of job states, once a log was read."""
        return self._readers.state_words

    def broken_readers(self) -> list[str]:
        """Return the errors of readers that could not be loaded."""
        return list(self._readers.broken.values())

    def _add(self, path: str, history: bool, saved: dict[str, Any] | None = None) -> None:
        tail = Tail(
            Path(path),
            self._readers,
            self._settings.timezone,
            self._clock,
            self._settings.settle_s,
            history,
            self._settings.system,
            self._suspects,
        )
        if saved is not None:
            tail.restore(saved)
        self._tails[path] = tail
        self._save(path, tail)

    def _save(self, path: str, tail: Tail) -> None:
        self._saved[path], self._saved_at[path] = tail.save(), tail.changes


def _files(pattern: str) -> list[str]:
    """Return the regular files that match a pattern."""
    return sorted(path for path in glob.glob(pattern) if Path(path).is_file())  # noqa: PTH207  # absolute patterns, too


def _is_left_of_another(path: str, lives: set[str]) -> bool:
    """Return whether this is a rotated file of a log that is followed."""
    return any(
        is_rotated_name(path, live) for live in (path[:end] for end in _cuts(path)) if live in lives
    )


def _cuts(path: str) -> list[int]:
    """Return where a suffix of a rotation might begin."""
    return [index for index, letter in enumerate(path) if letter in ".-" and index]
