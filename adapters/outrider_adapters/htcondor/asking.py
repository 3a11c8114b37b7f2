"""Questions to daemons of a pool, and who does not answer them."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Asking:
    """Asks, and remembers since when somebody has not answered.

    Args:
        failure: what a call raises when nobody answers.

    Attributes:
        notes: what went wrong since `begin`, a sentence each.
        away_since_s: who does not answer, and since when.
    """

    def __init__(self, failure: type[Exception]) -> None:
        self._failure = failure
        self.notes: list[str] = []
        self.away_since_s: dict[str, float] = {}

    def begin(self) -> None:
        """A new look begins."""
        self.notes = []

    def ask(self, whom: str, now_s: float, question: Callable[[], T]) -> T | None:
        """The answer, or None (and a note) if nobody gives it."""
        try:
            answer = question()
        except self._failure as error:
            self.away_since_s.setdefault(whom, now_s)
            self.notes.append(f"the {whom} does not answer: {error}")
            return None
        self.away_since_s.pop(whom, None)
        return answer
