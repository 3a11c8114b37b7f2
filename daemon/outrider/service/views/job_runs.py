"""The runs of a job that have ended, and how it left, as the ledger has them."""

import asyncio
import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from outrider.journal import Journal
from outrider.journal.job_lookup import JobEnd
from outrider.journal.records import RunRecord
from outrider.model.localtime import time_zone

MOST_RUNS: Final = 20


async def runs_and_end(journal: Path, job: str) -> tuple[list[dict[str, Any]], JobEnd | None]:
    """The last runs of a job, oldest first, and how it left; read in a thread.

    Args:
        journal: its file.
        job: its name.
    """
    return await asyncio.to_thread(_read, journal, job)


def _read(path: Path, job: str) -> tuple[list[dict[str, Any]], JobEnd | None]:
    with Journal(path, read_only=True) as journal:
        runs, end = journal.runs_and_end_of(job, MOST_RUNS)
    return [run_row(run) for run in runs], end


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


def end_row(end: JobEnd | None) -> dict[str, Any] | None:
    """How a job left, as it is told."""
    if end is None:
        return None
    return {"how": end.kind, "at_s": end.time_s, "reason": end.reason or None}


def how_it_left(runs: Sequence[Mapping[str, Any]], end: JobEnd | None, zone: str) -> str:
    """What is known of a job that is not here any more, in words; empty: nothing.

    Args:
        runs: its last ones, oldest first.
        end: how it left; None: not known, then its last run tells.
        zone: the site's, an IANA name.
    """
    if end is None:
        return _by_last_run(runs)
    moment = dt.datetime.fromtimestamp(end.time_s, time_zone(zone))
    at = f"at {moment:%d %b %H:%M:%S}"
    if end.kind == "completed":
        where = f" on {runs[-1]['machine']}, having run {_times(runs)}" if runs else ""
        return f"it completed {at}{where}"
    left = {"removed": "was removed", "killed": "was killed"}.get(end.reason, "left")
    why = f" ({_spelt(end.reason)})" if left == "left" else ""
    if not runs:
        return f"it {left} {at}{why}; no run of it is known"
    return f"it {left} {at}{why}, having run {_times(runs)}, last {_lost(runs[-1])}"


def _by_last_run(runs: Sequence[Mapping[str, Any]]) -> str:
    if not runs:
        return ""
    last = runs[-1]
    if last["lost_because"] is None:
        return f"it completed on {last['machine']}, having run {_times(runs)}"
    reason = _spelt(last["lost_because"])
    return f"it ran {_times(runs)}, and its last run, on {last['machine']}, was lost ({reason})"


def _lost(run: Mapping[str, Any]) -> str:
    because = run["lost_because"]
    return f"on {run['machine']}" + (f" (lost: {_spelt(because)})" if because else "")


def _times(runs: Sequence[object]) -> str:
    n = len(runs)
    return "once" if n == 1 else f"{n} times" if n < MOST_RUNS else f"{n} times at least"


def _spelt(reason: str) -> str:
    return reason.replace("_", " ")


# -- decision rows ---------------------------------------------------------------------------------
# Decisions as the ledger has them.


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
    return await asyncio.to_thread(_read_decisions, journal, limit, job, after)


def _read_decisions(
    path: Path, limit: int, job: str | None, after: int | None
) -> list[dict[str, Any]]:
    with Journal(path, read_only=True) as journal:
        if after is None:
            found = journal.latest_decisions(limit, job)
        else:
            found = list(journal.decisions(after=after, limit=limit, job=job))
    return [decision.as_row(seq) for seq, decision in found]
