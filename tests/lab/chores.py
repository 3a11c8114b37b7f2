"""Work for processes: a module's functions, for other processes import them by name."""

import math
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from outrider.model.errors import PolicyError
from outrider_lab.running.run_spec import PolicySpec, RunSpec
from outrider_lab.running.traces import DrawnWorkload
from outrider_lab.running.workers import side_by_side


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


def counted_spec(number: int) -> RunSpec:
    """A run that brings its number, and figures that JSON alone has not."""
    return RunSpec(f"{__name__}:count", DrawnWorkload("counted", number), PolicySpec("fifo"))


def count(spec: RunSpec) -> dict[str, Any]:
    figures = {"ratio": math.nan, "most": math.inf, "parts": (1, 2.5)}
    return {"number": spec.drawn.seed, **figures}


def failing_spec(note: Path, times: int) -> RunSpec:
    """A run that fails so often; the note counts."""
    options = (("note", str(note)), ("times", times))
    trace = DrawnWorkload("failing", 0)
    return RunSpec(f"{__name__}:fail_at_first", trace, PolicySpec("fifo"), options=options)


def fail_at_first(spec: RunSpec) -> int:
    note = Path(spec.option("note"))
    tried = len(note.read_text()) if note.exists() else 0
    note.write_text("x" * (tried + 1))
    if tried < spec.option("times"):
        raise RuntimeError("not now")
    return tried


if __name__ == "__main__":
    list(side_by_side([sys.argv[1]], tell_and_dawdle, 1))
