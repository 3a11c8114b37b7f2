"""Reading on in a damaged journal, past the rows that cannot be read."""

# ruff: noqa: S608 - names of tables and columns are constants of ours; values are bound.

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from outrider.engine.ingest.set_aside import FIRST_S, LAST_S
from outrider.ledger.records import INPUT_COLUMNS, Row
from outrider.model.errors import LedgerError
from outrider.model.events import TICK

Fetch: TypeAlias = Callable[[str, dict[str, Any]], list[Row]]

_PAGE_ROWS: Final = 4096
_MOST_FAILURES: Final = 20_000
"""Reads that may fail: some hundred damaged pages, a few seconds. Then the file is no good."""

_FROM: Final = (
    f"SELECT {INPUT_COLUMNS} FROM inputs WHERE seq > :after AND seq <= :until ORDER BY seq "
    "LIMIT :limit"
)


def readable_inputs(fetch: Fetch, after: int, last: int, left_out: list[str]) -> Iterator[Row]:
    """The inputs after a sequence number that can be read, in order.

    Args:
        fetch: runs a query on the journal; raises `LedgerError`.
        after: only later ones.
        last: the journal's last sequence number.
        left_out: gets a sentence for each stretch that cannot be read.

    Raises:
        LedgerError: there is no end to what cannot be read.
    """
    failures = 0
    while after < last:
        pieces = [(after, last)]
        while pieces:
            begin, until = pieces.pop()
            try:
                rows = fetch(_FROM, {"after": begin, "until": until, "limit": _PAGE_ROWS})
            except LedgerError as error:
                failures += 1
                if failures > _MOST_FAILURES:
                    raise
                if until - begin == 1:
                    left_out.append(f"input {until}: {error}")
                    continue
                middle = min(begin + _PAGE_ROWS, (begin + until) // 2)
                pieces += [(middle, until), (begin, middle)]
                continue
            yield from rows
            if len(rows) == _PAGE_ROWS:
                pieces.append((rows[-1][0], until))
        after = last


def check_types(adapter: object, time_s: object, kind: int, subject: object) -> None:
    """Raise `TypeError` or `ValueError` where a value is none that a source could have given."""
    if not (isinstance(adapter, str) and isinstance(subject, str)):
        raise TypeError(f"adapter {adapter!r} and subject {subject!r} should be text")
    if not isinstance(time_s, int | float):
        raise TypeError(f"time {time_s!r} should be a number")
    if kind == TICK and not FIRST_S <= time_s <= LAST_S:
        raise ValueError(f"a clock at {time_s!r}")
