"""Traces for the Python API: read from files, or made by chance."""

import datetime as dt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from outrider.formats.campus import files as campus_files
from outrider.formats.campus.campus import Campus
from outrider.formats.class_words import class_rule
from outrider.formats.swf import reading as swf_reading
from outrider.formats.swf.writing import write_swf
from outrider.formats.workload import Workload
from outrider.model.errors import ConfigurationError, TraceError
from outrider.python_api.terms import seed_of
from outrider.simulation.generators import campus as campuses
from outrider.simulation.generators.campus.options import rooms_for
from outrider.simulation.generators.grids import perez_grid, vengerov_grid


def read_swf(
    path: Path | str,
    *,
    machines: int | None = None,
    class_by: str | None = None,
    vo: str = "group",
    group_vos_below: float = 0.0,
    skip_bad: bool = False,
) -> Workload:
    """Read a workload file in Standard Workload Format, ``.swf`` or ``.swf.gz``.

    Args:
        path: of the file.
        machines: one-CPU machines, or CPUs of the pool where jobs are parallel; None: MaxProcs of
            the header.
        class_by: what makes a job interactive, as ``requested:900``; see ``--class-by``. None:
            what users said best.
        vo: the column that says which VO a job belongs to: group, user, queue or partition.
        group_vos_below: VOs that ask for less than this share of all CPU-seconds count as one.
        skip_bad: leave out bad lines and count them, not refuse the first.

    Returns:
        The workload: columns of one value a job, times in seconds from the log's zero.

    Raises:
        TraceError: names file, line, column, value and what would be right.
        ConfigurationError: what is asked of its classes or VOs does not fit the file.
    """
    return swf_reading.read_swf(
        _existing(path),
        machines=machines,
        class_by=None if class_by is None else class_rule(class_by, "class_by"),
        vo=vo,
        group_vos_below=group_vos_below,
        skip_bad=skip_bad,
    )


def read_campus(path: Path | str, *, skip_bad: bool = False) -> Campus:
    """Read a campus folder: ``site.toml``, ``machines.csv``, ``owners.csv``, ``jobs.csv``.

    Args:
        path: of the folder.
        skip_bad: leave out bad rows and count them, not refuse the first.

    Raises:
        TraceError: names file, line, column, value and what would be right.
    """
    return campus_files.read_campus(_existing(path), skip_bad=skip_bad)


def generate_campus(
    seed: int,
    *,
    weeks: float | None = None,
    machines: int | None = None,
    clusters: int | None = None,
    start: dt.date | None = None,
    jobs: int | None = None,
    bad_jobs: int | None = None,
) -> Campus:
    """Make a campus like the one of McGough and Forshaw (2015), as ``outrider generate campus``.

    Args:
        seed: the same seed and arguments make the same campus.
        weeks: length of the trace; None: a year.
        machines: desktop machines; None: 1359.
        clusters: rooms they stand in; None: 37, fewer for fewer machines.
        start: first day; None: 2010-01-01.
        jobs: jobs submitted; None: in proportion to the paper's.
        bad_jobs: of these, jobs that never end.

    Raises:
        ConfigurationError: an argument is out of range.
    """
    if clusters is None and machines is not None:
        clusters = rooms_for(machines)
    given = {
        "weeks": weeks, "machines": machines, "clusters": clusters, "start": start, "jobs": jobs,
        "bad_jobs": bad_jobs,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    return campuses.generate_campus(seed_of(seed), **options)


def generate_grid(seed: int, *, like: str = "perez", **options: Any) -> Workload:
    """Make a workload like that of a paper, as ``outrider generate grid`` writes it.

    Args:
        seed: the same seed and options make the same jobs; below 10000 to judge, from there to
            learn.
        like: ``perez``: one-CPU jobs of four VOs. ``vengerov``: parallel jobs on one machine.
        options: perez: `row` (share of interactive jobs, needed), `jobs`, `machines`, `load`,
            `arrivals`, `lengths`; vengerov: `rate` (jobs a step, needed), `steps`, `length_s`.

    Returns:
        The workload as its file is read back: classes by the queue that users declared.

    Raises:
        ConfigurationError: an option is unknown or out of range, or no job comes.
    """
    makers = {"perez": perez_grid, "vengerov": vengerov_grid}
    if like not in makers:
        raise ConfigurationError(f'like "{like}": right would be {" or ".join(makers)}')
    seed = seed_of(seed)
    try:
        made = makers[like](seed=seed, **options)  # type: ignore[operator]
    except TypeError as error:
        raise ConfigurationError(f"generate_grid like {like}: {error}") from error
    if not made.job_names:
        raise ConfigurationError("generate_grid: no job comes in that time; right would be more")
    with TemporaryDirectory() as folder:  # what is written and read back is what a file would be
        file = Path(folder) / "grid.swf"
        write_swf(made, file, {})
        return swf_reading.read_swf(file)


def _existing(path: Path | str) -> Path:
    found = Path(path)
    if not found.exists():
        raise TraceError(f"{found}: there is no such file or folder")
    return found
