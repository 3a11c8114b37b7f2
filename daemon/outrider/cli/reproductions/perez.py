"""``outrider reproduce perez``: SARSA on utility and fairness in a grid site's queue."""

from itertools import groupby
from pathlib import Path
from typing import Any

import click

from outrider.cli.options import file_path, json_option, seed_range, workers_option
from outrider.cli.printing import figure, print_table
from outrider.cli.progress import progress_bar
from outrider.cli.reproductions.conclusion import conclude, make_folder, report_option, show_claims

_FULL_SEEDS = "1-20"
_QUICK_SEEDS = "1-2"


@click.command("perez", short_help="SARSA for interactive jobs and fair shares (2008).")
@click.option(
    "--seeds", metavar="A-B",
    help=f"Arrivals are drawn anew for each seed. [default: {_FULL_SEEDS}; quick: {_QUICK_SEEDS}]",
)  # fmt: skip
@click.option(
    "--quick", is_flag=True, help="Few jobs and seeds: shows that it runs, decides no claim."
)
@click.option(
    "--trace", "traces", multiple=True, metavar="FILE",
    type=file_path(exists=True, dir_okay=False),
    help="A workload file (.swf) of an EGEE-like site, in place of the generated windows of "
    "section VI.C; may be given several times.",
)  # fmt: skip
@workers_option
@report_option
@json_option
def command(
    seeds: str | None,
    quick: bool,
    traces: tuple[Path, ...],
    workers: int | None,
    report: Path | None,
    as_json: bool,
) -> int:
    """Run the experiments of Perez et al. (2008) on newly drawn arrivals.

    Use it to see what a learned order brings interactive jobs, what batch jobs pay for it, how it
    stands beside orders without learning, and which of the paper's claims hold. Waits are in
    seconds. See docs/reproducing-perez.md.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce perez --quick --report report
    """
    from outrider.lab.apart import set_apart
    from outrider.lab.perez import reproduce
    from outrider.lab.perez.grid import FULL, QUICK
    from outrider.lab.perez.page import html
    from outrider.lab.perez.trial import check_trials
    from outrider.lab.training import FIRST_SEED
    from outrider.lab.workers import cores

    size = QUICK if quick else FULL
    # from there on seeds train: the shipped start has seen them
    drawn = seed_range(seeds or (_QUICK_SEEDS if quick else _FULL_SEEDS), below=FIRST_SEED)
    files = tuple(str(trace) for trace in dict.fromkeys(traces))
    make_folder(report)
    check_trials(size, drawn, files)
    with progress_bar("perez") as progress:
        result = reproduce(size, drawn, workers or cores(), files, progress)
    return conclude(result, report, as_json, html, _show, set_apart)


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    settings = result["settings"]
    size = "quick, too small for verdicts" if settings["quick"] else "full size"
    click.echo(f"Perez et al. (2008): {len(settings['seeds'])} seeds, {size}")
    columns = ("", "inter-\nactive\n[s]", "max\n[s]", "batch\n[s]", "max\n[s]", "gain\nover\nFIFO",
               "fair-\nness", "col-\nlapsed\nruns")  # fmt: skip
    for situation, rows in groupby(result["rows"], _situation):
        print_table(situation, columns, [_line(row) for row in rows])
    show_claims(result)


def _situation(row: dict[str, Any]) -> str:
    place = row["trace"] or f"row {row['row']}"
    return f"{place}, {row['targets']} shares, run times {row['estimates']}"


def _line(row: dict[str, Any]) -> list[str]:
    interactive, batch = row["interactive_wait_s"], row["batch_wait_s"]
    gain = row["gain_over_fifo"] or {}
    return [
        row["variant"],
        figure(interactive["mean"]),
        figure(interactive["max"], digits=0),
        figure(batch["mean"], digits=0),
        figure(batch["max"], digits=0),
        figure(gain.get("ratio")),
        figure(row["fairness"], digits=3),
        "-" if row["collapsed"] is None else str(row["collapsed"]),
    ]
