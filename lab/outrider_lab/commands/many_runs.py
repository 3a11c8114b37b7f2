"""Options of commands with many runs: where finished runs are stored, and their progress."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from outrider.cli.printing import echo, shown
from outrider.cli.provenance import provenance
from outrider.model.errors import ConfigurationError
from outrider_lab.running.progress import BarProgress, LogProgress
from outrider_lab.running.resume_file import RUNS_FILE, ResumeFile
from outrider_lab.running.run_all import Progress, Row, Study, run_study, specs_of
from outrider_lab.running.run_spec import RunSpec
from outrider_lab.running.traces import CampusFolder, WorkloadFile, WorkloadWindow
from outrider_lab.running.workers import cores

_STATE_VARIABLE: Final = "XDG_STATE_HOME"
_KEY_DIGITS: Final = 12


class Keeping(NamedTuple):
    """Options of a command with many runs.

    Attributes:
        label: name for the progress, as ``reproduce perez``.
        workers: processes; None: the cores there are.
        resume: go on with what is there; False: begin anew; None: nothing may be there.
        runs: where finished runs are kept; None: in the default place.
        report: the folder of the report, if one is written.
    """

    label: str
    workers: int | None
    resume: bool | None
    runs: Path | None
    report: Path | None = None

    def place(self, specs: Sequence[RunSpec]) -> Path:
        """Return where finished runs of these specs are kept."""
        if self.runs is not None:
            return self.runs
        if self.report is not None:
            return self.report / RUNS_FILE
        keys = sha256(" ".join(spec.key for spec in specs).encode()).hexdigest()[:_KEY_DIGITS]
        return _state_folder() / f"{self.label.replace(' ', '-')}-{keys}.jsonl"


@contextmanager
def executed(study: Study[Row], keeping: Keeping) -> Iterator[dict[str, Any]]:
    """Yield a study's result with its provenance; finished runs are kept until the block ends.

    The block is what tells the result. After a failure they stay: `--resume` then runs only what
    failed.

    Raises:
        OutriderError: the file of finished runs is another's, or cannot be read.
    """
    specs = specs_of(study)
    with ResumeFile(keeping.place(specs), keeping.resume) as kept:
        with report_if_stopped(kept), progress_of(keeping.label) as progress:
            found = run_study(study, keeping.workers or cores(), kept, progress)
        result = provenance(files_of(specs)) | found
        yield result
        if not result["failed"]:
            kept.clear()
        elif len(kept):
            echo(
                f"outrider: {len(kept)} finished runs are in {shown(kept.path)}; the same command "
                "with --resume runs only those that failed",
                err=True,
            )


def files_of(specs: Sequence[RunSpec]) -> list[Path]:
    """Return the files and folders that the runs read, each once."""
    of_files = CampusFolder | WorkloadFile | WorkloadWindow
    read = (spec.trace for spec in specs if isinstance(spec.trace, of_files))
    return [Path(path) for path in dict.fromkeys(trace.path for trace in read)]


def name_failures(result: Mapping[str, Any]) -> int:
    """Name the runs that failed, on standard error; the exit code: 1 if there are any."""
    for failure in result["failed"]:
        echo(f"outrider: failed: {failure['run']}: {failure['error']}", err=True)
    return int(bool(result["failed"]))


def _state_folder() -> Path:
    """Return where programs keep what should outlive them, for this user."""
    state = os.environ.get(_STATE_VARIABLE)
    folder = (Path(state) if state else Path.home() / ".local" / "state") / "outrider"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{shown(folder)}: finished runs cannot be kept there: {error.strerror}; expected "
            "--runs FILE"
        ) from error
    return folder


@contextmanager
def report_if_stopped(kept: ResumeFile) -> Iterator[None]:
    """Report where the finished runs are stored, when Ctrl-C ends the block."""
    try:
        yield
    except KeyboardInterrupt:
        if len(kept):
            echo(
                f"outrider: stopped; {len(kept)} finished runs are in {shown(kept.path)}, and "
                "the same command with --resume goes on with them",
                err=True,
            )
        raise


@contextmanager
def progress_of(label: str) -> Iterator[Progress]:
    """Yield progress on standard error: a bar on a terminal, elsewhere periodic lines.

    Args:
        label: what runs, in words.
    """
    if not sys.stderr.isatty():
        yield LogProgress(label, lambda line: echo(f"outrider: {line}", err=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn(label, markup=False),
        BarColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield BarProgress(lambda ratio, words: bar.update(task, completed=ratio, description=words))
