"""Journal on disk: inputs, decisions and outcomes, so that a restart loses nothing.

The journal is the primary record: inputs, decisions, outcomes and cursors under one sequence
number. Snapshots only save the time it takes to replay a long journal.
"""

from outrider.journal.journal import Journal
from outrider.journal.ledger_file import LedgerFile, LedgerHash
from outrider.journal.records import (
    TIMEZONE_KEY,
    AlikeDecision,
    CommandRecord,
    Entry,
    OutcomeRecord,
    RunRecord,
    SetAsideRecord,
)
from outrider.journal.snapshots import SnapshotStore
from outrider.journal.tables import rows_of
from outrider.journal.verify import Report, check_end, open_or_replace, verify
from outrider.journal.writer import Writer

__all__ = [
    "TIMEZONE_KEY",
    "AlikeDecision",
    "CommandRecord",
    "Entry",
    "Journal",
    "LedgerFile",
    "LedgerHash",
    "OutcomeRecord",
    "Report",
    "RunRecord",
    "SetAsideRecord",
    "SnapshotStore",
    "Writer",
    "check_end",
    "open_or_replace",
    "rows_of",
    "verify",
]
