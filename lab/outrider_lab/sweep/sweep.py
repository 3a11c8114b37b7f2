"""Execution of a sweep: known runs are kept, failed ones are tried again, then reported."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from outrider import __version__
from outrider.model.errors import ConfigurationError
from outrider_lab.running.resume_file import ResumeFile
from outrider_lab.running.run_all import Progress, RunEnd, Workers, run_all
from outrider_lab.running.run_spec import RunSpec
from outrider_lab.running.traces import CampusFolder, WorkloadFile, WorkloadWindow
from outrider_lab.sweep.results import Row, flat, read_rows, write_rows
from outrider_lab.sweep.workload_run import DEFAULT

_READ: Final = (CampusFolder, WorkloadFile, WorkloadWindow)
"""Traces of files; others are drawn from the seeds of the sweep's file."""


class Swept(NamedTuple):
    """Result of a sweep: rows in the order of the runs, and the number known before."""

    rows: list[Row]
    kept: int

    @property
    def failed(self) -> list[Row]:
        """Rows of runs that failed to the last."""
        return [row for row in self.rows if row["error"] is not None]


def runs_file(out: Path, resume: bool) -> ResumeFile:
    """Return the file of finished runs beside the results.

    Args:
        out: the file of the results, which may be there from an earlier sweep.
        resume: go on with what is there.

    Raises:
        ConfigurationError: there are results or finished runs already, and this is not to resume.
    """
    path = out.with_name(f"{out.name}.runs")
    for there in (path, out):
        if there.exists() and not resume:
            raise ConfigurationError(
                f"{there}: there already; --resume goes on with it, another --out leaves it"
            )
    return ResumeFile(path, resume or None)


def run_sweep(
    specs: Sequence[RunSpec],
    workers: int | Workers,
    out: Path,
    resume: ResumeFile,
    retries: int,
    made: Mapping[str, Any],
    progress: Progress | None = None,
) -> Swept:
    """Execute the runs that neither the results nor the file contain, and write the results.

    Args:
        specs: of the sweep.
        workers: processes, or who else does the work.
        out: the file of the results.
        resume: open; what ends well is kept there until the results are written.
        retries: how often a failed run is tried again, after all others.
        made: how: version, command and date, for the rows that are new.
        progress: receives the end of every run.

    Raises:
        ConfigurationError: rows that are there belong to other runs, or were made by another
            version.
        LedgerError: what is there cannot be read.
    """
    by_key = {spec.key: spec for spec in specs}
    rows = _known_rows(out, by_key)
    finished = resume.known(by_key)
    kept = len(rows.keys() | finished.keys())
    left = [spec for key, spec in by_key.items() if key in finished or key not in rows]
    for end in run_all(left, workers, resume, progress, retries):
        rows[end.spec.key] = _row(end, made)
    in_order = [rows[key] for key in by_key]
    write_rows(out, in_order)
    resume.clear()
    return Swept(in_order, kept)


def _known_rows(out: Path, specs: Mapping[str, RunSpec]) -> dict[str, Row]:
    """Return rows that an earlier sweep wrote, by key, of runs that did not fail.

    Rows that are no part of this sweep would be lost with it, or compared with its own.
    """
    known = {}
    for row in read_rows(out) if out.exists() else ():
        about = f"{row['policy']}, seed {row['seed']}, on {row['trace']}"
        if row["error"] is not None:
            continue
        if row["cell"] not in specs:
            raise ConfigurationError(
                f"{out}: has a row of {about}, with settings that are not in this sweep or from a "
                "trace that has changed since; expected another --out"
            )
        if row["version"] != __version__:
            raise ConfigurationError(
                f"{out}: the row of {about} was made by Outrider {row['version']}, this is "
                f"{__version__}, and the two cannot be compared; expected another --out"
            )
        known[row["cell"]] = row
    return known


def _row(end: RunEnd, made: Mapping[str, Any]) -> Row:
    """Return a run's result as a flat row; for a failed one, the settings as given."""
    spec = end.spec
    head: Row = {
        "cell": spec.key,
        "trace": spec.trace.name,
        "policy": spec.policy.policy,
        "preset": spec.policy.preset,
        "seed": spec.seed,
        "error": end.error,
        "attempts": end.attempts,
        "version": made["version"],
        "command": made["command"],
        "date": made["date"],
        "trace_sha256": spec.trace.digest if isinstance(spec.trace, _READ) else None,
    }
    head |= _ground(spec)
    if end.error is not None:
        return head | dict(flat({"settings": dict(spec.policy.settings)}))
    labels = end.result.get("truth", [])
    head["truth"] = "; ".join(labels)
    return head | {name: value for name, value in flat(end.result) if name not in head}


def _ground(spec: RunSpec) -> Row:
    """Return the terms of a workload: null where its default applies; none on a campus."""
    if not isinstance(spec.trace, WorkloadFile | WorkloadWindow):
        return {}
    window = spec.trace if isinstance(spec.trace, WorkloadWindow) else None
    file = spec.trace.file if isinstance(spec.trace, WorkloadWindow) else spec.trace
    word = spec.option("estimates")
    return {
        "file": file.name,
        "first_day": None if window is None else window.first_day,
        "days": None if window is None else window.days,
        "asked.estimates": None if word == DEFAULT else word,
        "asked.discipline": spec.option("discipline"),
        "asked.class_by": None if file.class_by is None else file.class_by.source,
        "asked.machines": file.machines,
    }
