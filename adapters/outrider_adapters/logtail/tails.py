"""Following several logs and patterns of logs as one."""

import fnmatch
import glob
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from outrider.api import InProgress
from outrider_adapters.logtail.identity import is_rotated_name
from outrider_adapters.logtail.readers import Readers
from outrider_adapters.logtail.settings import LogtailSettings
from outrider_adapters.logtail.slices import Slice
from outrider_adapters.logtail.suspects import Suspects
from outrider_adapters.logtail.tail import Tail

_VERSION = 1


class Tails:
    """All logs that the settings name.

    Args:
        settings: which logs, and how.
        clock: Unix seconds now.

    Raises:
        ConfigurationError, PluginError: as `Readers`.
    """

    def __init__(self, settings: LogtailSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._readers = Readers(settings.format)
        self._tails: dict[str, Tail] = {}
        self._away_since_s: dict[str, float] = {}
        self._lives: set[str] = set()
        self._suspects: Suspects | None = None

    def start(self, cursor: Any, in_progress: InProgress | None = None) -> None:
        """Begin at a cursor; without one, at the beginning of every log.

        Args:
            cursor: what `save` gave.
            in_progress: where to note what is being read; heeded at the first start.

        Raises:
            ValueError: the cursor is none of this adapter's.
        """
        if in_progress is not None and self._suspects is None:
            self._suspects = Suspects(in_progress)
        history = cursor is None and self._settings.start_at == "now"
        try:
            saved = {} if cursor is None else {entry["path"]: entry for entry in cursor["files"]}
            self._lives |= set(saved)
            for path in [*self._paths(), *filter(self._is_named, saved)]:
                if path not in self._tails:
                    self._add(path, history)
                    if path in saved:
                        self._tails[path].restore(saved[path])
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            raise ValueError(f"no cursor of the logtail adapter: {error}") from error

    def _is_named(self, path: str) -> bool:
        """Whether the settings (still) name a log, be it there or away."""
        named = self._settings.paths
        return path in named or any(fnmatch.fnmatchcase(path, pattern) for pattern in named)

    def save(self) -> dict[str, Any]:
        """The cursor: where every log stands."""
        return {"version": _VERSION, "files": [tail.save() for tail in self._tails.values()]}

    def close(self) -> None:
        """Close all files and forget them: who opens anew goes on from a cursor, not from here."""
        for tail in self._tails.values():
            tail.close()
        self._tails.clear()
        self._away_since_s.clear()

    @property
    def paths(self) -> list[Path]:
        """The live logs followed now."""
        return [tail.path for tail in self._tails.values()]

    def look_for_files(self) -> None:
        """Follow what patterns match by now; give up what they no longer match and is gone."""
        named = set(self._paths())
        for path in named:
            if path not in self._tails:
                self._add(path, history=False)
        for path in [path for path in self._away_since_s if path not in named]:
            if not self._tails[path].is_open:
                del self._tails[path], self._away_since_s[path]

    def step_all(self, history: bool) -> list[Slice]:
        """One step along each log that is still in its history, or along each that is not.

        A log that is away is noted; one that cannot be read is away, too.
        """
        return [
            self._step(path, tail)
            for path, tail in self._tails.items()
            if tail.in_history == history
        ]

    def _step(self, path: str, tail: Tail) -> Slice:
        try:
            part = tail.step()
        except OSError as error:
            part = Slice(present=False, notes=[f"{path}: {error.strerror or error}"])
        if part.present:
            self._away_since_s.pop(path, None)
            return part
        now_s = self._clock()  # which may have been set back
        self._away_since_s[path] = min(self._away_since_s.get(path, now_s), now_s)
        part.notes = part.notes or [f"{path} is not there"]
        return part

    def age_s(self) -> float:
        """Seconds for which the log that is away the longest has been away; 0 if none is."""
        if not self._away_since_s:
            return 0.0
        return max(0.0, self._clock() - min(self._away_since_s.values()))

    def broken_readers(self) -> list[str]:
        """What is wrong with readers that could not be loaded."""
        return list(self._readers.broken.values())

    def _add(self, path: str, history: bool) -> None:
        self._tails[path] = Tail(
            Path(path),
            self._readers,
            self._settings.timezone,
            self._clock,
            self._settings.settle_s,
            history,
            self._settings.system,
            self._suspects,
        )

    def _paths(self) -> list[str]:
        """The settings' paths with patterns expanded, without what rotations left of others."""
        plain = [path for path in self._settings.paths if not glob.has_magic(path)]
        matched = {
            found
            for path in self._settings.paths
            if glob.has_magic(path)
            for found in glob.glob(path)  # noqa: PTH207  # absolute patterns, too
            if Path(found).is_file()
        }
        self._lives |= matched.union(plain)  # and stay so while a rotation renames them
        news = [path for path in sorted(matched) if not _is_left_of_another(path, self._lives)]
        return list(dict.fromkeys([*plain, *news]))


def _is_left_of_another(path: str, lives: set[str]) -> bool:
    """Whether a rotation made this file of another that is followed."""
    return any(
        is_rotated_name(path, live) for live in (path[:end] for end in _cuts(path)) if live in lives
    )


def _cuts(path: str) -> list[int]:
    """Where a suffix of a rotation might begin."""
    return [index for index, letter in enumerate(path) if letter in ".-" and index]
