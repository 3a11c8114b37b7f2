"""``outrider compare``: policies on workload files, job by job, beside published baselines."""

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
    workload_options,
)
from outrider.cli.printing import MISSING, count, figure, print_json, print_table, shown
from outrider.cli.progress import progress_bar
from outrider.model.errors import ConfigurationError

_POLICIES_A_TABLE = 4
_MINUTE_S = 60.0
_DAY_S = 86_400.0


@click.command("compare", short_help="Compare policies on workload files, job by job.")
@click.argument(
    "traces",
    nargs=-1,
    required=True,
    metavar="TRACE...",
    type=file_path(exists=True, dir_okay=False),
)
@click.option(
    "--policy", "policies", multiple=True, required=True, metavar="NAME",
    shell_complete=policy_names,
    help="A policy to compare; give it again for more. The published baselines always run beside.",
)  # fmt: skip
@click.option(
    "--baseline", default="fifo", metavar="NAME", show_default=True, shell_complete=policy_names,
    help="The policy all others are held against.",
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
    "--shares", default="", metavar="VO=SHARE,...",
    help="Fair shares of the VOs, summing to 1. Without: equal shares.",
)  # fmt: skip
@click.option(
    "--seeds", default="0-0", metavar="A-B", show_default=True,
    help="Seeds of the policies' chance and of the estimates'; a job's figures are means over "
    "them.",
)  # fmt: skip
@click.option(
    "--block", "block_s", type=click.FloatRange(min=0, min_open=True), default=_DAY_S,
    show_default=True, metavar="S",
    help="Jobs submitted within such a stretch are drawn together for the intervals.",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N",
    help="Processes. [default: the cores there are]",
)  # fmt: skip
@workload_options
@json_option
def command(
    traces: tuple[Path, ...],
    policies: tuple[str, ...],
    baseline: str,
    settings: tuple[str, ...],
    presets: tuple[str, ...],
    shares: str,
    seeds: str,
    block_s: float,
    workers: int | None,
    as_json: bool,
    **of_workloads: Any,
) -> None:
    """Compare policies on workload files, job by job.

    Use it to see whether a policy is better than what others published, and how surely. Each TRACE
    is a Standard Workload Format file (.swf, .swf.gz); every policy runs it by itself, and beside
    it the published baselines fifo (FCFS), sjf, wfp3, unicep and f1. Differences are taken job by
    job, with 95 % intervals from resampled stretches of time: "better" and "worse" are said only
    where the interval leaves out 0. The best published baseline is chosen on each trace after the
    fact, by its mean bounded slowdown.

    Example:
      outrider compare kth.swf.gz lcg.swf.gz --policy edf --estimates lognormal:1.0

    Waits are shown in minutes (in --json: seconds).
    """
    from outrider.cli.workload_terms import workload_terms
    from outrider.lab.comparison.comparison import Plan, compare
    from outrider.lab.comparison.running import Candidate, Conditions
    from outrider.lab.workers import cores

    _refuse_repeats("--policy", policies)
    _refuse_repeats("TRACE", [shown(trace) for trace in traces])
    terms = workload_terms(of_workloads)
    named = tuple(dict.fromkeys((*policies, baseline)))
    given, preset = settings_by_policy(settings, named), preset_by_policy(presets, named)
    plan = Plan(
        [shown(trace) for trace in traces],
        [Candidate(name, given[name], preset[name]) for name in named],
        baseline,
        seed_range(seeds),
        Conditions(
            estimates=of_workloads["estimates"] or "exact",
            backfill=terms.backfill,
            machines=terms.machines,
            interactive_below_s=terms.interactive_below_s,
            vo=terms.vo,
            shares=share_table(shares),
            utilities=terms.utilities,
        ),
        block_s,
    )
    with progress_bar("comparing") as progress:
        result = compare(plan, workers or cores(), progress)
    if as_json:
        print_json(result)
    else:
        _show(result)


def _refuse_repeats(option: str, words: Any) -> None:
    repeated = sorted({word for word in words if list(words).count(word) > 1})
    if repeated:
        raise ConfigurationError(f"{option} {repeated[0]}: given more than once")


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    reference = result["settings"]["reference"]
    for trace in result["traces"]:
        _show_figures(trace)
        _show_differences(trace, reference)
    if len(result["traces"]) > 1:
        _show_over_traces(result["over_traces"], reference)


def _show_figures(trace: dict[str, Any]) -> None:
    title = (
        f"{trace['trace']}: {count(trace['machines'])} machines, {count(trace['jobs'])} jobs, "
        f"{figure(trace['span_s'], _DAY_S)} days"
    )
    policies = trace["policies"]
    for start in range(0, len(policies), _POLICIES_A_TABLE):
        some = policies[start : start + _POLICIES_A_TABLE]
        columns = [_column(one) for one in some]
        rows = [[label, *(column[label] for column in columns)] for label in columns[0]]
        print_table(title, ["", *(one["policy"] for one in some)], rows)
    left_out = dict(trace["skipped"])
    if trace["left_out"]:
        left_out["not completed under every policy"] = trace["left_out"]
    if left_out:
        click.echo("left out: " + ", ".join(f"{n} {why}" for why, n in left_out.items()))


def _column(one: dict[str, Any]) -> dict[str, str]:
    """One policy as the table shows it: label with its unit, and the figure."""
    out = {"bounded slowdown, mean": figure(one["bounded_slowdown"]["all"]["mean"], digits=2)}
    for name, waits in one["wait_s"]["by_class"].items():
        out |= {
            f"wait, {name}, {k} [min]": figure(waits[k], _MINUTE_S)
            for k in ("mean", "median", "p95", "max")
        }
    fairness = one["fairness"]
    return out | {
        "fairness, mean over time": figure(fairness["time_mean"], digits=3),
        "fairness, windowed": figure(fairness["windowed"], digits=3),
    }


def _show_differences(trace: dict[str, Any], reference: str) -> None:
    best = trace["best_published"]
    _show_less("bounded slowdown", trace, "against_reference", reference)
    if best != reference:
        _show_less("bounded slowdown", trace, "against_best_published", best)
    if "interactive" in trace["policies"][0]["wait_s"]["by_class"]:
        _show_less("interactive wait [min]", trace, "against_reference", reference, _MINUTE_S)


def _show_less(
    name: str, trace: dict[str, Any], against: str, other: str, per: float = 1.0
) -> None:
    """A table of differences from another policy."""
    rows = []
    for one in trace["policies"]:
        found = one[against]
        if found is None:
            continue
        less = found["bounded_slowdown"]
        if "wait" in name:
            less = found["wait_s"]["by_class"]["interactive"]
        rows.append(
            [one["policy"], figure(less["difference"], per, 2), _interval(less, per),
             less["verdict"]]
        )  # fmt: skip
    best = ", the best published" if against == "against_best_published" else ""
    title = f"{name}, minus that of {other}{best}"
    print_table(title, ("", "difference", "95 % interval", "verdict"), rows)


def _interval(one: dict[str, Any], per: float = 1.0) -> str:
    """An interval, or that there is none."""
    if one["interval"] is None:
        return MISSING
    low, high = one["interval"]
    return f"{figure(low, per, 2)} to {figure(high, per, 2)}"


def _show_over_traces(rows: list[dict[str, Any]], reference: str) -> None:
    for against, other in (
        ("against_reference", reference),
        ("against_best_published", "the best published"),
    ):
        columns = ("", "better", "no diff.", "worse", "too short", "ratio", "95 % interval")
        lines = [(row["policy"], row[against]) for row in rows if row[against] is not None]
        print_table(
            f"traces by verdict on the bounded slowdown, and its ratio to that of {other}",
            columns,
            [[policy, *_over(one)] for policy, one in lines],
        )


def _over(one: dict[str, Any]) -> list[str]:
    counts = ("better", "no difference", "worse", "too short")
    return [*(count(one[name]) for name in counts), figure(one["ratio"], digits=2), _interval(one)]
