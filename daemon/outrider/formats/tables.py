"""Tables that Outrider gives to other programs: their columns, declared once.

Whatever writes a table or makes a data frame of it goes by these declarations, and so does the
reference page.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

VERSION: Final = 1
"""Of all tables together: raised when a column goes, changes its type or means something else.

A new column at the end raises nothing.
"""

TEXT: Final = "text"
INTEGER: Final = "integer"
NUMBER: Final = "number"
FLAG: Final = "flag"
TEXTS: Final = "list of text"
NUMBERS: Final = "numbers by name"

Row = Mapping[str, Any]
"""Values by column; a column that is not there is null."""


class Column(NamedTuple):
    """One column.

    Attributes:
        name: of the column, its unit in the ending (``_s``: seconds).
        kind: one of the kinds above.
        help: what it says, with the unit.
        nullable: whether it may be null, which is: not known, or not of this row.
    """

    name: str
    kind: str
    help: str
    nullable: bool = False


class Table(NamedTuple):
    """A table.

    Attributes:
        name: as ``--rows`` has it.
        help: what a row is.
        columns: in order.
    """

    name: str
    help: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """Names of its columns, in order."""
        return [column.name for column in self.columns]


class Rows:
    """Rows of a table, to be read as often as wanted.

    Args:
        table: whose rows they are.
        source: begins to read them anew.
    """

    def __init__(self, table: Table, source: Callable[[], Iterable[Row]]) -> None:
        self.table = table
        self._source = source

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Every row in order, each with every column."""
        names = self.table.names
        for row in self._source():
            yield {name: row.get(name) for name in names}

    def as_they_are(self) -> Iterator[Row]:
        """Every row in order, with the columns that it has."""
        return iter(self._source())

    def __repr__(self) -> str:
        return f"<rows of {self.table.name}: {', '.join(self.table.names)}>"
