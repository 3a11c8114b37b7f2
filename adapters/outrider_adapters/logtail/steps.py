"""Run steps that may hang: on a dead mount any access to a file may block indefinitely.

All steps run one after the other in one thread, as cheaply as if none could hang. A step that takes
too long is abandoned: it keeps its thread, and the others run in a new one. No thread waits for it;
its result is taken once it is there. The next steps of that name run in a separate thread until
many of them in a row were quick.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

HANGS_AFTER_S: Final = 2.0
"""Seconds after which a step counts as hanging; it reads a quarter of a mebibyte at most."""

SEPARATE_STEPS: Final = 100
"""Number of quick steps in a row after which a name counts as quick again."""

_SHORT_WAIT_S: Final = 0.05
_QUICK_S: Final = 0.5
_NO_THREAD: Final = -1

T = TypeVar("T")


class GivenUp(BaseException):
    """Raised if a step ended after another thread had taken over."""


class Pending:
    """Result of a step that has not ended yet."""


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
    """Runner of named steps; only one step of each name runs at a time, even if it hangs.

    Attributes:
        thread: identity of the one thread that may run them; None: any thread.
    """

    def __init__(self) -> None:
        self.thread: int | None = None
        self._lock = threading.Lock()
        self._current: tuple[str, _Step] | None = None
        self._hanging: dict[str, _Step] = {}
        self._slow: dict[str, int] = {}  # number of steps still to be run separately

    def make(self, name: str, step: Callable[[], T], dispose: Callable[[], Any]) -> T | Pending:
        """Run a step, or return the result of an abandoned step of that name.

        Args:
            name: name of what may hang, such as a path.
            step: the step; it is not run while the one before it has not ended.
            dispose: called after `forget`, once the step has ended and its result was not taken.

        Returns:
            The result of the step, or `PENDING`.

        Raises:
            GivenUp: the step took so long that it was abandoned; nothing may be changed any more.
            Exception: raised by the step.
        """
        mine = _Step(dispose)
        with self._lock:
            if self.thread is not None and self.thread != threading.get_ident():
                raise GivenUp
            earlier = self._hanging.get(name)
            if earlier is not None:
                if not earlier.ended:
                    return PENDING
                self._finish_hanging(name, earlier)
                if not earlier.is_forgotten:  # else its file is closed by now
                    result: T = earlier.take()
                    return result
            if is_separate := name in self._slow:
                self._abandon(name, mine)
            else:
                self._current = (name, mine)
        if is_separate:
            return self._make_separately(name, mine, step)
        self._run(mine, step)
        if mine.is_given_up:
            raise GivenUp
        if mine.error is not None:
            raise mine.error
        made: T = mine.result
        return made

    def _make_separately(self, name: str, mine: _Step, step: Callable[[], T]) -> T | Pending:
        """Run a step of a slow name in a separate thread, and wait briefly for it."""
        thread = threading.Thread(
            target=self._run, args=(mine, step), name=f"slow {name}", daemon=True
        )
        thread.start()
        thread.join(_SHORT_WAIT_S)
        with self._lock:
            if not mine.ended:
                return PENDING
            self._finish_hanging(name, mine)
        result: T = mine.take()
        return result

    def _run(self, mine: _Step, step: Callable[[], Any]) -> None:
        try:
            mine.result = step()
        except Exception as error:  # noqa: BLE001 - raised where the result is taken
            mine.error = error
        with self._lock:
            mine.took_s = time.monotonic() - mine.began_s
            mine.ended = True
            if not mine.is_given_up:
                self._current = None
        if mine.is_forgotten:
            mine.dispose()

    def _finish_hanging(self, name: str, step: _Step) -> None:
        del self._hanging[name]
        left = self._slow.get(name, 0) - 1
        if step.took_s > _QUICK_S:
            self._slow[name] = SEPARATE_STEPS
        elif left > 0:
            self._slow[name] = left
        else:
            self._slow.pop(name, None)

    def give_up(self) -> bool:
        """Abandon the current step if it hangs; return True if so: its thread is lost."""
        with self._lock:
            if self._current is None:
                return False
            name, step = self._current
            if time.monotonic() - step.began_s < HANGS_AFTER_S:
                return False
            self._abandon(name, step)
            return True

    def is_hanging(self, name: str) -> bool:
        """Return whether a step of that name was abandoned and its result not taken yet."""
        return name in self._hanging

    def forget(self) -> None:
        """Take no more results; a step that hangs keeps its name until it ends."""
        with self._lock:
            if self._current is not None:
                self._abandon(*self._current)
            self.thread = _NO_THREAD
            finished = {name: step for name, step in self._hanging.items() if step.ended}
            for name in finished:
                del self._hanging[name]
            for step in self._hanging.values():
                step.is_forgotten = True
        for step in finished.values():
            step.dispose()

    def _abandon(self, name: str, step: _Step) -> None:
        step.is_given_up = True
        self._hanging[name] = step
        self._slow.setdefault(name, SEPARATE_STEPS)
        self._current = None
