"""Parallel tasks, each in a dedicated process; a failure names its task.

Not `concurrent.futures`: there the death of one process (out of memory, say) fails every task
that waits and does not tell whose it was, and a task cannot go where its trace is loaded.
"""

import multiprocessing as mp
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from outrider.model.errors import OutriderError


class Finished(NamedTuple):
    """End of a task, with its result or error.

    Attributes:
        number: position in the list of tasks.
        result: what the work returned; None if it failed.
        error: what went wrong, in words; None if nothing did.
    """

    number: int
    result: Any
    error: str | None


def _all_alike(task: Any) -> Hashable:
    return None


def side_by_side(
    tasks: Sequence[Any],
    work: Callable[[Any], Any],
    workers: int,
    group_of: Callable[[Any], Hashable] = _all_alike,
) -> Iterator[Finished]:
    """Do `work` on every task, on up to `workers` processes, and yield each as it ends.

    Args:
        tasks: picklable.
        work: a function of a module; what it returns is picklable. If it raises, its task has
            failed; if its process dies, too, and another takes its place.
        workers: processes, at least 1.
        group_of: a task's group. A process stays with a group while it can, so that `work` may
            keep what the tasks of a group have in common (a year's trace).

    Yields:
        every task once, in the order in which they end. Who stops early ends the processes.
    """
    queue = _Queue([group_of(task) for task in tasks])
    busy: dict[Any, _Worker] = {}

    def employ(worker: _Worker) -> None:
        number = queue.take(worker.group)
        if number is None:
            worker.stop()
        else:
            worker.give(number, tasks[number], queue.groups[number])
            busy[worker.pipe] = worker

    try:
        for _ in range(min(workers, len(tasks))):
            employ(_Worker(work))
        while busy:
            for pipe in wait(list(busy)):
                worker = busy.pop(pipe)
                finished = worker.answer()
                employ(worker if worker.process.is_alive() or not queue else _Worker(work))
                yield finished
    finally:
        for worker in busy.values():
            worker.stop()


class _Queue:
    """The tasks that wait, by group; `groups` holds the group of every task."""

    def __init__(self, groups: list[Hashable]) -> None:
        self.groups = groups
        self._waiting: dict[Hashable, deque[int]] = {}
        for number, group in enumerate(groups):
            self._waiting.setdefault(group, deque()).append(number)
        self._visits: Counter[Hashable] = Counter()

    def __bool__(self) -> bool:
        return any(self._waiting.values())

    def take(self, group: Hashable) -> int | None:
        """Return a task for a process at `group`: of that group, else of the least visited."""
        waiting = self._waiting.get(group)
        if not waiting:
            left = [name for name, numbers in self._waiting.items() if numbers]
            if not left:
                return None
            group = min(left, key=lambda name: self._visits[name])
            self._visits[group] += 1
            waiting = self._waiting[group]
        return waiting.popleft()


_NO_GROUP = object()


class _Worker:
    """A process that does one task after the other."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        context = mp.get_context("spawn")  # a fork would copy threads' locks, and whole traces
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self.process.start()
        theirs.close()
        self.group: Hashable = _NO_GROUP
        self._number = -1

    def give(self, number: int, task: Any, group: Hashable) -> None:
        """Let it begin a task."""
        self._number, self.group = number, group
        with suppress(BrokenPipeError):  # it has died; `answer` says so
            self.pipe.send(task)

    def answer(self) -> Finished:
        """Wait for the end of the task, and return it."""
        try:
            result, error = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            result, error = None, f"its process ended with exit code {self.process.exitcode}"
        return Finished(self._number, result, error)

    def stop(self) -> None:
        """End the process, whatever it does."""
        self.pipe.close()
        self.process.terminate()
        self.process.join()


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """Execute each task that arrives in the process; end when the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; it ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((work(task), None))
        except BrokenPipeError:
            return
        except OutriderError as error:
            pipe.send((None, str(error)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to this task
            pipe.send((None, f"{type(error).__name__}: {error}"))


def _end_with_parent() -> None:
    """End this process with its parent, which a kill could have kept from ending it."""
    parent = mp.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def cores() -> int:
    """Return processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
