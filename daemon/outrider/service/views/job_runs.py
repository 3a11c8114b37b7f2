"""Ended runs of a job, how it left, and rows of decisions, read from the journal."""

import datetime as dt
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from outrider.journal import Journal
from outrider.journal.job_lookup import JobEnd
from outrider.journal.records import RunRecord
from outrider.model.localtime import time_zone
from outrider.model.reasons import label, run_text
from outrider.service.host.threads import in_own_thread
from outrider.service.views.sentences import run_sentence

MOST_RUNS: Final = 20


async def runs_and_end(
    journal: Path, job: str, zone: str = "UTC"
) -> tuple[list[dict[str, Any]], JobEnd | None]:
    """Return the last runs of a job, oldest first, and how it left; read in a thread.

    Args:
        journal: its file.
        job: its name.
        zone: the site's, an IANA name.
    """
    return await in_own_thread(lambda: _read(journal, job, zone), "question")


def _read(path: Path, job: str, zone: str) -> tuple[list[dict[str, Any]], JobEnd | None]:
    with Journal(path, read_only=True) as journal:
        runs, end = journal.runs_and_end_of(job, MOST_RUNS)
    return [run_row(run, zone) for run in runs], end


def run_row(run: RunRecord, zone: str) -> dict[str, Any]:
    """Return one run with its sentence, as the API answers it."""
    row = {
        "machine": run.machine,
        "cpus": run.cpus,
        "start_s": run.start_s,
        "end_s": run.end_s,
        "run_s": run.run_s,
        "lost_because": run.reason or None,
    }
    return {**row, "text": run_sentence(row, zone)}


def end_row(end: JobEnd | None) -> dict[str, Any] | None:
    """Return how a job left, as the API answers it."""
    if end is None:
        return None
    return {"how": end.kind, "at_s": end.time_s, "reason": end.reason or None}


def how_it_left(runs: Sequence[Mapping[str, Any]], end: JobEnd | None, zone: str) -> str:
    """Return how a job left, in words; empty if nothing is known.

    Args:
        runs: its last ones, oldest first.
        end: how it left; None: not known, then its last run shows it.
        zone: the site's, an IANA name.
    """
    if end is None:
        return _by_last_run(runs)
    moment = dt.datetime.fromtimestamp(end.time_s, time_zone(zone))
    at = f"at {moment:%d %b %H:%M:%S}"
    if end.kind == "completed":
        where = f" on {runs[-1]['machine']} after {_runs(runs)}" if runs else ""
        return f"it completed {at}{where}"
    left = {"removed": "was removed", "killed": "was killed"}.get(end.reason, "left")
    why = f" ({label(end.reason)})" if left == "left" else ""
    if not runs:
        return f"it {left} {at}{why}, and no run of it is known"
    return f"it {left} {at}{why} after {_runs(runs)}, the last {_last(runs[-1])}"


def _by_last_run(runs: Sequence[Mapping[str, Any]]) -> str:
    if not runs:
        return ""
    last = runs[-1]
    if last["lost_because"] is None:
        return f"it completed on {last['machine']} after {_runs(runs)}"
    how = run_text(last["lost_because"])
    return f"it had {_runs(runs)}, the last on {last['machine']} ({how})"


def _last(run: Mapping[str, Any]) -> str:
    because = run["lost_because"]
    return f"on {run['machine']}" + (f" ({run_text(because)})" if because else "")


def _runs(runs: Sequence[object]) -> str:
    n = len(runs)
    return "one run" if n == 1 else f"{n} runs" if n < MOST_RUNS else f"at least {n} runs"


# -- decision rows ---------------------------------------------------------------------------------
# Decisions as the journal has them.


async def decision_rows(
    journal: Path, limit: int, job: str | None = None, after: int | None = None
) -> list[dict[str, Any]]:
    """Return rows of a journal, read in a thread.

    Args:
        journal: its file.
        limit: maximum number of rows.
        job: only those about this job, alone or among similar jobs.
        after: None for the newest, newest first; else those that follow this sequence number,
            oldest first.
    """
    return await in_own_thread(lambda: _read_decisions(journal, limit, job, after), "question")


def _read_decisions(
    path: Path, limit: int, job: str | None, after: int | None
) -> list[dict[str, Any]]:
    with Journal(path, read_only=True) as journal:
        if after is None:
            found = journal.latest_decisions(limit, job)
        else:
            found = list(journal.decisions(after=after, limit=limit, job=job))
    return [decision.as_row(seq) for seq, decision in found]
