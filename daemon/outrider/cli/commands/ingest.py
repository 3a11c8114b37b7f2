"""``outrider ingest``: what the logs of a batch system tell."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from outrider.cli.options import file_path, json_option, reader_names
from outrider.cli.printing import echo, print_json, print_table
from outrider.cli.tables import print_offenders
from outrider.cli.terminal import progress_bar
from outrider.model.quantities import count, duration, figure


@click.command("ingest", short_help="Read the logs a batch system wrote and report what happened.")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...",
    type=file_path(exists=True, dir_okay=False),
)  # fmt: skip
@click.option(
    "--format", "format_name", default="auto", show_default=True, metavar="NAME",
    shell_complete=reader_names,
    help="Which reader understands the files; auto looks at each.",
)  # fmt: skip
@click.option(
    "--fields", default="", metavar="A,B,C", help="Column names of a table without a header."
)
@click.option(
    "--year", metavar="Y", type=click.IntRange(1970, 9998),
    help="Year of the last event of each file, for dates without one; Decembers before it step "
    "back. Without: from the time the file was last modified.",
)  # fmt: skip
@click.option(
    "--timezone", metavar="NAME", help="Zone of dates that name none, as Europe/Berlin. "
    "[default: UTC]",
)  # fmt: skip
@click.option(
    "--system", metavar="NAME", help="Schedd or Slurm cluster whose jobs these are, where the "
    "records do not name it. [default: the host of a schedd, else the file's name]",
)  # fmt: skip
@json_option
def command(
    files: tuple[Path, ...],
    format_name: str,
    fields: str,
    year: int | None,
    timezone: str | None,
    system: str | None,
    as_json: bool,
) -> None:
    """Read the logs a batch system wrote and report what happened.

    Use it for a first look at a site, before any daemon runs: waits and who waits, work kept and
    thrown away, whose and on which machines, and machines on which job after job fails at once
    (black holes). Several files are merged by time, what
    two of them tell of the same job is counted once; jobs of the same number, but of two schedds or
    clusters, are two. Files may be gzipped. Every record is an event, a duplicate, ignored (counted
    by kind) or rejected (counted by reason).

    Example:
      outrider ingest /var/log/condor/EventLog /var/log/condor/EventLog.old

    Waits are seconds in --json; goodput and badput are CPU-seconds of runs that completed, and of
    all others (`work_s` has them by class and by VO). `offenders` has the users, machines and jobs
    of most badput, failed starts and black holes by the rule of `outrider report`.
    """
    from outrider.replay.log_files import LogFile
    from outrider.report.logs import read_logs

    columns = tuple(name.strip() for name in fields.split(",")) if fields else ()
    logs = [
        LogFile(file, format_name, year=year, timezone=timezone, fields=columns, system=system)
        for file in dict.fromkeys(files)
    ]
    with progress_bar("reading") as progress:
        told = read_logs(logs, progress)
    for warning in told["warnings"]:
        echo(f"outrider: warning: {warning}", err=True)
    if as_json:
        print_json(told)
    else:
        _show(told)


def _show(told: dict[str, Any]) -> None:
    jobs, wait = told["jobs"], told["wait_s"]["all"]
    title = f"{', '.join(told['files'][:3])}{' ...' if len(told['files']) > 3 else ''}"
    rows = [
        ("format", told["format"] or "empty"),
        ("records", count(told["records"])),
        *((f"  events: {kind}", count(n)) for kind, n in told["events"].items()),
        ("  duplicates", count(told["duplicates"])),
        *((f"  ignored: {kind}", count(n)) for kind, n in told["ignored"].items()),
        *((f"  rejected: {reason}", count(n)) for reason, n in told["rejected"].items()),
        ("time span", duration(told["span_s"])),
        ("machines seen", count(told["machines"])),
        ("jobs submitted", count(jobs["submitted"])),
        ("jobs completed", count(jobs["completed"])),
        ("jobs removed", count(jobs["removed"])),
        ("jobs unfinished", count(jobs["unfinished"])),
        *((f"wait, {k}", duration(wait[k])) for k in ("mean", "median", "p95", "max")),
        ("goodput [CPU h]", figure(told["goodput_s"], 3600)),
        ("badput [CPU h]", figure(told["badput_s"], 3600)),
        *((f"evicted: {reason}", count(n)) for reason, n in told["evictions"].items() if n),
        *((f"mended: {what}", count(n)) for what, n in told["repairs"].items()),
        *((f"set aside: {why}", count(n)) for why, n in told["set_aside"].items()),
        ("events_sha256", told["events_sha256"][:12]),
    ]
    print_table(title, ("", ""), rows)
    for part, word in (("by_class", "class"), ("by_vo", "VO")):
        columns = (word, "started", "wait, mean", "wait, p95", "goodput", "badput")
        if told["wait_s"][part]:
            print_table(f"by {word}; goodput and badput in CPU hours", columns, _parts(told, part))
    print_offenders(told)


def _parts(told: dict[str, Any], part: str) -> Iterator[tuple[str, ...]]:
    """Waits and work of each class or VO, most work first."""
    waits, work = told["wait_s"][part], told["work_s"][part]
    nothing = {"goodput": 0.0, "badput": 0.0}
    for name in sorted(waits, key=lambda name: -sum(work.get(name, nothing).values())):
        wait, done = waits[name], work.get(name, nothing)
        yield (
            name,
            count(wait["n"]),
            duration(wait["mean"]),
            duration(wait["p95"]),
            figure(done["goodput"], 3600),
            figure(done["badput"], 3600),
        )
