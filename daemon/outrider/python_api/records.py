"""Rows of a table as records, data frames or files."""

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from outrider.formats.table_files import column_values, format_of, write_rows
from outrider.formats.tables import FLAG, INTEGER, NUMBER, NUMBERS, TEXT, TEXTS, Rows
from outrider.model.errors import MissingPackageError

_PANDAS: Final = {TEXT: "object", INTEGER: "Int64", NUMBER: "float64", FLAG: "boolean"}


class Records(Rows):
    """Rows of a table: iterate over them as dictionaries, or take them all as a frame.

    Columns, types and units are those of docs/reference/ledger-tables.md, in every form. Frames
    need packages that Outrider does not: ``pip install 'outrider[frames]'`` installs all three.
    """

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return self.table.names

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`. Raises `MissingPackageError` without pyarrow."""
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
        """A `pandas.DataFrame`. Raises `MissingPackageError` without pandas.

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
        """A `polars.DataFrame`. Raises `MissingPackageError` without polars.

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
        """Write a file, as ``outrider ledger export`` does; returns how many rows.

        Args:
            path: ends in .jsonl, .ndjson, .csv or .parquet, unless `format` is given.
            format: ``jsonl``, ``csv`` or ``parquet``.

        Raises:
            ConfigurationError: the ending is unknown, the file cannot be written, or Parquet is
                asked for without DuckDB.
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
    """A package. Raises `MissingPackageError`."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            f"{name} is not installed here; right would be pip install 'outrider[frames]', or to "
            "take the rows as records: list(rows)"
        ) from error
