"""Reader of ``sacct -P`` dumps: one job, or one step of a job, per line."""

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, ClassVar, Final

from outrider.api import ConfigurationError, NamedEvent, ReaderOptions
from outrider_adapters.readers.slurm import record_events
from outrider_adapters.readers.slurm.lines import LineReader
from outrider_adapters.readers.slurm.record_events import Record, UnreadableRecordError

# -- columns ---------------------------------------------------------------------------------------
# Positions of the columns of a ``sacct -P`` dump.

REQUIRED: Final = ("jobid", "state", "end")
_WANTED: Final = (
    ("jobid",), ("state",), ("submit",), ("eligible",), ("start",), ("end",), ("elapsed",),
    ("alloccpus", "ncpus"), ("reqcpus",), ("user",), ("account",), ("group",),
    ("timelimit", "timelimitraw"), ("nodelist",), ("restarts",), ("cluster",),
)  # fmt: skip
"""Columns in the order of `Record`, then the cluster; the first of several names is preferred."""
WRITTEN_BY_USERS: Final = (
    "jobname", "comment", "workdir", "submitline", "wckey", "container", "extra", "stdin",
    "stdout", "stderr",
)  # fmt: skip
"""Columns with arbitrary text of users, including ``|`` and line ends."""

Pick = Callable[[list[str]], tuple[str, ...]]


class Columns:
    """Columns of a table by their names in sacct's own words.

    Args:
        names: in any case and order; a width (``JobName%40``) is removed.

    Attributes:
        names: in lower case.
        missing: required columns that are not there.
        free: positions of the columns with arbitrary text of users.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = [name.partition("%")[0].strip().lower() for name in names]
        self.missing = [name for name in REQUIRED if name not in self.names]
        self.job = self.names.index("jobid") if "jobid" in self.names else 0
        self.free = [place for place, name in enumerate(self.names) if name in WRITTEN_BY_USERS]
        self._pick: Pick = itemgetter(*map(self._place, _WANTED))

    @classmethod
    def of_header(cls, line: str) -> "Columns | None":
        """Return the columns if the line is a header, with columns JobID and State; else None."""
        columns = cls(line.split("|"))
        return columns if {"jobid", "state"} <= set(columns.names) else None

    def cells(self, line: str) -> list[str]:
        """Split a row into cells; surplus cells belong to the one column that users write.

        A row that is too short gives fewer cells than there are columns. One that is too long
        gives more if no single column can have them all: with several such columns it has
        several readings.
        """
        cells = line.split("|")
        extra = len(cells) - len(self.names)
        if extra > 0 and len(self.free) == 1:
            first = self.free[0]
            last = first + extra + 1
            cells[first:last] = ["|".join(cells[first:last])]
        elif extra == 1 and not self.free and not cells[-1]:
            del cells[-1]  # the surplus separator that ``sacct -p`` writes after each row
        return cells

    def pick(self, cells: list[str]) -> tuple[str, ...]:
        """Return the cells for a `Record` and the cluster, empty for a missing column."""
        return self._pick([*cells, ""])

    def _place(self, names: tuple[str, ...]) -> int:
        """Return the column of the first of these names, else the index of the empty last cell."""
        return next(
            (self.names.index(name) for name in names if name in self.names), len(self.names)
        )


# -- sacct -----------------------------------------------------------------------------------------

_JOB_ID = re.compile(r"\d{1,10}(?:_\d{1,10})?(?:\+\d{1,10})?", re.ASCII)
_NO_JOB = re.compile(
    r"(?P<step>\d{1,10}(?:_\d{1,10}|_\[[^\]]*\])?(?:\+\d{1,10})?\.\S+)"
    r"|(?P<array_not_yet_split>\d{1,10}_\[.*)",
    re.ASCII,
)
_ALL_THAT_HELPS: Final = (
    "Cluster,JobID,State,Submit,Eligible,Start,End,"
    "AllocCPUS,ReqCPUS,User,Account,Group,Timelimit,NodeList"
)


class SacctReader(LineReader):
    """Reader of the output of ``sacct -P`` (``--parsable2``) or ``-p``.

    Columns are found by the names in the header; ``JobID``, ``State`` and ``End`` must be there.
    The columns of a dump without one (``-n``) are named by `ReaderOptions.fields`.

    Jobs go by ``CLUSTER:ID``, the id in sacct's own spelling: ``123``, ``123_4`` (a task of an
    array), ``123+0`` (one component of a heterogeneous job: each has its own CPUs and counts
    as a job). The cluster is that of the column ``Cluster`` (see `LineReader.name_of`). Steps are
    ignored, and so are tasks of arrays that still share one row (``123_[5-10]``).

    With ``--duplicates`` the rows of a requeued job must be in sacct's order, the
    older first.

    Raises:
        ConfigurationError: the fields lack a required column, or the time zone is
            unknown.
    """

    name: ClassVar[str] = "slurm-sacct"
    description: ClassVar[str] = "Slurm accounting as printed by sacct -P"
    api_version = 1

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self._columns = Columns(options.fields) if options.fields else None
        if self._columns is not None and self._columns.missing:
            raise ConfigurationError(
                f'the fields "{",".join(options.fields)}" have no '
                f"{' and no '.join(self._columns.missing)}; "
                f"expected every column of the file in its order, as {_ALL_THAT_HELPS}"
            )

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a file begins with sacct's header."""
        first = head.lstrip().partition(b"\n")[0]
        return Columns.of_header(first.decode("utf-8", "replace")) is not None

    def is_cut(self, line: str) -> bool:
        """Return whether a line begins a record without ending it; see `LineReader.is_cut`."""
        columns = self._columns
        if columns is None or not columns.free:
            return False
        cells = columns.cells(line)
        return len(cells) < len(columns.names) and _is_job(cells[columns.job : columns.job + 1])

    def is_rest(self, line: str) -> bool:
        """Return whether a line ends a record without beginning it; see `LineReader.is_rest`."""
        columns = self._columns
        if columns is None or "|" not in line or Columns.of_header(line) is not None:
            return False
        return not _is_job(line.split("|")[columns.job : columns.job + 1])

    def read_line(self, line: str) -> list[NamedEvent]:
        """Return the events of a row; see `LineReader.read_line`."""
        columns = self._columns
        if columns is None:
            return self._begin(line)
        cells = columns.cells(line)
        if len(cells) < len(columns.names):
            return self._begin(line)
        if len(cells) > len(columns.names):
            return self._begin(line, "ambiguous")
        job = cells[columns.job]
        if _JOB_ID.fullmatch(job) is None:
            other = _NO_JOB.fullmatch(job)
            if other is None or other.lastgroup is None:
                return self._begin(line)
            self.ignored[other.lastgroup] += 1
            return []
        if columns.missing:
            raise UnreadableRecordError("no_such_column")
        job, *values, cluster = columns.pick(cells)
        record = Record(self.name_of(job, cluster), *values)
        if record.state == record_events.REVOKED:
            self.ignored["revoked"] += 1
            return []
        return self.lives.events_of(record)

    def _begin(self, line: str, otherwise: str = "garbage") -> list[NamedEvent]:
        """Read a header, at the beginning of the file or of a dump appended to it."""
        columns = Columns.of_header(line)
        if columns is None:
            if self._columns is not None:
                raise UnreadableRecordError(otherwise)
            self._warn("there is no header: use --fields with the names of the columns")
            raise UnreadableRecordError("no_header")
        known, self._columns = self._columns, columns
        self.ignored["header"] += 1
        if columns.missing:
            self._warn(
                f"there is no column {' and no '.join(columns.missing)}: "
                f"let sacct print them, with --format {_ALL_THAT_HELPS}"
            )
        if known is None or known.names != columns.names:
            self._warn_of_names(columns)
        return []

    def _warn_of_names(self, columns: Columns) -> None:
        if columns.free:
            names = " and ".join(columns.names[place] for place in columns.free)
            self._warn(
                f"users write the text in the column {names}: with a line end in it they can forge "
                "rows of any user's jobs; let sacct print without it"
            )

    def _warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)

    def save(self) -> Any:
        """Return the state of the base, and the columns, for a file that continues to grow."""
        names = self._columns.names if self._columns else []
        return super().save() | {"columns": names}

    def restore(self, saved: Any) -> None:
        """Continue from what `save` returned."""
        super().restore(saved)
        self._columns = Columns(saved["columns"]) if saved["columns"] else None


def _is_job(cell: list[str]) -> bool:
    """Return whether this cell, if there is one, is the id of a job or of a step."""
    return any(_JOB_ID.fullmatch(word) or _NO_JOB.fullmatch(word) for word in cell)
