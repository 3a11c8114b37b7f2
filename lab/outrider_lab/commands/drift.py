"""See whether learning pays where the world changes."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import file_path, json_option, policy_names, seed_range
from outrider.cli.printing import echo, print_json, print_table, shown
from outrider.model.errors import ConfigurationError, nearest
from outrider.model.quantities import figure
from outrider_lab.commands.options import many_runs_options

SECTION = "Judge"

_FULL_SEEDS = "0-19"
_QUICK_SEEDS = "0-1"
_SEEDS_BELOW = 2500
"""Later parts of a world are drawn with seeds from there on."""


@click.command("drift", short_help="See whether learning pays where the world changes.")
@click.option(
    "--policy", "policies", multiple=True, metavar="NAME", shell_complete=policy_names,
    help="A policy that learns, to set against its frozen self; give it again for more. [default: "
    "sarsa where jobs are put in order, fuzzy_td where runs are shrunk and preempted]",
)  # fmt: skip
@click.option(
    "--world", "worlds", multiple=True, metavar="NAME",
    help="A world to run; give it again for more. [default: all]",
)  # fmt: skip
@click.option(
    "--seeds", metavar="A-B",
    help=f"Seeds of the worlds, below {_SEEDS_BELOW}. [default: {_FULL_SEEDS}; quick: "
    f"{_QUICK_SEEDS}]",
)  # fmt: skip
@click.option(
    "--quick", is_flag=True, help="Short worlds, two seeds: shows that it runs, decides nothing."
)
@many_runs_options
@click.option(
    "--report", type=file_path(file_okay=False), metavar="DIR",
    help="Write index.html and result.json there.",
)  # fmt: skip
@json_option
def command(
    policies: tuple[str, ...],
    worlds: tuple[str, ...],
    seeds: str | None,
    quick: bool,
    workers: int | None,
    resume: bool | None,
    runs: Path | None,
    report: Path | None,
    as_json: bool,
) -> int:
    """See whether learning pays where the world changes.

    Use it before a policy may learn on a site. In each world something changes half way, and no
    policy is told: the load, the mix of jobs, how long they run, who sends them, how fast machines
    are. A policy that learns meets its frozen self (never learned here), its stopped self (learned
    until the change) and rules that do not learn, all with the same jobs.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider drift --quick --world "load step"
    """
    from outrider_lab.commands.many_runs import Keeping, executed, name_failures
    from outrider_lab.drift import FULL, QUICK, WORLDS, DriftSuite, check_treatments
    from outrider_lab.running.run_all import check_policies

    for name in worlds:
        if name not in WORLDS:
            raise ConfigurationError(f'--world "{name}": no such world; {nearest(name, WORLDS)}')
    names = worlds or tuple(WORLDS)
    chosen = seed_range(seeds or (_QUICK_SEEDS if quick else _FULL_SEEDS), below=_SEEDS_BELOW)
    study = DriftSuite(names, chosen, QUICK if quick else FULL, policies)
    for treatments in study.treatments.values():  # refuse what is wrong before a long run
        check_treatments(treatments)
    check_policies(study)
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
    with executed(study, Keeping("drift", workers, resume, runs, report)) as result:
        if report is not None:
            _write(result, report)
        if as_json:
            print_json(result)
        else:
            _show(result)
        return name_failures(result)


def _write(result: dict[str, Any], folder: Path) -> None:
    import msgspec

    from outrider_lab.drift.page import html

    text = msgspec.json.format(msgspec.json.encode(result), indent=2)
    (folder / "result.json").write_bytes(text)
    (folder / "index.html").write_text(html(result), encoding="utf-8")


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    from outrider.simulation.estimates import in_words
    from outrider_lab.drift.page import verdict_cells

    echo(in_words(result["settings"]["truth"]))
    for world in result["settings"]["worlds"]:
        rows = [row for row in result["rows"] if row["world"] == world]
        if rows:
            _show_world(world, rows, [one for one in result["comparisons"]
                                      if one["world"] == world])  # fmt: skip
    if result["verdicts"]:
        print_table(
            "learning over frozen, all worlds that drift, after the change",
            ("", "against", "figure", "ratio", "95 %", "seeds", "verdict"),
            [verdict_cells(one) for one in result["verdicts"]],
        )


def _show_world(world: str, rows: list[dict[str, Any]], compared: list[dict[str, Any]]) -> None:
    from outrider_lab.drift.page import LABELS, named

    columns = ("after the change", *(label.replace(" ", "\n", 1) for label in LABELS.values()))
    lines = [[named(row), *(_mean(row["after"][name]) for name in LABELS)] for row in rows]
    print_table(f"{shown(world)}: {rows[0]['changes']}", columns, lines)
    verdicts = [
        [f"{one['policy']} / {one['against']}",
         *("-" if found is None else found["verdict"]
           for found in (one["windows"]["after"][name] for name in LABELS))]
        for one in compared
    ]  # fmt: skip
    if verdicts:
        print_table(f"{shown(world)}: the first is", columns, verdicts)


def _mean(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    return figure(found["mean"], digits=3 if found["mean"] < 100 else 0)
