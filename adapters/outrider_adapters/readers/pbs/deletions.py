"""Requests to end a job (``D``, ``A``), which may or may not be the last word about it."""

from typing import Any, Final

import msgspec

PATIENCE_S: Final = 60.0
"""A run that is told to end has ended, and its ``E`` is written, within about this time."""

_REMEMBERED_S: Final = 3_600.0
_NOTHING_DUE: Final = float("inf")


class Deletion(msgspec.Struct):
    """A job that somebody asked to end.

    Attributes:
        time_s: of the request, in Unix seconds.
        reason: ``removed`` by its user or a manager, ``killed`` by the server.
        told: it was given out as the job's removal.
    """

    time_s: float
    reason: str
    told: bool = False


class Deletions:
    """Keeps requests until the log shows what they ended.

    A queued job is gone with the request and nothing more is written. A running job lives until
    its end record, which then is the removal, and the request its reason. Which of them it was
    shows within `PATIENCE_S` of the log's own clock. After that the request is taken for the
    removal; it is remembered for an hour or little more, in case the end comes later.

    Attributes:
        due_s: from this time of the log on, `overdue` has something to say.
    """

    def __init__(self) -> None:
        self._asked: dict[str, Deletion] = {}
        self._untold: dict[str, Deletion] = {}  # of the last minute, and looked at every second
        self._prune_s = float("-inf")
        self.due_s = _NOTHING_DUE

    @property
    def waiting(self) -> bool:
        """Whether a request has not shown yet what it ended."""
        return bool(self._untold)

    def ask(self, job: str, time_s: float, reason: str) -> bool:
        """Somebody asks for the end of a job; False if that was asked before."""
        if job in self._asked:
            return False
        self._asked[job] = self._untold[job] = Deletion(time_s, reason)
        self.due_s = min(self.due_s, time_s + PATIENCE_S)
        return True

    def answered(self, job: str) -> Deletion | None:
        """The job's run has ended: the request that ended it, if there was one."""
        self._untold.pop(job, None)
        return self._asked.pop(job, None)

    def overdue(self, now_s: float, final: bool = False) -> list[tuple[str, Deletion]]:
        """Requests that are the removal themselves, as no end came; with `final`, all."""
        given_out = [
            (job, deletion)
            for job, deletion in self._untold.items()
            if final or now_s - deletion.time_s >= PATIENCE_S
        ]
        for job, deletion in given_out:
            deletion.told = True
            del self._untold[job]
        if now_s >= self._prune_s:
            self._prune_s = now_s + PATIENCE_S
            for job, deletion in list(self._asked.items()):
                if deletion.told and now_s - deletion.time_s >= _REMEMBERED_S:
                    del self._asked[job]
        self._look_ahead()
        return given_out

    def save(self) -> dict[str, Any]:
        """Everything as JSON types."""
        return {job: msgspec.to_builtins(deletion) for job, deletion in self._asked.items()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._asked = {job: msgspec.convert(entry, Deletion) for job, entry in saved.items()}
        self._untold = {job: asked for job, asked in self._asked.items() if not asked.told}
        self._look_ahead()

    def _look_ahead(self) -> None:
        pending = (deletion.time_s for deletion in self._untold.values())
        self.due_s = min(pending, default=_NOTHING_DUE) + PATIENCE_S
