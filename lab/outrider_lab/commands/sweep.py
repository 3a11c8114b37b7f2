"""Run a grid of policies, settings and traces, here or on a cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outrider.cli.options import file_path, json_option, policy_names
from outrider.cli.printing import echo, print_json, shown
from outrider.model.errors import ConfigurationError
from outrider.model.modes import DISCIPLINES
from outrider.model.quantities import count

if TYPE_CHECKING:
    from outrider_lab.running.run_all import Progress, RunEnd

SECTION = "Judge"

_RULES = ("estimates", "discipline", "class_by", "machines")
"""Keywords of options that replace axes of the file's workloads: `workload_axes.AXES`."""
_SYSTEMS = ("htcondor", "slurm", "pbs", "local-dask")
"""Names as in `cluster_settings.SYSTEMS`; the help must not wait for the import of the lab."""


@click.command(
    "sweep", short_help="Run a grid of policies, settings and traces, here or on a cluster."
)
@click.argument("file", metavar="FILE", type=file_path(dir_okay=False))
@click.option(
    "--out", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="Where the results go, one row a run: .json, or .parquet (pip install "
    "'outrider[reports]').",
)  # fmt: skip
@click.option(
    "--estimates", multiple=True, metavar="RULE",
    help="Workload files: rule for the run times that policies know, in place of FILE's; give it "
    "again for more: exact, requested, lognormal:SIGMA or learned. exact and lognormal use the "
    "true run time, and every output says so.",
)  # fmt: skip
@click.option(
    "--discipline", multiple=True, type=click.Choice(DISCIPLINES),
    help="Workload files: who may start before a job that does not fit, in place of what FILE "
    "says; give it again for more.",
)  # fmt: skip
@click.option(
    "--class-by", multiple=True, metavar="RULE",
    help="Workload files: what makes a job interactive, in place of what FILE says, as `outrider "
    "replay` has it; give it again for more.",
)  # fmt: skip
@click.option(
    "--machines", multiple=True, type=click.IntRange(min=1), metavar="N",
    help="Workload files: machines, or CPUs of the pool, in place of what FILE says; give it again "
    "for more.",
)  # fmt: skip
@click.option(
    "--baseline", metavar="NAME", shell_complete=policy_names,
    help="The policy whose first treatment all others are held against. [default: the first]",
)  # fmt: skip
@click.option(
    "--figure", "figures", multiple=True, metavar="COLUMN",
    help="A column of the results to compare by, in which less is better; give it again for more. "
    "[default: mean wait, mean bounded slowdown, energy of wasted runs]",
)  # fmt: skip
@click.option(
    "--plot", type=file_path(dir_okay=False), metavar="FILE.svg",
    help="Draw the differences with their intervals (pip install 'outrider[reports]').",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N",
    help="Processes on this machine, about 430 MB each for a year. [default: its cores]",
)  # fmt: skip
@click.option(
    "--cluster", "system", type=click.Choice(_SYSTEMS), metavar="SYSTEM",
    help="Where the workers run: htcondor, slurm or pbs, as jobs of yours; or local-dask, to try "
    "dask on this machine (pip install 'outrider[sweeps]').",
)  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N",
    help="Jobs to ask the batch system for. [default: 4]",
)  # fmt: skip
@click.option(
    "--retries", type=click.IntRange(min=0), default=1, metavar="N",
    help="Try a failed run again so often, after all others. [default: 1]",
)  # fmt: skip
@click.option(
    "--resume", is_flag=True,
    help="Go on with a sweep that was stopped, or grew: runs that are done are kept.",
)  # fmt: skip
@json_option
def command(
    file: Path,
    out: Path,
    workers: int | None,
    system: str | None,
    jobs: int | None,
    retries: int,
    resume: bool,
    as_json: bool,
    baseline: str | None,
    figures: tuple[str, ...],
    plot: Path | None,
    **rules: Any,
) -> int:
    """Run a grid of policies, settings and traces, here or on a cluster.

    Use it to choose settings, or to see whether a difference between policies holds over many
    traces and seeds. FILE declares the grid over campuses, generated campuses and workload files
    (.swf, .swf.gz, whole or in windows); each of its runs is one as of `outrider replay`, and a row
    of the results. What is done is kept beside them, so that a sweep which was stopped can
    go on. Results do not depend on the number of workers, nor on where they run.

    At the end each treatment is held against the first (--baseline) on the same traces. The unit of
    its 95 % interval is a trace: a campus, a file, or a window of one; never a seed.

    A run that fails is named and tried again; if it fails to the last, its row holds the error,
    and the exit code is 1.

    Example:
      outrider sweep sweep.toml --out results.json --workers 4
      outrider sweep sweep.toml --out results.parquet --cluster slurm --jobs 20 --resume
    """
    from outrider.cli.provenance import provenance
    from outrider_lab.commands.many_runs import files_of, progress_of, report_if_stopped
    from outrider_lab.commands.sweep_tables import write_chart
    from outrider_lab.sweep.file import read_sweep
    from outrider_lab.sweep.results import check_baseline, check_format, differences
    from outrider_lab.sweep.sweep import run_sweep, runs_file

    _refuse_contradictions(system, workers, jobs)
    check_format(out)
    if plot is not None:
        _check_plot(plot)
    axes = {name: list(rules[name]) for name in _RULES if rules[name]}
    sweep = read_sweep(file, axes)
    if baseline is not None:
        check_baseline(sweep.specs, baseline)
    with (
        runs_file(out, resume) as kept,
        _place(system, sweep.cluster, workers, jobs, out) as place,
        report_if_stopped(kept),
        progress_of(f"sweep {shown(file)}") as progress,
    ):
        sweep_progress = SweepProgress(progress, _warn)
        made = provenance(files_of(sweep.specs))
        swept = run_sweep(sweep.specs, place, out, kept, retries, made, sweep_progress)
    found = differences(sweep.specs, swept.rows, figures, baseline)
    if plot is not None:
        write_chart(plot, found)
    _report(swept, found, out, made if as_json else None)
    return int(bool(swept.failed))


def _refuse_contradictions(system: str | None, workers: int | None, jobs: int | None) -> None:
    on_batch = system not in (None, "local-dask")
    if workers is not None and on_batch:
        raise ConfigurationError(f"--workers: with --cluster {system} expected --jobs")
    if jobs is not None and not on_batch:
        raise ConfigurationError("--jobs: without a batch system expected --workers")


@contextmanager
def _place(
    system: str | None, settings: Any, workers: int | None, jobs: int | None, out: Path
) -> Iterator[Any]:
    """Yield the place where the runs are executed: a number of processes, or a dask cluster."""
    from outrider_lab.running.workers import cores

    if system is None:
        yield workers or cores()
        return
    from outrider_lab.running.dask_workers import LOCAL, on_dask

    size = workers or cores() if system == LOCAL else jobs or 4
    files = out.resolve().with_name(f"{out.name}.jobs")
    with on_dask(system, settings, size, files, _warn) as place:
        yield place


def _warn(text: str) -> None:
    echo(f"outrider: {shown(text)}", err=True)


def _check_plot(plot: Path) -> None:
    """Refuse a chart that could not be drawn, before a long run."""
    from outrider_lab.reporting.drawing import require_matplotlib

    if plot.suffix != ".svg" or not plot.parent.is_dir():
        raise ConfigurationError(
            f"--plot {shown(plot)}: expected it to end in .svg, in a folder that is there"
        )
    require_matplotlib("--plot")


def _report(
    swept: Any, found: list[dict[str, Any]], out: Path, made: dict[str, Any] | None
) -> None:
    """Print what was run and found, as JSON with its provenance where that is given."""
    from outrider_lab.commands.sweep_tables import show_differences

    failed = [
        {name: row[name] for name in ("cell", "trace", "policy", "preset", "seed", "error")}
        for row in swept.failed
    ]
    if made is not None:
        facts = {"out": shown(out), "cells": len(swept.rows), "kept": swept.kept, "failed": failed}
        facts["comparison"] = found
        print_json(made | facts)
        return
    show_differences(found)
    echo(
        f"{shown(out)}: {count(len(swept.rows))} cells, {count(swept.kept)} kept from before, "
        f"{count(len(failed))} failed"
    )


# -- sweep progress --------------------------------------------------------------------------------
# Progress of a sweep: that of all runs, and every failure reported immediately.


class SweepProgress:
    """Progress that also reports failures as they come, because failed runs are tried again.

    Args:
        progress: receives everything else.
        warn: takes a failure, in words.
    """

    def __init__(self, progress: "Progress", warn: Callable[[str], None]) -> None:
        self._progress = progress
        self._warn = warn

    def begin(self, runs: int, kept: int) -> None:
        """Begin the wrapped progress."""
        self._progress.begin(runs, kept)

    def ended(self, end: "RunEnd", is_last_attempt: bool) -> None:
        """Report a failure, and pass the end of the run on."""
        if end.error is not None:
            self._warn(f"{end.spec}: failed, attempt {end.attempts}: {end.error}")
        self._progress.ended(end, is_last_attempt)
