"""``outrider reproduce mcgough``: bandits against evictions and wasted energy."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import json_option, seed_range
from outrider.cli.printing import figure, print_table, ratio
from outrider.cli.progress import progress_bar
from outrider.cli.reproductions.conclusion import conclude, make_folder, report_option, show_claims

_FULL_SEEDS = "1-4"
_QUICK_SEEDS = "1-2"


@click.command("mcgough", short_help="Bandits against evictions and wasted energy (2015).")
@click.option(
    "--seeds", metavar="A-B",
    help=f"One generated year for each seed. [default: {_FULL_SEEDS}; quick: {_QUICK_SEEDS}]",
)  # fmt: skip
@click.option(
    "--quick", is_flag=True,
    help="A small pool, few weeks, a thin grid: shows that it runs, decides no claim.",
)  # fmt: skip
@click.option(
    "--workers", metavar="N", type=click.IntRange(min=1),
    help="Processes; each holds a year in memory (about 400 MB). [default: the cores there are]",
)  # fmt: skip
@report_option
@click.option(
    "--resume", is_flag=True,
    help="Go on where a report that was stopped stood: its finished runs are in --report DIR.",
)  # fmt: skip
@json_option
def command(
    seeds: str | None, quick: bool, workers: int | None, report: Path | None, resume: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Run the experiments of McGough and Forshaw (2015) on generated years.

    Use it to see what the paper's bandits save, at which price, beside static rules, other
    learners and bounds, and which of the paper's claims hold. At full size it takes hours; see
    docs/reproducing-mcgough.md. Energies are in megawatt-hours, overheads in minutes. With
    --report, each finished run is kept there until the report is written.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce mcgough --quick --report report
    """
    from outrider.lab.cells import check_cells
    from outrider.lab.kept_runs import KeptRuns
    from outrider.lab.mcgough import plan, reproduce
    from outrider.lab.mcgough.grid import FULL, QUICK
    from outrider.lab.mcgough.page import html
    from outrider.lab.workers import cores

    size = QUICK if quick else FULL
    years = seed_range(seeds or (_QUICK_SEEDS if quick else _FULL_SEEDS))
    make_folder(report)
    check_cells([cell for _, cell in plan(size, years[:1])])
    if resume and report is None:
        raise click.UsageError("--resume goes on with the runs in --report DIR, which is not given")
    with KeptRuns(report, resume) as kept:
        with progress_bar("mcgough") as progress:
            result = reproduce(size, years, workers or cores(), progress, kept)
        code = conclude(result, report, as_json, html, _show)
        if not code:
            kept.done()
    return code


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    settings = result["settings"]
    size = "quick, too small for verdicts" if settings["quick"] else "full size"
    title = f"McGough and Forshaw (2015): {len(settings['seeds'])} years, {size}"
    columns = ("", "epoch\n[min]", "saving", "overhead\n[ratio]", "mean\n[min]", "p99\n[min]",
               "max\n[h]", "unfinished")  # fmt: skip
    print_table(title, columns, [_line(row) for row in result["rows"]])
    show_claims(result)


def _line(row: dict[str, Any]) -> list[str]:
    overhead = row["overhead_min"]
    return [
        row["variant"],
        figure(row["reconsider_s"], 60.0, digits=0),
        ratio(row["saving_ratio"]),
        figure(row["overhead_ratio"], digits=2),
        figure(overhead["mean"]),
        figure(overhead["p99"], digits=0),
        figure(overhead["max"], 60.0, digits=0),
        figure(row["unfinished"]),
    ]
