"""The command ``outrider reproduce perez``: SARSA on utility and fairness at a grid site."""

from itertools import groupby
from pathlib import Path
from typing import Any

import click

from outrider.cli.options import file_path, seed_range
from outrider.cli.printing import echo, print_table
from outrider.model.quantities import figure
from outrider_lab.commands.options import Asked, reproduction_options


@click.command("perez", short_help="SARSA for interactive jobs and fair shares (2008).")
@click.option(
    "--trace", "traces", multiple=True, metavar="FILE",
    type=file_path(exists=True, dir_okay=False),
    help="A workload file (.swf) of an EGEE-like site, in place of the generated windows of "
    "section VI.C; may be given several times.",
)  # fmt: skip
@reproduction_options(
    "Arrivals are drawn again for each seed.",
    "1-20",
    "1-2",
    "Few jobs and seeds: shows that it runs, decides no claim.",
)
def command(asked: Asked, traces: tuple[Path, ...]) -> int:
    """Run the experiments of Perez et al. (2008) on newly drawn arrivals.

    Use it to see what a learned order brings interactive jobs, what batch jobs pay for it, how it
    stands beside orders without learning, and which of the paper's claims hold. Waits are in
    seconds. See docs/reproducing-perez.md.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce perez --quick --report report
    """
    from outrider_lab.commands.reproducing import Output, reproduce
    from outrider_lab.papers.perez import Reproduction
    from outrider_lab.papers.perez.grid import FULL, QUICK
    from outrider_lab.papers.perez.page import PAGE
    from outrider_lab.reporting.flat_rows import set_apart
    from outrider_lab.training import FIRST_SEED

    # from there on seeds train: the shipped start has seen them
    drawn = seed_range(asked.seeds, below=FIRST_SEED)
    files = tuple(str(trace) for trace in dict.fromkeys(traces))
    study = Reproduction(QUICK if asked.quick else FULL, drawn, files)
    study.check_traces()
    return reproduce("perez", study, asked, Output(PAGE.html, _show, set_apart))


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    from outrider.simulation.estimates import in_words
    from outrider_lab.commands.reproducing import show_claims, size_in_words

    settings = result["settings"]
    echo(f"Perez et al. (2008): {len(settings['seeds'])} seeds, {size_in_words(result)}")
    echo(in_words(settings["truth"]))
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
