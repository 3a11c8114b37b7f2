"""Answers of the twin process about expected starts, in order."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

HANGS_AFTER_S: Final = 240.0

Answer = dict[str, Any]


def answers(file: Path) -> Iterator[Answer]:
    """Yield each answer in starts.json, in order.

    Raises:
        AssertionError: An answer holds a problem, or the caller still asks after `HANGS_AFTER_S`.
    """
    last, deadline_s = "", time.monotonic() + HANGS_AFTER_S
    while time.monotonic() < deadline_s:
        text = file.read_text() if file.exists() else ""
        if text != last:
            last = text
            answer: Answer = json.loads(text)
            assert answer["problem"] is None, answer["problem"]
            yield answer
        time.sleep(0.05)
    raise AssertionError(f"not over within {HANGS_AFTER_S:g} s; the last: {last}")
