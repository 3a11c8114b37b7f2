"""Steps that may hang: on a dead mount any look at a file may take for ever.

All steps are made one after the other in one thread, as cheaply as if none could hang. A step that
takes too long is given up: it keeps the thread it is in, and the others are made in another.
Nobody waits for it; its result is taken once it is there. The next steps of that name are made in
a thread of their own until many of them in a row were quick.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

HANGS_AFTER_S: Final = 2.0
"""A step reads a quarter of a mebibyte at most: milliseconds, on a slow disk a part of a second."""

APART: Final = 100
"""So many quick steps make a name quick again."""

_MOMENT_S: Final = 0.05
_QUICK_S: Final = 0.5
_NOBODY: Final = -1

T = TypeVar("T")


class GivenUp(BaseException):
    """The step came back, but somebody else goes on by now."""


class Pending:
    """What a step gives that has not come back."""


PENDING: Final = Pending()


class _Step:
    __slots__ = (
        "began_s",
        "dispose",
        "ended",
        "error",
        "is_forgotten",
        "is_given_up",
        "result",
        "took_s",
    )

    def __init__(self, dispose: Callable[[], Any]) -> None:
        self.dispose = dispose
        self.began_s = time.monotonic()
        self.took_s = 0.0
        self.is_given_up = False
        self.is_forgotten = False
        self.ended = False
        self.result: Any = None
        self.error: BaseException | None = None

    def take(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.result


class Steps:
    """Makes steps by name; of each name only one is under way, however long it hangs.

    Attributes:
        thread: identity of the one thread that may make them; None: whoever likes.
    """

    def __init__(self) -> None:
        self.thread: int | None = None
        self._lock = threading.Lock()
        self._at_hand: tuple[str, _Step] | None = None
        self._hanging: dict[str, _Step] = {}
        self._slow: dict[str, int] = {}  # how many steps are still to be made apart

    def make(self, name: str, step: Callable[[], T], dispose: Callable[[], Any]) -> T | Pending:
        """Make a step, or see what became of the one of that name that was given up.

        Args:
            name: of what may hang, such as a path.
            step: is not made where the one before it has not come back.
            dispose: called after `forget` once the step has come back and nobody took its result.

        Returns:
            What the step gave, or `PENDING`.

        Raises:
            GivenUp: the step took so long that it was given up; nothing may be touched any more.
            Exception: as the step.
        """
        mine = _Step(dispose)
        with self._lock:
            if self.thread is not None and self.thread != threading.get_ident():
                raise GivenUp
            earlier = self._hanging.get(name)
            if earlier is not None:
                if not earlier.ended:
                    return PENDING
                self._come_back(name, earlier)
                if not earlier.is_forgotten:  # else it was of something that is closed by now
                    result: T = earlier.take()
                    return result
            if apart := name in self._slow:
                self._leave(name, mine)
            else:
                self._at_hand = (name, mine)
        if apart:
            return self._make_apart(name, mine, step)
        self._run(mine, step)
        if mine.is_given_up:
            raise GivenUp
        if mine.error is not None:
            raise mine.error
        made: T = mine.result
        return made

    def _make_apart(self, name: str, mine: _Step, step: Callable[[], T]) -> T | Pending:
        """Make a step of what was slow in a thread of its own, and wait a moment for it."""
        thread = threading.Thread(
            target=self._run, args=(mine, step), name=f"slow {name}", daemon=True
        )
        thread.start()
        thread.join(_MOMENT_S)
        with self._lock:
            if not mine.ended:
                return PENDING
            self._come_back(name, mine)
        result: T = mine.take()
        return result

    def _run(self, mine: _Step, step: Callable[[], Any]) -> None:
        try:
            mine.result = step()
        except Exception as error:  # noqa: BLE001 - handed on to whoever takes the result
            mine.error = error
        with self._lock:
            mine.took_s = time.monotonic() - mine.began_s
            mine.ended = True
            if not mine.is_given_up:
                self._at_hand = None
        if mine.is_forgotten:
            mine.dispose()

    def _come_back(self, name: str, step: _Step) -> None:
        del self._hanging[name]
        left = self._slow.get(name, 0) - 1
        if step.took_s > _QUICK_S:
            self._slow[name] = APART
        elif left > 0:
            self._slow[name] = left
        else:
            self._slow.pop(name, None)

    def give_up(self) -> bool:
        """Give up the step at hand if it hangs; True: the thread that makes steps is lost to it."""
        with self._lock:
            if self._at_hand is None:
                return False
            name, step = self._at_hand
            if time.monotonic() - step.began_s < HANGS_AFTER_S:
                return False
            self._leave(name, step)
            return True

    def is_hanging(self, name: str) -> bool:
        """Return whether a step of that name was given up and its result was not taken yet."""
        return name in self._hanging

    def forget(self) -> None:
        """No result will be taken any more; a step that hangs keeps its name until it is over."""
        with self._lock:
            if self._at_hand is not None:
                self._leave(*self._at_hand)
            self.thread = _NOBODY
            came_back = {name: step for name, step in self._hanging.items() if step.ended}
            for name in came_back:
                del self._hanging[name]
            for step in self._hanging.values():
                step.is_forgotten = True
        for step in came_back.values():
            step.dispose()

    def _leave(self, name: str, step: _Step) -> None:
        step.is_given_up = True
        self._hanging[name] = step
        self._slow.setdefault(name, APART)
        self._at_hand = None
