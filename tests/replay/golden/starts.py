"""Hashes over the starts of jobs in thirty replays: job, machine and time.

Only what `outrider` prints is read, so that the list outlives every change of what is inside.
"""

import hashlib
import json
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.running import outrider

LIST = Path(__file__).with_name("starts.toml")


class Run(NamedTuple):
    """One line of the list of runs.

    Attributes:
        trace: name of the trace.
        policy: name of the policy that acts.
        options: of `outrider replay`, as a shell would be told.
        starts: how many there were.
        sha256: over (time in ms, job, machine, CPUs) of each, in order.
    """

    trace: str
    policy: str
    options: str
    starts: int
    sha256: str

    @property
    def name(self) -> str:
        """Name of the run for a person."""
        return " ".join(filter(None, (self.policy, self.options, "on", self.trace)))


def listed() -> list[Run]:
    """Return the runs of the list."""
    return [Run(*row) for row in tomllib.loads(LIST.read_text(encoding="utf-8"))["starts"]["runs"]]


def printed(*words: object) -> str:
    """Run a command in this process and return its output; it has to succeed."""
    done = outrider(*words)
    assert done.code == 0, done
    return done.out


def make_trace(name: str, folder: Path) -> Path:
    """Generate a trace into `folder`, if it is not there yet."""
    recipe = tomllib.loads(LIST.read_text(encoding="utf-8"))["traces"][name]
    words = recipe.format(folder / name).split()
    made = Path(words[-1])
    if not made.exists():
        printed(*words)
    return made


def replay(run: Run, folder: Path) -> Run:
    """Return the same line with the present result."""
    ledger = folder / "ledger.sqlite"
    ledger.unlink(missing_ok=True)
    trace = make_trace(run.trace, folder)
    options = run.options.split()
    printed("replay", trace, "--policy", run.policy, *options, "--ledger", ledger)
    rows = map(json.loads, printed("ledger", ledger, "--export", "jsonl").splitlines())
    starts = [_start(row) for row in rows if row["action"] == "start"]
    digest = hashlib.sha256("\n".join(starts).encode()).hexdigest()
    return run._replace(starts=len(starts), sha256=digest)


def _start(row: dict[str, Any]) -> str:
    return f"{round(row['time_s'] * 1000)} {row['job']} {row['machine']} {row['cpus']}"


def write(runs: list[Run]) -> None:
    """Replace the runs of the list by these."""
    head = LIST.read_text(encoding="utf-8").partition("\nruns = [")[0]
    rows = "\n".join(f"  {json.dumps(list(run))}," for run in runs)
    LIST.write_text(f"{head}\nruns = [\n{rows}\n]\n", encoding="utf-8")


def main() -> None:
    """Print which runs differ; with ``--write``, save the present results."""
    with tempfile.TemporaryDirectory() as name:
        found = [replay(run, Path(name)) for run in listed()]
    for run, today in zip(listed(), found, strict=True):
        if run != today:
            print(f"{run.name}: {run.starts} starts {run.sha256[:12]},", end=" ")
            print(f"today {today.starts} {today.sha256[:12]}")
    if "--write" in sys.argv[1:]:
        write(found)


if __name__ == "__main__":
    main()
