"""Lever that puts the job which the policy would start now first in the queue for two minutes."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from outrider.api import DecisionRow, Lever, PeerError


class StartFirst(Lever):
    """Lever that writes a note per job: the Unix second until which it comes first.

    The batch system's part is a line in its order of the queue: first those with a note whose
    time is not over. So a note expires automatically, even if Outrider is gone. A queued job has
    its own file, `ID.job`, which belongs to the batch system.
    """

    name = "start_first"
    description = "puts the job that would start now first in the queue"
    actions = ("start",)
    lease_s = 120.0

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        until = json.dumps(self.now() + self.lease_s)
        refused = {}
        for decision in decisions:
            note = self._note_of(decision.job)
            if not note.with_suffix(".job").exists():
                refused[decision.job] = "it has left the queue"
                continue
            part = note.with_suffix(".part")
            try:
                part.write_text(until)
                part.replace(note)  # no reader sees half a note
            except OSError as error:
                refused[decision.job] = f"{note}: {error.strerror}"
        return refused

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        for job in jobs:
            self._note_of(job).unlink(missing_ok=True)
        return {}

    def withdraw_all(self) -> int:
        try:
            notes = list(self._folder.glob("*.first"))
        except OSError as error:
            raise PeerError(f"{self._folder}: {error.strerror}") from error
        for note in notes:
            note.unlink(missing_ok=True)
        return len(notes)

    def now(self) -> float:
        return time.time()

    @property
    def _folder(self) -> Path:
        return Path(self.adapter.settings.notes)

    def _note_of(self, job: str) -> Path:
        return self._folder / f"{quote(job, safe='')}.first"
