"""``outrider reproduce vengerov``: preempting and squeezing by a learned value of the machine."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.options import file_path, json_option, seed_range
from outrider.cli.printing import figure, print_json, print_table, ratio, shown
from outrider.cli.progress import progress_bar

_FULL_SEEDS = "1-50"
_QUICK_SEEDS = "1-2"


@click.command("vengerov", short_help="Preemption and squeezing by learned values (2005).")
@click.option(
    "--seeds", metavar="A-B",
    help=f"Arrivals are drawn anew for each seed. [default: {_FULL_SEEDS}; quick: {_QUICK_SEEDS}]",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="Few steps: shows that it runs, decides no claim.")
@click.option(
    "--workers", metavar="N", type=click.IntRange(min=1),
    help="Processes. [default: the cores there are]",
)  # fmt: skip
@click.option(
    "--report", type=file_path(file_okay=False), metavar="DIR",
    help="Write index.html (tables, figures, claims) and result.json there.",
)  # fmt: skip
@json_option
def command(
    seeds: str | None, quick: bool, workers: int | None, report: Path | None, as_json: bool
) -> int:
    """Run the experiments of Vengerov (2005) on newly drawn arrivals.

    Use it to see what preemption and squeezing bring a machine of 24 CPUs, whether learning when
    to do so is better than always doing so, and which of the paper's claims hold. Utility is in
    thousands of CPU-seconds. See docs/reproducing-vengerov.md.

    Exit code 1: a run failed; the others are reported, and the failed ones named.

    Example:
      outrider reproduce vengerov --quick --report report
    """
    from outrider.lab.apart import set_apart
    from outrider.lab.drawing import require_matplotlib
    from outrider.lab.vengerov import plan, reproduce
    from outrider.lab.vengerov.experiment import TRAINING_SEEDS
    from outrider.lab.vengerov.grid import FULL, QUICK
    from outrider.lab.workers import cores

    size = QUICK if quick else FULL
    drawn = seed_range(seeds or (_QUICK_SEEDS if quick else _FULL_SEEDS), below=TRAINING_SEEDS)
    if report is not None:  # refuse what is wrong before a long run, not after it
        require_matplotlib("--report")
        report.mkdir(parents=True, exist_ok=True)
    for experiment in plan(size, drawn[:1]):
        experiment.make_policy()
    with progress_bar("vengerov") as progress:
        result = reproduce(size, drawn, workers or cores(), progress)
    if report is not None:
        _write(result, report)
    if as_json:
        print_json(set_apart(result))
    else:
        _show(result)
        if report is not None:
            click.echo(f"report: {shown(report / 'index.html')}")
    for failure in result["failed"]:
        click.echo(f"outrider: failed: {failure['cell']}: {failure['error']}", err=True)
    return int(bool(result["failed"]))


def _write(result: dict[str, Any], folder: Path) -> None:
    import msgspec

    from outrider.lab.apart import set_apart
    from outrider.lab.vengerov.page import html

    text = msgspec.json.format(msgspec.json.encode(set_apart(result)), indent=2)
    (folder / "result.json").write_bytes(text)
    if result["rows"]:  # without any there is nothing to draw; the failures are told
        (folder / "index.html").write_text(html(result), encoding="utf-8")


# -- for people ---------------------------------------------------------------------------------


def _show(result: dict[str, Any]) -> None:
    settings = result["settings"]
    size = "quick, too small for verdicts" if settings["quick"] else "full size"
    title = f"Vengerov (2005): {len(settings['seeds'])} runs, {size}"
    columns = ("", "rate", "steps", "shape", "utility\n[k]", "s.e.", "utilisation")
    print_table(title, columns, [_line(row) for row in result["rows"]])
    claims = [
        (one["claim"], one["where"], figure(one["measured"], digits=3), one["verdict"])
        for one in result["claims"]
    ]
    print_table("claims", ("", "section", "measured", "verdict"), claims, figures=False)


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
