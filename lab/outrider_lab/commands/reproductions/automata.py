"""``outrider reproduce automata``: learning automata on users and nodes."""

from typing import Any

import click

from outrider.cli.options import seed_range
from outrider.cli.printing import print_table
from outrider.model.quantities import figure
from outrider_lab.commands.options import Asked, reproduction_options

_SHOWN = {
    "stationary": ("p_best", "locked_ratio"),
    "grid": ("flowtime", "makespan_ratio", "load_cov", "queue"),
    "drift": ("flowtime_before", "flowtime_after"),
    "users": ("wait", "starvation", "empty_ratio"),
}


@click.command("automata", short_help="Learning automata on users and nodes (LAJS, two-way).")
@reproduction_options(
    "Arrivals and random choices, drawn again for each.",
    "1-20",
    "1-2",
    "Few jobs, polls and seeds: shows that it runs, decides no claim.",
)
def command(asked: Asked) -> int:
    """Put what Suganthi and Devi say of learning automata where it can be measured.

    Use it to see how the schemes learn, what LAJS and two-way bring beside random, round robin and
    least loaded, what happens when nodes change, and when polling by an automaton is worth it. The
    paper prints no experiment: these are ours. See docs/reproducing-automata.md.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce automata --quick --report report
    """
    from outrider_lab.commands.reproducing import Output, reproduce
    from outrider_lab.papers.automata import Reproduction
    from outrider_lab.papers.automata.grid import FULL, QUICK
    from outrider_lab.papers.automata.page import PAGE

    drawn = seed_range(asked.seeds)
    study = Reproduction(QUICK if asked.quick else FULL, drawn)
    return reproduce("automata", study, asked, Output(PAGE.html, _show))


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    from outrider_lab.commands.reproducing import show_claims, size_in_words

    settings = result["settings"]
    for experiment, names in _SHOWN.items():
        rows = [row for row in result["rows"] if row["experiment"] == experiment]
        title = f"{experiment}: {len(settings['seeds'])} seeds, {size_in_words(result)}"
        print_table(title, ("", *names), [_line(row, names) for row in rows])
    show_claims(result)


def _line(row: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    words = (row["scheme"], row["users"], row["poll"])
    return [
        ", ".join(filter(None, words)),
        *(figure(row[name]["mean"], digits=2) for name in names),
    ]
