"""Decisions as the ledger has them."""

import asyncio
from pathlib import Path
from typing import Any

from outrider.journal import Journal


async def decision_rows(
    journal: Path, limit: int, job: str | None = None, after: int | None = None
) -> list[dict[str, Any]]:
    """Rows of a journal, read in a thread.

    Args:
        journal: its file.
        limit: at most so many.
        job: only those about this job, alone or among alike jobs.
        after: None for the newest, newest first; else those that follow this sequence number,
            oldest first.
    """
    return await asyncio.to_thread(_read, journal, limit, job, after)


def _read(path: Path, limit: int, job: str | None, after: int | None) -> list[dict[str, Any]]:
    with Journal(path, read_only=True) as journal:
        if after is None:
            found = journal.latest_decisions(limit, job)
        else:
            found = list(journal.decisions(after=after, limit=limit, job=job))
    return [decision.as_row(seq) for seq, decision in found]
