"""What the HTTP face asks of the daemon; it knows nothing else of it."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

Answer: TypeAlias = Mapping[str, Any]
"""Plain data in the shape that `outrider.service.http.answers` declares. NaN becomes null."""


class AmbiguousJobError(LookupError):
    """A short form that several jobs here have.

    Attributes:
        candidates: their names.
    """

    def __init__(self, short: str, candidates: Sequence[str]) -> None:
        super().__init__(f"{short!r} may be any of {len(candidates)} jobs; say which")
        self.candidates = list(candidates)


class Faces(Protocol):
    """What the daemon shows of itself.

    Methods that are not async answer from memory within a few milliseconds: the loop that reads
    events waits for them. Async ones may read the ledger, in a thread.
    """

    def status(self) -> Answer:
        """Everything the status page shows, as `answers.Status`."""
        ...

    def jobs(self, limit: int, state: str | None) -> Answer:
        """The first `limit` jobs, all or of one state, as `answers.Jobs`."""
        ...

    def machines(self, limit: int) -> Answer:
        """The first `limit` machines, as `answers.Machines`."""
        ...

    async def decisions(self, limit: int, job: str | None, after: int | None) -> Answer:
        """Rows of the ledger, as `answers.Decisions`.

        Args:
            limit: at most so many.
            job: only those about this job, alone or among alike jobs.
            after: None for the newest, newest first; else those that follow this sequence
                number, oldest first.
        """
        ...

    async def explain(self, job: str) -> Answer | None:
        """Why a job is where it is, as `answers.Explanation`; None if nobody knows it.

        Args:
            job: its name, or a short form of it.

        Raises:
            AmbiguousJobError: the short form is that of several jobs.
        """
        ...

    def utility(self) -> Answer:
        """What the site is worth to a job now, as `answers.Utility`."""
        ...

    def ready(self) -> tuple[bool, list[str]]:
        """Whether the daemon does its work, and if not, why."""
        ...

    def metrics(self, accept: str) -> tuple[bytes, str]:
        """An exposition and its content type, as the client's Accept header wishes."""
        ...
