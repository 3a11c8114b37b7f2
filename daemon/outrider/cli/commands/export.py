"""``outrider export``: recorded data of a site as a trace to replay."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outrider.cli.options import file_path, json_option, reader_names
from outrider.cli.printing import echo, print_json, shown
from outrider.cli.terminal import progress_bar
from outrider.model.errors import ConfigurationError
from outrider.model.quantities import count, figure

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


@click.group("export", short_help="Export recorded data as a trace.")
def command() -> None:
    """Export recorded data as a trace, to replay it under any policy.

    Example:
      outrider export campus --ledger /var/lib/outrider/journal.sqlite --out campus
    """


@command.command("campus", short_help="A campus: machines, owner sessions and jobs.")
@click.option(
    "--ledger", metavar="FILE", type=file_path(exists=True, dir_okay=False),
    help="The journal of a daemon, even while it runs.",
)  # fmt: skip
@click.option(
    "--log", "logs", metavar="FILE", multiple=True, type=file_path(exists=True, dir_okay=False),
    help="A log of a batch system, instead of --ledger; repeat for more.",
)  # fmt: skip
@click.option(
    "--format", "format_name", default="auto", show_default=True, metavar="NAME",
    shell_complete=reader_names,
    help="Reader of the logs; auto detects it for each file.",
)  # fmt: skip
@click.option(
    "--fields", default="", metavar="A,B,C", help="Column names of a log without a header."
)
@click.option(
    "--year", metavar="Y", type=click.IntRange(1970, 9998),
    help="Year of the last event of each log, for dates without one.",
)  # fmt: skip
@click.option(
    "--out", type=file_path(file_okay=False), required=True, metavar="DIR",
    help="Folder to write; created if missing.",
)  # fmt: skip
@click.option(
    "--site", metavar="FILE", type=file_path(exists=True, dir_okay=False),
    help="A site.toml with opening hours, sleep, delays, reboot. [default: as recorded]",
)  # fmt: skip
@click.option(
    "--timezone", "zone_name", metavar="NAME", default="UTC", show_default=True,
    help="Time zone of the site, such as Europe/Berlin.",
)  # fmt: skip
@click.option("--gz/--no-gz", default=False, help="Gzip the tables. [default: no]")
@json_option
def campus(
    ledger: Path | None,
    logs: tuple[Path, ...],
    format_name: str,
    fields: str,
    year: int | None,
    out: Path,
    site: Path | None,
    zone_name: str,
    gz: bool,
    as_json: bool,
) -> None:
    """Export the records of a daemon or a batch system as a campus.

    Use it to find out what another policy would have done with your own jobs and owners. Give the
    folder to `outrider replay`. Arrivals and owner sessions are those observed; a job's run time is
    that of the run that completed it. Notes list what the record does not contain. Seconds count
    from a midnight of the site's wall clock before the first event.

    Example:
      outrider export campus --ledger journal.sqlite --site site.toml --out campus
      outrider export campus --log /var/log/condor/EventLog --timezone Europe/London --out campus
    """
    from outrider.formats.campus.files import read_site, write_campus
    from outrider.replay.log_files import LogFile
    from outrider.replay.record_sources import notes_on, record_of_ledger, record_of_logs
    from outrider.replay.recorded_campus import HABITS, habits_of_ledger, recorded_campus

    zone = _zone(zone_name)
    habits = None if site is None else read_site(site.parent, site.name)
    inferred = HABITS if site is None else frozenset()
    if (ledger is None) == (not logs):
        raise click.UsageError("use either --ledger FILE or --log FILE")
    with progress_bar("reading") as progress:
        if ledger is not None:
            record = record_of_ledger(ledger)
            if site is None:
                habits, inferred = habits_of_ledger(ledger, record, zone)
        else:
            columns = tuple(name.strip() for name in fields.split(",")) if fields else ()
            files = [
                LogFile(log, format_name, year=year, timezone=zone_name, fields=columns)
                for log in dict.fromkeys(logs)
            ]
            record = record_of_logs(files, progress)
    made = recorded_campus(record, out.resolve().name, zone, habits)
    write_campus(made, out, gz=gz)
    facts: dict[str, Any] = {
        "out": shown(out),
        "start": made.start.isoformat(),
        "machines": len(made.machine_names),
        "clusters": len(made.clusters),
        "owner_sessions": len(made.login_s),
        "jobs": len(made.submit_s),
        "span_s": made.span_s,
        "notes": list(notes_on(record, made, zone, inferred)),
    }
    if as_json:
        print_json(facts)
        return
    echo(
        f"{facts['out']}: {count(facts['machines'])} machines in {count(facts['clusters'])} "
        f"clusters, {count(facts['owner_sessions'])} owner sessions, {count(facts['jobs'])} jobs, "
        f"{figure(made.span_s, 86_400)} days"
    )
    for note in facts["notes"]:
        echo(f"note: {note}", err=True)


def _zone(name: str) -> "ZoneInfo":
    from outrider.model.localtime import time_zone

    try:
        return time_zone(name)
    except ConfigurationError as error:
        raise ConfigurationError(f"--timezone: {error}") from error
