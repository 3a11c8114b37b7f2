"""``outrider promote``: climb a step towards the configuration's mode, on evidence."""

from pathlib import Path

import click

from outrider.cli.daemon import (
    config_option,
    json_option,
    socket_option,
    why_option,
)
from outrider.cli.printing import echo


@click.command("promote", short_help="Let the daemon climb a step, where the evidence allows it.")
@why_option
@click.option("--dry-run", is_flag=True, help="Show the evidence, and change nothing.")
@config_option
@socket_option
@json_option
def command(
    why: str, dry_run: bool, config: Path | None, socket_path: Path | None, as_json: bool
) -> int:
    """Let the daemon climb a step, where the evidence allows it.

    A step is shadow, canary, active, up to the configuration's mode. Use it after `outrider mode`
    or `release`, where a guard broke, and where the configuration says promote_first. It shows the
    evidence: guards' figures against their bounds, agreement with the batch system, what the gate
    refused, sources, and for how long the policy has decided here. Against the
    evidence the mode stays, and nothing forces it: the command says what is in the way (exit code
    1).

    It is asked over the daemon's Unix socket, by root, the daemon's own user or a member of the
    group outrider-admin, and recorded (`outrider ledger commands`).

    Example:
      outrider promote --dry-run
      outrider promote --why "two weeks in shadow, waits as before"
    """
    from outrider.cli import daemon
    from outrider.cli.configuration import read
    from outrider.cli.printing import print_json
    from outrider.cli.status_text import evidence_lines

    own = read(config)
    socket = daemon.need_socket(socket_path, own)
    zone = "UTC" if own is None else own.config.timezone
    if dry_run:
        evidence = daemon.get(socket, "/api/v1/promotion").body
        if as_json:
            print_json(evidence)
        else:
            echo("\n".join(evidence_lines(evidence, zone)))
        return int(bool(evidence["against"]))
    answer = daemon.post(socket, {"command": "promote", "why": why})
    if as_json:
        print_json(answer.body)
        return answer.exit_code
    if answer.body["evidence"] is not None:
        echo("\n".join(evidence_lines(answer.body["evidence"], zone)))
    daemon.tell(answer)
    return answer.exit_code
