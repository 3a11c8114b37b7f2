"""Small files in Standard Workload Format, made by hand."""

from pathlib import Path
from typing import Any

HEADER = """\
; Version: 2.2
; Computer: a desk
; UnixStartTime: 1138500000
; TimeZoneString: Europe/Paris
; MaxProcs: 4
"""
COLUMNS = (
    "job", "submit", "wait", "run", "cpus", "cpu_time", "memory", "cpus_asked", "time_asked",
    "memory_asked", "status", "user", "group", "executable", "queue", "partition", "before",
    "think",
)  # fmt: skip


def row(job: object, submit: object, run: object, cpus: object = 1, **other: object) -> str:
    """A line of a file; columns that are not named are -1, a completed job's status 1."""
    given: dict[str, Any] = {"job": job, "submit": submit, "run": run, "cpus": cpus, "status": 1}
    given |= other
    assert given.keys() <= set(COLUMNS)
    return " ".join(str(given.get(column, -1)) for column in COLUMNS)


def file_of(folder: Path, *rows: str, header: str = HEADER, name: str = "desk.swf") -> Path:
    """A file of these lines."""
    path = folder / name
    path.write_text(header + "".join(f"{line}\n" for line in rows), encoding="latin-1")
    return path
