"""The reference page of the tables that leave Outrider, made from their declarations."""

from outrider.formats.tables import ENDINGS, VERSION, Column, Table
from outrider.journal.tables import TABLES
from outrider.replay.job_table import JOBS

_ENDINGS = ", ".join(f"`{ending}`" for ending in ENDINGS)
_COLUMNS = "| column | type | null | what it says |\n|---|---|---|---|\n"
_HEAD = f"""\
# Tables

<!-- Made by `make docs` from daemon/outrider/journal/tables.py and replay/job_table.py. -->

**Version {VERSION}.** It is raised when a column goes, changes its type or means something else; a
new column at the end of a table does not raise it. Parquet files carry it in their own metadata
(`outrider_tables`, beside `outrider_table`, the name of the table); the other formats have no
place for it.

`outrider ledger export FILE --rows TABLE --out OUT` writes the first four, of a ledger of
`outrider replay --ledger` or of a daemon's journal; `outrider replay --jobs OUT` writes `jobs`.
In Python they are `outrider.open_journal(FILE).decisions` and so on, and `run.job_rows`
([the Python API](../python-api.md)). Of a replay's ledger `runs` and `commands` are empty.

The format goes by the ending of OUT ({_ENDINGS}) or by `--format`:

| type | Parquet | CSV | JSON lines |
|---|---|---|---|
| text | VARCHAR | as it is | string |
| integer | BIGINT | digits | number |
| number | DOUBLE | shortest digits that read back as the same | number |
| flag | BOOLEAN | `true`, `false` | `true`, `false` |
| list of text | VARCHAR[] | JSON in the cell | array |
| numbers by name | MAP(VARCHAR, DOUBLE) | JSON in the cell | object |
| null | NULL | nothing | `null`; `jobs` of decisions is left out |

Infinite and undefined numbers are null in scores: JSON has none, and all formats say the same.
Names of users are in no table but `commands` and `jobs`.
"""


def ledger_tables_page() -> str:
    """The page in Markdown: a section for each table, a row for each of its columns."""
    return _HEAD + "".join(_section(table) for table in (*TABLES.values(), JOBS))


def _section(table: Table) -> str:
    rows = "".join(_row(column) for column in table.columns)
    return f"\n## {table.name}\n\n{table.help}\n\n{_COLUMNS}{rows}"


def _row(column: Column) -> str:
    null = "may be" if column.nullable else ""
    return f"| `{column.name}` | {column.kind} | {null} | {column.help} |\n"
