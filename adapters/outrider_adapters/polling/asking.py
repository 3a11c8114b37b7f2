"""Questions to daemons of a batch system, and who does not answer them."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class _Silence(NamedTuple):
    since_s: float
    why: str


class Asking:
    """Asks, and remembers since when somebody has not answered.

    Args:
        failure: what a call raises when nobody answers.
    """

    def __init__(self, failure: type[Exception]) -> None:
        self._failure = failure
        self._away: dict[str, _Silence] = {}

    def ask(self, whom: str, now_s: float, question: Callable[[], T]) -> T | None:
        """The answer, or None if nobody gives it."""
        try:
            answer = question()
        except self._failure as error:
            since_s = self._away[whom].since_s if whom in self._away else now_s
            self._away[whom] = _Silence(since_s, str(error))
            return None
        self._away.pop(whom, None)
        return answer

    def is_away(self, whom: str) -> bool:
        """Whether the last question to it was not answered."""
        return whom in self._away

    def away_since_s(self, now_s: float) -> float:
        """Since when the one that has been silent for longest has; `now_s` if nobody is."""
        return min((one.since_s for one in self._away.values()), default=now_s)

    def notes(self) -> list[str]:
        """Who does not answer and why, a sentence each."""
        return [f"the {whom} does not answer: {one.why}" for whom, one in self._away.items()]
