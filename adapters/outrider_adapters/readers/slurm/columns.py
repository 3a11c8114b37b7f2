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
_JOB_NAME: Final = "jobname"

Pick = Callable[[list[str]], tuple[str, ...]]


class Columns:
    """The columns of a table by their names in sacct's own words.

    Args:
        names: in any case and order; a width (``JobName%40``) is cut off.

    Attributes:
        names: small.
        missing: required columns that it has not.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = [name.partition("%")[0].strip().lower() for name in names]
        self.missing = [name for name in REQUIRED if name not in self.names]
        self.job = self.names.index("jobid") if "jobid" in self.names else 0
        named = _JOB_NAME in self.names
        self._free = self.names.index(_JOB_NAME) if named else len(self.names) - 1
        self._pick: Pick = itemgetter(*map(self._place, _WANTED))

    @classmethod
    def of_header(cls, line: str) -> "Columns | None":
        """The columns if the line is a header: it has a column JobID and one State."""
        columns = cls(line.split("|"))
        return columns if {"jobid", "state"} <= set(columns.names) else None

    def cells(self, line: str) -> list[str]:
        """The cells of a row. What is one too many belongs to the job's name, which may hold ``|``.

        A row that is too short gives fewer cells than there are columns.
        """
        cells = line.split("|")
        extra = len(cells) - len(self.names)
        if extra > 0:
            last = self._free + extra + 1
            cells[self._free : last] = ["|".join(cells[self._free : last])]
        return cells

    def pick(self, cells: list[str]) -> tuple[str, ...]:
        """The cells that a `Record` and the cluster are made of, empty where there is no column."""
        return self._pick([*cells, ""])

    def _place(self, names: tuple[str, ...]) -> int:
        """The column of the first of these names; the empty cell behind the last if none is."""
        return next(
            (self.names.index(name) for name in names if name in self.names), len(self.names)
        )
