"""Writing a workload as a Standard Workload Format file."""

import gzip
from collections.abc import Iterable, Mapping
from math import isnan
from pathlib import Path
from typing import Final

import numpy as np

from outrider.formats.swf.table import COLUMNS, MISSING
from outrider.formats.workload import BATCH, DEFAULT_VO, INTERACTIVE, Workload
from outrider.model.errors import ConfigurationError

VERSION: Final = "2.2"
COMPLETED: Final = 1
QUEUES: Final = {INTERACTIVE: "1", BATCH: "2"}
"""The queue of each class, as the header names them."""


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
        "job number": [_number("job", name) for name in workload.job_names],
        "submit time": _texts(workload.submit_s),
        "wait time": _texts(workload.wait_s),
        "run time": _texts(workload.run_s),
        "allocated processors": _texts(workload.cpus),
        "requested processors": _texts(workload.cpus),
        "requested time": _texts(workload.requested_s),
        "status": [str(COMPLETED)] * jobs,
        "user": [_number("user", name) if name else str(MISSING) for name in workload.user],
        "group": [
            str(MISSING) if name == DEFAULT_VO else _number("VO", name) for name in workload.vo
        ],
        "queue": [QUEUES[name] for name in workload.job_class],
    }
    columns = [known.get(column, [str(MISSING)] * jobs) for column in COLUMNS]
    return [" ".join(row) for row in zip(*columns, strict=True)]


def _texts(values: np.ndarray) -> list[str]:
    """Numbers in the shortest form that reads back as the same; nan becomes `MISSING`."""
    return [
        str(MISSING) if isnan(value) else repr(value).removesuffix(".0")
        for value in values.tolist()
    ]


def _number(what: str, name: str) -> str:
    if not name.isdecimal():
        raise ConfigurationError(
            f'{what} "{name}" cannot be written as SWF; right would be a whole number'
        )
    return name
