"""``outrider replay``: what a trace would have brought under each policy."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import (
    file_path,
    json_option,
    policy_names,
    preset_by_policy,
    seed_range,
    settings_by_policy,
    share_table,
)
from outrider.cli.printing import count, figure, print_json, print_table, shown
from outrider.cli.progress import progress_bar
from outrider.model.errors import ConfigurationError, TraceError

_RUNS_A_TABLE = 4
_MINUTE_S = 60.0
_KWH = 1000.0


@click.command("replay", short_help="Run a trace under policies and compare what they would bring.")
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...", type=file_path())
@click.option(
    "--policy", "policies", multiple=True, required=True, metavar="NAME",
    shell_complete=policy_names,
    help="A policy to run the trace under; give it again for more. `outrider plugins` lists them.",
)  # fmt: skip
@click.option(
    "--set", "settings", multiple=True, metavar="POLICY.KEY=VALUE",
    help="One setting of one policy, the value as in TOML.",
)  # fmt: skip
@click.option(
    "--preset", "presets", multiple=True, metavar="POLICY=PRESET",
    help="A named bundle of settings; single --set win over it.",
)  # fmt: skip
@click.option(
    "--seed",
    metavar="S",
    type=click.IntRange(min=0),
    help="Seed of the policies' chance. [default: 0]",
)
@click.option("--seeds", metavar="A-B", help="Run every policy once with each seed from A to B.")
@click.option(
    "--until", "until_s", type=click.FloatRange(min=0), metavar="S",
    help="Stop after this second of the trace.",
)  # fmt: skip
@click.option(
    "--shares", default="", metavar="VO=SHARE,...",
    help="Fair shares of the VOs, summing to 1. Without: equal shares.",
)  # fmt: skip
@click.option(
    "--ledger", type=file_path(dir_okay=False), metavar="FILE",
    help="Keep every decision with its scores, for `outrider ledger`. Of several runs each gets a "
    "file of its own: runs.sqlite becomes runs-POLICY-SEED.sqlite (of several traces, "
    "runs-TRACE-POLICY-SEED.sqlite).",
)  # fmt: skip
@click.option(
    "--skip-bad", is_flag=True, help="Leave out bad rows and count them, not refuse them."
)
@click.option("--machines", type=int, hidden=True)
@json_option
def command(
    traces: tuple[Path, ...],
    policies: tuple[str, ...],
    settings: tuple[str, ...],
    presets: tuple[str, ...],
    seed: int | None,
    seeds: str | None,
    until_s: float | None,
    shares: str,
    ledger: Path | None,
    skip_bad: bool,
    machines: int | None,
    as_json: bool,
) -> None:
    """Run a trace under policies and compare what they would bring.

    Use it before you let a policy near a site, and to choose its settings. Each TRACE is a campus
    folder (site.toml, machines.csv, owners.csv, jobs.csv); each policy runs each trace by itself,
    from an empty queue, and does act on the virtual site. The same trace, policy, settings and
    seed give the same decisions: the same ledger_sha256.

    Example:
      outrider generate campus --seed 1 --weeks 4 --machines 200 --out campus
      outrider replay campus --policy random_match --policy bandit --set bandit.epsilon=0.05

    Waits and overheads are shown in minutes (in --json: seconds), energies in kilowatt-hours (in
    --json: watt-hours).
    """
    from outrider.cli.trials import Terms, plan, run_trial

    _refuse_repeats(policies, "--policy")
    if machines is not None:
        raise ConfigurationError(
            "--machines: a campus names its machines in machines.csv; the option is for workload "
            "files (.swf), which this version does not replay yet"
        )
    if seed is not None and seeds is not None:
        raise ConfigurationError("--seed and --seeds: give one of them")
    seed_list = range(seed or 0, (seed or 0) + 1) if seeds is None else seed_range(seeds)
    terms = Terms(
        settings_by_policy(settings, policies),
        preset_by_policy(presets, policies),
        until_s,
        share_table(shares),
    )
    for name in policies:  # refuse what is wrong before a long run, not after it
        _refuse_recorded(name)
        terms.make(name, 0)
    if ledger is not None:
        _refuse_repeats([trace.resolve().name for trace in traces], "--ledger: traces named")
    runs = []
    for trace in traces:
        campus = _read(trace, skip_bad)
        for trial in plan(shown(trace), list(policies), seed_list, ledger, len(traces) > 1):
            with progress_bar(f"{campus.name} {trial.policy} {trial.seed}") as progress:
                runs.append(run_trial(trial, campus, terms, progress))
    if as_json:
        print_json({"runs": runs})
    else:
        _show(runs)


def _read(trace: Path, skip_bad: bool) -> Any:
    if not trace.is_dir() and (trace.is_file() or ".swf" in trace.suffixes):
        raise TraceError(
            f"{shown(trace)}: workload files (.swf) cannot be replayed in this version yet; "
            "right would be a campus folder with a site.toml"
        )
    from outrider.virtual.campus_files import read_campus

    return read_campus(trace, skip_bad=skip_bad)


def _refuse_recorded(name: str) -> None:
    if name == "recorded":
        raise ConfigurationError(
            "--policy recorded: that is what a trace's own scheduler did, and a campus has none; "
            "random_match is the nearest"
        )


def _refuse_repeats(words: Any, option: str) -> None:
    repeated = sorted({word for word in words if list(words).count(word) > 1})
    if repeated:
        raise ConfigurationError(f"{option} {repeated[0]}: given more than once")


# -- for people ---------------------------------------------------------------------------------


def _show(runs: list[dict[str, Any]]) -> None:
    for trace in dict.fromkeys(run["trace"] for run in runs):
        of_trace = [run for run in runs if run["trace"] == trace]
        first = of_trace[0]
        title = (
            f"{trace}: {count(first['machines'])} machines, {count(first['owner_sessions'])} owner "
            f"sessions, {count(first['jobs']['submitted'])} jobs, "
            f"{figure(first['span_s'], 86_400)} days"
        )
        for start in range(0, len(of_trace), _RUNS_A_TABLE):
            some = of_trace[start : start + _RUNS_A_TABLE]
            names = [f"{run['policy']}\nseed {run['seed']}" for run in some]
            columns = [_column(run) for run in some]
            rows = [[label, *(column[label] for column in columns)] for label in columns[0]]
            print_table(title, ["", *names], rows)
        skipped = first["jobs"]["skipped"]
        if skipped:
            reasons = ", ".join(f"{n} {reason}" for reason, n in skipped.items())
            click.echo(f"left out: {reasons}")
    for run in runs:
        if run["ledger"]:
            click.echo(f"ledger of {run['policy']} (seed {run['seed']}): {run['ledger']}")


def _column(run: dict[str, Any]) -> dict[str, str]:
    """One run as the table shows it: label with its unit, and the figure."""
    wait, overhead = run["wait_s"]["all"], run["overhead_s"]["all"]
    energy, jobs, holds = run["energy_wh"], run["jobs"], run["holds"]
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
        "jobs removed": count(jobs["removed"]),
        "longest hold [h]": figure(run["hold_s"]["max"], 3600.0),
        "jobs held, bad / good": f"{count(holds['held_bad'])} / {count(holds['held_good'])}",
        "time taken [s]": figure(run["wall_s"]),
        "ledger_sha256": run["ledger_sha256"][:12],
    }
