"""What of the journal is published: decisions and evictions in the order of their numbers."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from outrider.ledger import Journal, OutcomeRecord
from outrider.model.decisions import DecisionRow
from outrider.model.outcomes import COMPLETED_RUN

PIECE_ROWS: Final = 100
"""Rows read, sent and confirmed together: what may be sent a second time after a lost link."""

Numbered: TypeAlias = tuple[int, DecisionRow | OutcomeRecord]


class Piece(NamedTuple):
    """A stretch of the journal.

    Attributes:
        rows: its decisions and evictions with their sequence numbers, ascending.
        until: the sequence number up to which that is all there is.
        lost: sequence numbers of the stretch that retention had removed before.
    """

    rows: list[Numbered]
    until: int
    lost: int


def read_piece(path: Path, after: int) -> Piece:
    """What follows a sequence number, at most `PIECE_ROWS` decisions. Takes milliseconds.

    Raises:
        LedgerError: the journal cannot be read.
    """
    with Journal(path, read_only=True) as journal:
        until = journal.last_seq()  # first: what is recorded meanwhile belongs to the next piece
        lost = max(0, journal.pruned_seq() - after)
        decisions = list(journal.decisions(after, PIECE_ROWS))
        # one before: it may tell of the same eviction as the first that follows
        outcomes = list(islice(journal.outcomes(after - 1), PIECE_ROWS))
    for rows in (decisions, outcomes):
        if len(rows) == PIECE_ROWS:
            until = min(until, rows[-1][0])
    found: list[Numbered] = [*decisions, *_evictions(outcomes)]
    rows_within = [row for row in found if after < row[0] <= until]
    return Piece(sorted(rows_within, key=lambda row: row[0]), until, lost)


def _evictions(outcomes: Iterable[tuple[int, OutcomeRecord]]) -> Iterator[Numbered]:
    """Runs thrown away, each once: all learning policies are told, in rows one after the other."""
    before = None
    for seq, outcome in outcomes:
        told = (outcome.time_s, outcome.job, outcome.machine, outcome.run_s, outcome.ending)
        wasted = outcome.ending != COMPLETED_RUN and outcome.machine is not None
        if wasted and told != before:
            yield seq, outcome
        before = told
