"""Reference page of the exported tables, generated from their declarations."""

from outrider.formats.tables import ENDINGS, VERSION, Column, Table
from outrider.journal.tables import TABLES
from outrider.replay.job_table import JOBS

_ENDINGS = ", ".join(f"`{ending}`" for ending in ENDINGS)
_COLUMNS = "| column | type | null | meaning |\n|---|---|---|---|\n"
_HEAD = f"""\
# Tables

<!-- Made by `make docs` from daemon/outrider/journal/tables.py and replay/job_table.py. -->

**Version {VERSION}.** The version increases when a column is removed or changes its type or
meaning; a new column at the end of a table does not change it. Parquet files contain it in their
metadata (`outrider_tables`, next to `outrider_table`, the name of the table); other formats cannot.

`outrider ledger export FILE --rows TABLE --out OUT` writes the first four, from a file of
`outrider replay --ledger` or from a daemon's journal; `outrider replay --jobs OUT` writes `jobs`.
In Python they are `outrider.open_journal(FILE).decisions` and so on, and `run.job_rows`
([the Python API](../python-api.md)). In a replay's file `runs` and `commands` are empty.

The suffix of OUT ({_ENDINGS}) or `--format` sets the format:

| type | Parquet | CSV | JSON lines |
|---|---|---|---|
| text | VARCHAR | unchanged | string |
| integer | BIGINT | digits | number |
| number | DOUBLE | shortest digits that restore the value | number |
| flag | BOOLEAN | `true`, `false` | `true`, `false` |
| list of text | VARCHAR[] | JSON in the cell | array |
| numbers by name | MAP(VARCHAR, DOUBLE) | JSON in the cell | object |
| null | NULL | nothing | `null`; `jobs` of decisions is left out |

Infinite and undefined numbers are null in scores: JSON has none, and all formats agree.
Only `commands` and `jobs` contain names of users.
"""


def ledger_tables_page() -> str:
    """Return the page in Markdown: a section for each table, a row for each of its columns."""
    return _HEAD + "".join(_section(table) for table in (*TABLES.values(), JOBS))


def _section(table: Table) -> str:
    rows = "".join(_row(column) for column in table.columns)
    return f"\n## {table.name}\n\n{table.help}\n\n{_COLUMNS}{rows}"


def _row(column: Column) -> str:
    null = "may be" if column.nullable else ""
    return f"| `{column.name}` | {column.kind} | {null} | {column.help} |\n"
