"""Logs, traces and journals for the Python API."""

import datetime as dt
from collections.abc import Mapping, Sequence
from math import inf
from numbers import Real
from operator import index
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from outrider.engine.accounting.fairness import check_targets
from outrider.formats.campus import files as campus_files
from outrider.formats.campus.campus import Campus
from outrider.formats.job_classes import class_rule
from outrider.formats.swf import reading as swf_reading
from outrider.formats.swf.reading import VO_COLUMNS
from outrider.formats.swf.table import write_swf
from outrider.formats.workload import Workload
from outrider.journal import Journal, rows_of
from outrider.model.errors import ConfigurationError, TraceError, nearest
from outrider.model.modes import DISCIPLINES
from outrider.python_api.records import Fields, Records
from outrider.replay.log_files import LogFile
from outrider.replay.workload_terms import WorkloadTerms, workload_terms
from outrider.report.logs import read_logs
from outrider.simulation.generators import campus as campuses
from outrider.simulation.generators.campus.options import rooms_for
from outrider.simulation.generators.grids import perez_grid, vengerov_grid

# -- journals --------------------------------------------------------------------------------------
# `outrider.open_journal`: contents of a ledger or a daemon's journal.


class JournalTables:
    """Tables of a ledger or journal, open for reading; a context manager, which closes it.

    Columns are those of docs/reference/ledger-tables.md. Rows are read on request; a daemon may
    write at the same time.

    Args:
        path: of the file.

    Raises:
        LedgerError: it cannot be opened, or is no journal of Outrider.
    """

    def __init__(self, path: Path | str) -> None:
        self._journal = Journal(path, read_only=True)
        self.path = Path(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def decisions(self) -> Records:
        """Decisions of the policies, with scores."""
        return self.rows("decisions")

    @property
    def outcomes(self) -> Records:
        """Ends of runs, with the rewards of the policies that learned from them."""
        return self.rows("outcomes")

    @property
    def runs(self) -> Records:
        """Runs that ended; in daemons' journals only."""
        return self.rows("runs")

    @property
    def commands(self) -> Records:
        """Commands of administrators; in daemons' journals only."""
        return self.rows("commands")

    def rows(self, table: str, job: str | None = None) -> Records:
        """Return rows of a table, all or of one job. Raises `LedgerError` for an unknown table."""
        rows = rows_of(self._journal, table, job)
        return Records(rows.table, rows.as_they_are)

    def meta(self, key: str, default: Any = None) -> Any:
        """Return a property of a replay's ledger, such as ``policy``, ``seed`` or ``settings``."""
        return self._journal.meta(key, default)

    def close(self) -> None:
        """Close the file; rows cannot be read any more."""
        self._journal.close()


def open_journal(path: Path | str) -> JournalTables:
    """Open a ledger of ``outrider replay --ledger``, or a daemon's journal, to read.

    Args:
        path: of the file; a daemon may write it at the same time.

    Returns:
        Its tables: `decisions`, `outcomes`, `runs` and `commands`, a context manager.

    Raises:
        LedgerError: it cannot be opened, or is no journal of Outrider.
    """
    return JournalTables(path)


# -- logs ------------------------------------------------------------------------------------------
# `outrider.ingest`: a summary of the logs of a batch system.


def ingest(
    *files: Path | str,
    format: str = "auto",  # noqa: A002 - as --format
    fields: Sequence[str] = (),
    year: int | None = None,
    timezone: str | None = None,
    system: str | None = None,
) -> Fields:
    """Read the logs of a batch system and report what happened, as ``outrider ingest --json``.

    Args:
        files: paths; several are merged by time, and events in more than one count once.
        format: name of the reader; ``auto`` detects it for each file.
        fields: column names of a table without a header.
        year: of the last event of each file, for dates without one.
        timezone: of dates without one, such as ``Europe/Berlin``; None: UTC.
        system: schedd or Slurm cluster of these jobs, where records do not name it.

    Returns:
        The document, its fields as attributes: `jobs`, `wait_s` (seconds), `goodput_s`,
        `badput_s` (CPU-seconds), `offenders` and so on; `warnings` has notes for users.

    Raises:
        TraceError: a file cannot be read to its end.
        ConfigurationError: no file is given, or an argument is wrong.
    """
    if not files:
        raise ConfigurationError("ingest: no file is given; expected the path of a log")
    logs = [
        LogFile(file, format, year=year, timezone=timezone, fields=tuple(fields), system=system)
        for file in dict.fromkeys(map(Path, files))
    ]
    return Fields(read_logs(logs))


# -- traces ----------------------------------------------------------------------------------------
# Traces for the Python API: read from files, or generated randomly.


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
        class_by: what makes a job interactive, such as ``requested:900``; see ``--class-by``. None:
            the best declaration of users.
        vo: the column that says which VO a job belongs to: group, user, queue or partition.
        group_vos_below: VOs that ask for less than this share of all CPU-seconds are merged.
        skip_bad: skip bad lines and count them, instead of refusing the first.

    Returns:
        The workload: columns of one value a job, times in seconds from the log's zero.

    Raises:
        TraceError: names file, line, column, value and the expected value.
        ConfigurationError: an option about its classes or VOs does not fit the file.
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
        skip_bad: skip bad rows and count them, instead of refusing the first.

    Raises:
        TraceError: names file, line, column, value and the expected value.
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
    """Generate a campus like that of McGough and Forshaw (2015), as ``outrider generate campus``.

    Args:
        seed: the same seed and arguments make the same campus.
        weeks: length of the trace; None: a year.
        machines: desktop machines; None: 1359.
        clusters: computer rooms; None: 37, fewer for fewer machines.
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
    """Generate a workload like that of a paper, as ``outrider generate grid`` writes it.

    Args:
        seed: the same seed and options make the same jobs; below 10000 for evaluation, from there
            on for training.
        like: ``perez``: one-CPU jobs of four VOs. ``vengerov``: parallel jobs on one machine.
        options: perez: `row` (share of interactive jobs, needed), `jobs`, `machines`, `load`,
            `arrivals`, `lengths`; vengerov: `rate` (jobs a step, needed), `steps`, `length_s`.

    Returns:
        The workload as its file is read back: classes by the queue that users declared.

    Raises:
        ConfigurationError: an option is unknown or out of range, or there is no job.
    """
    makers = {"perez": perez_grid, "vengerov": vengerov_grid}
    if like not in makers:
        raise ConfigurationError(f'like "{like}": expected {" or ".join(makers)}')
    seed = seed_of(seed)
    try:
        made = makers[like](seed=seed, **options)  # type: ignore[operator]
    except TypeError as error:
        raise ConfigurationError(f"generate_grid like {like}: {error}") from error
    if not made.job_names:
        raise ConfigurationError("generate_grid: no job comes in that time; use a longer time")
    with TemporaryDirectory() as folder:  # written and read back, to be the same as a file
        file = Path(folder) / "grid.swf"
        write_swf(made, file, {})
        return swf_reading.read_swf(file)


def _existing(path: Path | str) -> Path:
    found = Path(path)
    if not found.exists():
        raise TraceError(f"{found}: there is no such file or folder")
    return found


# -- terms -----------------------------------------------------------------------------------------
# Arguments of the Python API, converted like the options of the commands.


def terms_of(
    *,
    machines: int | None = None,
    class_by: str | None = None,
    interactive_below_s: float | None = None,
    vo: str | None = None,
    group_vos_below: float | None = None,
    estimates: str | None = None,
    discipline: str | None = None,
    utilities: Mapping[str, str] | None = None,
) -> WorkloadTerms:
    """Parse options about a trace, as on the command line. Raises `ConfigurationError`."""
    if discipline is not None:
        _one_of("discipline", discipline, DISCIPLINES)
    if vo is not None:
        _one_of("vo", vo, VO_COLUMNS)
    if machines is not None:
        machines = _whole("machines", machines, 1)
    if interactive_below_s is not None:
        check_seconds("interactive_below_s", interactive_below_s)
    options: dict[str, Any] = {
        "machines": machines,
        "class_by": class_by,
        "interactive_below": interactive_below_s,
        "vo": vo,
        "group_vos_below": group_vos_below,
        "estimates": estimates,
        "discipline": discipline,
        "backfill": None,
        "utilities": tuple(f"{name}={word}" for name, word in (utilities or {}).items()),
    }
    return workload_terms(options)


def _one_of(what: str, given: str, known: Sequence[str]) -> None:
    if given not in known:
        raise ConfigurationError(f'{what} "{given}": {nearest(given, known)}')


def shares_of(shares: Mapping[str, float] | None) -> dict[str, float]:
    """Return fair shares by VO, checked. Raises `ConfigurationError`."""
    given = dict(shares or {})
    for vo, share in given.items():
        if not _is_number(share):
            raise ConfigurationError(f'shares["{vo}"] = {share!r}; expected a number from 0 to 1')
    check_targets(given, "shares")
    return given


def seed_of(given: Any) -> int:
    """Return a seed, checked; numpy's numbers are valid. Raises `ConfigurationError`."""
    return _whole("seed", given, 0)


def check_seconds(what: str, given: Any) -> None:
    """Refuse anything but a finite number of seconds, 0 or more. Raises `ConfigurationError`."""
    if not _is_number(given) or not 0.0 <= given < inf:
        raise ConfigurationError(f"{what} = {given!r}; expected seconds, 0 or more")


def _is_number(given: Any) -> bool:
    """Return whether it is a number of Python or numpy."""
    return isinstance(given, Real)


def _whole(what: str, given: Any, least: int) -> int:
    try:
        number = index(given)
    except TypeError:
        number = least - 1
    if number < least:
        raise ConfigurationError(f"{what} = {given!r}; expected a whole number, {least} or more")
    return number
