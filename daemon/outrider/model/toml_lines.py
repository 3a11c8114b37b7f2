"""On which line of a TOML file a key stands: `tomllib` does not say.

A file that is cut after one of its lines is TOML too, unless the cut is inside a value of several
lines. The first cut with which a key is there ends with the statement that sets it, so a few
readings of the beginning find the line, however the file is written.
"""

import tomllib
from collections.abc import Sequence
from typing import Any, Final

_MOST_BYTES: Final = 256 * 1024
"""A longer file is not searched: nobody waits for a line number."""
_LONGEST_VALUE: Final = 200
"""Lines of one value that are looked through for its end."""


class TomlLines:
    """The lines of a file whose text was read without error."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True) if len(text) <= _MOST_BYTES else []

    def __call__(self, keys: Sequence[str]) -> int | None:
        """The line, from 1, of what these keys lead to; None where it is not there."""
        below, end = 0, len(self._lines)
        if not keys or not self._holds(end, keys):
            return None
        while end - below > 1:  # the keys are there with `end` lines, and not with `below`
            middle = (below + end) // 2
            if self._holds(middle, keys):
                end = middle
            else:
                below = middle
        return self._begins(end)

    def _holds(self, lines_n: int, keys: Sequence[str]) -> bool:
        """Whether the keys are there in so many lines, and those of an unfinished value are not."""
        table: Any = self._read(lines_n)
        for key in keys:
            if not isinstance(table, dict) or key not in table:
                return False
            table = table[key]
        return True

    def _read(self, lines_n: int) -> dict[str, Any]:
        """What the first lines hold, without a value that they cut."""
        for n in range(lines_n, max(-1, lines_n - _LONGEST_VALUE), -1):
            try:
                return tomllib.loads("".join(self._lines[:n]))
            except (tomllib.TOMLDecodeError, RecursionError):
                continue
        return {}

    def _begins(self, last: int) -> int:
        """The first line of the statement that ends with line `last`."""
        for n in range(last - 1, max(-1, last - _LONGEST_VALUE), -1):
            try:
                tomllib.loads("".join(self._lines[:n]))
            except tomllib.TOMLDecodeError:
                continue
            return n + 1
        return last
