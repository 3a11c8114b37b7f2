"""``outrider promote``: raises the mode by one step if the evidence allows it."""

from pathlib import Path

import click

from outrider.cli.daemon import (
    config_option,
    json_option,
    socket_option,
    why_option,
)
from outrider.cli.printing import echo


@click.command("promote", short_help="Raise the mode by one step if the evidence allows it.")
@why_option
@click.option("--dry-run", is_flag=True, help="Show the evidence and change nothing.")
@config_option
@socket_option
@json_option
def command(
    why: str, dry_run: bool, config: Path | None, socket_path: Path | None, as_json: bool
) -> int:
    """Raise the mode by one step if the evidence allows it.

    The steps are shadow, canary, active, up to the configuration's mode. Use it after `outrider
    mode` or `release`, after a guard broke, and if the configuration sets promote_first. It shows
    the evidence: guards' values and bounds, agreement with the batch system, decisions that the
    gate refused, adapters, and how long the policy has decided here. If the evidence is not
    sufficient, the mode does not change, and nothing can force it: the command lists the obstacles
    (exit code 1).

    The command uses the daemon's Unix socket, works for root, the daemon's own user or a member of
    the group outrider-admin, and is recorded (`outrider ledger commands`).

    Example:
      outrider promote --dry-run
      outrider promote --why "two weeks in shadow, waits as before"
    """
    from outrider.cli import daemon
    from outrider.cli.configuration import read
    from outrider.cli.printing import print_json
    from outrider.cli.status_text import evidence_lines
    from outrider.service.shapes.values import Evidence

    own = read(config)
    socket = daemon.need_socket(socket_path, own)
    zone = "UTC" if own is None else own.config.timezone
    if dry_run:
        evidence = daemon.get(socket, "/api/v1/promotion").body
        if as_json:
            print_json(evidence)
        else:
            echo("\n".join(evidence_lines(daemon.decoded(evidence, Evidence), zone)))
        return int(bool(evidence["against"]))
    answer = daemon.post(socket, {"command": "promote", "why": why})
    if as_json:
        print_json(answer.body)
        return answer.exit_code
    if (evidence := answer.body["evidence"]) is not None:
        echo("\n".join(evidence_lines(daemon.decoded(evidence, Evidence), zone)))
    daemon.print_answer(answer)
    return answer.exit_code
