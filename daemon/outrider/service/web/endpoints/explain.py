"""Why a job is where it is."""

import asyncio
from pathlib import Path
from typing import Any

from aiohttp import web

from outrider.journal import Journal
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.views.acting import lease_of
from outrider.service.views.decision_rows import decision_rows
from outrider.service.views.explanation import (
    explain,
    explain_from_rows,
    is_waiting,
    jobs_meant,
    states_of,
)
from outrider.service.views.job_runs import runs_and_end
from outrider.service.views.waiting_reasons import NOBODY_ASKED
from outrider.service.web.endpoint import (
    Answer,
    Call,
    Endpoint,
    NoQuery,
    NotFoundError,
    json_response,
)
from outrider.service.web.shapes.explanation import Ambiguity, Explanation
from outrider.service.web.shapes.values import Failure

_EXPLAINED_ROWS = 50
_MOST_CANDIDATES = 20


class AmbiguousJobError(LookupError):
    """A short form that several jobs here have.

    Attributes:
        candidates: their names.
        states: how many of them are in which state.
    """

    def __init__(self, short: str, candidates: list[str], states: dict[str, int]) -> None:
        counted = ", ".join(f"{n:,} {state}" for state, n in states.items())
        super().__init__(f"{short!r} stands for {len(candidates):,} jobs ({counted}); say which")
        self.candidates = candidates
        self.states = states


async def explanation(
    view: DaemonView, job: str, asks_batch_system: bool = False
) -> dict[str, Any] | None:
    """From memory, or from the ledger once the job has left; None for an unknown job.

    Args:
        view: what may be seen of the daemon.
        job: its name, or a short form of it.
        asks_batch_system: whether it is asked, too, why the job waits; what it says names users.

    Raises:
        AmbiguousJobError: the short form is that of several jobs.
    """
    rows = await decision_rows(view.journal, _EXPLAINED_ROWS, job)
    if not rows and view.core.merger.normaliser.known_by(job) is None:
        meant = await _jobs_meant(view, job)
        if len(meant) > 1:
            raise AmbiguousJobError(job, meant, states_of(view.core, meant))
        if meant:
            [job] = meant
            rows = await decision_rows(view.journal, _EXPLAINED_ROWS, job)
    rows.reverse()
    asks = asks_batch_system and is_waiting(view.core, job)
    said = await view.waiting_reasons.of(job) if asks else NOBODY_ASKED
    runs, end = await runs_and_end(view.journal, job)
    lease, starts = lease_of(view.levers(), job), view.expected_starts()
    found = explain(view.core, job, rows, said, runs, lease, starts)
    if found is not None or not (rows or runs or end):
        return found
    return explain_from_rows(view.core.config, job, rows, runs, end)


async def _jobs_meant(view: DaemonView, short: str) -> list[str]:
    """Names of the jobs, here or in the ledger, that a short form can mean."""
    gone = await asyncio.to_thread(_ledger_jobs, view.journal, short)
    return list(dict.fromkeys([*jobs_meant(view.core, short), *gone]))


def _ledger_jobs(path: Path, short: str) -> list[str]:
    with Journal(path, read_only=True) as journal:
        return journal.jobs_meant(short)


async def handle(call: Call[NoQuery]) -> Answer | web.Response:
    """The explanation; 300 with the candidates, or 404 with the job's name."""
    job = call.request.match_info["job"]
    try:
        answer = await explanation(call.view, job, call.sees_names)
    except AmbiguousJobError as error:
        told = Ambiguity(
            str(error), error.candidates[:_MOST_CANDIDATES], len(error.candidates), error.states
        )
        return json_response(told, 300)
    if answer is None:
        raise NotFoundError(f"no job {job!r} is known here")
    history = call.view.core.merger.normaliser.known_by(answer["job"])
    return call.names.in_explanation(answer, "" if history is None else history.spec.user)


ENDPOINT = Endpoint(
    name="explain",
    path="/api/v1/explain/{job}",
    summary="Why a job is where it is. Its name is percent-encoded (`#` is %23; a slash may stand "
    "as it is). A short form such as 1234.0 does where only one job here has it.",
    handle=handle,
    query=NoQuery,
    answer=Explanation,
    others={300: Ambiguity, 404: Failure},
)
