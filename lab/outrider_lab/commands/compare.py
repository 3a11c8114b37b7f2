"""Compare policies on workload files, job by job."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import Seconds, file_path, json_option, policy_names, seed_range
from outrider.cli.policies_on_traces import Asked, policies_on_traces, refuse_repeats
from outrider.cli.printing import echo, print_json, print_table, shown
from outrider.model.quantities import MISSING, count, duration, figure
from outrider_lab.commands.options import many_runs_options

SECTION = "Judge"


@click.command("compare", short_help="Compare policies on workload files, job by job.")
@policies_on_traces(
    "A policy to compare; give it again for more. The published baselines always run beside.",
    file_path(exists=True, dir_okay=False),
)
@click.option(
    "--baseline", default="fifo", metavar="NAME", show_default=True, shell_complete=policy_names,
    help="The policy all others are held against.",
)  # fmt: skip
@click.option(
    "--seeds", default="0-0", metavar="A-B", show_default=True,
    help="Seeds of the policies' chance and of the estimates'; a job's figures are means over "
    "them.",
)  # fmt: skip
@click.option(
    "--block", "block_s", type=Seconds(min=0, min_open=True), metavar="S",
    help="Jobs submitted within such a stretch are drawn together for the intervals; never below "
    "the mean wait. [default: chosen from the waits' autocorrelation]",
)  # fmt: skip
@many_runs_options
@json_option
def command(
    asked: Asked,
    baseline: str,
    seeds: str,
    block_s: float | None,
    workers: int | None,
    resume: bool | None,
    runs: Path | None,
    as_json: bool,
) -> int:
    """Compare policies on workload files, job by job.

    Use it to see whether a policy is better than what others published, and how surely. Each TRACE
    is a Standard Workload Format file (.swf, .swf.gz); every policy runs it by itself, and beside
    it the published baselines fifo (FCFS), sjf, wfp3, unicep and f1. Differences are taken job by
    job, with 95 % intervals from resampled stretches of time: "better" and "worse" are said only
    where the interval leaves out 0, and nothing is said of fewer than ten stretches. The best
    published baseline is chosen on each trace after the fact, by its mean bounded slowdown.

    Example:
      outrider compare kth.swf.gz lcg.swf.gz --policy edf --estimates lognormal:1.0

    Waits are shown in minutes (in --json: seconds). Exit code 1: a run failed; it is named, and the
    others are compared.
    """
    from outrider_lab.commands.compare import show_comparison
    from outrider_lab.commands.many_runs import Keeping, executed, name_failures
    from outrider_lab.comparison.function import study_of

    refuse_repeats([shown(trace) for trace in asked.traces], "TRACE")
    named = tuple(dict.fromkeys((*asked.policies, baseline)))
    given, preset = asked.given_to(named)
    study = study_of(
        [shown(trace) for trace in asked.traces],
        {name: (given[name], preset[name]) for name in named},
        baseline,
        seed_range(seeds),
        asked.terms(),
        asked.share_table(),
        block_s,
    )
    with executed(study, Keeping("compare", workers, resume, runs)) as result:
        if as_json:
            print_json(result)
        else:
            show_comparison(result)
        return name_failures(result)


# -- comparison tables -----------------------------------------------------------------------------
# Tables of a comparison, for people.

_POLICIES_A_TABLE = 4
_MINUTE_S = 60.0
_DAY_S = 86_400.0


def show_comparison(result: dict[str, Any]) -> None:
    """Print the result of `outrider_lab.running.run_all.run_study` for a `Comparison`."""
    reference = result["settings"]["reference"]
    below_s = result["settings"]["interactive_below_s"]
    for trace in result["traces"]:
        _show_figures(trace, below_s)
        _show_differences(trace, reference)
    if len(result["traces"]) > 1:
        _show_over_traces(result["over_traces"], reference)


def _show_figures(trace: dict[str, Any], below_s: float) -> None:
    from outrider.simulation.estimates import in_words

    truth = in_words(trace["truth"])
    title = (
        f"{trace['trace']}: {count(trace['machines'])} machines, {count(trace['jobs'])} jobs, "
        f"{figure(trace['span_s'], _DAY_S)} days; classes {trace['class_source']}, "
        f"estimates {trace['estimates']}" + (f". {truth}" if truth else "")
    )
    policies = trace["policies"]
    for start in range(0, len(policies), _POLICIES_A_TABLE):
        some = policies[start : start + _POLICIES_A_TABLE]
        columns = [_column(one, below_s) for one in some]
        rows = [[label, *(column[label] for column in columns)] for label in columns[0]]
        print_table(title, ["", *(one["policy"] for one in some)], rows)
    if trace["fairness_note"]:
        echo(trace["fairness_note"])
    left_out = dict(trace["skipped"])
    if trace["left_out"]:
        left_out["not completed under every policy"] = trace["left_out"]
    if left_out:
        echo("left out: " + ", ".join(f"{n} {why}" for why, n in left_out.items()))


def _column(one: dict[str, Any], below_s: float) -> dict[str, str]:
    """Return one policy as the table shows it: label with its unit, and the figure."""
    out = {"bounded slowdown, mean": figure(one["bounded_slowdown"]["all"]["mean"], digits=2)}
    for name, waits in one["wait_s"]["by_class"].items():
        out |= {
            f"wait, {name}, {k} [min]": figure(waits[k], _MINUTE_S)
            for k in ("mean", "median", "p95", "max")
        }
    below = figure(below_s, digits=0)
    for name, words in (("short", f"ran < {below} s"), ("long", f"ran >= {below} s")):
        waits = one["wait_s"]["by_length"][name]
        out |= {f"wait, {words}, {k} [min]": figure(waits[k], _MINUTE_S) for k in ("mean", "p95")}
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
    """Print a table of differences from another policy."""
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
             f"{less['blocks']} of {duration(less['block_s'])}", less["verdict"]]
        )  # fmt: skip
    best = ", the best published" if against == "against_best_published" else ""
    title = f"{name}, minus that of {other}{best}"
    print_table(title, ("", "difference", "95 % interval", "blocks", "verdict"), rows)


def _interval(one: dict[str, Any], per: float = 1.0) -> str:
    """Return an interval in words, or that there is none."""
    if one["interval"] is None:
        return MISSING
    low, high = one["interval"]
    return f"{figure(low, per, 2)} to {figure(high, per, 2)}"


def _show_over_traces(rows: list[dict[str, Any]], reference: str) -> None:
    for against, other in (
        ("against_reference", reference),
        ("against_best_published", "the best published"),
    ):
        columns = ("", "better", "undecided", "worse", "too small", "ratio", "95 % interval")
        lines = [(row["policy"], row[against]) for row in rows if row[against] is not None]
        print_table(
            f"traces by verdict on the bounded slowdown, and its ratio to that of {other}",
            columns,
            [[policy, *_over(one)] for policy, one in lines],
        )


def _over(one: dict[str, Any]) -> list[str]:
    counts = ("better", "undecided", "worse", "too small")
    return [*(count(one[name]) for name in counts), figure(one["ratio"], digits=2), _interval(one)]
