"""Rules that make a job of a workload file interactive, by what its user declared.

A rule (`class_rule` parses it) is applied once, when the file is read, to the columns that users
declared. The true run time is not among them. The one exception is `ByTruth`, for the proxies of
papers: it has to be requested by name, and every report names it.
"""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from outrider.formats.workload import BATCH, INTERACTIVE, Floats
from outrider.model.errors import ConfigurationError, nearest

REQUESTED_BELOW_S: Final = 900.0
"""Requested seconds below which a job is interactive where no rule is given."""
_MAX_LISTED: Final = 10


class DeclaredColumns(NamedTuple):
    """Declarations of users about their jobs, without any outcome.

    Attributes:
        requested_s: (jobs,) requested run time, seconds; nan where not given.
        queue, partition, user: (jobs,) the log's numbers as text; empty where missing.
        queue_names, partition_names: names in the header, by such a number.
    """

    requested_s: Floats
    queue: list[str]
    partition: list[str]
    user: list[str]
    queue_names: Mapping[str, str]
    partition_names: Mapping[str, str]


class ByRequest(Struct, frozen=True, tag="requested"):
    """Rule: interactive if the user requested strictly less than `below_s` seconds."""

    below_s: float

    @property
    def source(self) -> str:
        """Name of the rule in reports: ``requested:900``."""
        return f"requested:{self.below_s:.15g}"

    def interactive(self, declared: DeclaredColumns) -> NDArray[np.bool_]:
        """Return the mask of interactive jobs (jobs,); one without a request is batch."""
        mask: NDArray[np.bool_] = declared.requested_s < self.below_s  # false for nan
        return mask


class ByPlace(Struct, frozen=True, tag="place"):
    """Rule: interactive if the user submitted to one of these queues, or partitions.

    Attributes:
        column: ``queue`` or ``partition``.
        names: the header's, in any case, or the log's numbers.
    """

    column: str
    names: tuple[str, ...]

    @property
    def source(self) -> str:
        """Name of the rule in reports: ``queue:interactive``."""
        return f"{self.column}:{','.join(self.names)}"

    def interactive(self, declared: DeclaredColumns) -> NDArray[np.bool_]:
        """Return the mask of interactive jobs (jobs,).

        Raises:
            ConfigurationError: the file has no such queue or partition.
        """
        if self.column == "queue":
            numbers, header = declared.queue, declared.queue_names
        else:
            numbers, header = declared.partition, declared.partition_names
        there = {**dict.fromkeys(n for n in numbers if n), **header}
        wanted: set[str] = set()
        for name in self.names:
            found = {n for n, word in there.items() if name == n or _is_called(word, name)}
            if not found:
                raise ConfigurationError(
                    f'{self.source}: no {self.column} "{name}"; expected {_listed(there)}'
                )
            wanted |= found
        return np.array([number in wanted for number in numbers], dtype=bool)


class ByUser(Struct, frozen=True, tag="user"):
    """Rule: interactive if the job belongs to one of the users listed in a file."""

    file: str
    users: tuple[str, ...]

    @property
    def source(self) -> str:
        """Name of the rule in reports: ``user:FILE``."""
        return f"user:{self.file}"

    def interactive(self, declared: DeclaredColumns) -> NDArray[np.bool_]:
        """Return the mask of interactive jobs (jobs,).

        Raises:
            ConfigurationError: no job belongs to any of the users.
        """
        wanted = set(self.users)
        mask = np.array([user in wanted for user in declared.user], dtype=bool)
        if not mask.any():
            there = dict.fromkeys(user for user in sorted(set(declared.user)) if user)
            raise ConfigurationError(
                f"{self.source}: no job belongs to any of its {len(wanted)} users; expected "
                f"the trace's own: {_listed(there)}"
            )
        return mask


class NoClass(Struct, frozen=True, tag="none"):
    """Rule: all jobs are batch."""

    @property
    def source(self) -> str:
        """Name of the rule in reports."""
        return "none"

    def interactive(self, declared: DeclaredColumns) -> NDArray[np.bool_]:
        """Return the mask of interactive jobs (jobs,): none."""
        return np.zeros(len(declared.user), dtype=bool)


class ByTruth(Struct, frozen=True, tag="truth"):
    """Rule: interactive if the job ran less than `below_s` seconds, which no user could know."""

    below_s: float

    @property
    def source(self) -> str:
        """Name of the rule in reports: ``truth:900``."""
        return f"truth:{self.below_s:.15g}"

    def interactive_by_run_time(self, run_s: Floats) -> NDArray[np.bool_]:
        """Return the mask of interactive jobs (jobs,) from true run times."""
        mask: NDArray[np.bool_] = run_s < self.below_s
        return mask


ClassRule = ByRequest | ByPlace | ByUser | NoClass | ByTruth


def default_rule(declared: DeclaredColumns) -> ClassRule:
    """Return the rule of a file where none is given, by the best available declaration.

    The queue where the header names one ``interactive`` (generated grids do), else requests where
    there are any, else none.
    """
    if any(_is_called(name, INTERACTIVE) for name in declared.queue_names.values()):
        return ByPlace("queue", (INTERACTIVE,))
    if not np.isnan(declared.requested_s).all():
        return ByRequest(REQUESTED_BELOW_S)
    return NoClass()


def as_classes(interactive: NDArray[np.bool_]) -> list[str]:
    """Return the classes (jobs,): `INTERACTIVE` where the mask is true, else `BATCH`."""
    return [INTERACTIVE if is_interactive else BATCH for is_interactive in interactive.tolist()]


def _is_called(word: str | None, name: str) -> bool:
    return word is not None and word.casefold() == name.casefold()


def _listed(there: Mapping[str, str | None]) -> str:
    """Return a short list such as ``1 (interactive), 2 (batch)``."""
    if not there:
        return "another rule: the file has none"
    in_order = sorted(there.items(), key=lambda item: (len(item[0]), item[0]))  # 2 before 10
    words = [f"{number} ({name})" if name else number for number, name in in_order]
    more = f" or {len(words) - _MAX_LISTED} others" if len(words) > _MAX_LISTED else ""
    return ", ".join(words[:_MAX_LISTED]) + more


# -- class words -----------------------------------------------------------------------------------
# Parser of ``--class-by`` into rules of `outrider.formats.job_classes`.

_WORDS: Final = ("requested", "queue", "partition", "user", "truth", "none")
_EXPECTED: Final = (
    "requested:S, queue:NAME,..., partition:NAME,..., user:FILE, truth:S or none, as requested:900"
)


def class_rule(text: str, where: str = "--class-by") -> ClassRule:
    """Parse a rule such as ``requested:900``; the file of ``user:FILE`` is read immediately.

    Raises:
        ConfigurationError: names the option, the value and what is expected.

    >>> class_rule("queue:interactive,short").source
    'queue:interactive,short'
    """
    kind, colon, value = text.partition(":")
    if kind == "none" and not colon:
        return NoClass()
    if kind in ("requested", "truth"):
        below_s = _seconds(value, f'{where} "{text}"', kind)
        return ByRequest(below_s) if kind == "requested" else ByTruth(below_s)
    if kind == "queue" or kind == "partition":
        names = tuple(dict.fromkeys(name.strip() for name in value.split(",")))
        if not all(names):
            raise ConfigurationError(
                f'{where} "{text}": expected {kind}:NAME,..., as {kind}:interactive'
            )
        return ByPlace(kind, names)
    if kind == "user":
        return ByUser(value, _users_in(value, f'{where} "{text}"'))
    hint = nearest(kind, _WORDS)
    meant = f"{hint} " if kind not in _WORDS and hint.endswith("?") else ""
    raise ConfigurationError(f'{where} "{text}": no such rule; {meant}expected {_EXPECTED}')


def _seconds(text: str, where: str, kind: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not (isfinite(seconds) and seconds >= 0):
        raise ConfigurationError(
            f"{where}: expected {kind}:S with S seconds, 0 or more, as {kind}:900"
        )
    return seconds


def _users_in(name: str, where: str) -> tuple[str, ...]:
    """Return the users of a file, one a line; what follows ``#`` is a comment."""
    right = "expected user:FILE, a text file with one of the trace's users a line"
    try:
        text = Path(name).read_text(encoding="utf-8") if name else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigurationError(f"{where}: cannot be read: {why}; {right}") from error
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    users = tuple(dict.fromkeys(line for line in lines if line))
    if not users:
        raise ConfigurationError(f"{where}: names no user; {right}")
    return users
