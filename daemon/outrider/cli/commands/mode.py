"""``outrider mode``: the mode of the running daemon: what it is, and lowering it."""

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


@click.command("mode", short_help="Show the daemon's mode, or lower it at once.")
@click.argument("mode", required=False, type=click.Choice(MODES))
@why_option
@config_option
@socket_option
@json_option
def command(
    mode: str | None, why: str, config: Path | None, socket_path: Path | None, as_json: bool
) -> int:
    """Show the daemon's mode, or lower it at once.

    observe: only watch and measure. shadow: also record what the policies would do. canary: carry
    that out for some jobs. active: for all jobs.

    The configuration's mode is the highest there is. A command lowers the mode below it at once:
    in observe and shadow all that was changed in the batch system is taken back. That holds over
    restarts and reloads, until `outrider promote` raises the mode again. It is asked over the
    daemon's Unix socket, by root, the daemon's own user or a member of the group outrider-admin,
    and recorded (`outrider ledger commands`). Without MODE it says what the mode is, what lowers
    it, and what was commanded last. Exit code 1: it was refused, and why.

    Example:
      outrider mode shadow --why "new file server on Monday"
    """
    from outrider.cli import daemon
    from outrider.cli.configuration import read
    from outrider.cli.printing import print_json

    own = read(config)
    socket = daemon.need_socket(socket_path, own)
    if mode is None:
        told = daemon.get(socket, daemon.PATH).body
        if as_json:
            print_json(told)
        else:
            zone = "UTC" if own is None else own.config.timezone
            echo("\n".join(_lines(told, zone)))
        return 0
    answer = daemon.post(socket, {"command": "mode", "mode": mode, "why": why})
    if as_json:
        print_json(answer.body)
    else:
        daemon.tell(answer)
    return answer.exit_code


def _lines(told: dict[str, Any], zone: str) -> list[str]:
    from outrider.cli.recorded_commands import in_words, limit_in_words

    lines = [f"mode       {told['mode']}; the configuration's is {told['configured_mode']}"]
    if told["mode_limit"] is not None:
        lines.append(f"limit      {limit_in_words(told['mode_limit'], zone)}")
    return lines + [f"command    {in_words(row, zone)}" for row in reversed(told["commands"])]
