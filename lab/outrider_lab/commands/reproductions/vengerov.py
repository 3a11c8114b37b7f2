"""``outrider reproduce vengerov``: preempting and shrinking by a learned value of the machine."""

from typing import Any

import click

from outrider.cli.options import seed_range
from outrider.cli.printing import echo, print_table
from outrider.model.quantities import figure, percent
from outrider_lab.commands.options import Asked, reproduction_options


@click.command("vengerov", short_help="Preemption and shrinking by learned values (2005).")
@reproduction_options(
    "Arrivals are drawn again for each seed.",
    "1-50",
    "1-2",
    "Few steps: shows that it runs, decides no claim.",
)
def command(asked: Asked) -> int:
    """Run the experiments of Vengerov (2005) on newly drawn arrivals.

    Use it to see what preemption and shrinking bring a machine of 24 CPUs, whether learning when
    to do so is better than always doing so, and which of the paper's claims hold. Utility is in
    thousands of CPU-seconds. See docs/reproducing-vengerov.md.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce vengerov --quick --report report
    """
    from outrider_lab.commands.reproducing import Output, reproduce
    from outrider_lab.papers.vengerov import Reproduction
    from outrider_lab.papers.vengerov.grid import FULL, QUICK
    from outrider_lab.papers.vengerov.machine_run import TRAINING_SEEDS
    from outrider_lab.papers.vengerov.page import PAGE
    from outrider_lab.reporting.flat_rows import set_apart

    drawn = seed_range(asked.seeds, below=TRAINING_SEEDS)
    study = Reproduction(QUICK if asked.quick else FULL, drawn)
    return reproduce("vengerov", study, asked, Output(PAGE.html, _show, set_apart))


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    from outrider.simulation.estimates import in_words
    from outrider_lab.commands.reproducing import show_claims, size_in_words

    settings = result["settings"]
    title = f"Vengerov (2005): {len(settings['seeds'])} runs, {size_in_words(result)}"
    echo(in_words(settings["truth"]))
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
        percent(row["utilisation_ratio"]),
    ]
