"""The tables of a report for spreadsheets: a row for each VO, user, machine, ..., in columns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from outrider.cli.listing import Column, Row
from outrider.cli.printing import MISSING, count, duration, figure, ratio

_ENERGY: Final = ("kwh", "money", "co2_kg")
_WAITS: Final = (
    "wait_n", "wait_censored_n", "wait_mean_s", "wait_std_s", "wait_median_s", "wait_p90_s",
    "wait_p95_s", "wait_p99_s", "wait_max_s",
)  # fmt: skip
_COUNTS: Final = ("n", "censored_n")
"""Of a summary of times: how many, and of how many only a bound is known."""
_PURPOSES: Final = ("goodput", "badput", "open", "idle", "sleep", "owner")


def _amounts(purposes: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{purpose}_{unit}" for purpose in purposes for unit in _ENERGY)


_RUNS: Final = (
    "completed", "thrown_away", "goodput_h", "badput_h", *_amounts(("goodput", "badput"))
)  # fmt: skip
_OFFENCES: Final = (*_RUNS, "badput_share", "reasons")
_OFFENCES_SHOWN: Final = ("thrown_away", "badput_h", "badput_kwh", "badput_share", "reasons")
_PARTS_SHOWN: Final = (
    "completed", "thrown_away", "goodput_h", "badput_h", "badput_kwh", "wait_mean_s", "wait_p95_s"
)  # fmt: skip


class ReportTable(NamedTuple):
    """One table of a report.

    Attributes:
        path: where its rows are in the report's document, key by key.
        columns: all of them, in order; the first names the row.
        shown: those that people see if they do not say.
    """

    path: tuple[str, str]
    columns: tuple[str, ...]
    shown: tuple[str, ...]


def _table(path: tuple[str, str], first: Sequence[str], *rest: Sequence[str]) -> ReportTable:
    columns, shown = rest[0], rest[-1]
    return ReportTable(path, (*first, *columns), (*first, *shown))


TABLES: Final = {
    "vo": _table(("was", "by_vo"), ["vo"], (*_RUNS, *_WAITS), _PARTS_SHOWN),
    "class": _table(("was", "by_class"), ["class"], (*_RUNS, *_WAITS), _PARTS_SHOWN),
    "machine_group": _table(
        ("was", "by_machine_group"), ["machine_group"], _amounts(_PURPOSES),
        [f"{purpose}_kwh" for purpose in _PURPOSES],
    ),
    "user": _table(("offenders", "users"), ["user"], _OFFENCES, _OFFENCES_SHOWN),
    "machine": _table(("offenders", "machines"), ["machine", "starts"], _OFFENCES, _OFFENCES_SHOWN),
    "job": _table(("offenders", "jobs"), ["job", "user"], _OFFENCES, _OFFENCES_SHOWN),
    "failed_start": _table(
        ("offenders", "failed_starts"), ["machine"], ["jobs_tried", "jobs_failed"]
    ),
    "black_hole": _table(
        ("offenders", "black_holes"), ["machine"],
        ["jobs_tried", "jobs_failed", "users", "rate", "rate_at_least", "rate_expected"],
    ),
}  # fmt: skip


def columns_of(table: str) -> dict[str, Column]:
    """The columns of a table."""
    return {name: _column(name) for name in TABLES[table].columns}


def every_column() -> list[str]:
    """Names of the columns of all tables."""
    return list(dict.fromkeys(name for table in TABLES.values() for name in table.columns))


def rows_of(told: Mapping[str, Any], table: str) -> list[Row]:
    """The rows of a table; none where the journal tells nothing of the window.

    Args:
        told: the report, as `outrider.report.document.document` gives it.
        table: which.
    """
    part, key = TABLES[table].path
    found = (told[part] or {}).get(key, [])
    if isinstance(found, Mapping):
        found = [{table: name, **fields} for name, fields in found.items()]
    names = TABLES[table].columns
    flat = [_flat(row) for row in found]
    return [{name: row.get(name) for name in names} for row in flat]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """One level: `badput` of kWh is `badput_kwh`, the mean of `wait_s` is `wait_mean_s`."""
    told: dict[str, Any] = {}
    for name, value in row.items():
        if name == "reasons":
            told[name] = "; ".join(f"{reason} {n}" for reason, n in value.items() if n)
        elif not isinstance(value, Mapping):
            told[name] = value
        elif name.endswith("_s"):
            stem = name.removesuffix("_s")
            told |= {f"{stem}_{k}{'' if k in _COUNTS else '_s'}": v for k, v in value.items()}
        else:
            told |= {f"{name}_{unit}": amount for unit, amount in value.items()}
    return told


_CELLS: Final[Mapping[str, Callable[[Any], str]]] = {
    "_s": duration, "_h": figure, "_kwh": figure, "_co2_kg": figure,
    "_money": lambda value: figure(value, digits=2), "_share": ratio, "rate": ratio,
    "rate_at_least": ratio, "rate_expected": ratio,
}  # fmt: skip
_TEXTS: Final = ("vo", "class", "machine_group", "user", "machine", "job", "reasons")


def _column(name: str) -> Column:
    head = name.replace("_", " ")
    if name in _TEXTS:
        return Column(head, lambda row: str(row[name] or MISSING))
    cell = next((made for ending, made in _CELLS.items() if name.endswith(ending)), count)
    return Column(head, lambda row: cell(row[name]), is_figure=True)
