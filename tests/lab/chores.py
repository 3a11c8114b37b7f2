"""Work for processes: a module's functions, for other processes import them by name."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from outrider.lab.workers import side_by_side
from outrider.model.errors import PolicyError


def double(task: int) -> int:
    return 2 * task


def fail_on_three(task: int) -> int:
    if task == 3:
        raise PolicyError("policy three: cannot divide")
    if task == 4:
        raise ZeroDivisionError("four")
    return task


def die_on_three(task: int) -> int:
    if task == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def process_of(task: Any) -> int:
    return os.getpid()


def dawdle(task: int) -> int:
    if task:
        time.sleep(600)
    return task


def tell_and_dawdle(file: str) -> None:
    Path(file).write_text(f"{os.getpid()}\n")
    time.sleep(600)


def a_function(task: int) -> Any:
    return lambda: task


if __name__ == "__main__":
    list(side_by_side([sys.argv[1]], tell_and_dawdle, 1))
