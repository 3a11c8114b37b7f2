"""Contract tests of the lever, with a queue that honours its notes."""

import json
import tempfile
from pathlib import Path
from types import SimpleNamespace

from start_first import StartFirst

from outrider.api import DecisionRow, Lever
from outrider.testing import LeverConformance, LeverHarness


class Desk(LeverHarness):
    """Three jobs in a queue, on a clock that the test moves."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.now_s = 1_000.0
        for job in ("1.0", "2.0", "3.0"):
            (Path(self.folder.name) / f"{job}.job").touch()

    def lever(self) -> Lever:
        lever = StartFirst(SimpleNamespace(settings=SimpleNamespace(notes=self.folder.name)))
        lever.now = lambda: self.now_s  # type: ignore[method-assign]
        return lever

    def decision(self) -> DecisionRow:
        return DecisionRow(self.now_s, "2.0", "start", "pc-1", 1, "best", "bandit", "active")

    def seen(self) -> list[str]:
        """Return the queue in the order of the batch system's own rule."""
        notes = {f.stem: json.loads(f.read_text()) for f in Path(self.folder.name).glob("*.first")}
        return sorted(["1.0", "2.0", "3.0"], key=lambda job: notes.get(job, 0.0) <= self.now_s)

    gone = "9.0"

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def close(self) -> None:
        self.folder.cleanup()


class TestStartFirst(LeverConformance):
    def harness(self) -> LeverHarness:
        return Desk()
