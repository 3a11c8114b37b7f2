"""``outrider reproduce mcgough``: bandits against evictions and wasted energy."""

from typing import Any

import click

from outrider.cli.options import seed_range
from outrider.cli.printing import print_table
from outrider.model.quantities import figure, percent
from outrider_lab.commands.options import Asked, reproduction_options


@click.command("mcgough", short_help="Bandits against evictions and wasted energy (2015).")
@reproduction_options(
    "One generated year for each seed.",
    "1-4",
    "1-2",
    "A small pool, few weeks, a thin grid: shows that it runs, decides no claim.",
)
def command(asked: Asked) -> int:
    """Run the experiments of McGough and Forshaw (2015) on generated years.

    Use it to see what the paper's bandits save, at which price, beside static rules, other
    learners and bounds, and which of the paper's claims hold. At full size it takes hours; see
    docs/reproducing-mcgough.md. Energies are in megawatt-hours, overheads in minutes.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce mcgough --quick --report report
    """
    from outrider_lab.commands.reproducing import Output, reproduce
    from outrider_lab.papers.mcgough import Reproduction
    from outrider_lab.papers.mcgough.grid import FULL, QUICK
    from outrider_lab.papers.mcgough.page import PAGE

    drawn = seed_range(asked.seeds)
    study = Reproduction(QUICK if asked.quick else FULL, drawn)
    return reproduce("mcgough", study, asked, Output(PAGE.html, _show))


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    from outrider_lab.commands.reproducing import show_claims, size_in_words

    settings = result["settings"]
    title = f"McGough and Forshaw (2015): {len(settings['seeds'])} years, {size_in_words(result)}"
    columns = ("", "epoch\n[min]", "saving", "overhead\n[ratio]", "mean\n[min]", "p99\n[min]",
               "max\n[h]", "unfinished")  # fmt: skip
    print_table(title, columns, [_line(row) for row in result["rows"]])
    show_claims(result)


def _line(row: dict[str, Any]) -> list[str]:
    overhead = row["overhead_min"]
    return [
        row["variant"],
        figure(row["reconsider_s"], 60.0, digits=0),
        percent(row["saving_ratio"]),
        figure(row["overhead_ratio"], digits=2),
        figure(overhead["mean"]),
        figure(overhead["p99"], digits=0),
        figure(overhead["max"], 60.0, digits=0),
        figure(row["unfinished"]),
    ]
