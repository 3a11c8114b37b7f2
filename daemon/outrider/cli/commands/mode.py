"""``outrider mode``: shows or lowers the mode of the running daemon."""

from pathlib import Path
from typing import Any

import click

from outrider.cli.daemon import (
    config_option,
    json_option,
    socket_option,
    why_option,
)
from outrider.cli.printing import echo
from outrider.model.modes import MODES


@click.command("mode", short_help="Show the daemon's mode, or lower it immediately.")
@click.argument("mode", required=False, type=click.Choice(MODES))
@why_option
@config_option
@socket_option
@json_option
def command(
    mode: str | None, why: str, config: Path | None, socket_path: Path | None, as_json: bool
) -> int:
    """Show the daemon's mode, or lower it immediately.

    observe: only watch and measure. shadow: also record what the policies would do. canary: apply
    their decisions to some jobs. active: apply them to all jobs.

    The mode is never above the configuration's. A command lowers it immediately: in observe and
    shadow all of Outrider's changes in the batch system are reverted. The lower mode persists over
    restarts and reloads, until `outrider promote` raises it again. The command uses the daemon's
    Unix socket, works for root, the daemon's own user or a member of the group outrider-admin, and
    is recorded (`outrider ledger commands`). Without MODE it shows the mode, its limit and the last
    commands. Exit code 1: refused; the output shows why.

    Example:
      outrider mode shadow --why "new file server on Monday"
    """
    from outrider.cli import daemon
    from outrider.cli.configuration import read
    from outrider.cli.printing import print_json

    own = read(config)
    socket = daemon.need_socket(socket_path, own)
    if mode is None:
        status = daemon.get(socket, daemon.PATH).body
        if as_json:
            print_json(status)
        else:
            zone = "UTC" if own is None else own.config.timezone
            echo("\n".join(_lines(status, zone)))
        return 0
    answer = daemon.post(socket, {"command": "mode", "mode": mode, "why": why})
    if as_json:
        print_json(answer.body)
    else:
        daemon.print_answer(answer)
    return answer.exit_code


def _lines(status: dict[str, Any], zone: str) -> list[str]:
    from outrider.cli.daemon import decoded
    from outrider.cli.recorded_commands import in_words, limit_in_words
    from outrider.service.shapes.values import Commands

    given = decoded(status, Commands)
    lines = [f"mode       {given.mode}; the configuration's is {given.configured_mode}"]
    if given.mode_limit is not None:
        lines.append(f"limit      {limit_in_words(given.mode_limit, zone)}")
    return lines + [f"command    {in_words(row, zone)}" for row in reversed(given.commands)]
