"""``outrider ledger``: queries, export and checks of a journal."""

import sys
from pathlib import Path

import click

from outrider.cli import recorded_commands
from outrider.cli.configuration import open_journal, time_in_words, zone_of
from outrider.cli.options import file_path, json_option
from outrider.cli.printing import echo, print_json, print_table, shown
from outrider.model.errors import nearest
from outrider.model.quantities import MISSING

_DIRECT = "direct"
_FILE = click.argument("file", metavar="FILE", type=file_path(dir_okay=False))
_JOB = click.option("--job", metavar="NAME", help="Only decisions about this job.")
_FORMATS = click.Choice(["jsonl", "csv", "parquet"])
_TABLES = click.Choice(["decisions", "outcomes", "runs", "commands"])


class LedgerGroup(click.Group):
    """Command group that also accepts a FILE: ``outrider ledger FILE --export jsonl``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the hidden command before arguments that contain no command."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            if not Path(args[0]).exists() and args[0].isalpha():
                known = [name for name in self.commands if name != _DIRECT]
                raise click.UsageError(
                    f'"{args[0]}" is neither a file nor a command; {nearest(args[0], known)}', ctx
                )
            args = [_DIRECT, *args]
        return super().parse_args(ctx, args)


@click.group(
    "ledger", cls=LedgerGroup, short_help="Show, export or verify recorded decisions and commands."
)
def command() -> None:
    """Show, export or verify recorded decisions and commands.

    Use it on a file from `outrider replay --ledger FILE`, or on the daemon's journal.sqlite in its
    state directory, even while the daemon runs. `outrider ledger FILE --export jsonl` is short for
    `outrider ledger export FILE`.

    Example:
      outrider ledger show runs.sqlite --job j17
      outrider ledger runs.sqlite --export jsonl > decisions.jsonl
      outrider ledger verify /var/lib/outrider/journal.sqlite

    Times are event times in seconds: since the start of a trace, or Unix time.
    """


@command.command("show", short_help="Show the last decisions.")
@_FILE
@_JOB
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=20, show_default=True,
    help="At most so many, the last ones.",
)  # fmt: skip
@json_option
def show(file: Path, job: str | None, limit: int, as_json: bool) -> None:
    """Show the last decisions, the newest at the end.

    Use it for a quick look; `outrider ledger export` gives all of them. time_s is in seconds,
    propensity is a probability.

    Example:
      outrider ledger show journal.sqlite --job 1234.0 --limit 5
    """
    with open_journal(file) as journal:
        newest_first = journal.latest_decisions(limit, job)
        zone = zone_of(journal)
    rows = [decision.as_row(seq) for seq, decision in reversed(newest_first)]
    if as_json:
        print_json({"file": shown(file), "decisions": rows})
        return
    columns = ("seq", "time", "job", "action", "machine", "reason", "policy", "mode", "gate")
    cells = [
        [
            str(row["seq"]),
            time_in_words(row["time_s"], zone),
            *(str(row[c] or MISSING) for c in columns[2:]),
        ]
        for row in rows
    ]
    print_table(shown(file), columns, cells, figures=False)


@command.command("export", short_help="Write decisions, outcomes, runs or commands as a table.")
@_FILE
@_JOB
@click.option(
    "--rows", "table", type=_TABLES, default="decisions", show_default=True,
    help="What to write: decisions, outcomes (how runs ended, with rewards), runs, or commands. "
    "Only daemons' journals contain the last two.",
)  # fmt: skip
@click.option(
    "--format", "form", metavar="FORMAT", type=_FORMATS,
    help="jsonl (one JSON object per line), csv or parquet. [default: from the suffix of --out, "
    "else jsonl]",
)  # fmt: skip
@click.option(
    "--out", type=file_path(dir_okay=False), metavar="FILE",
    help="Write to this file, not to standard output. Its suffix is .jsonl, .ndjson, .csv or "
    ".parquet; with --format any.",
)  # fmt: skip
def export(file: Path, job: str | None, table: str, form: str | None, out: Path | None) -> None:
    """Write every decision in order, or every outcome, run or command, as a table.

    Use it to analyse the journal with other tools. docs/reference/ledger-tables.md lists every
    column with type and unit, and the version of the tables. Unknown values are null. Parquet needs
    DuckDB (pip install 'outrider[reports]').

    Example:
      outrider ledger export runs.sqlite --out decisions.parquet
      outrider ledger export runs.sqlite --rows outcomes --out outcomes.csv
      outrider ledger export journal.sqlite --rows commands
    """
    if table == "commands" and job is not None:
        raise click.UsageError("--job: commands have no job; use --rows decisions")
    _export(file, job, out, table, form)


@command.command("set-aside", short_help="Show the last events that could not be applied.")
@_FILE
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=20, show_default=True,
    help="At most so many, the last ones.",
)  # fmt: skip
@json_option
def set_aside(file: Path, limit: int, as_json: bool) -> None:
    """Show the last events that could not be applied, and why, the newest at the end.

    Use it if `outrider_events_set_aside_total` grows: such an event changed nothing. The reason
    `fault` is an internal error; please report its detail.

    Example:
      outrider ledger set-aside /var/lib/outrider/journal.sqlite
    """
    import msgspec

    with open_journal(file) as journal:
        found = list(reversed(journal.latest_set_aside(limit)))
        zone = zone_of(journal)
    if as_json:
        rows = [{"seq": seq, **msgspec.structs.asdict(event)} for seq, event in found]
        print_json({"file": shown(file), "set_aside": rows})
        return
    columns = ("seq", "time", "adapter", "kind", "job or machine", "extra", "reason", "detail")
    cells = [
        [str(seq), time_in_words(event.time_s, zone), event.adapter, event.kind, event.subject,
         event.extra or MISSING, event.reason, event.detail or MISSING]
        for seq, event in found
    ]  # fmt: skip
    print_table(shown(file), columns, cells, figures=False)


@command.command("verify", short_help="Check that a journal is intact.")
@_FILE
@click.option(
    "--snapshots", type=file_path(file_okay=False), metavar="DIR",
    help="Also check the snapshots in this folder.",
)  # fmt: skip
@json_option
def verify(file: Path, snapshots: Path | None, as_json: bool) -> int:
    """Check that a journal is intact: the file, its numbering, every row. Changes nothing.

    Use it after a crash or before trusting a copy. It recomputes ledger_sha256. Exit code 1: the
    journal is damaged.

    Example:
      outrider ledger verify journal.sqlite --snapshots snapshots
    """
    from outrider.journal import verify as verify_ledger

    report = verify_ledger(file, snapshots)
    if as_json:
        print_json(report.as_dict())
    else:
        echo(report.as_text())
    return int(not report.ok)


@command.command("backup", short_help="Copy a journal, even while a daemon writes it.")
@_FILE
@click.argument("target", metavar="TARGET", type=file_path(dir_okay=False))
def backup(file: Path, target: Path) -> None:
    """Copy a journal consistently, even while a daemon writes it.

    Use it for backups: a plain copy of a file that is being written may be corrupt. TARGET is
    replaced only when the copy is complete. To restore, stop the daemon, put the copy into an empty
    state directory as journal.sqlite, and start it: it rebuilds its state from the journal.

    Example:
      outrider ledger backup /var/lib/outrider/journal.sqlite /backup/journal.sqlite
    """
    with open_journal(file) as journal:
        journal.back_up(target)
    with open_journal(target) as copy:
        last_seq = copy.last_seq()
    echo(f"{shown(target)}: copy of {shown(file)} up to row {last_seq}")


@command.command(_DIRECT, hidden=True)
@_FILE
@click.option(
    "--export", "form", metavar="FORMAT", type=_FORMATS,
    help="Print every decision in this format.",
)  # fmt: skip
@_JOB
@json_option
@click.pass_context
def direct(
    ctx: click.Context, file: Path, form: str | None, job: str | None, as_json: bool
) -> None:
    """Show the last decisions of FILE; with --export jsonl or csv print them all."""
    if form is None:
        ctx.invoke(show, file=file, job=job, limit=20, as_json=as_json)
    else:
        _export(file, job, None, "decisions", form)


def _export(file: Path, job: str | None, out: Path | None, table: str, form: str | None) -> None:
    from outrider.formats.tables import format_of, stream_rows, write_rows
    from outrider.journal import rows_of

    form = format_of(out, form, "--out")
    with open_journal(file) as journal:
        rows = rows_of(journal, table, job)
        if out is None:
            stream_rows(rows, sys.stdout.buffer, form)
        else:
            write_rows(rows, out, form, "--out")


command.add_command(recorded_commands.command)
