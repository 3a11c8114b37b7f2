"""A state directory with the journal of three weeks beside a small campus, and `run-twin` on it."""

import datetime as dt
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from outrider.formats.campus.files import write_campus
from outrider.service.config.reading import JOURNAL_NAME
from outrider.service.demo.simulated_journal import write_journal
from outrider.simulation.generators.campus import generate_campus
from tests.fixtures.patience import patient
from tests.service.running.process import OUTRIDER

TERM = dt.date(2010, 2, 1)
HANGS_AFTER_S = patient(240.0)
"""Time limit: on busy cores a second of work may take a minute."""
FEW = "replicates = 2"
NICE = min(19, os.nice(0) + 4)
"""Lower than the tests' own priority, whatever that is. At 19 beside cores that are busy, even the
imports would take minutes."""
HEAD = 'state_dir = "{state}"\nlisten = "127.0.0.1:0"\n'
SOURCE = '[adapters.logtail]\npaths = ["{folder}/EventLog"]\nstart_at = "beginning"\n'


def write_small_journal(folder: Path, weeks: int = 3) -> Path:
    """Return the journal of a daemon that watched 40 machines under random matching."""
    campus = generate_campus(8, weeks=weeks, machines=40, clusters=3, start=TERM, jobs=500 * weeks)
    write_campus(campus, folder / "campus")
    write_journal(folder / "campus", folder / JOURNAL_NAME, seed=6)
    return folder / JOURNAL_NAME


class WatchedSite:
    """A state directory, a configuration, and the process that asks the twin.

    Args:
        folder: of both.
        journal: is copied there; None: there is none.
        twin: settings of ``[twin]``, as TOML.
        policies: their tables, as TOML.
    """

    def __init__(
        self, folder: Path, journal: Path | None, twin: str = FEW, policies: str = "[policies.fifo]"
    ) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.state.mkdir(mode=0o700)
        self.journal = self.state / JOURNAL_NAME
        if journal is not None:
            self.journal.write_bytes(journal.read_bytes())
        self.config = folder / "outrider.toml"
        self.log = folder / "run-twin.log"
        self._started: list[subprocess.Popen[bytes]] = []
        self.configure(twin, policies)

    def configure(self, twin: str, policies: str) -> None:
        """Write the configuration of the site."""
        text = HEAD.format(state=self.state) + f"[twin]\nnice = {NICE}\n{twin}\n"
        self.config.write_text(text + SOURCE.format(folder=self.folder) + policies + "\n")

    def start(self, *words: str, **environ: str) -> "subprocess.Popen[bytes]":
        """Start ``outrider run-twin``; its log goes to a file."""
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [OUTRIDER, "run-twin", "--config", self.config, *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "NO_COLOR": "1", **environ},
            )  # fmt: skip
        self._started.append(process)
        return process

    def kill_all(self) -> None:
        """End what a failed test left running, or it would disturb the others."""
        for process in self._started:
            process.kill()
            process.wait()

    def once(self, **environ: str) -> tuple[int, dict[str, Any]]:
        """Ask once; the exit code, and what was written."""
        code = self.start("--once", **environ).wait(HANGS_AFTER_S)
        return code, self.written()

    def written(self) -> dict[str, Any]:
        """Return the contents of twin.json; empty: there is none yet."""
        try:
            plain: dict[str, Any] = json.loads((self.state / "twin.json").read_text())
        except FileNotFoundError:
            return {}
        return plain

    def wait_until(self, what: str, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Wait until what stands in twin.json fulfils a condition; returns it."""
        deadline_s = time.monotonic() + HANGS_AFTER_S
        while not holds(written := self.written()):
            assert time.monotonic() < deadline_s, f"not {what}: {written}\n{self.log.read_text()}"
            time.sleep(0.05)
        return written

    def askings(self) -> int:
        """Return how many askings have ended so far, by the log."""
        text = self.log.read_text()
        return text.count("twin_answered") + text.count("twin_refused")
