"""``outrider doctor``: everything the daemon needs, examined."""

from pathlib import Path

import click

from outrider.cli.options import file_path, json_option
from outrider.cli.printing import echo, print_json


@click.command("doctor", short_help="Examine everything the daemon needs and name the remedies.")
@click.option(
    "--config", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="The daemon's configuration file.",
)  # fmt: skip
@click.option(
    "--levers", is_flag=True,
    help="Also try each lever on a job of its own, which is submitted on hold and removed again.",
)  # fmt: skip
@click.option(
    "--suggest", is_flag=True,
    help="Print tables for the configuration instead: machine groups out of what is seen.",
)  # fmt: skip
@json_option
def command(config: Path, levers: bool, suggest: bool, as_json: bool) -> int:
    """Examine everything the daemon needs and name the remedies.

    Use it before the first start and when something is odd; run it as the daemon's user, so that
    it may read and write what the daemon may. It looks at plugins, configuration, state directory,
    free space, journal, clock, port, certificates, keys, tokens and passwords (what they hold is
    never told), every adapter's source, the MQTT broker to publish to, systemd and the unit that is
    installed, and changes nothing. With --levers it also proves, before the mode canary or active,
    that what Outrider would change in the batch system can be changed, is heeded, and can be taken
    back. Exit code 1: something must be mended (fail); a warning is none.

    With --suggest it looks at the machines that the adapters see, and prints TOML: a table for each
    machine group that it proposes, with watts still to be filled in, and what tells the group: an
    attribute of HTCondor's slots, Slurm's partitions, or how the machines' names begin. Nothing is
    written. Exit code 1 then: no group can be proposed.

    Example:
      sudo -u outrider outrider doctor --config /etc/outrider/outrider.toml

    Ages and spans carry their unit; sizes are gigabytes (2^30 bytes).
    """
    if suggest:
        return _suggest(config, as_json)
    from itertools import chain

    from outrider.cli.configuration import load
    from outrider.cli.doctor.checks import check_levers, examine

    checks = []
    for check in chain(examine(config), check_levers(load(config)) if levers else ()):
        checks.append(check)
        if not as_json:
            echo(f"{check.state:<4}  {check.name}: {check.found}")
            if check.remedy:
                echo(f"      -> {check.remedy}")
    failed = sum(check.state == "fail" for check in checks)
    if as_json:
        print_json({"ok": not failed, "checks": [check._asdict() for check in checks]})
    else:
        echo("something must be mended" if failed else "the daemon has all it needs")
    return int(bool(failed))


def _suggest(config: Path, as_json: bool) -> int:
    """Print what may be put into the configuration; 1 where no group can be proposed."""
    from outrider.cli.configuration import load
    from outrider.cli.doctor.sources import every_seen
    from outrider.service.unit.suggestion import fragment, proposed

    loaded = load(config)
    seen = every_seen(loaded)
    text = fragment(loaded.config, seen)
    groups = {
        group.name: list(group.machines) for one in seen for group in proposed(one).grouping.groups
    }
    if as_json:
        print_json({"toml": text, "groups": groups})
    else:
        echo(text, nl=False)
    return int(not groups)
