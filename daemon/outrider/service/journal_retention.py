"""What the daemon removes from its journal: what is too old, and what is beyond the budget."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from outrider.ledger import Entry, Journal, SnapshotStore, Writer
from outrider.model.errors import LedgerError

DROPPED_KEY: Final = "dropped"

log = structlog.get_logger()


class JournalRetention:
    """Removes rows, in the writer's thread, but none that a restart needs.

    Args:
        writer: of the journal.
        snapshots: the oldest of which a restart may begin with.
        submit: records an entry.
        dropped_rows: that the budget has taken before.

    Attributes:
        budget_bytes: most that the journal may take; None before the first check.
        over_budget: what an operator should know of the budget; None: nothing.
        dropped_rows: that the budget took so far.
    """

    def __init__(
        self,
        writer: Writer,
        snapshots: SnapshotStore,
        submit: Callable[[Entry], Awaitable[Any]],
        dropped_rows: int,
    ) -> None:
        self._writer = writer
        self._snapshots = snapshots
        self._submit = submit
        self.dropped_rows = dropped_rows
        self.budget_bytes: int | None = None
        self.over_budget: str | None = None

    async def prune(
        self, before_s: float, latest_s: float, runs_before_s: float | None = None
    ) -> None:
        """Forget what is older than the retention allows: events and decisions, and runs.

        Rows that are dated later than can be keep nothing.
        """
        oldest = self._snapshots.oldest_seq()

        def pruned(journal: Journal) -> int:
            return journal.prune(
                before_s,
                oldest_snapshot_seq=oldest,
                latest_time_s=latest_s,
                runs_before_s=runs_before_s,
            )

        try:
            n = await asyncio.wrap_future(self._writer.run(pruned))
        except LedgerError as error:
            log.error("skip_pruning", reason=str(error))
        else:
            log.info("prune_journal", rows=n)

    async def keep_within(self, budget_bytes: int) -> None:
        """Drop the oldest rows while the journal takes more than its budget, and say so."""
        self.budget_bytes = budget_bytes
        oldest = self._snapshots.oldest_seq()

        def kept(journal: Journal) -> tuple[int, int, int]:
            gone = journal.keep_within(budget_bytes, oldest_snapshot_seq=oldest)
            return gone, journal.used_bytes(), journal.pruned_seq()

        try:
            gone, used, first = await asyncio.wrap_future(self._writer.run(kept))
        except LedgerError as error:
            log.error("skip_pruning", reason=str(error))
            return
        if used > budget_bytes:
            self.over_budget = (
                f"the journal takes {used:,} bytes, more than its budget of {budget_bytes:,}; what "
                "is left is newer than the oldest snapshot, and a restart needs it"
            )
            log.error("exceed_budget", used_bytes=used, budget_bytes=budget_bytes)
        elif gone:
            self.over_budget = (
                f"the journal reached its budget of {budget_bytes:,} bytes (journal_max_bytes): "
                f"its oldest rows were dropped before their time, up to number {first}"
            )
            log.warning("drop_rows", rows=gone, up_to_seq=first, budget_bytes=budget_bytes)
        if gone:
            self.dropped_rows += gone
            await self._submit(Entry(meta={DROPPED_KEY: {"rows": self.dropped_rows}}))
