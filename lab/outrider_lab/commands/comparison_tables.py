"""Tables of a comparison, for people."""

from typing import Any

import click

from outrider.cli.printing import MISSING, count, duration, figure, print_table
from outrider.simulation.truth_told import in_words

_POLICIES_A_TABLE = 4
_MINUTE_S = 60.0
_DAY_S = 86_400.0


def show_comparison(result: dict[str, Any]) -> None:
    """What `outrider_lab.running.study.run_study` returned for a `Comparison`."""
    reference = result["settings"]["reference"]
    below_s = result["settings"]["interactive_below_s"]
    for trace in result["traces"]:
        _show_figures(trace, below_s)
        _show_differences(trace, reference)
    if len(result["traces"]) > 1:
        _show_over_traces(result["over_traces"], reference)


def _show_figures(trace: dict[str, Any], below_s: float) -> None:
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
        click.echo(trace["fairness_note"])
    left_out = dict(trace["skipped"])
    if trace["left_out"]:
        left_out["not completed under every policy"] = trace["left_out"]
    if left_out:
        click.echo("left out: " + ", ".join(f"{n} {why}" for why, n in left_out.items()))


def _column(one: dict[str, Any], below_s: float) -> dict[str, str]:
    """One policy as the table shows it: label with its unit, and the figure."""
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
             f"{less['blocks']} of {duration(less['block_s'])}", less["verdict"]]
        )  # fmt: skip
    best = ", the best published" if against == "against_best_published" else ""
    title = f"{name}, minus that of {other}{best}"
    print_table(title, ("", "difference", "95 % interval", "blocks", "verdict"), rows)


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
