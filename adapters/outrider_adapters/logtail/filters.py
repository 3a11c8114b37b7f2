"""Filters of what one log reports: jobs that belong to other logs, and history that comes late."""

import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

import msgspec

from outrider.api import NamedEvent, events
from outrider.model.printable import clean_name

# -- reporters -------------------------------------------------------------------------------------
# The users who wrote logs: names of users in these have pseudonyms of the writer's own.


def reported_by(owner: int, found: list[NamedEvent]) -> list[NamedEvent]:
    """Return the events of a log, with its owner as the reporter of users' names.

    Root and the daemon's own user vouch for these names, as a batch system does.
    """
    if owner in (0, os.geteuid()):
        return found
    writer = str(owner)
    return [
        (time_s, kind, job, _named_by(writer, kind, extra)) for time_s, kind, job, extra in found
    ]


def _named_by(owner: str, kind: int, extra: Any) -> Any:
    if kind == events.SUBMITTED and extra.user:
        return msgspec.structs.replace(extra, reporter=owner)
    if kind == events.CHANGED and extra.get("user"):
        return {**extra, "reporter": owner}
    return extra


# -- claims ----------------------------------------------------------------------------------------
# Which log may report on which jobs.

FOREIGN: Final = "of_another_log"
"""Rejection reason of records about jobs that another log reports."""
MOST_RANGES: Final = 10_000
_NUMBER: Final = re.compile(r"(?:(.*)[#:])?(\d{1,18})(?!\d)(.*)", re.DOTALL)


def parts_of(job: str) -> tuple[str, int]:
    """Return the system that counts a job, and the number that it gave all jobs of one submission.

    >>> parts_of("ap1.example.org#12.0"), parts_of("campus:7_3"), parts_of("81[2].server")
    (('ap1.example.org', 12), ('campus', 7), ('server', 81))
    """
    found = _NUMBER.fullmatch(job)
    if found is None:
        return job, 0
    system, number, rest = found.groups()
    return system if system is not None else rest.partition(".")[2], int(number)


class _Numbers:
    """Ranges of job numbers of one system, each with the log that reports them.

    Attributes:
        named: first log named in the settings that reported on this system; empty: none.
    """

    def __init__(self) -> None:
        self.named = ""
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        self.writers: list[str] = []

    def find(self, number: int) -> int | None:
        """Return the index of the range that holds a number."""
        index = bisect_right(self.firsts, number) - 1
        return index if index >= 0 and number <= self.lasts[index] else None

    def add(self, number: int, writer: str) -> bool:
        """Add a number that no range holds; return True if that takes one more range."""
        index = bisect_right(self.firsts, number)
        if index and self.lasts[index - 1] == number - 1 and self.writers[index - 1] == writer:
            self.lasts[index - 1] = number
            return False
        self.firsts.insert(index, number)
        self.lasts.insert(index, number)
        self.writers.insert(index, writer)
        return True

    def take(self, index: int, number: int, writer: str) -> None:
        """Give a number to another log."""
        first, last, before = self.firsts[index], self.lasts[index], self.writers[index]
        whole = [(first, number - 1, before), (number, number, writer), (number + 1, last, before)]
        kept = [one for one in whole if one[0] <= one[1]]
        at = slice(index, index + 1)
        self.firsts[at], self.lasts[at], self.writers[at] = map(list, zip(*kept, strict=True))

    def thin(self, writer: str) -> int:
        """Drop the older half of the ranges of a log; return how many are left in all."""
        mine = [index for index, other in enumerate(self.writers) if other == writer]
        dropped = set(mine[: (len(mine) + 1) // 2])
        left = [index for index in range(len(self.firsts)) if index not in dropped]
        self.firsts = [self.firsts[index] for index in left]
        self.lasts = [self.lasts[index] for index in left]
        self.writers = [self.writers[index] for index in left]
        return len(self.firsts)


class Claims:
    """Claims of logs to jobs: a job belongs to the log that first reported on it.

    Users write logs themselves, and such a log can contain records about any job. A log that the
    settings name without a pattern is the word of an admin: no log that only matches a pattern may
    report on a system that such a log reports on, and a named log takes over a job.

    Jobs of one submission belong together. They are stored as ranges of their numbers: an event log
    takes one range, a user's log a range per submission. At most `MOST_RANGES` are kept; then those
    of the log with most of them go first.
    """

    def __init__(self) -> None:
        self._systems: dict[str, _Numbers] = {}
        self._ranges_n = 0
        self._writers: dict[str, str] = {}  # by path
        self._saved: Any = None

    def admit(
        self, path: str, writer: str, named: bool, reported: list[NamedEvent]
    ) -> tuple[list[NamedEvent], int]:
        """Return the events that a log may report, and the number of those rejected.

        Args:
            path: path of the log.
            writer: files of the same writer are one log, such as the days of an accounting log.
            named: the settings name the path without a pattern.
            reported: the events.
        """
        if self._writers.get(path) != writer:
            self._writers[path], self._saved = writer, None
        known: dict[str, bool] = {}
        may = self._may
        kept = []
        for event in reported:
            job = event[2]
            allowed = known.get(job)
            if allowed is None:
                allowed = known[job] = may(job, writer, named)
            if allowed:
                kept.append(event)
        return kept, len(reported) - len(kept)

    def _may(self, job: str, writer: str, named: bool) -> bool:
        system, number = parts_of(job)
        system = clean_name(system)  # any user can write thousands of long ones
        numbers = self._systems.get(system)
        if numbers is None:
            numbers = self._systems[system] = _Numbers()
        if named and not numbers.named:
            numbers.named, self._saved = writer, None
        index = numbers.find(number)
        if index is None:
            if numbers.named and not named:
                return False
            self._saved = None
            self._ranges_n += numbers.add(number, writer)
            if self._ranges_n > MOST_RANGES:
                self._thin()
            return True
        owner = numbers.writers[index]
        if owner == writer:
            return True
        if not named and (numbers.named or owner in self._writers.values()):
            return False
        before_n = len(numbers.firsts)
        numbers.take(index, number, writer)
        self._ranges_n += len(numbers.firsts) - before_n
        self._saved = None
        return True

    def _thin(self) -> None:
        owned = Counter(w for numbers in self._systems.values() for w in numbers.writers)
        writer = owned.most_common(1)[0][0]
        left = {name: numbers.thin(writer) for name, numbers in self._systems.items()}
        self._systems = {
            name: numbers for name, numbers in self._systems.items() if left[name] or numbers.named
        }
        self._ranges_n = sum(left.values())

    def forget(self, is_gone: Callable[[str], bool]) -> None:
        """Release the jobs of logs that are gone: another log may report on them."""
        gone = [path for path in self._writers if is_gone(path)]
        for path in gone:
            del self._writers[path]
            self._saved = None

    @property
    def paths(self) -> Collection[str]:
        """The paths of the logs that have reported jobs."""
        return self._writers.keys()

    def save(self) -> Any:
        """Return the claims, as JSON types; the same object until they change."""
        if self._saved is None:
            writers = list(
                dict.fromkeys(
                    [
                        *self._writers.values(),
                        *(w for n in self._systems.values() for w in (n.named, *n.writers) if w),
                    ]
                )
            )
            place = {writer: index for index, writer in enumerate(writers)}
            self._saved = {
                "writers": writers,
                "paths": {path: place[writer] for path, writer in self._writers.items()},
                "systems": {
                    system: {
                        "named": place[numbers.named] if numbers.named else None,
                        "firsts": list(numbers.firsts),
                        "lasts": list(numbers.lasts),
                        "writers": [place[writer] for writer in numbers.writers],
                    }
                    for system, numbers in self._systems.items()
                },
            }
        return self._saved

    def restore(self, saved: Any) -> None:
        """Resume from the value of `save`. Raises `KeyError`, `TypeError` or `IndexError`."""
        writers = saved["writers"]
        self._writers = {path: writers[index] for path, index in saved["paths"].items()}
        self._systems = {}
        for system, kept in saved["systems"].items():
            numbers = self._systems[system] = _Numbers()
            numbers.named = "" if kept["named"] is None else writers[kept["named"]]
            numbers.firsts, numbers.lasts = list(kept["firsts"]), list(kept["lasts"])
            numbers.writers = [writers[index] for index in kept["writers"]]
        self._ranges_n = sum(len(numbers.firsts) for numbers in self._systems.values())
        self._saved = None


# -- late history ----------------------------------------------------------------------------------
# The history of a log that is read while the news of others is given out.

_MOST_EVENTS: Final = 16
_UNDONE: Final = {
    events.RESUMED: events.SUSPENDED,
    events.RECONNECTED: events.DISCONNECTED,
}


class LateHistory:
    """Reduction of a log's history to the jobs that are still there at its end.

    Ended jobs and lost runs of the past must not be counted as news. Records about jobs that were
    submitted before the first record here are passed on: they may have been reported already.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, list[NamedEvent]] = {}

    def reduce(self, reported: Iterable[NamedEvent]) -> list[NamedEvent]:
        """Take in events; return those of jobs that are not known here."""
        passed = []
        for event in reported:
            kind, job = event[1], event[2]
            kept = self._jobs.get(job)
            if kind == events.SUBMITTED:
                self._jobs[job] = [event]
            elif kept is None:
                passed.append(event)
            elif kind in (events.COMPLETED, events.REMOVED):
                del self._jobs[job]
            elif kind in (events.EVICTED, events.RELEASED):
                del kept[1:]
            elif _UNDONE.get(kind) == kept[-1][1]:
                kept.pop()
            else:
                kept.append(event)
                del kept[_MOST_EVENTS:]
        return passed

    def standing(self) -> list[NamedEvent]:
        """Return the events that lead to the state at the end of the history, by time."""
        return sorted((e for kept in self._jobs.values() for e in kept), key=lambda e: e[0])
