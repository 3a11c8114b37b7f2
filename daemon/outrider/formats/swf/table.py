"""Raw content of a Standard Workload Format file: its header, and 18 numbers per job.

The format is that of Chapin et al. 1999 and the Parallel Workloads Archive
(https://www.cs.huji.ac.il/labs/parallel/workload/swf.html): lines that begin with ``;`` are header
or comment, every other one is a job. `reading` describes how a replay uses the numbers.

Two passes give the same rows, as for the tables of a campus: numpy parses the whole file; only if
it fails or finds a non-finite number, lines are read one by one to name the fault.
"""

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from math import isfinite, isnan
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.formats.workload import BATCH, DEFAULT_VO, INTERACTIVE, Workload
from outrider.model.errors import ConfigurationError, TraceError

COLUMNS: Final = (
    "job number", "submit time", "wait time", "run time", "allocated processors",
    "average CPU time", "used memory", "requested processors", "requested time",
    "requested memory", "status", "user", "group", "executable", "queue", "partition",
    "preceding job", "think time",
)  # fmt: skip
"""Names of the columns, in their order."""
MISSING: Final = -1
"""Value of the format for "not known"."""
_GZIP: Final = b"\x1f\x8b"
_FIELD = re.compile(r"[;\s]*([A-Za-z]\w*)\s*:\s*(.*?)\s*")
_NUMBERED = re.compile(r"(\d+)\W+([\w.-]+).*")


class SwfTable(NamedTuple):
    """Content of a workload file: header and jobs.

    Attributes:
        header: fields of the header; the first of repeated ones.
        queues, partitions: names in the header's ``Queue`` and ``Partition`` fields, by number.
        values: (jobs, 18) numbers, in the order of `COLUMNS`.
        lines: (jobs,) line number in the file, from 1.
    """

    header: Mapping[str, str]
    values: NDArray[np.float64]
    lines: NDArray[np.int64]
    queues: Mapping[str, str] = {}
    partitions: Mapping[str, str] = {}

    def column(self, name: str) -> NDArray[np.float64]:
        """Return one column by its name in `COLUMNS`."""
        return self.values[:, COLUMNS.index(name)]

    def processors(self) -> NDArray[np.float64]:
        """Return the processors (jobs,): those allocated; where missing, those requested."""
        allocated = self.column("allocated processors")
        return np.where(allocated == MISSING, self.column("requested processors"), allocated)

    def only(self, mask: NDArray[np.bool_]) -> "SwfTable":
        """Return a table of the jobs for which the (jobs,) mask is true."""
        return self._replace(values=self.values[mask], lines=self.lines[mask])


def read_table(path: Path, skipped: Counter[str] | None) -> SwfTable:
    """Read a workload file; gzip is recognised by content, not by name.

    Args:
        path: the file.
        skipped: None to refuse a damaged line; otherwise these are left out and counted here.

    Raises:
        TraceError: the file cannot be read to its end, has no job, has another number of columns,
            or a line is damaged; names line, column, value.
    """
    rows = _text(path).split("\n")  # `splitlines` would also cut within names of old headers
    header: dict[str, str] = {}
    named: dict[str, dict[str, str]] = {"Queue": {}, "Partition": {}}
    kept: list[str] = []
    lines: list[int] = []
    for number, row in enumerate(rows, 1):
        if row.lstrip().startswith(";"):
            field = _FIELD.fullmatch(row)
            if field is not None:
                header.setdefault(field[1], field[2])
                place = _NUMBERED.fullmatch(field[2]) if field[1] in named else None
                if place is not None:
                    named[field[1]].setdefault(str(int(place[1])), place[2])
        elif row and not row.isspace():
            kept.append(row)
            lines.append(number)
    if not kept:
        raise TraceError(f"{path}: contains no job; expected one line of 18 columns for each job")
    values = _parsed_fast(kept)
    places = np.array(lines, dtype=np.int64)
    if values is None:
        values, places = _parsed_precisely(path, kept, places, skipped)
    return SwfTable(header, values, places, named["Queue"], named["Partition"])


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(_GZIP) else data
    except (OSError, EOFError, zlib.error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise TraceError(f"{path}: cannot be read to its end: {why}") from error
    return data.decode("latin-1").removeprefix("\xef\xbb\xbf")  # names in old headers: any bytes


def _parsed_fast(rows: list[str]) -> NDArray[np.float64] | None:
    """Parse numbers (jobs, 18) with numpy; None if some row is damaged."""
    try:
        values: NDArray[np.float64] = np.loadtxt(rows, ndmin=2, comments=None)
    except ValueError:
        return None
    if values.shape[1] != len(COLUMNS) or not np.isfinite(values).all():
        return None
    return values


def _parsed_precisely(
    path: Path, rows: list[str], lines: NDArray[np.int64], skipped: Counter[str] | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Parse numbers and line numbers line by line; refuse or count damaged lines."""
    found = len(rows[0].split())
    if found != len(COLUMNS):
        raise TraceError(
            f"{path}: line {lines[0]}: {found} columns; expected {len(COLUMNS)}: this is a "
            "variant of the Standard Workload Format with unknown columns"
        )
    values: list[list[float]] = []
    places: list[int] = []
    for row, line in zip(rows, lines.tolist(), strict=True):
        fields = row.split()
        numbers = [_number(field) for field in fields]
        if len(fields) == len(COLUMNS) and None not in numbers:
            values.append([number for number in numbers if number is not None])
            places.append(line)
        elif skipped is not None:
            few = len(fields) != len(COLUMNS)
            skipped["wrong number of columns" if few else "not a number"] += 1
        else:
            raise TraceError(f"{path}: line {line}{_fault(fields, numbers)}")
    table = np.array(values, dtype=np.float64).reshape(-1, len(COLUMNS))
    return table, np.array(places, dtype=np.int64)


def _fault(fields: list[str], numbers: list[float | None]) -> str:
    if len(fields) != len(COLUMNS):
        return f": {len(fields)} columns; expected {len(COLUMNS)}"
    place = numbers.index(None)
    return (
        f', column "{COLUMNS[place]}": not a number: "{fields[place]}"; '
        f"expected a number, {MISSING} where it is not known"
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) and "_" not in text else None


# -- writing ---------------------------------------------------------------------------------------
# Writing of a workload as a Standard Workload Format file.

VERSION: Final = "2.2"
COMPLETED: Final = 1
QUEUES: Final = {INTERACTIVE: "1", BATCH: "2"}
"""Queue number of each class, as named in the header."""


def write_swf(
    workload: Workload, path: Path, header: Mapping[str, str], notes: Iterable[str] = ()
) -> None:
    """Write a workload that `read_swf` reads back as the same one.

    Numbers are written with all significant digits; the same workload gives the same bytes. A
    job's class is declared by its queue, which the header names. Not written, because the format
    has no column for it: shares and speeds of machines.

    Args:
        workload: names of jobs, VOs and users must be whole numbers, except `DEFAULT_VO` and the
            empty user, which become -1. VOs are written as groups.
        path: the file, replaced if it exists; gzipped if its name ends in ``.gz``.
        header: further fields of the header, such as ``Computer``.
        notes: written as ``Note`` comments.

    Raises:
        ConfigurationError: a name is not a whole number.
    """
    fields = {"Version": VERSION, **header}
    fields["MaxJobs"] = fields["MaxRecords"] = str(len(workload.job_names))
    fields["MaxProcs"] = str(sum(machine.cpus for machine in workload.machines))
    lines = [f"; {name}: {value}" for name, value in fields.items()]
    lines += [f"; Queue: {number} {name}" for name, number in QUEUES.items()]
    lines += [f"; Note: {note}" for note in notes]
    lines += _rows(workload)
    data = "".join(f"{line}\n" for line in lines).encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    path.write_bytes(data)


def _rows(workload: Workload) -> list[str]:
    jobs = len(workload.job_names)
    known: dict[str, list[str]] = {
        "job number": [_written_number("job", name) for name in workload.job_names],
        "submit time": _texts(workload.submit_s),
        "wait time": _texts(workload.wait_s),
        "run time": _texts(workload.run_s),
        "allocated processors": _texts(workload.cpus),
        "requested processors": _texts(workload.cpus),
        "requested time": _texts(workload.requested_s),
        "status": [str(COMPLETED)] * jobs,
        "user": [_written_number("user", name) if name else str(MISSING) for name in workload.user],
        "group": [
            str(MISSING) if name == DEFAULT_VO else _written_number("VO", name)
            for name in workload.vo
        ],
        "queue": [QUEUES[name] for name in workload.job_class],
    }
    columns = [known.get(column, [str(MISSING)] * jobs) for column in COLUMNS]
    return [" ".join(row) for row in zip(*columns, strict=True)]


def _texts(values: np.ndarray) -> list[str]:
    """Return numbers in the shortest form that reads back as the same; nan: `MISSING`."""
    return [
        str(MISSING) if isnan(value) else repr(value).removesuffix(".0")
        for value in values.tolist()
    ]


def _written_number(what: str, name: str) -> str:
    if not name.isdecimal():
        raise ConfigurationError(
            f'{what} "{name}" cannot be written as SWF; expected a whole number'
        )
    return name
