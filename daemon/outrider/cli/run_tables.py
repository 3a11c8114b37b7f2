"""Runs of a replay as tables for people."""

from typing import Any

import click

from outrider.cli.printing import MISSING, count, figure, print_table, ratio
from outrider.simulation.truth_told import in_words

_RUNS_A_TABLE = 4
_MINUTE_S = 60.0
_DAY_S = 86_400.0
_KWH = 1000.0


def show_runs(runs: list[dict[str, Any]]) -> None:
    """Print the run objects of ``outrider replay --json``, a few columns at a time by trace."""
    from outrider.engine.accounting.fairness import degenerate

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
            click.echo(note)
        for reasons in dict.fromkeys(_left_out(run) for run in of_trace):
            if reasons:
                click.echo(f"left out: {reasons}")
    for run in runs:
        if run["ledger"]:
            click.echo(f"ledger of {run['policy']} (seed {run['seed']}): {run['ledger']}")


def _left_out(run: dict[str, Any]) -> str:
    return ", ".join(f"{n} {reason}" for reason, n in run["jobs"]["skipped"].items())


# -- a campus -----------------------------------------------------------------------------------


def _size_of_campus(run: dict[str, Any]) -> str:
    return (
        f"{count(run['machines'])} machines, {count(run['owner_sessions'])} owner sessions, "
        f"{count(run['jobs']['submitted'])} jobs, {figure(run['span_s'], _DAY_S)} days"
    )


def _campus_column(run: dict[str, Any]) -> dict[str, str]:
    """One run as the table shows it: label with its unit, and the figure."""
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
    truth = in_words(run["truth"])
    return (
        f"{count(run['cpus'])} CPUs on {count(run['machines'])} machines, "
        f"{count(run['jobs']['submitted'])} jobs, {figure(run['span_s'], _DAY_S)} days; "
        f"classes {run['class_source']}, estimates {run['estimates']}, "
        f"discipline {run['discipline'] or 'none'}" + (f". {truth}" if truth else "")
    )


def _grid_column(run: dict[str, Any]) -> dict[str, str]:
    """One run as the table shows it: label with its unit, and the figure."""
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
        "CPUs in use": ratio(run["utilisation_ratio"]),
        "starts": count(run["starts"]),
        "jobs completed": count(jobs["completed"]),
        "jobs unfinished": count(jobs["unfinished"]),
        **_impossible(jobs),
        "jobs removed": count(jobs["removed"]),
        **_how_it_was_made(run),
    }


def _impossible(jobs: dict[str, Any]) -> dict[str, str]:
    """Jobs that no machine can ever take, where there are any; `unfinished` counts them, too."""
    n = jobs["impossible"]
    return {"jobs that fit on no machine": count(n)} if n else {}


def _how_it_was_made(run: dict[str, Any]) -> dict[str, str]:
    return {
        "time taken [s]": figure(run["wall_s"]),
        "ledger_sha256": run["ledger_sha256"][:12],
    }
