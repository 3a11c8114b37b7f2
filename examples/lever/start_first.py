"""A lever: the job that the policy would start now comes first in the queue, for two minutes."""

import json
import time
from pathlib import Path
from urllib.parse import quote

from outrider.api import DecisionRow, Lever, PeerError


class StartFirst(Lever):
    """Writes a note for each job: the Unix second until which it comes first.

    The batch system's part is a line in its order of the queue: first those with a note whose
    time is not over. So a note lapses by itself, whatever has become of Outrider.
    """

    name = "start_first"
    description = "puts the job that would start now first in the queue"
    actions = ("start",)
    lease_s = 120.0

    def apply(self, decision: DecisionRow) -> None:
        note = self._note_of(decision.job)
        part = note.with_suffix(".part")
        try:
            part.write_text(json.dumps(self.now() + self.lease_s))
            part.replace(note)  # nobody ever reads half a note
        except OSError as error:
            raise PeerError(f"{note}: {error.strerror}") from error

    def withdraw(self, job: str) -> None:
        try:
            self._note_of(job).unlink(missing_ok=True)
        except OSError as error:
            raise PeerError(f"{self._note_of(job)}: {error.strerror}") from error

    def now(self) -> float:
        return time.time()

    def _note_of(self, job: str) -> Path:
        return Path(self.adapter.settings.notes) / f"{quote(job, safe='')}.first"
