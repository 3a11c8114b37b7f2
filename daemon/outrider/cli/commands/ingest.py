"""``outrider ingest``: a summary of a batch system's logs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from outrider.cli.options import file_path, json_option, reader_names
from outrider.cli.printing import echo, print_json, print_table
from outrider.cli.tables import print_offenders
from outrider.cli.terminal import progress_bar
from outrider.model.quantities import count, duration, figure


@click.command("ingest", short_help="Read the logs of a batch system and summarise them.")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...",
    type=file_path(exists=True, dir_okay=False),
)  # fmt: skip
@click.option(
    "--format", "format_name", default="auto", show_default=True, metavar="NAME",
    shell_complete=reader_names,
    help="Reader of the files; auto detects it for each file.",
)  # fmt: skip
@click.option(
    "--fields", default="", metavar="A,B,C", help="Column names of a table without a header."
)
@click.option(
    "--year", metavar="Y", type=click.IntRange(1970, 9998),
    help="Year of the last event of each file, for dates without a year; a December before it is "
    "of the year before. [default: from the time the file was last modified]",
)  # fmt: skip
@click.option(
    "--timezone", metavar="NAME", help="Time zone of dates without one, such as Europe/Berlin. "
    "[default: UTC]",
)  # fmt: skip
@click.option(
    "--system", metavar="NAME", help="Schedd or Slurm cluster of the jobs, if the records do not "
    "contain it. [default: the host of a schedd, else the file's name]",
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
    """Read the logs of a batch system and summarise them.

    Use it for a first look at a site, before any daemon runs. It shows waits by user, useful and
    wasted work by user and machine, and black holes: machines on which job after job fails
    immediately. Several files are merged by time, and events of the same job in two files count
    once. Jobs with the same number at two schedds or clusters are two jobs. Files may be gzipped.
    Every record is an event, a duplicate, ignored (counted by kind) or rejected (counted by
    reason).

    Example:
      outrider ingest /var/log/condor/EventLog /var/log/condor/EventLog.old

    In --json waits are seconds. goodput and badput are CPU-seconds of runs that completed, and of
    all others; `work_s` has them by class and by VO. `offenders` lists the users, machines and jobs
    with the most badput, failed starts and black holes by the rule of `outrider report`.
    """
    from outrider.replay.log_files import LogFile
    from outrider.report.logs import read_logs

    columns = tuple(name.strip() for name in fields.split(",")) if fields else ()
    logs = [
        LogFile(file, format_name, year=year, timezone=timezone, fields=columns, system=system)
        for file in dict.fromkeys(files)
    ]
    with progress_bar("reading") as progress:
        report = read_logs(logs, progress)
    for warning in report["warnings"]:
        echo(f"outrider: warning: {warning}", err=True)
    if as_json:
        print_json(report)
    else:
        _show(report)


def _show(report: dict[str, Any]) -> None:
    jobs, wait = report["jobs"], report["wait_s"]["all"]
    title = f"{', '.join(report['files'][:3])}{' ...' if len(report['files']) > 3 else ''}"
    rows = [
        ("format", report["format"] or "empty"),
        ("records", count(report["records"])),
        *((f"  events: {kind}", count(n)) for kind, n in report["events"].items()),
        ("  duplicates", count(report["duplicates"])),
        *((f"  ignored: {kind}", count(n)) for kind, n in report["ignored"].items()),
        *((f"  rejected: {reason}", count(n)) for reason, n in report["rejected"].items()),
        ("time span", duration(report["span_s"])),
        ("machines seen", count(report["machines"])),
        ("jobs submitted", count(jobs["submitted"])),
        ("jobs completed", count(jobs["completed"])),
        ("jobs removed", count(jobs["removed"])),
        ("jobs unfinished", count(jobs["unfinished"])),
        *((f"wait, {k}", duration(wait[k])) for k in ("mean", "median", "p95", "max")),
        ("goodput [CPU h]", figure(report["goodput_s"], 3600)),
        ("badput [CPU h]", figure(report["badput_s"], 3600)),
        *((f"evicted: {reason}", count(n)) for reason, n in report["evictions"].items() if n),
        *((f"repaired: {what}", count(n)) for what, n in report["repairs"].items()),
        *((f"set aside: {why}", count(n)) for why, n in report["set_aside"].items()),
        ("events_sha256", report["events_sha256"][:12]),
    ]
    print_table(title, ("", ""), rows)
    for part, word in (("by_class", "class"), ("by_vo", "VO")):
        columns = (word, "started", "wait, mean", "wait, p95", "goodput", "badput")
        if report["wait_s"][part]:
            print_table(
                f"by {word}; goodput and badput in CPU hours", columns, _parts(report, part)
            )
    print_offenders(report)


def _parts(report: dict[str, Any], part: str) -> Iterator[tuple[str, ...]]:
    """Yield waits and work of each class or VO, most work first."""
    waits, work = report["wait_s"][part], report["work_s"][part]
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
