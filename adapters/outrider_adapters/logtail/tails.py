"""Follow several logs and patterns of logs as one source."""

import fnmatch
import glob
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from outrider.api import InProgress
from outrider_adapters.logtail.filters import FOREIGN, Claims, LateHistory, reported_by
from outrider_adapters.logtail.identity import (
    files_of,
    is_left_of_another,
    most_open,
    newest_in_turn,
)
from outrider_adapters.logtail.readers import Readers
from outrider_adapters.logtail.settings import LogtailSettings
from outrider_adapters.logtail.steps import Pending, Steps
from outrider_adapters.logtail.suspects import Suspects
from outrider_adapters.logtail.tail import Slice, Tail

_VERSION = 1
MOST_MATCHES: Final = 1000
"""Largest number of logs that are followed because they match a pattern."""
_MANY_BYTES: Final = 1 << 14
"""Size of a slice after which a log waits for its turn."""
_BEHIND_S: Final = 5.0
"""Seconds for which a log may have more to read before it is named."""
_LOOKING_RATIO: Final = 20
"""Least ratio of time between two look-ups of many files to the CPU time that one takes."""
_MOST_LIVES: Final = 10_000


class Tails:
    """All logs that the settings name.

    Logs with little to read come first in every batch, and those that the settings name without a
    pattern before those that match one. The others wait for their turn, a slice each.

    Args:
        settings: which logs, and how.
        clock: Unix seconds now.
        steps: runs everything that accesses a file, which may hang.

    Attributes:
        troubles: logs that cannot be read.
        is_late: news is given out already: what is left of a history is reduced to the jobs that
            are still there, and given out as news at its end.

    Raises:
        ConfigurationError, PluginError: see `Readers`.
    """

    def __init__(self, settings: LogtailSettings, clock: Callable[[], float], steps: Steps) -> None:
        self.troubles = Troubles(clock)
        self.is_late = False
        self._settings = settings
        self._clock = clock
        self._steps = steps
        self._readers = Readers(settings.format)
        self._plain = [path for path in settings.paths if not glob.has_magic(path)]
        self._patterns = [path for path in settings.paths if glob.has_magic(path)]
        self._claims = Claims()
        self._matches: dict[str, list[str]] = {}
        self._unmatched: set[str] = set()  # patterns that have not been looked up yet
        self._tails: dict[str, Tail] = {}
        self._turns: dict[str, None] = {}  # logs that match a pattern, the last read last
        self._behind: dict[str, float] = {}  # logs with much to read, and since when, in turn
        self._late: dict[str, LateHistory] = {}
        self._caught_up: dict[str, bool] = {}
        self._open: set[str] = set()
        self._most_open = most_open(MOST_MATCHES)
        self._saved: dict[str, dict[str, Any]] = {}  # after the last complete step
        self._saved_at: dict[str, int] = {}
        self._modes: dict[str, bool] = {}  # running steps: True if they read history
        self._history = self._resumes = False
        self._looks: dict[str, dict[str, os.stat_result]] = {}
        self._lives: dict[str, None] = {}
        self._left_out: dict[str, int] = {}  # bytes of logs beyond the limit that are history
        self._crowd = ""
        self._look_at, self._looked_s = float("-inf"), 0.0
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
        self._resumes = self.is_late = cursor is not None
        self._unmatched = set(self._patterns)
        try:
            saved = {} if cursor is None else {entry["path"]: entry for entry in cursor["files"]}
            if saved and cursor.get("claims"):
                self._claims.restore(cursor["claims"])
            self._lives |= dict.fromkeys([*saved, *self._plain])
            for path in [*self._plain, *filter(self._is_named, saved)]:
                if path not in self._tails:
                    self._add(path, self._history, saved.get(path))
        except (KeyError, IndexError, TypeError, msgspec.ValidationError) as error:
            raise ValueError(f"no cursor of the logtail adapter: {error}") from error

    def _is_named(self, path: str) -> bool:
        """Return whether the settings (still) name a log, even if it does not exist."""
        named = self._settings.paths
        return path in named or any(fnmatch.fnmatchcase(path, pattern) for pattern in named)

    def save(self) -> dict[str, Any]:
        """Return the cursor: the position in every log, and which jobs are whose."""
        files = [self._saved[path] for path in self._tails]
        return {"version": _VERSION, "files": files, "claims": self._claims.save()}

    def close(self) -> None:
        """Close all files and forget them; a new start resumes from a cursor.

        A file whose reading hangs is closed by the thread of that step, once it ends.
        """
        for path, tail in self._tails.items():
            if not self._steps.is_hanging(path):
                tail.close()
        tables = (self._tails, self._saved, self._modes, self._matches, self._turns, self._behind)
        for known in (*tables, self._looks, self._late, self._caught_up, self._open, self.troubles):
            known.clear()
        self._claims = Claims()
        self._look_at = float("-inf")

    @property
    def paths(self) -> list[Path]:
        """Live logs that are followed now."""
        return [tail.path for tail in self._tails.values()]

    @property
    def inodes(self) -> dict[Path, int | None]:
        """Logs that match a pattern, each with its inode; None: it was not opened yet."""
        return {self._tails[path].path: self._tails[path].inode for path in self._turns}

    # -- looking for files ------------------------------------------------------------------------

    def look_for_files(self) -> None:
        """Follow new matches of patterns; drop logs that no longer match and are gone.

        Where more files match than are followed, a look costs at most some percent of the time.
        """
        if self._patterns and time.monotonic() >= self._look_at:
            began_s, self._looked_s = time.thread_time(), 0.0
            looked = [self._look_up(pattern) for pattern in self._patterns]
            if any(looked):
                self._follow()
            took_s = time.thread_time() - began_s + self._looked_s
            self._look_at = time.monotonic() + (_LOOKING_RATIO * took_s if self._crowd else 0.0)
        troubles = self.troubles.names()
        named = self._followed() if troubles else set()
        for path in troubles:
            gone = path in self._tails and path not in named
            if gone and path not in self._modes and not self._tails[path].is_open:
                self._drop(path)

    def _follow(self) -> None:
        """Follow the files that were found, the newest of every owner in turn."""
        found = {path: status for look in self._looks.values() for path, status in look.items()}
        self._lives = {**self._lives, **dict.fromkeys(found)}  # and while a rotation renames them
        while len(self._lives) > _MOST_LIVES + len(found):
            del self._lives[next(iter(self._lives))]
        files = {
            path: status
            for path, status in found.items()
            if path not in self._plain and not is_left_of_another(path, self._lives)
        }
        chosen: Collection[str] = files
        self._crowd = ""
        if len(files) > MOST_MATCHES:
            lingering = sum(path not in files for path in self._turns)
            chosen = set(newest_in_turn(files, max(0, MOST_MATCHES - lingering)))
            self._crowd = (
                f"{len(files):,} logs match {', '.join(self._patterns)}: the "
                f"{len(files) - len(chosen):,} written to least recently are not followed"
            )
            self._leave_out(files, chosen)
        elif self._left_out:
            self._left_out = {path: n for path, n in self._left_out.items() if path in files}
        for pattern, look in self._looks.items():
            mine = [path for path in look if path in chosen or path in self._plain]
            self._matches[pattern] = mine
            self.troubles.note(pattern, "" if mine else f"{pattern}: no file matches it")
            for path in mine:
                if path not in self._tails:
                    self._add(path, self._history and pattern in self._unmatched)
            self._unmatched.discard(pattern)
        if len(self._looks) == len(self._patterns):
            self._claims.forget(lambda path: path not in files and path not in self._tails)

    def _leave_out(self, files: Mapping[str, os.stat_result], chosen: Collection[str]) -> None:
        """Stop following logs beyond the limit; what they contain now is history."""
        first_look = bool(self._unmatched) and (self._history or self._resumes)
        left_out: dict[str, int] = {}
        for path, status in files.items():
            if path in chosen:
                continue
            if path in self._turns and path not in self._modes:
                left_out[path] = self._tails[path].offset
                self._drop(path)
            elif path in self._left_out:
                left_out[path] = self._left_out[path]
            elif first_look:
                left_out[path] = status.st_size
        left_out |= {path: self._left_out[path] for path in chosen if path in self._left_out}
        self._left_out = left_out

    def _drop(self, path: str) -> None:
        self._tails[path].close()
        del self._tails[path], self._saved[path], self._saved_at[path]
        for known in (self._turns, self._behind, self._late, self._caught_up):
            known.pop(path, None)
        self._open.discard(path)
        self.troubles.drop(path)

    def _followed(self) -> set[str]:
        """Return the logs that the settings name or a pattern matches now."""
        return {*self._plain, *(path for paths in self._matches.values() for path in paths)}

    def _look_up(self, pattern: str) -> bool:
        """Look for the files that match a pattern; return False if that hangs."""
        found = self._steps.make(f"pattern {pattern}", lambda: files_of(pattern), list)
        if isinstance(found, Pending):
            if pattern not in self._looks:
                self.troubles.note(pattern, f"{pattern}: looking for files hangs", may_pass=True)
            return False
        self._looks[pattern], took_s = found
        self._looked_s += took_s
        return True

    # -- steps ------------------------------------------------------------------------------------

    def read(self, history: bool) -> Iterator[Slice]:
        """Yield steps along the logs that are still in their history, or along those that are not.

        It ends when nothing is left to read. The consumer may stop before.
        """
        again = [
            path
            for path in (*(p for p in self._plain if p in self._tails), *self._turns)
            if path not in self._behind and self._is_in(path, history)
        ]
        while again:
            more = []
            for path in again:
                if path in self._turns:
                    self._turns[path] = self._turns.pop(path)
                part = self._step(path, history)
                if part.size >= _MANY_BYTES:
                    self._behind[path] = self._clock()
                elif part.progress and self._is_in(path, history):
                    more.append(path)
                yield part
            again = more
        while (
            turn := next((p for p in self._behind if self._is_in(p, history)), None)
        ) is not None:
            since_s = self._behind.pop(turn)
            part = self._step(turn, history)
            if part.progress:
                self._behind[turn] = since_s
            yield part

    def _is_in(self, path: str, history: bool) -> bool:
        return self._modes.get(path, self._tails[path].in_history) == history

    def _step(self, path: str, history: bool) -> Slice:
        tail = self._tails[path]
        self._modes[path] = history
        try:
            part = self._steps.make(path, tail.step, tail.close)
        except OSError as error:
            part = Slice(problem=f"{path}: {error.strerror or error}")
        if isinstance(part, Pending):
            part = Slice(problem=f"{path}: reading it hangs", may_pass=True)
        else:
            del self._modes[path]
            self._filter(path, tail, part)
            if path not in self._late and (part.progress or tail.changes != self._saved_at[path]):
                self._save(path, tail)
            self._limit_open(path, tail)
        self._caught_up[path] = part.caught_up
        self.troubles.note(path, part.problem, part.may_pass)
        if part.problem:
            part.notes.append(part.problem)
        return part

    def _filter(self, path: str, tail: Tail, part: Slice) -> None:
        """Reject records about jobs of other logs; reduce history that comes late."""
        if part.events and (self._patterns or len(self._plain) > 1):
            named = path not in self._turns
            found = part.events if named else reported_by(part.owner, part.events)
            part.events, foreign = self._claims.admit(path, tail.writer, named, found)
            part.rejected.update({FOREIGN: foreign} if foreign else {})
        if not self.is_late:
            return
        if part.history:
            part.events = self._late.setdefault(path, LateHistory()).reduce(part.events)
        if path in self._late and not tail.in_history:
            part.events = [*self._late.pop(path).standing(), *part.events]

    def _limit_open(self, path: str, tail: Tail) -> None:
        """Close a file if too many are open: sockets, journal and snapshots need some, too."""
        if not tail.is_open:
            self._open.discard(path)
            return
        self._open.add(path)
        most = self._most_open if path in self._turns else 2 * self._most_open
        if len(self._open) > most:
            tail.close()
            self._open.discard(path)

    # -- state ------------------------------------------------------------------------------------

    @property
    def has_some_history_read(self) -> bool:
        """Return whether a log waits for others whose history is still being read."""
        return any(self._caught_up.get(p) is not None for p in self._tails if self._is_in(p, False))

    @property
    def are_caught_up(self) -> bool:
        """Return whether the last steps have read all news."""
        news = self._tails.keys() - self._late.keys()
        return not news & self._behind.keys() and all(map(self._caught_up.get, news))

    def behind_s(self) -> float:
        """Return for how long a named log, or all logs of a pattern, had more to read.

        A moment counts as 0: a batch is given out, and the next one follows.
        """
        since_s = [
            max(self._behind[path] for path in group)
            for group in (self.groups.values() if self._behind else ())
            if all(path in self._behind for path in group)
        ]
        age_s = max(0.0, self._clock() - min(since_s)) if since_s else 0.0
        return age_s if age_s > _BEHIND_S else 0.0

    def notes(self) -> list[str]:
        """Return what an admin should know about readers and about logs that are not read."""
        now_s = self._clock()
        late = [path for path, since_s in self._behind.items() if now_s - since_s > _BEHIND_S]
        return [
            *self._readers.broken.values(),
            *filter(None, [self._crowd]),
            *(
                f"{p}: its {'history' if self._tails[p].in_history else 'news'} is being read"
                for p in late
            ),
        ]

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

    def _add(self, path: str, history: bool, saved: dict[str, Any] | None = None) -> None:
        matched = path not in self._plain
        tail = Tail(
            Path(path),
            self._readers,
            self._settings.timezone,
            self._clock,
            self._settings.settle_s,
            history,
            self._settings.system,
            self._suspects,
            rests=matched,
        )
        if saved is not None:
            tail.restore(saved)
        elif path in self._left_out:
            tail.mark_history(self._left_out.pop(path))
        self._tails[path] = tail
        if matched:
            self._turns[path] = None
        self._save(path, tail)

    def _save(self, path: str, tail: Tail) -> None:
        self._saved[path], self._saved_at[path] = tail.save(), tail.changes


# -- troubles --------------------------------------------------------------------------------------
# Problems of logs: since when each lasts, and whether to report it.

PASSES_WITHIN_S: Final = 5.0
"""Seconds for which a log may be missing without a report, since a rotation moves it."""
_MAX_TEXTS: Final = 5


class _Trouble(NamedTuple):
    since_s: float
    why: str
    may_pass: bool


class Troubles:
    """Record of the logs that cannot be read, by name.

    Each path of the settings is a group of names: a log, or all that match a pattern. A group is in
    trouble if none of its files can be read: some of the files that match a pattern may not be
    logs.

    Args:
        clock: Unix seconds now; it may be set back.

    No group is empty.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._troubles: dict[str, _Trouble] = {}
        self._were_read: set[str] = set()

    def note(self, name: str, why: str, may_pass: bool = False) -> None:
        """Record a check of a log; `why` is empty if it was read."""
        if not why:
            self._troubles.pop(name, None)
            self._were_read.add(name)
            return
        now_s = self._clock()
        before = self._troubles.get(name)
        since_s = now_s if before is None else min(before.since_s, now_s)
        passes = may_pass or name in self._were_read
        self._troubles[name] = _Trouble(since_s, why, passes)

    def drop(self, name: str) -> None:
        """Drop a log that is no longer followed."""
        self._troubles.pop(name, None)
        self._were_read.discard(name)

    def names(self) -> list[str]:
        """Return the logs that cannot be read."""
        return list(self._troubles)

    def age_s(self, groups: Iterable[Collection[str]]) -> float:
        """Return the seconds for which the oldest trouble of a group has lasted; 0 if none."""
        if not self._troubles:
            return 0.0
        since_s = [self._since_s(group) for group in groups if self._is_in_trouble(group)]
        return max(0.0, self._clock() - min(since_s)) if since_s else 0.0

    def describe(self, groups: Iterable[Collection[str]]) -> str:
        """Describe why groups cannot be read, without new problems that may pass."""
        if not self._troubles:
            return ""
        lasting_s = self._clock() - PASSES_WITHIN_S
        whys: list[str] = []
        for group in groups:
            if self._is_in_trouble(group):
                troubles = [self._troubles[name] for name in group]
                if self._since_s(group) <= lasting_s or not all(t.may_pass for t in troubles):
                    whys += [trouble.why for trouble in troubles]
        return some_of(whys)

    def clear(self) -> None:
        """Forget all logs and their problems."""
        self._troubles.clear()
        self._were_read.clear()

    def _is_in_trouble(self, group: Collection[str]) -> bool:
        return all(name in self._troubles for name in group)

    def _since_s(self, group: Collection[str]) -> float:
        return max(self._troubles[name].since_s for name in group)


def some_of(texts: Iterable[str]) -> str:
    """Join the first of these texts, without repetition: there may be thousands of logs."""
    different = list(dict.fromkeys(texts))
    left = len(different) - _MAX_TEXTS
    more = [f"and {left} more"] if left > 0 else []
    return "; ".join([*different[:_MAX_TEXTS], *more])
