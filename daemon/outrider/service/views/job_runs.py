"""The runs of a job that have ended, as the ledger has them."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from outrider.ledger import Journal
from outrider.ledger.records import RunRecord

MOST_RUNS: Final = 20


async def ended_runs(journal: Path, job: str) -> list[dict[str, Any]]:
    """The last runs of a job, oldest first, read in a thread.

    Args:
        journal: its file.
        job: its name.
    """
    return await asyncio.to_thread(_read, journal, job)


def _read(path: Path, job: str) -> list[dict[str, Any]]:
    with Journal(path, read_only=True) as journal:
        return [run_row(run) for run in journal.runs_of(job, MOST_RUNS)]


def run_row(run: RunRecord) -> dict[str, Any]:
    """One run as it is told."""
    return {
        "machine": run.machine,
        "cpus": run.cpus,
        "start_s": run.start_s,
        "end_s": run.end_s,
        "run_s": run.run_s,
        "lost_because": run.reason or None,
    }


def how_it_left(runs: Sequence[Mapping[str, Any]]) -> str:
    """What the last run says of a job that is not here any more, in words."""
    last, n = runs[-1], len(runs)
    times = "once" if n == 1 else f"{n} times" if n < MOST_RUNS else f"{n} times at least"
    if last["lost_because"] is None:
        return f"it completed on {last['machine']}, having run {times}"
    reason = str(last["lost_because"]).replace("_", " ")
    return f"it ran {times}, and its last run, on {last['machine']}, was lost ({reason})"
