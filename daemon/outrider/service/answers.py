"""The answers of the HTTP interface: what the core shows, joined to the ledger."""

import asyncio
from typing import Any

from outrider.ledger import Journal
from outrider.service import explaining, faces, listings
from outrider.service.core import Core
from outrider.service.http.faces import AmbiguousJobError
from outrider.service.mirror import Mirror
from outrider.service.mqtt.publisher import Publisher
from outrider.service.recording import Recording

_EXPLAINED_ROWS = 50
_REFUSED = "reload refused: "


class Answers:
    """Implements `outrider.service.http.Faces` for the core that is in place now.

    Args:
        core: replaced by `show` when a reload has built another.
        recording: the ledger.
        publisher: tells a broker of it.
    """

    def __init__(self, core: Core, recording: Recording, publisher: Publisher) -> None:
        self.notes: list[str] = []
        self.loop_lag_s = 0.0
        self.is_ready = False
        self.own_clock = False
        self._recording = recording
        self._publisher = publisher
        self.show(core)

    def show(self, core: Core) -> None:
        """From now on answer for this core."""
        self._core = core
        self._mirror = Mirror(core)

    def note_refusal(self, why: str) -> None:
        """A reload was refused; the next one, refused or not, takes the place of this note."""
        kept = [note for note in self.notes if not note.startswith(_REFUSED)]
        self.notes = [*kept, f"{_REFUSED}{why}"]

    def status(self) -> dict[str, Any]:
        """``/api/v1/status``."""
        figures = self._recording.figures()
        ledger = {
            key: figures[key]
            for key in ("recording", "failure", "last_seq", "size_bytes", "snapshot_age_s")
        } | {"rows": sum(figures["rows"].values())}
        mqtt = self._publisher.figures()
        notes = list(self.notes)
        if mqtt is not None and mqtt["failure"]:
            notes.append(f"not publishing: {mqtt['failure']}")
        extra = {"own_clock": self.own_clock, "ledger": ledger, "mqtt": mqtt, "notes": notes}
        return faces.status(self._core, extra)

    def jobs(self, limit: int, state: str | None) -> dict[str, Any]:
        """``/api/v1/jobs``."""
        return listings.jobs(self._core, limit, state)

    def machines(self, limit: int) -> dict[str, Any]:
        """``/api/v1/machines``."""
        return listings.machines(self._core, limit)

    def utility(self) -> dict[str, Any]:
        """``/api/v1/utility``."""
        return listings.utility(self._core)

    async def decisions(self, limit: int, job: str | None, after: int | None) -> dict[str, Any]:
        """``/api/v1/decisions``: newest first, or what follows a sequence number."""
        rows = await asyncio.to_thread(self._rows, limit, job, after)
        return {"mode": self._core.config.mode, "decisions": rows}

    async def explain(self, job: str) -> dict[str, Any] | None:
        """``/api/v1/explain/JOB``: from memory, or from the ledger once the job is gone."""
        rows = await asyncio.to_thread(self._rows, _EXPLAINED_ROWS, job, None)
        if not rows and self._core.intake.tracker.known_by(job) is None:
            meant = await self._jobs_meant(job)
            if len(meant) > 1:
                raise AmbiguousJobError(job, meant)
            if meant:
                [job] = meant
                rows = await asyncio.to_thread(self._rows, _EXPLAINED_ROWS, job, None)
        rows.reverse()
        found = explaining.explain(self._core, job, rows)
        if found is not None or not rows:
            return found
        return explaining.explain_from_rows(self._core.config.mode, job, rows)

    async def _jobs_meant(self, short: str) -> list[str]:
        """Names of the jobs, here or in the ledger, that a short form can mean."""
        gone = await asyncio.to_thread(self._ledger_jobs, short)
        return list(dict.fromkeys([*explaining.jobs_meant(self._core, short), *gone]))

    def _ledger_jobs(self, short: str) -> list[str]:
        with Journal(self._recording.path, read_only=True) as journal:
            return journal.jobs_meant(short)

    def ready(self) -> tuple[bool, list[str]]:
        """``/readyz``."""
        reasons = [] if self.is_ready else ["still starting"]
        if self._recording.failure is not None:
            reasons.append(f"not recording: {self._recording.failure}")
        return not reasons, reasons

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """``/metrics``."""
        lag_s, self.loop_lag_s = self.loop_lag_s, 0.0
        figures = self._recording.figures()
        return self._mirror.page(accept, figures, lag_s, self._publisher.figures())

    def _rows(self, limit: int, job: str | None, after: int | None) -> list[dict[str, Any]]:
        with Journal(self._recording.path, read_only=True) as journal:
            if after is None:
                found = journal.latest_decisions(limit, job)
            else:
                found = list(journal.decisions(after=after, limit=limit, job=job))
        return [decision.as_row(seq) for seq, decision in found]
