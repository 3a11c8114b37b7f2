"""The ledger: inputs, decisions and outcomes on disk, so that a restart loses nothing.

The journal is the truth: inputs, decisions, outcomes and cursors under one sequence number.
Snapshots only save the time it takes to feed a long journal again.
"""

from outrider.ledger.damaged import open_or_begin_anew
from outrider.ledger.export import LedgerHash
from outrider.ledger.journal import Journal
from outrider.ledger.ledger_file import LedgerFile
from outrider.ledger.records import (
    TIMEZONE_KEY,
    AlikeDecision,
    CommandRecord,
    Entry,
    OutcomeRecord,
    RunRecord,
    SetAsideRecord,
)
from outrider.ledger.snapshots import SnapshotStore
from outrider.ledger.tables import rows_of
from outrider.ledger.verify import Report, check_end, verify
from outrider.ledger.writer import Writer

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
    "open_or_begin_anew",
    "rows_of",
    "verify",
]
