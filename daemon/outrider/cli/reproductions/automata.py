"""``outrider reproduce automata``: learning automata on users and nodes."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import json_option, seed_range, workers_option
from outrider.cli.printing import figure, print_table
from outrider.cli.progress import progress_bar
from outrider.cli.reproductions.conclusion import conclude, make_folder, report_option, show_claims

_FULL_SEEDS = "1-20"
_QUICK_SEEDS = "1-2"
_SHOWN = {
    "stationary": ("p_best", "locked_ratio"),
    "grid": ("flowtime", "makespan_ratio", "load_cov", "queue"),
    "drift": ("flowtime_before", "flowtime_after"),
    "users": ("wait", "starvation", "empty_ratio"),
}


@click.command("automata", short_help="Learning automata on users and nodes (LAJS, two-way).")
@click.option(
    "--seeds", metavar="A-B",
    help=f"Arrivals and chance, drawn anew for each. [default: {_FULL_SEEDS}; "
    f"quick: {_QUICK_SEEDS}]",
)  # fmt: skip
@click.option(
    "--quick", is_flag=True, help="Few jobs, polls and seeds: shows that it runs, decides no claim."
)
@workers_option
@report_option
@json_option
def command(
    seeds: str | None, quick: bool, workers: int | None, report: Path | None, as_json: bool
) -> int:
    """Put what Suganthi and Devi say of learning automata where it can be measured.

    Use it to see how the schemes learn, what LAJS and two-way bring beside random, round robin and
    least loaded, what happens when nodes change, and when polling by an automaton is worth it. The
    paper prints no experiment: these are ours. See docs/reproducing-automata.md.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce automata --quick --report report
    """
    from outrider.lab.automata import reproduce
    from outrider.lab.automata.page import html
    from outrider.lab.automata.reproduction import check
    from outrider.lab.automata.trials import FULL, QUICK
    from outrider.lab.workers import cores

    size = QUICK if quick else FULL
    drawn = seed_range(seeds or (_QUICK_SEEDS if quick else _FULL_SEEDS))
    make_folder(report)
    check(size)
    with progress_bar("automata") as progress:
        result = reproduce(size, drawn, workers or cores(), progress)
    return conclude(result, report, as_json, html, _show)


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    settings = result["settings"]
    size = "quick, too small for verdicts" if settings["quick"] else "full size"
    for experiment, names in _SHOWN.items():
        rows = [row for row in result["rows"] if row["experiment"] == experiment]
        title = f"{experiment}: {len(settings['seeds'])} seeds, {size}"
        print_table(title, ("", *names), [_line(row, names) for row in rows])
    show_claims(result)


def _line(row: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    words = (row["scheme"], row["users"], row["poll"])
    return [
        ", ".join(filter(None, words)),
        *(figure(row[name]["mean"], digits=2) for name in names),
    ]
