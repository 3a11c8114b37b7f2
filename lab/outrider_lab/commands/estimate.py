"""Score run time estimators on workload files."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import class_by_option, estimator_names, file_path, json_option
from outrider.cli.printing import echo, print_json, print_table, shown
from outrider.cli.terminal import progress_bar
from outrider.model.errors import ConfigurationError
from outrider.model.quantities import count, duration, figure, percent

SECTION = "Judge"

_ESTIMATORS = ("learned", "last_two", "user")


@click.command("estimate", short_help="Score run time estimators on workload files.")
@click.argument("traces", nargs=-1, required=True, metavar="TRACE...", type=file_path())
@click.option(
    "--estimator", "estimators", multiple=True, metavar="NAME",
    shell_complete=estimator_names,
    help="An estimator to score; give it again for more. The first is held against the others. "
    f"[default: {', '.join(_ESTIMATORS)}]",
)  # fmt: skip
@click.option("--machines", type=click.IntRange(min=1), metavar="N", help="CPUs in place of the "
              "header's MaxProcs.")  # fmt: skip
@click.option(
    "--vo", type=click.Choice(["group", "user", "queue", "partition"]), default="group",
    show_default=True, help="The column that says which VO a job belongs to.",
)  # fmt: skip
@class_by_option
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="S",
    help="Of the estimators' chance and of the resampling.",
)  # fmt: skip
@json_option
def command(
    traces: tuple[Path, ...],
    estimators: tuple[str, ...],
    machines: int | None,
    vo: str,
    class_by: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Score run time estimators on workload files.

    Use it to see how far what users ask for is from what their jobs take, and how much of that an
    estimator would have known. Each TRACE is a Standard Workload Format file (.swf, .swf.gz). An
    estimator is asked when a job is submitted and told when it ends, as in the daemon: it never
    hears of what is later.

    The pinball loss is an estimator's error with each side weighed by what was promised; less is
    better. "Better" and "worse" are said where 95 % intervals, over weeks and over users, both
    leave out 0.

    Example:
      outrider estimate kth.swf.gz --estimator learned --estimator user
    """
    from outrider.cli.provenance import provenance
    from outrider.formats.job_classes import class_rule
    from outrider.formats.swf.reading import read_swf
    from outrider.plugins.finding import make_estimator
    from outrider.simulation.estimates import LEARNED, oracle_used
    from outrider_lab.estimates import collect_estimates, score

    names = estimators or _ESTIMATORS
    if len(set(names)) < len(names):
        raise ConfigurationError("--estimator: one is given more than once")
    for name in names:  # refuse what is wrong before a long run, not after it
        make_estimator(name, seed, "--estimator")
    rule = None if class_by is None else class_rule(class_by)
    workloads = [read_swf(trace, machines=machines, class_by=rule, vo=vo) for trace in traces]
    results = []
    with progress_bar("scoring") as progress:
        for number, workload in enumerate(workloads):
            made = {name: make_estimator(name, seed, "--estimator") for name in names}
            estimates = collect_estimates(workload, made)
            sources = {
                "class_source": workload.class_source,
                "truth": oracle_used(workload.class_source, LEARNED),
            }
            results.append(score(workload, estimates, seed) | sources)
            if progress is not None:
                progress((number + 1) / len(traces))
    if as_json:
        origin = provenance(traces)
        both = zip(origin["traces"], results, strict=True)
        print_json(origin | {"traces": [trace | result for trace, result in both]})
        return
    for result in results:
        _show(result)


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    from outrider.simulation.estimates import in_words

    truth = in_words(result["truth"])
    title = (
        f"{shown(result['trace'])}: {count(result['scored'])} of {count(result['jobs'])} jobs; "
        f"classes {result['class_source']}" + (f". {truth}" if truth else "")
    )
    columns = ("", "wrong by\nfactor", "loss at .5\n[min]", "at .1", "at .9", "log loss\nat .5",
               "range\nholds", "in weeks,\np10-p90")  # fmt: skip
    rows = [[name, *_cells(one)] for name, one in result["scores"].items()]
    print_table(title, columns, rows)
    if result["waits"] == "fcfs":
        echo("the trace has no waits: jobs ended as under first come, first served")
    for name in result["silent"]:
        echo(f"{name} had no opinion of any job")
    lines = [
        [f"{result['first']} / {name}", unit.replace("_", " "), figure(one["ratio"], digits=2),
         *(_interval(one, by) for by in ("time", "users")), one["verdict"]]
        for name, found in result["against"].items()
        for unit, one in ((unit, found[f"median_{unit}"]) for unit in ("seconds", "log_seconds"))
    ]  # fmt: skip
    blocks = result["blocks"]
    over_time = f"95 % over\n{blocks['time']} blocks of\n{duration(result['block_s'])}"
    over_users = f"95 % over\n{blocks['users']} users"
    print_table(
        "differences of the loss at .5; below 0: the first is better",
        ("", "loss in", "ratio", over_time, over_users, "verdict"),
        lines,
    )


def _cells(one: dict[str, Any]) -> list[str]:
    losses = one["pinball_seconds"]
    weeks = one["coverage_by_week"]
    return [
        figure(one["factor"], digits=2),
        *(figure(losses[level], 60.0) for level in ("0.5", "0.1", "0.9")),
        figure(one["pinball_log_seconds"]["0.5"], digits=3),
        percent(one["coverage"]),
        "-" if weeks is None else f"{100 * weeks['p10']:.0f}-{100 * weeks['p90']:.0f} %",
    ]


def _interval(one: dict[str, Any], by: str) -> str:
    found = one["interval"][by]
    if found is None:
        return "-"
    low, high = found
    digits = 3 if abs(high) < 10 else 0
    return f"{low:,.{digits}f} to {high:,.{digits}f}"
