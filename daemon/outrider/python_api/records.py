"""Rows of a table as records, data frames or files."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from outrider.formats.tables import (
    FLAG,
    INTEGER,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    Rows,
    column_values,
    format_of,
    write_rows,
)
from outrider.model.errors import ConfigurationError, MissingPackageError

_PANDAS: Final = {TEXT: "object", INTEGER: "Int64", NUMBER: "float64", FLAG: "boolean"}


class Records(Rows):
    """Rows of a table: iterate over them as dictionaries, or convert them to a frame.

    Columns, types and units are those of docs/reference/ledger-tables.md, in every form. Frames
    need further packages: ``pip install 'outrider[frames]'`` installs all three.
    """

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return self.table.names

    def to_arrow(self) -> Any:
        """Convert to a `pyarrow.Table`. Raises `MissingPackageError` without pyarrow."""
        arrow = _package("pyarrow")
        kinds = {
            TEXT: arrow.string(), INTEGER: arrow.int64(), NUMBER: arrow.float64(),
            FLAG: arrow.bool_(), TEXTS: arrow.list_(arrow.string()),
            NUMBERS: arrow.map_(arrow.string(), arrow.float64()),
        }  # fmt: skip
        by_name = dict(column_values(self))
        return arrow.table({
            column.name: arrow.array(
                _pairs(by_name[column.name]) if column.kind == NUMBERS else by_name[column.name],
                type=kinds[column.kind],
            )
            for column in self.table.columns
        })  # fmt: skip

    def to_pandas(self) -> Any:
        """Convert to a `pandas.DataFrame`. Raises `MissingPackageError` without pandas.

        Unknown numbers are nan, unknown integers and flags `pandas.NA`; lists and numbers by name
        are Python objects.
        """
        pandas = _package("pandas")
        by_name = dict(column_values(self))
        return pandas.DataFrame({
            column.name: pandas.Series(
                by_name[column.name], dtype=_PANDAS.get(column.kind, "object")
            )
            for column in self.table.columns
        })  # fmt: skip

    def to_polars(self) -> Any:
        """Convert to a `polars.DataFrame`. Raises `MissingPackageError` without polars.

        Numbers by name are a list of structs of name and value.
        """
        polars = _package("polars")
        pair = polars.Struct({"name": polars.String, "value": polars.Float64})
        kinds = {
            TEXT: polars.String, INTEGER: polars.Int64, NUMBER: polars.Float64,
            FLAG: polars.Boolean, TEXTS: polars.List(polars.String), NUMBERS: polars.List(pair),
        }  # fmt: skip
        by_name = dict(column_values(self))
        return polars.DataFrame([
            polars.Series(
                column.name,
                _structs(by_name[column.name])
                if column.kind == NUMBERS
                else [list(v) if isinstance(v, tuple) else v for v in by_name[column.name]],
                dtype=kinds[column.kind],
            )
            for column in self.table.columns
        ])  # fmt: skip

    def write(self, path: Path | str, format: str | None = None) -> int:  # noqa: A002 - as --format
        """Write a file, as ``outrider ledger export`` does; return the number of rows.

        Args:
            path: ends in .jsonl, .ndjson, .csv or .parquet, unless `format` is given.
            format: ``jsonl``, ``csv`` or ``parquet``.

        Raises:
            ConfigurationError: the ending is unknown, the file cannot be written, or Parquet is
                requested without DuckDB.
        """
        file = Path(path)
        return write_rows(self, file, format_of(file, format, "write"), "write")


def _pairs(values: list[Any]) -> list[Any]:
    return [None if value is None else list(value.items()) for value in values]


def _structs(values: list[Any]) -> list[Any]:
    return [
        None if value is None else [{"name": name, "value": v} for name, v in value.items()]
        for value in values
    ]


def _package(name: str) -> Any:
    """Import a package by name. Raises `MissingPackageError`."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"{name} is not installed here; use pip install 'outrider[frames]', or "
            "take the rows as records: list(rows)"
        ) from error


# -- fields ----------------------------------------------------------------------------------------
# Results: the JSON document of a command, with its fields as attributes.


class Fields(Mapping[str, Any]):
    """A document whose fields are attributes, and items: ``run.jobs`` is ``run["jobs"]``.

    Args:
        document: plain data by field.

    Nested data are plain: ``run.wait_s["all"]["mean"]``. Undefined or infinite numbers stay so; in
    JSON they are null.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = dict(document)

    def __getattr__(self, name: str) -> Any:
        document = self.__dict__.get("_document", {})
        if name in document:
            return document[name]
        raise AttributeError(
            f"{type(self).__name__} has no field {name!r}; it has {', '.join(document)}"
        )

    def __getitem__(self, name: str) -> Any:
        return self._document[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} with {', '.join(self._document)}>"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._document})

    def as_dict(self) -> dict[str, Any]:
        """Return the document itself, as the command prints it with ``--json``."""
        return self._document


class Run(Fields):
    """Result of one replay: the object of ``outrider replay --json`` under ``runs``.

    Every field is an attribute; docs/reference/definitions.md defines each. Times and waits
    are seconds, energies watt-hours.

    Args:
        document: the run object.
        job_rows: times of each job; None if it was not requested.
    """

    trace: str
    policy: str
    settings: dict[str, Any]
    seed: int
    preset: str | None
    until_s: float | None
    discipline: str | None
    class_source: str
    estimates: str | None
    truth: list[str]
    jobs: dict[str, Any]
    wait_s: dict[str, Any]
    overhead_s: dict[str, Any]
    bounded_slowdown: dict[str, Any]
    defer_s: Any
    energy_wh: dict[str, Any]
    energy_measured_wh: Any
    goodput_s: float
    badput_s: float
    work_s: dict[str, Any]
    starts: int
    evictions: dict[str, int]
    fairness: dict[str, Any]
    utility: dict[str, Any]
    machines: int
    owner_sessions: int
    deferrals: dict[str, Any] | None
    span_s: float
    utilisation_ratio: float | None
    calibration: Any
    decisions: int
    events: int
    wall_s: float
    cpu_s: float
    max_rss_mb: float
    ledger_sha256: str
    ledger: str | None
    # Of workloads, not of campuses:
    cpus: int
    interactive_below_s: float
    vo_column: str
    group_vos_below: float
    utilities: list[str]

    def __init__(self, document: Mapping[str, Any], job_rows: Records | None) -> None:
        super().__init__(document)
        self._job_rows = job_rows

    @property
    def job_rows(self) -> Records:
        """Records of the jobs, in the order of submission; columns: the table ``jobs``.

        Raises:
            ConfigurationError: the run was made with ``jobs=False``.
        """
        if self._job_rows is None:
            raise ConfigurationError("this run kept no jobs; expected replay(..., jobs=True)")
        return self._job_rows

    def __repr__(self) -> str:
        wait_s = self["wait_s"]["all"]["mean"]
        mean = "unknown" if wait_s is None else f"{wait_s:.0f} s"
        return f"<run of {self['policy']} on {self['trace']}: mean wait {mean}>"
