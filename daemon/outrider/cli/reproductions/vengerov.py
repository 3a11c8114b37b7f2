"""``outrider reproduce vengerov``: preempting and shrinking by a learned value of the machine."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import json_option, seed_range, workers_option
from outrider.cli.printing import figure, print_table, ratio
from outrider.cli.progress import progress_bar
from outrider.cli.reproductions.conclusion import conclude, make_folder, report_option, show_claims

_FULL_SEEDS = "1-50"
_QUICK_SEEDS = "1-2"


@click.command("vengerov", short_help="Preemption and shrinking by learned values (2005).")
@click.option(
    "--seeds", metavar="A-B",
    help=f"Arrivals are drawn anew for each seed. [default: {_FULL_SEEDS}; quick: {_QUICK_SEEDS}]",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Few steps: shows that it runs, decides no claim.")
@workers_option
@report_option
@json_option
def command(
    seeds: str | None, quick: bool, workers: int | None, report: Path | None, as_json: bool
) -> int:
    """Run the experiments of Vengerov (2005) on newly drawn arrivals.

    Use it to see what preemption and shrinking bring a machine of 24 CPUs, whether learning when
    to do so is better than always doing so, and which of the paper's claims hold. Utility is in
    thousands of CPU-seconds. See docs/reproducing-vengerov.md.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce vengerov --quick --report report
    """
    from outrider.lab.apart import set_apart
    from outrider.lab.vengerov import plan, reproduce
    from outrider.lab.vengerov.experiment import TRAINING_SEEDS
    from outrider.lab.vengerov.grid import FULL, QUICK
    from outrider.lab.vengerov.page import html
    from outrider.lab.workers import cores

    size = QUICK if quick else FULL
    drawn = seed_range(seeds or (_QUICK_SEEDS if quick else _FULL_SEEDS), below=TRAINING_SEEDS)
    make_folder(report)
    for experiment in plan(size, drawn[:1]):
        experiment.make_policy()
    with progress_bar("vengerov") as progress:
        result = reproduce(size, drawn, workers or cores(), progress)
    return conclude(result, report, as_json, html, _show, set_apart)


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    settings = result["settings"]
    size = "quick, too small for verdicts" if settings["quick"] else "full size"
    title = f"Vengerov (2005): {len(settings['seeds'])} runs, {size}"
    columns = ("", "rate", "steps", "shape", "utility\n[k]", "s.e.", "utilisation")
    print_table(title, columns, [_line(row) for row in result["rows"]])
    show_claims(result)


def _line(row: dict[str, Any]) -> list[str]:
    dropped = ", dropped" if row["drop_hopeless"] else ""
    return [
        row["label"] + dropped,
        f"{row['rate']:g}",
        row["steps"],
        row["shape"],
        figure(row["utility_k"]["mean"]),
        figure(row["utility_k"]["se"], digits=2),
        ratio(row["utilisation_ratio"]),
    ]
