"""``outrider generate``: random traces, and a daemon's journal from one."""

import datetime as dt
from pathlib import Path
from typing import Any

import click

from outrider.cli.options import Seconds, file_path, json_option, policy_names
from outrider.cli.printing import echo, print_json, shown
from outrider.cli.terminal import progress_bar
from outrider.model.errors import ConfigurationError
from outrider.model.quantities import count, figure

# -- generated journals ----------------------------------------------------------------------------
# ``outrider generate journal``: the journal of a daemon that watches a simulated campus.


@click.command("journal", short_help="A journal: records of a daemon that watches a campus.")
@click.option(
    "--campus", type=file_path(file_okay=False), required=True, metavar="DIR",
    help="The campus: a folder written by `outrider generate campus`.",
)  # fmt: skip
@click.option(
    "--incumbent", default="random_match", show_default=True, metavar="NAME",
    shell_complete=policy_names, help="The policy that starts jobs, in place of a batch system.",
)  # fmt: skip
@click.option(
    "--seed", metavar="N", type=click.IntRange(min=0), default=0, show_default=True,
    help="Random seed of the incumbent, as for `outrider replay`.",
)  # fmt: skip
@click.option(
    "--until", "until_s", metavar="S", type=Seconds(min=0),
    help="End the journal after this second of the campus. [default: its last]",
)  # fmt: skip
@click.option(
    "--out", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="File to write, a journal.sqlite; it must not exist yet.",
)  # fmt: skip
@json_option
def journal(
    campus: Path, incumbent: str, seed: int, until_s: float | None, out: Path, as_json: bool
) -> None:
    """Write the journal of a daemon that watches a campus, faster than real time.

    Use it if you need a journal of weeks and no daemon has run for weeks. The daemon's own code
    writes it, in mode observe: the incumbent starts the jobs of the campus, exactly as in
    `outrider replay --policy INCUMBENT --seed N`, and the results are recorded as events. The file
    is the journal.sqlite of a state directory. With --until it is the beginning of the whole
    journal; jobs and owner sessions of that moment are still active at its end.

    Example:
      outrider generate campus --seed 1 --weeks 4 --machines 200 --out campus
      outrider generate journal --campus campus --until 1209600 --out journal.sqlite
      outrider export campus --ledger journal.sqlite --out seen
    """
    from outrider.service.demo.simulated_journal import write_journal
    from outrider.service.host.logs import Mode, set_up_logs

    set_up_logs(Mode("observe"), level="warning")
    with progress_bar("watching") as progress:
        summary = write_journal(
            campus, out, incumbent=incumbent, seed=seed, until_s=until_s, progress=progress
        )
    facts: dict[str, Any] = {
        "out": shown(out), "campus": shown(campus), "incumbent": incumbent, "seed": seed, **summary
    }  # fmt: skip
    if as_json:
        print_json(facts)
        return
    jobs = facts["jobs"]
    echo(
        f"{facts['out']}: {count(facts['events'])} events in {figure(facts['span_s'], 86_400)} "
        f"days; machines: {count(facts['machines'])}, jobs: {count(jobs['submitted'])}, of which "
        f"{count(jobs['completed'])} completed and {count(jobs['removed'])} were removed"
    )


# -- generate --------------------------------------------------------------------------------------


@click.group("generate", short_help="Generate a random trace, or a journal from one.")
def command() -> None:
    """Generate a random trace, or a journal from one, if no real data are available.

    Example:
      outrider generate campus --seed 1 --weeks 4 --machines 200 --out campus
      outrider generate journal --campus campus --out journal.sqlite
      outrider generate grid --row 0.2 --seed 1 --out grid.swf
    """


command.add_command(journal)


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
    help="Number of rooms. [default: 37, fewer for fewer machines]",
)
@click.option(
    "--start", metavar="YYYY-MM-DD", type=click.DateTime(["%Y-%m-%d"]),
    help="First day; a day in term time makes a short trace busier. [default: 2010-01-01]",
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
    help="Folder to write; created if missing.",
)  # fmt: skip
@click.option("--gz/--no-gz", default=False, help="Gzip the tables. [default: no]")
@json_option
def campus(seed: int, out: Path, gz: bool, as_json: bool, **options: Any) -> None:
    """Generate a campus like McGough and Forshaw's (2015): jobs run when owners are away.

    Use it to try policies without your own data. Without options it is the paper's year: 1,359
    machines in 37 rooms, 1.2 million owner sessions, 532 thousand jobs. Give the folder to
    `outrider replay`. Its times are seconds from its start, powers are watts.

    Example:
      outrider generate campus --seed 1 --weeks 4 --machines 200 --clusters 10 --out campus
    """
    from outrider.formats.campus.files import write_campus
    from outrider.simulation.generators.campus import generate_campus
    from outrider.simulation.generators.campus.options import rooms_for

    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(given.get("start"), dt.datetime):
        given["start"] = given["start"].date()
    if "machines" in given and "clusters" not in given:
        given["clusters"] = rooms_for(given["machines"])
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
    echo(
        f"{facts['out']}: {count(facts['machines'])} machines in {count(facts['clusters'])} "
        f"clusters, {count(facts['owner_sessions'])} owner sessions, {count(facts['jobs'])} jobs, "
        f"{figure(made.span_s, 86_400)} days"
    )


_OF_PAPER = {
    "perez": ("row", "jobs", "machines", "load", "arrivals", "lengths"),
    "vengerov": ("rate", "steps", "length"),
}


@command.command("grid", short_help="A grid: jobs of several VOs on plain machines.")
@click.option(
    "--seed", metavar="S", type=click.IntRange(min=0), required=True,
    help="The same seed and options make the same jobs. Use seeds below 10000 to evaluate, others "
    "to learn.",
)  # fmt: skip
@click.option(
    "--like", default="perez", show_default=True, type=click.Choice(sorted(_OF_PAPER)),
    help="Paper: perez (one-CPU jobs of four VOs) or vengerov (parallel jobs on one machine).",
)  # fmt: skip
@click.option(
    "--row", metavar="R", type=float,
    help="perez: share of interactive jobs; the paper's table I has 0.2, 0.4 and 0.5.",
)  # fmt: skip
@click.option("--jobs", metavar="N", type=int, help="perez: jobs submitted. [default: 6000]")
@click.option("--machines", metavar="M", type=int, help="perez: one-CPU machines. [default: 50]")
@click.option(
    "--load", metavar="RHO", type=float,
    help="perez: arriving work divided by capacity. [default: 0.99]",
)  # fmt: skip
@click.option(
    "--arrivals", type=click.Choice(["poisson", "uniform"]),
    help="perez: distribution of the gaps between jobs. [default: poisson]",
)  # fmt: skip
@click.option(
    "--lengths", type=click.Choice(["exponential", "uniform"]),
    help="perez: distribution of run times. [default: exponential]",
)  # fmt: skip
@click.option(
    "--rate", metavar="R", type=float,
    help="vengerov: jobs per step of one second; 0.1 in the paper.",
)  # fmt: skip
@click.option(
    "--steps", type=click.Choice(["integer", "continuous"]),
    help="vengerov: integer if times are whole steps. [default: integer]",
)  # fmt: skip
@click.option(
    "--length", metavar="T", type=float, help="vengerov: jobs arrive for T steps. [default: 20000]"
)
@click.option(
    "--out", type=file_path(dir_okay=False), required=True, metavar="FILE.swf",
    help="File to write, gzipped if it ends in .gz.",
)  # fmt: skip
@json_option
def grid(seed: int, like: str, out: Path, as_json: bool, **options: Any) -> None:
    """Generate the workload of a paper as a file in Standard Workload Format.

    perez: Poisson arrivals, exponential run times, 50 machines of one CPU, 6000 jobs. Jobs under
    15 minutes are interactive, and their queue says so. The work of four VOs is in the ratio
    70 : 20 : 5 : 5 in either class (Perez et al. 2008, table I). vengerov: one machine of 24 CPUs,
    jobs that request 4 to 20 of them for 5 to 10 steps (Vengerov 2005). The header of the file
    explains how to replay it.

    Example:
      outrider generate grid --row 0.2 --seed 1 --out grid.swf
      outrider generate grid --like vengerov --rate 0.1 --seed 1 --out machine.swf.gz
    """
    from outrider.formats.swf.table import write_swf
    from outrider.simulation.generators.grids import perez_grid, vengerov_grid

    given = _options_of(like, options)
    notes = _notes(like, seed, given)
    if "length" in given:
        given["length_s"] = given.pop("length")
    made = perez_grid(seed=seed, **given) if like == "perez" else vengerov_grid(seed=seed, **given)
    if not made.job_names:
        raise ConfigurationError(
            f"--rate {given['rate']:g}: no job arrives in that time; use a higher rate "
            "or a longer --length"
        )
    try:
        write_swf(made, out, {"Computer": "none: random"}, notes)
    except OSError as error:
        raise ConfigurationError(f"{shown(out)}: cannot be written: {error.strerror}") from error
    facts: dict[str, Any] = {
        "out": shown(out),
        "seed": seed,
        "like": like,
        "machines": len(made.machines),
        "cpus": sum(machine.cpus for machine in made.machines),
        "jobs": len(made.job_names),
        "interactive": made.job_class.count("interactive"),
        "work_s": float((made.run_s * made.cpus).sum()),
        "span_s": float(made.submit_s.max(initial=0.0)),
    }
    if as_json:
        print_json(facts)
        return
    echo(
        f"{facts['out']}: {count(facts['jobs'])} jobs ({count(facts['interactive'])} interactive) "
        f"in {figure(facts['span_s'], 3600)} h, {figure(facts['work_s'], 3600)} CPU hours of work; "
        f"machines: {count(facts['machines'])}, CPUs: {count(facts['cpus'])}"
    )


def _options_of(like: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the given options, all of which must apply to this workload."""
    given = {name: value for name, value in options.items() if value is not None}
    known = _OF_PAPER[like]
    for name in given:
        if name not in known:
            raise ConfigurationError(
                f"--{name}: is not an option of --like {like}; expected "
                f"{', '.join(f'--{word}' for word in known)}"
            )
    if known[0] not in given:
        raise ConfigurationError(f"--like {like} needs --{known[0]}")
    return given


def _notes(like: str, seed: int, given: dict[str, Any]) -> list[str]:
    """Return the notes for the file's header: how it was made, and how to replay it."""
    from outrider import __version__
    from outrider.simulation.generators.grids.workloads import FEASIBLE, INFEASIBLE

    words = " ".join(f"--{name} {value}" for name, value in given.items())
    made = f"outrider {__version__} generate grid --like {like} --seed {seed} {words}"
    if like == "vengerov":
        how = "replay with --utility batch=linear; a step is a second"
        return [f"made by {made}", how]
    feasible, infeasible = (
        ",".join(f"{vo}={share:g}" for vo, share in shares.items())
        for shares in (FEASIBLE, INFEASIBLE)
    )
    return [
        f"made by {made}",
        "users declare the class of a job by its queue; those of less than 900 s are interactive",
        f"VOs are groups; their work is in the ratio --shares {feasible} in either class",
        f"the infeasible targets of the paper: --shares {infeasible}",
    ]
