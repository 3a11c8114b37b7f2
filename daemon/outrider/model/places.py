"""Where in a file a setting stands, as errors name it: file, line where it is known, table."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

Keys = Sequence[str]
LineOf = Callable[[Keys], int | None]
"""The line, from 1, of what these keys lead to; None where that is not known."""


def no_lines(keys: Keys) -> int | None:
    """For settings that no file holds."""
    return None


class Place(NamedTuple):
    """A table of a file of settings.

    Attributes:
        file: as people name it.
        table: the keys that lead to the table; empty for the file as a whole.
        line_of: finds lines, from keys that lead there from the top of the file.
    """

    file: str
    table: tuple[str, ...] = ()
    line_of: LineOf = no_lines

    def __str__(self) -> str:
        return f"{self.file} [{'.'.join(self.table)}]" if self.table else self.file

    def inside(self, *keys: str) -> "Place":
        """A table of this table."""
        return self._replace(table=(*self.table, *keys))

    def of(self, keys: Keys = ()) -> str:
        """This table with the line of a setting of it, or its own: ``a.toml: line 3 [mqtt]``."""
        line = self.line_of((*self.table, *keys))
        if line is None:
            return str(self)
        table = f" [{'.'.join(self.table)}]" if self.table else ""
        return f"{self.file}: line {line}{table}"


def place_text(where: str | Place, keys: Keys = ()) -> str:
    """A place as errors begin with it, with the line of a setting where that is known."""
    return where.of(keys) if isinstance(where, Place) else where
