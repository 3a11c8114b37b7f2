"""Rows as a Parquet file, by DuckDB, which the extra `reports` installs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from outrider.model.errors import ConfigurationError


def require_duckdb(option: str, instead: str) -> Any:
    """The module. Raises `ConfigurationError` where it is not installed.

    Args:
        option: that asks for Parquet.
        instead: an ending of a file that needs no DuckDB.
    """
    try:
        import duckdb
    except ImportError as error:
        raise ConfigurationError(
            f"{option}: Parquet needs duckdb, which is not installed; right would be "
            f"pip install 'outrider[reports]', or a file that ends in {instead}"
        ) from error
    return duckdb


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], duckdb: Any) -> None:
    """Write rows that all have the same columns; beside the file there is room for a second one.

    A column is of the type that holds all its values without loss.

    Args:
        path: of the file, made anew.
        rows: scalars or None by column; at least one row.
        duckdb: from `require_duckdb`.
    """
    types = ", ".join(f"{quoted(name)}: '{_type([row[name] for row in rows])}'" for name in rows[0])
    source = path.with_suffix(".lines")
    source.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    try:
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT * FROM read_json({quoted(str(source))}, "  # noqa: S608 - quoted
                f"format = 'newline_delimited', columns = {{{types}}})) "
                f"TO {quoted(str(path))} (FORMAT parquet)"
            )
    finally:
        source.unlink()


def quoted(text: str) -> str:
    """A name or text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def _type(values: Sequence[Any]) -> str:
    """The column type that holds all of these without loss; an infinite setting is a number."""
    kinds = {float if value == "inf" else type(value) for value in values if value is not None}
    if kinds <= {bool} and kinds:
        return "BOOLEAN"
    if kinds <= {int} and kinds:
        return "BIGINT"
    return "DOUBLE" if kinds <= {int, float} and kinds else "VARCHAR"
