"""The file of ``replay --jobs``: one row a job, as CSV or Parquet by the file's ending."""

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

from outrider.model.errors import ConfigurationError

_FORMATS: Final = (".csv", ".parquet")


def check_jobs_file(path: Path) -> None:
    """Refuse what could not be written, before a long run.

    Raises:
        ConfigurationError: another ending than these, no such folder, or no DuckDB.
    """
    if path.suffix not in _FORMATS:
        raise ConfigurationError(f"--jobs {path}: right would end in {' or '.join(_FORMATS)}")
    if not path.parent.is_dir():
        raise ConfigurationError(f"--jobs {path}: there is no folder {path.parent}")
    if path.suffix == ".parquet":
        _duckdb()


def write_jobs(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    """Write the rows; the file is there whole or not at all.

    Args:
        path: that `check_jobs_file` took.
        rows: of `outrider.replay.job_table.JobTable`; at least one.
    """
    part = path.with_name(f".{path.name}.part")
    if path.suffix == ".parquet":
        from outrider.formats.parquet import write_parquet

        write_parquet(part, list(rows), _duckdb())
    else:
        first = next(rows)
        with part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, first, lineterminator="\n")
            writer.writeheader()
            writer.writerows(chain([first], rows))
    part.replace(path)


def _duckdb() -> Any:
    from outrider.formats.parquet import require_duckdb

    return require_duckdb("--jobs", ".csv")
