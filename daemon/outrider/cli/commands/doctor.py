"""``outrider doctor``: checks of everything the daemon needs."""

from pathlib import Path

import click

from outrider.cli.options import file_path, json_option
from outrider.cli.printing import echo, print_json


@click.command("doctor", short_help="Check everything the daemon needs and suggest fixes.")
@click.option(
    "--config", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="The daemon's configuration file.",
)  # fmt: skip
@click.option(
    "--levers", is_flag=True,
    help="Also test each lever on a test job, which is submitted on hold and removed again.",
)  # fmt: skip
@click.option(
    "--suggest", is_flag=True,
    help="Instead, print suggested machine groups as tables for the configuration.",
)  # fmt: skip
@click.option("--as-service", is_flag=True, hidden=True)  # set where the doctor runs in its unit
@json_option
def command(config: Path, levers: bool, suggest: bool, as_service: bool, as_json: bool) -> int:
    """Check everything the daemon needs and suggest fixes.

    Use it before the first start and when something looks wrong. It examines what the daemon does,
    as the daemon does it: a running daemon is asked for the state of its adapters, and an adapter
    that is down there fails. Where none runs and the systemd unit runs this configuration, root
    examines in a transient unit, with the service's user and sandbox. Else it examines with the
    permissions of its own user, and says so.

    It checks plugins, configuration, state directory, free space, journal, clock, port,
    certificates, keys, tokens and passwords (whose contents are never shown), every adapter's
    source, the MQTT broker, systemd and the installed unit, and changes nothing. With --levers it
    also tests, before the mode canary or active, that Outrider's changes to the batch system can be
    made, take effect and can be reverted. Exit code 1: a check failed; warnings do not count.

    With --suggest it looks at the machines that the adapters see and prints TOML: a table for each
    suggested machine group, with watts to be filled in, and what defines the group: an attribute of
    HTCondor's slots, Slurm's partitions, or a prefix of the machines' names. Nothing is written.
    Exit code 1 then: no group can be suggested.

    Example:
      outrider doctor --config /etc/outrider/outrider.toml

    Ages and durations are shown with their unit; sizes are gigabytes (2^30 bytes).
    """
    if suggest:
        return _suggest(config, as_json)
    from itertools import chain

    from outrider.cli.configuration import load
    from outrider.cli.doctor.checks import AS_SERVICE, examine
    from outrider.cli.doctor.sources import check_levers

    checks = []
    for check in chain(
        examine(config, as_service=as_service), check_levers(load(config)) if levers else ()
    ):
        checks.append(check)
        if not as_json:
            echo(f"{check.state:<4}  {check.name}: {check.found}")
            if check.remedy:
                echo(f"      fix: {check.remedy}")
    failed = sum(check.state == "fail" for check in checks)
    if as_json:
        print_json({"ok": not failed, "checks": [check._asdict() for check in checks]})
    else:
        unexamined = any(check.name == AS_SERVICE and check.state == "warn" for check in checks)
        well = "the daemon has all it needs"
        if unexamined:
            well = "what was examined is in order; the service itself was not examined"
        echo("fix the failed checks above" if failed else well)
    return int(bool(failed))


def _suggest(config: Path, as_json: bool) -> int:
    """Print suggested machine groups for the configuration; return 1 if there are none."""
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
