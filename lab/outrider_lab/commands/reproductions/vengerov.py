"""``outrider reproduce vengerov``: preempting and shrinking by a learned value of the machine."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import seed_range
from outrider.cli.printing import figure, print_table, ratio
from outrider_lab.commands.options import reproduction_options

_FULL_SEEDS = "1-50"
_QUICK_SEEDS = "1-2"


@click.command("vengerov", short_help="Preemption and shrinking by learned values (2005).")
@reproduction_options(
    "Arrivals are drawn anew for each seed.",
    _FULL_SEEDS,
    _QUICK_SEEDS,
    "Few steps: shows that it runs, decides no claim.",
)
def command(
    seeds: str | None, quick: bool, workers: int | None, resume: bool | None, runs: Path | None,
    report: Path | None, as_json: bool,
) -> int:  # fmt: skip
    """Run the experiments of Vengerov (2005) on newly drawn arrivals.

    Use it to see what preemption and shrinking bring a machine of 24 CPUs, whether learning when
    to do so is better than always doing so, and which of the paper's claims hold. Utility is in
    thousands of CPU-seconds. See docs/reproducing-vengerov.md.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce vengerov --quick --report report
    """
    from outrider_lab.commands.many_runs import Keeping
    from outrider_lab.commands.reproducing import Telling, reproduce
    from outrider_lab.papers.vengerov import Reproduction
    from outrider_lab.papers.vengerov.grid import FULL, QUICK
    from outrider_lab.papers.vengerov.machine_run import TRAINING_SEEDS
    from outrider_lab.papers.vengerov.page import html
    from outrider_lab.reporting.apart import set_apart

    drawn = seed_range(seeds or (_QUICK_SEEDS if quick else _FULL_SEEDS), below=TRAINING_SEEDS)
    study = Reproduction(QUICK if quick else FULL, drawn)
    keeping = Keeping("reproduce vengerov", workers, resume, runs, report)
    return reproduce(study, keeping, as_json, Telling(html, _show, set_apart))


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    from outrider_lab.commands.reproducing import show_claims

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
