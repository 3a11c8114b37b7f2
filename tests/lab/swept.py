"""Small sweeps, and policies that fail or wait in them, as an installed distribution has them."""

import json
import os
from pathlib import Path
from typing import Any

Row = dict[str, Any]

SMALL = """\
seeds = [0, 1]

[[traces]]
generated = [1, 2]
weeks = 1
machines = 20
clusters = 2
start = 2010-03-01

[[policies]]
name = "random_match"

[[policies]]
name = "bandit"
settings.epsilon = [0.05, 0.2]
"""
SMALL_CELLS = 12
ONE_TRACE = """\
[[traces]]
generated = [1]
weeks = 1
machines = 20
clusters = 2
"""
OF_THE_CLOCK = ("wall_s", "cpu_s", "max_rss_mb", "command", "date")
"""Columns that differ from run to run."""

POLICIES = '''\
import os
import signal
import time

from outrider_policies.rules.placements import RandomMatch


class Clueless(RandomMatch):
    """Has no idea, whatever it is asked."""

    name = "clueless"
    api_version = 1

    def choose(self, job, evaluation, view, may_defer):
        raise RuntimeError("out of ideas")


class Moody(RandomMatch):
    """Fails when it is first used, and leaves a note that it has."""

    name = "moody"
    api_version = 1

    def choose(self, job, evaluation, view, may_defer):
        note = os.environ["MOODY_NOTE"]
        if not os.path.exists(note):
            open(note, "w").close()
            raise RuntimeError("not now")
        return super().choose(job, evaluation, view, may_defer)


class Patient(RandomMatch):
    """Waits, when it is first asked, until somebody leaves a note."""

    name = "patient"
    api_version = 1

    def choose(self, job, evaluation, view, may_defer):
        while not os.path.exists(os.environ["PATIENT_NOTE"]):
            time.sleep(0.05)
        return super().choose(job, evaluation, view, may_defer)


class Deadly(RandomMatch):
    """Ends the process it runs in, as one that took all memory would."""

    name = "deadly"
    api_version = 1

    def choose(self, job, evaluation, view, may_defer):
        os.kill(os.getpid(), signal.SIGKILL)
'''


def install_policies(folder: Path) -> dict[str, str]:
    """Put the failing policies into a folder; returns the environment in which they are found."""
    folder.mkdir()
    (folder / "failing_policies.py").write_text(POLICIES)
    information = folder / "failing_policies-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: failing-policies\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(
        "[outrider.policies]\n"
        "clueless = failing_policies:Clueless\n"
        "deadly = failing_policies:Deadly\n"
        "moody = failing_policies:Moody\n"
        "patient = failing_policies:Patient\n"
    )
    notes = {"MOODY_NOTE": str(folder / "moody"), "PATIENT_NOTE": str(folder / "patient")}
    return on_path(folder) | notes


def on_path(folder: Path) -> dict[str, str]:
    """The environment in which Python looks into a folder first."""
    path = [str(folder), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(part for part in path if part)}


def write_sweep(folder: Path, text: str = SMALL) -> Path:
    """A sweep's file with this text."""
    file = folder / "sweep.toml"
    file.write_text(text)
    return file


def rows_of(out: Path) -> list[Row]:
    """The rows of a JSON file of results."""
    rows: list[Row] = json.loads(out.read_text())
    return rows


def measured(rows: list[Row]) -> list[Row]:
    """The rows without what the clock says."""
    return [{k: v for k, v in row.items() if k not in OF_THE_CLOCK} for row in rows]
