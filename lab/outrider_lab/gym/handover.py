"""An episode in a thread of its own that stands still whenever the agent is to decide.

The engine asks its policy and goes on with the answer; an environment is asked for a step and
answers with the next question. Of the two threads exactly one runs at any time, and they take turns
at the same places every time: nothing depends on how the system schedules them. See
docs/decisions/0052-an-environment-waits-inside-the-policy.md.
"""

import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final, Generic, NamedTuple, TypeVar

Question = TypeVar("Question")
Result = TypeVar("Result")

_GIVE_UP: Final = -1


class Finished(NamedTuple, Generic[Result]):
    """The episode is over, and this came of it."""

    result: Result


class _Failed(NamedTuple):
    error: BaseException


class _GivenUp(BaseException):
    """Nobody answers any more. No error of a policy: no guard against those may catch it."""


class Channel(Generic[Question]):
    """Where the two threads meet: questions and the end one way, answers the other."""

    def __init__(self) -> None:
        self.told: SimpleQueue[Any] = SimpleQueue()
        self.answers: SimpleQueue[int] = SimpleQueue()

    def ask(self, question: Question) -> int:
        """In the episode's thread: wait for the answer to a question."""
        self.told.put(question)
        answer = self.answers.get()
        if answer == _GIVE_UP:
            raise _GivenUp
        return answer


class Handover(Generic[Question, Result]):
    """Turns work that asks into work that is answered.

    Args:
        channel: through which the work asks.
        work: called in a thread of its own; what it returns is the result. It must not refer to
            who holds the handover, so that an episode that is dropped unfinished can be ended.
    """

    def __init__(self, channel: Channel[Question], work: Callable[[], Result]) -> None:
        self._channel = channel
        self._thread = threading.Thread(
            target=_carry_out, args=(channel, work), name="outrider-episode", daemon=True
        )
        self._give_up = weakref.finalize(self, channel.answers.put, _GIVE_UP)

    def begin(self) -> Question | Finished[Result]:
        """Run up to the first question. Raises what the work raised."""
        self._thread.start()
        return self._next()

    def answer(self, answer: int) -> Question | Finished[Result]:
        """Answer the question, 0 or more, and run up to the next. Raises what the work raised."""
        self._channel.answers.put(answer)
        return self._next()

    def _next(self) -> Question | Finished[Result]:
        told: Question | Finished[Result] | _Failed = self._channel.told.get()
        if isinstance(told, _Failed):
            self._thread.join()
            raise told.error
        if isinstance(told, Finished):
            self._thread.join()
        return told

    def give_up(self) -> None:
        """End the episode where it stands; its thread is gone afterwards."""
        self._give_up()
        self._thread.join()


def _carry_out(channel: Channel[Question], work: Callable[[], Result]) -> None:
    try:
        channel.told.put(Finished(work()))
    except _GivenUp:
        return
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
        channel.told.put(_Failed(error))
