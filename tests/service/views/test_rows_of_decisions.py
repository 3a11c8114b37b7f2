"""Looking for decisions reads the journal, and does nothing else to it."""

import asyncio
from pathlib import Path

import pytest

from outrider.journal import Entry, Journal
from outrider.model.errors import LedgerError
from outrider.service.views.job_runs import decision_rows
from tests.journal.samples import decision


async def test_the_newest_come_first_and_those_after_a_number_in_their_order(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        journal.append(Entry(decisions=[decision(float(n), f"{n % 2}.0") for n in range(6)]))

    async def seqs(limit: int, job: str | None = None, after: int | None = None) -> list[int]:
        return [row["seq"] for row in await decision_rows(path, limit, job, after)]

    assert await seqs(4) == [6, 5, 4, 3]
    assert await seqs(2, "0.0") == [5, 3]
    assert await seqs(2, after=2) == [3, 4]
    assert await seqs(9, "1.0", after=2) == [4, 6]


def test_a_journal_that_is_gone_is_not_made_anew_by_looking(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="no such journal"):
        asyncio.run(decision_rows(tmp_path / "journal.sqlite", 10))
    assert list(tmp_path.iterdir()) == []
