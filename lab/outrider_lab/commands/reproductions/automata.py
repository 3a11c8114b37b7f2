"""``outrider reproduce automata``: learning automata on users and nodes."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import seed_range
from outrider.cli.printing import figure, print_table
from outrider_lab.commands.options import reproduction_options

_FULL_SEEDS = "1-20"
_QUICK_SEEDS = "1-2"
_SHOWN = {
    "stationary": ("p_best", "locked_ratio"),
    "grid": ("flowtime", "makespan_ratio", "load_cov", "queue"),
    "drift": ("flowtime_before", "flowtime_after"),
    "users": ("wait", "starvation", "empty_ratio"),
}


@click.command("automata", short_help="Learning automata on users and nodes (LAJS, two-way).")
@reproduction_options(
    "Arrivals and chance, drawn anew for each.",
    _FULL_SEEDS,
    _QUICK_SEEDS,
    "Few jobs, polls and seeds: shows that it runs, decides no claim.",
)
def command(
    seeds: str | None, quick: bool, workers: int | None, resume: bool | None, runs: Path | None,
    report: Path | None, as_json: bool,
) -> int:  # fmt: skip
    """Put what Suganthi and Devi say of learning automata where it can be measured.

    Use it to see how the schemes learn, what LAJS and two-way bring beside random, round robin and
    least loaded, what happens when nodes change, and when polling by an automaton is worth it. The
    paper prints no experiment: these are ours. See docs/reproducing-automata.md.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce automata --quick --report report
    """
    from outrider_lab.commands.many_runs import Keeping
    from outrider_lab.commands.reproducing import Telling, reproduce
    from outrider_lab.papers.automata import Reproduction
    from outrider_lab.papers.automata.grid import FULL, QUICK
    from outrider_lab.papers.automata.page import html

    drawn = seed_range(seeds or (_QUICK_SEEDS if quick else _FULL_SEEDS))
    study = Reproduction(QUICK if quick else FULL, drawn)
    keeping = Keeping("reproduce automata", workers, resume, runs, report)
    return reproduce(study, keeping, as_json, Telling(html, _show))


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    from outrider_lab.commands.reproducing import show_claims

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
