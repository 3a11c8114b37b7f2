"""``outrider ledger commands``: the recorded commands and changes of the mode."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from outrider.cli.configuration import open_journal, time_in_words, zone_of
from outrider.cli.options import file_path, json_option
from outrider.cli.printing import echo, print_json, shown

if TYPE_CHECKING:
    from outrider.journal import CommandRecord
    from outrider.service.shapes.values import CommandRow, ModeLimit


@click.command("commands", short_help="Show the last commands, and each change of the mode.")
@click.argument("file", metavar="FILE", type=file_path(dir_okay=False))
@click.option(
    "--limit", metavar="N", type=click.IntRange(min=1), default=20, show_default=True,
    help="Show the last N.",
)  # fmt: skip
@json_option
def command(file: Path, limit: int, as_json: bool) -> None:
    """Show the last commands that the daemon received, the newest at the end.

    Use it to see who changed the mode, when and why. Two entries are not commands: `fall_back`
    means that a guard broke, `configuration` that a start or reload changed the mode. `outrider
    ledger export FILE --rows commands` prints all. at_s is in Unix seconds of the daemon's host.

    Example:
      outrider ledger commands /var/lib/outrider/journal.sqlite
    """
    import msgspec

    with open_journal(file) as journal:
        found = list(reversed(journal.latest_commands(limit)))
        zone = zone_of(journal)
    if as_json:
        rows = [{"after_seq": seq, **msgspec.structs.asdict(record)} for seq, record in found]
        print_json({"file": shown(file), "commands": rows})
        return
    for _, record in found:
        echo(in_words(record, zone))
    if not found:
        echo("no commands recorded")


def in_words(row: "CommandRecord | CommandRow", zone: str) -> str:
    """Return a command as one line: time, user, change of the mode and reason."""
    change = row.to_mode
    if row.from_mode not in (row.to_mode, ""):
        change = f"{row.from_mode} -> {row.to_mode}"
    outcome = "" if row.outcome == "done" else f" {row.outcome}"
    line = f"{time_in_words(row.at_s, zone)}  {row.command}{who(row)}{outcome}: {change}"
    # the modes themselves show what a change of the mode did
    says_all = row.outcome == "done" and row.command != "release"
    return "; ".join(filter(None, (line, row.why, "" if says_all else row.detail)))


def limit_in_words(limit: "ModeLimit", zone: str) -> str:
    """Return the limit of the mode as one line: mode, author, time and reason."""
    by = "a guard" if limit.by == "guard" else f"a command{who(limit)}"
    why = f": {limit.why}" if limit.why else ""
    return f"at most {limit.most}, by {by} on {time_in_words(limit.at_s, zone)}{why}"


def who(row: "CommandRecord | CommandRow | ModeLimit") -> str:
    """Return the author of a command, name and uid, after a blank; empty if unknown."""
    if row.uid is None:
        return f" by {row.user}" if row.user else ""
    return f" by {row.user} ({row.uid})" if row.user else f" by uid {row.uid}"
