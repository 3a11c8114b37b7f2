"""Where the columns of a ``sacct -P`` dump are."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final

REQUIRED: Final = ("jobid", "state", "end")
_WANTED: Final = (
    ("jobid",), ("state",), ("submit",), ("eligible",), ("start",), ("end",), ("elapsed",),
    ("alloccpus", "ncpus"), ("reqcpus",), ("user",), ("account",), ("group",),
    ("timelimit", "timelimitraw"), ("nodelist",), ("restarts",), ("cluster",),
)  # fmt: skip
"""In the order of `Record`, and the cluster behind it; of several names the first is preferred."""
WRITTEN_BY_USERS: Final = (
    "jobname", "comment", "workdir", "submitline", "wckey", "container", "extra", "stdin",
    "stdout", "stderr",
)  # fmt: skip
"""Columns that hold whatever a user wrote, ``|`` and line ends among it."""

Pick = Callable[[list[str]], tuple[str, ...]]


class Columns:
    """The columns of a table by their names in sacct's own words.

    Args:
        names: in any case and order; a width (``JobName%40``) is cut off.

    Attributes:
        names: small.
        missing: required columns that it has not.
        free: where the columns are that hold whatever a user wrote.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = [name.partition("%")[0].strip().lower() for name in names]
        self.missing = [name for name in REQUIRED if name not in self.names]
        self.job = self.names.index("jobid") if "jobid" in self.names else 0
        self.free = [place for place, name in enumerate(self.names) if name in WRITTEN_BY_USERS]
        self._pick: Pick = itemgetter(*map(self._place, _WANTED))

    @classmethod
    def of_header(cls, line: str) -> "Columns | None":
        """The columns if the line is a header: it has a column JobID and one State."""
        columns = cls(line.split("|"))
        return columns if {"jobid", "state"} <= set(columns.names) else None

    def cells(self, line: str) -> list[str]:
        """The cells of a row. Those too many belong to the one column that users write.

        A row that is too short gives fewer cells than there are columns. One that is too long
        gives more where no one column can have them all: with several such columns it could be
        read in more ways than one.
        """
        cells = line.split("|")
        extra = len(cells) - len(self.names)
        if extra > 0 and len(self.free) == 1:
            first = self.free[0]
            last = first + extra + 1
            cells[first:last] = ["|".join(cells[first:last])]
        elif extra == 1 and not self.free and not cells[-1]:
            del cells[-1]  # what ``sacct -p`` puts behind each row
        return cells

    def pick(self, cells: list[str]) -> tuple[str, ...]:
        """The cells that a `Record` and the cluster are made of, empty where there is no column."""
        return self._pick([*cells, ""])

    def _place(self, names: tuple[str, ...]) -> int:
        """The column of the first of these names; the empty cell behind the last if none is."""
        return next(
            (self.names.index(name) for name in names if name in self.names), len(self.names)
        )
