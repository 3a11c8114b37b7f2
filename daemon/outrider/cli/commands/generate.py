"""``outrider generate``: traces made by chance."""

import datetime as dt
from pathlib import Path
from typing import Any

import click

from outrider.cli.options import file_path, json_option
from outrider.cli.printing import count, figure, print_json, shown


@click.group("generate", short_help="Make a trace by chance.")
def command() -> None:
    """Make a trace by chance, to replay where no real one is at hand.

    Example:
      outrider generate campus --seed 1 --weeks 4 --machines 200 --out campus
    """


@command.command("campus", short_help="A campus: machines with owners, and jobs on them.")
@click.option(
    "--seed", metavar="S", type=click.IntRange(min=0), required=True,
    help="The same seed and options make the same campus.",
)  # fmt: skip
@click.option(
    "--weeks", metavar="W", type=float, help="Length of the trace in weeks. [default: a year]"
)
@click.option(
    "--machines", metavar="M", type=int, help="Desktop machines in the pool. [default: 1359]"
)
@click.option(
    "--clusters",
    metavar="C",
    type=int,
    help="Rooms they stand in. [default: 37, fewer for fewer machines]",
)
@click.option(
    "--start", metavar="YYYY-MM-DD", type=click.DateTime(["%Y-%m-%d"]),
    help="First day; a day in term makes a short trace busier. [default: 2010-01-01]",
)  # fmt: skip
@click.option(
    "--jobs", metavar="N", type=int, help="Jobs submitted. [default: in proportion to the paper's]"
)
@click.option(
    "--bad-jobs",
    metavar="N",
    type=int,
    help="Of these, jobs that never end; 0 makes every job good.",
)
@click.option(
    "--out", type=file_path(file_okay=False), required=True, metavar="DIR",
    help="Folder to write; made if it is not there.",
)  # fmt: skip
@click.option("--gz/--no-gz", default=False, help="Gzip the tables. [default: no]")
@json_option
def campus(seed: int, out: Path, gz: bool, as_json: bool, **options: Any) -> None:
    """Make a campus like the one of McGough and Forshaw (2015): owners come first, jobs run beside.

    Use it to try policies without data of your own. Without options it is the paper's year: 1,359
    machines in 37 rooms, 1.2 million owner sessions, 532 thousand jobs. The folder can be given to
    `outrider replay`. Times in it are seconds from its start, powers are watts.

    Example:
      outrider generate campus --seed 1 --weeks 4 --machines 200 --clusters 10 --out campus
    """
    from outrider.virtual.campus_files import write_campus
    from outrider.virtual.generate import generate_campus
    from outrider.virtual.generate.options import PAPER_CLUSTERS, PAPER_MACHINES

    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(given.get("start"), dt.datetime):
        given["start"] = given["start"].date()
    if "machines" in given and "clusters" not in given:
        rooms = round(PAPER_CLUSTERS * given["machines"] / PAPER_MACHINES)
        given["clusters"] = min(PAPER_CLUSTERS, max(1, rooms))
    made = generate_campus(seed, **given)
    write_campus(made, out, gz=gz)
    facts: dict[str, Any] = {
        "out": shown(out),
        "seed": seed,
        "machines": len(made.machine_names),
        "clusters": len(made.clusters),
        "owner_sessions": len(made.login_s),
        "jobs": len(made.submit_s),
        "span_s": made.span_s,
    }
    if as_json:
        print_json(facts)
        return
    click.echo(
        f"{facts['out']}: {count(facts['machines'])} machines in {count(facts['clusters'])} "
        f"clusters, {count(facts['owner_sessions'])} owner sessions, {count(facts['jobs'])} jobs, "
        f"{figure(made.span_s, 86_400)} days"
    )
