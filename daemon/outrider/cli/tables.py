"""Results of replays, reports and the twin as tables."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from outrider.cli.listing import Column, Row, csv_text
from outrider.cli.printing import echo, print_table
from outrider.model.quantities import (
    MISSING,
    RATIO_LABELS,
    count,
    degenerate,
    duration,
    figure,
    percent,
)
from outrider.model.reasons import label as code_label

if TYPE_CHECKING:
    from outrider.twin.answer import Answer, Ratios
    from outrider.twin.off_policy.check import OffPolicyCheck

# -- run tables ------------------------------------------------------------------------------------
# Runs of a replay as tables for people.

_RUNS_A_TABLE = 4
_MINUTE_S = 60.0
_DAY_S: Final = 86_400.0
_KWH = 1000.0


def show_runs(runs: list[dict[str, Any]]) -> None:
    """Print the run objects of ``outrider replay --json``, a few columns at a time by trace."""
    for trace in dict.fromkeys(run["trace"] for run in runs):
        of_trace = [run for run in runs if run["trace"] == trace]
        first = of_trace[0]
        is_grid = "cpus" in first
        title = f"{trace}: {_size_of_grid(first) if is_grid else _size_of_campus(first)}"
        for start in range(0, len(of_trace), _RUNS_A_TABLE):
            some = of_trace[start : start + _RUNS_A_TABLE]
            names = [f"{run['policy']}\nseed {run['seed']}" for run in some]
            columns = [_grid_column(run) if is_grid else _campus_column(run) for run in some]
            labels = dict.fromkeys(label for column in columns for label in column)
            rows = [[name, *(column.get(name, MISSING) for column in columns)] for name in labels]
            print_table(title, ["", *names], rows)
        if is_grid and (note := degenerate(first["fairness"]["target"])):
            echo(note)
        for reasons in dict.fromkeys(_left_out(run) for run in of_trace):
            if reasons:
                echo(f"left out: {reasons}")
    for run in runs:
        if run["ledger"]:
            echo(f"ledger of {run['policy']} (seed {run['seed']}): {run['ledger']}")


def _left_out(run: dict[str, Any]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in run["jobs"]["skipped"].items())


# -- a campus -----------------------------------------------------------------------------------


def _size_of_campus(run: dict[str, Any]) -> str:
    return (
        f"{count(run['machines'])} machines, {count(run['owner_sessions'])} owner sessions, "
        f"{count(run['jobs']['submitted'])} jobs, {figure(run['span_s'], _DAY_S)} days"
    )


def _campus_column(run: dict[str, Any]) -> dict[str, str]:
    """Return one run as the table shows it: label with its unit, and the figure."""
    wait, overhead = run["wait_s"]["all"], run["overhead_s"]["all"]
    energy, jobs, deferrals = run["energy_wh"], run["jobs"], run["deferrals"]
    out = {f"wait, {k} [min]": figure(wait[k], _MINUTE_S) for k in ("mean", "p95", "max")}
    out |= {
        f"overhead, {k} [min]": figure(overhead[k], _MINUTE_S)
        for k in ("mean", "p95", "p99", "max")
    }
    return out | {
        "energy, useful [kWh]": figure(energy["goodput"], _KWH),
        "energy, wasted [kWh]": figure(energy["badput"], _KWH),
        "evictions": count(sum(run["evictions"].values())),
        "starts": count(run["starts"]),
        "jobs completed": count(jobs["completed"]),
        "jobs unfinished": count(jobs["unfinished"]),
        **_impossible(jobs),
        "jobs removed": count(jobs["removed"]),
        "longest deferral [h]": figure(run["defer_s"]["max"], 3600.0),
        "jobs deferred, bad / good": (
            f"{count(deferrals['deferred_bad'])} / {count(deferrals['deferred_good'])}"
        ),
        **_how_it_was_made(run),
    }


# -- a grid -------------------------------------------------------------------------------------


def _size_of_grid(run: dict[str, Any]) -> str:
    from outrider.simulation.estimates import in_words

    truth = in_words(run["truth"])
    return (
        f"{count(run['cpus'])} CPUs on {count(run['machines'])} machines, "
        f"{count(run['jobs']['submitted'])} jobs, {figure(run['span_s'], _DAY_S)} days; "
        f"classes {run['class_source']}, estimates {run['estimates']}, "
        f"discipline {run['discipline'] or 'none'}" + (f". {truth}" if truth else "")
    )


def _grid_column(run: dict[str, Any]) -> dict[str, str]:
    """Return one run as the table shows it: label with its unit, and the figure."""
    jobs, fairness, slowdown = run["jobs"], run["fairness"], run["bounded_slowdown"]["all"]
    out = {
        f"wait, {name}, {k} [min]": figure(wait[k], _MINUTE_S)
        for name, wait in run["wait_s"]["by_class"].items()
        for k in ("mean", "median", "p95", "max")
    }
    below = figure(run["interactive_below_s"], digits=0)
    for name, words in (("short", f"ran < {below} s"), ("long", f"ran >= {below} s")):
        wait = run["wait_s"]["by_length"][name]
        out |= {f"wait, {words}, {k} [min]": figure(wait[k], _MINUTE_S) for k in ("mean", "p95")}
    out |= {f"bounded slowdown, {k}": figure(slowdown[k]) for k in ("mean", "p95", "max")}
    return out | {
        "fairness, last submission": figure(fairness["utility"], digits=3),
        "fairness, mean over time": figure(fairness["time_mean"], digits=3),
        "fairness, windowed": figure(fairness["windowed"], digits=3),
        "utility [CPU h]": figure(run["utility"]["total"], 3600.0),
        "utility a second": figure(run["utility"]["per_step"], digits=2),
        "CPUs in use": percent(run["utilisation_ratio"]),
        "starts": count(run["starts"]),
        "jobs completed": count(jobs["completed"]),
        "jobs unfinished": count(jobs["unfinished"]),
        **_impossible(jobs),
        "jobs removed": count(jobs["removed"]),
        **_how_it_was_made(run),
    }


def _impossible(jobs: dict[str, Any]) -> dict[str, str]:
    """Return the number of jobs that fit on no machine, if any; `unfinished` includes them."""
    n = jobs["impossible"]
    return {"jobs that fit on no machine": count(n)} if n else {}


def _how_it_was_made(run: dict[str, Any]) -> dict[str, str]:
    return {
        "time taken [s]": figure(run["wall_s"]),
        "ledger_sha256": run["ledger_sha256"][:12],
    }


# -- report tables ---------------------------------------------------------------------------------
# The tables of a report for spreadsheets: a row for each VO, user, machine, ..., in columns.

_ENERGY: Final = ("kwh", "money", "co2_kg")
_WAITS: Final = (
    "wait_n", "wait_censored_n", "wait_mean_s", "wait_std_s", "wait_median_s", "wait_p90_s",
    "wait_p95_s", "wait_p99_s", "wait_max_s",
)  # fmt: skip
_COUNTS: Final = ("n", "censored_n")
"""Counts in a summary of times: all, and those of which only a bound is known."""
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
        path: keys of its rows in the report's document.
        columns: all columns, in order; the first names the row.
        shown: default columns for people.
    """

    path: tuple[str, str]
    columns: tuple[str, ...]
    shown: tuple[str, ...]


def _report_table(path: tuple[str, str], first: Sequence[str], *rest: Sequence[str]) -> ReportTable:
    columns, shown = rest[0], rest[-1]
    return ReportTable(path, (*first, *columns), (*first, *shown))


TABLES: Final = {
    "vo": _report_table(("was", "by_vo"), ["vo"], (*_RUNS, *_WAITS), _PARTS_SHOWN),
    "class": _report_table(("was", "by_class"), ["class"], (*_RUNS, *_WAITS), _PARTS_SHOWN),
    "machine_group": _report_table(
        ("was", "by_machine_group"), ["machine_group"], _amounts(_PURPOSES),
        [f"{purpose}_kwh" for purpose in _PURPOSES],
    ),
    "user": _report_table(("offenders", "users"), ["user"], _OFFENCES, _OFFENCES_SHOWN),
    "machine": _report_table(
        ("offenders", "machines"), ["machine", "starts"], _OFFENCES, _OFFENCES_SHOWN
    ),
    "job": _report_table(("offenders", "jobs"), ["job", "user"], _OFFENCES, _OFFENCES_SHOWN),
    "failed_start": _report_table(
        ("offenders", "failed_starts"), ["machine"], ["jobs_tried", "jobs_failed"]
    ),
    "black_hole": _report_table(
        ("offenders", "black_holes"), ["machine"],
        ["jobs_tried", "jobs_failed", "users", "rate", "rate_at_least", "rate_expected"],
    ),
}  # fmt: skip


def columns_of(table: str) -> dict[str, Column]:
    """Return the columns of a table by name."""
    return {name: _column(name) for name in TABLES[table].columns}


def every_column() -> list[str]:
    """Return the column names of all tables."""
    return list(dict.fromkeys(name for table in TABLES.values() for name in table.columns))


def rows_of(report: Mapping[str, Any], table: str) -> list[Row]:
    """Return the rows of a table; none if the journal contains nothing of the window.

    Args:
        report: the report, as `outrider.report.document.document` returns it.
        table: name of the table.
    """
    part, key = TABLES[table].path
    found = (report[part] or {}).get(key, [])
    if isinstance(found, Mapping):
        found = [{table: name, **fields} for name, fields in found.items()]
    names = TABLES[table].columns
    flat = [_flat(row) for row in found]
    return [{name: row.get(name) for name in names} for row in flat]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten a row: kWh of `badput` become `badput_kwh`, mean of `wait_s` `wait_mean_s`."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name == "reasons":
            flat[name] = "; ".join(f"{reason} {n}" for reason, n in value.items() if n)
        elif not isinstance(value, Mapping):
            flat[name] = value
        elif name.endswith("_s"):
            stem = name.removesuffix("_s")
            flat |= {f"{stem}_{k}{'' if k in _COUNTS else '_s'}": v for k, v in value.items()}
        else:
            flat |= {f"{name}_{unit}": amount for unit, amount in value.items()}
    return flat


_CELLS: Final[Mapping[str, Callable[[Any], str]]] = {
    "_s": duration, "_h": figure, "_kwh": figure, "_co2_kg": figure,
    "_money": lambda value: figure(value, digits=2), "_share": percent, "rate": percent,
    "rate_at_least": percent, "rate_expected": percent,
}  # fmt: skip
_TEXTS: Final = ("vo", "class", "machine_group", "user", "machine", "job", "reasons")


def _column(name: str) -> Column:
    head = name.replace("_", " ")
    if name in _TEXTS:
        return Column(head, lambda row: str(row[name] or MISSING))
    cell = next((made for ending, made in _CELLS.items() if name.endswith(ending)), count)
    return Column(head, lambda row: cell(row[name]), is_figure=True)


# -- twin tables -----------------------------------------------------------------------------------
# The twin's answer as tables for people.


def show_answer(answer: "Answer") -> None:
    """Print the twin's answer: fidelity, past and forecast, or why it was refused."""
    from outrider.twin.fidelity import BOUNDS

    days = (answer.end_s - answer.begin_s) / _DAY_S
    echo(f"window: {days:.1f} days; current scheduler: {answer.incumbent or MISSING}")
    if answer.fidelity is not None:
        rows = [
            [name, MISSING if off is None else f"{off:.3g}", f"{BOUNDS[name].most:g}"]
            for name, off in answer.fidelity.parts.items()
        ]
        print_table(
            "Fidelity: simulation of the current scheduler vs. the record",
            ["part", "off by", "at most"], rows,
        )  # fmt: skip
    for machine in answer.fitted.get("dead_machines", ()):
        echo(f"note: {machine} is left out: no job ever started there", err=True)
    if answer.refused is not None:
        echo(f"refused: {answer.refused}")
        return
    if answer.longest_deferral_s < inf:
        kept = duration(answer.longest_deferral_s)
        echo(f"candidates defer a job for at most {kept}, then the scheduler starts it")
    for policy, why in answer.candidates_refused.items():
        echo(f"refused for {policy}: {why}")
    if answer.past:
        _show("Past period: candidate / current scheduler (90 % interval)", answer.past)
    if answer.next_refused is not None:
        echo(f"no forecast: {answer.next_refused}")
    if answer.next:
        _show("Forecast: candidate / current scheduler (90 % interval)", answer.next)


def show_checks(checks: "Mapping[str, OffPolicyCheck]") -> None:
    """Print the off-policy estimate from recorded starts for each policy."""
    for policy, check in checks.items():
        if check.refused:
            echo(f"from recorded starts, {policy}: no result: {'; '.join(check.refused)}")
        elif check.difference is not None:
            found = check.difference
            echo(
                f"from recorded starts, {policy} would change the share of runs that complete by "
                f"{found.value:+.3f} ({found.low:+.3f} to {found.high:+.3f}) in one step; "
                f"effective sample size {check.effective_n:.0f}"
            )


def _show(title: str, by_policy: "Mapping[str, Ratios]") -> None:
    rows = []
    for name, label in RATIO_LABELS.items():
        cells = [label]
        for ratios in by_policy.values():
            ratio = ratios[name]
            cells.append(
                MISSING if ratio is None
                else f"{ratio.estimate:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
            )  # fmt: skip
        rows.append(cells)
    print_table(title, ["", *by_policy], rows)


# -- offender tables -------------------------------------------------------------------------------
# Users who wait, wasted work and black-hole machines, as tables.

_SHOWN: Final = 5
"""Rows of a table; --json has twice as many."""
_NOT_NAMED: Final = "(not named)"
"""Name for users of an HTCondor event log, which contains no user names."""


def print_offenders(report: Mapping[str, Any]) -> None:
    """Print the tables of `outrider.report.logs.read_logs`; empty ones are left out."""
    found = report["offenders"]
    _table(
        "users with the longest total wait",
        ("user", "jobs", "wait, mean", "wait, p95", "wait, max"),
        [
            (
                one["user"] or _NOT_NAMED,
                count(one["n"]),
                *(duration(one[k]) for k in ("mean", "p95", "max")),
            )
            for one in report["users_who_wait"]
        ],
    )
    again = [one for one in found["jobs"] if one["thrown_away"] > 1]
    for title, word, rows in (
        ("users by badput", "user", found["users"]),
        ("machines by badput", "machine", found["machines"]),
        ("jobs with more than one wasted run", "job", again),
    ):
        columns = (word, "runs", "badput [CPU h]", "of all", "main reason")
        _table(title, columns, [_thrown_away(one, word) for one in rows])
    for line in _black_holes(found):
        echo(line)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        print_table(title, columns, rows[:_SHOWN])


def _thrown_away(one: Mapping[str, Any], word: str) -> tuple[str, ...]:
    runs, hours = count(one["thrown_away"]), figure(one["badput_h"])
    return (
        one[word] or _NOT_NAMED,
        runs,
        hours,
        percent(one["badput_share"]),
        next(map(code_label, one["reasons"]), ""),
    )


def _black_holes(found: Mapping[str, Any]) -> Iterator[str]:
    rule = found["rule"]
    within = duration(rule["within_s"])
    if not rule["machines"]:
        yield f"black holes: unknown (no recorded run failed, or lasted {within})"
        return
    tried = f"of {count(rule['machines'])} machines"
    if not found["black_holes"]:
        yield f"black holes: none {tried} beyond random variation (runs that end within {within})"
        return
    yield f"black holes {tried}, where many more jobs fail within {within} than elsewhere:"
    for one in found["black_holes"]:
        yield (
            f"  {one['machine']}: {count(one['jobs_failed'])} of {count(one['jobs_tried'])} jobs"
            f" failed (at least {percent(one['rate_at_least'])} do, {percent(one['rate_expected'])}"
            " elsewhere)"
        )


# -- report files ----------------------------------------------------------------------------------
# A report as files: HTML, JSON and CSV; written atomically, and readable by their owner alone.


def write_report(folder: Path, report: Mapping[str, Any]) -> list[Path]:
    """Write the report's files into a folder; create it if missing and replace old files.

    The files are an HTML page, a JSON document, and each table of `TABLES` that has rows.

    They contain users' names as in the journal, so their mode is 0600.

    Raises:
        OSError: the files cannot be written.
    """
    import msgspec

    from outrider.report.html import html

    folder.mkdir(parents=True, exist_ok=True)
    begin, end = report["window"]["begin"][:10], report["window"]["end"][:10]
    document = msgspec.json.format(msgspec.json.encode(report, enc_hook=str), indent=2)
    page = html(report).encode("utf-8", "backslashreplace")
    contents = {".html": page, ".json": document + b"\n"}
    for table in TABLES:
        if rows := rows_of(report, table):
            text = csv_text(rows, TABLES[table].columns, columns_of(table), has_header=True)
            contents[f"-{table}.csv"] = text.encode("utf-8", "backslashreplace")
    written = []
    for ending, content in contents.items():
        path = folder / f"outrider-report-{begin}_{end}{ending}"
        _replace_file(path, content)
        written.append(path)
    return written


def _replace_file(path: Path, content: bytes) -> None:
    number, part = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # of mode 0600
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
