"""``outrider promote``: let a daemon that fell back to shadow act again."""

from pathlib import Path

import click

from outrider.cli.options import file_path


@click.command("promote", short_help="Let a daemon that fell back to shadow act again.")
@click.option(
    "--config", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="The daemon's configuration file.",
)  # fmt: skip
def command(config: Path) -> int:
    """Let a daemon that fell back to shadow act again.

    A daemon in the mode canary or active falls back to shadow where one of its guards breaks
    (guard_* below [acting]), takes back what it changed, and stays there over restarts and reloads.
    This says why it did, and lifts that: the mode of the configuration is in force again with the
    next reload (systemctl reload outrider, or SIGHUP). Run it as the daemon's user or as root.
    Exit code 1: it had not fallen back.

    Example:
      outrider promote --config /etc/outrider/outrider.toml && systemctl reload outrider
    """
    import datetime as dt

    from outrider.cli.configuration import journal_path, load
    from outrider.model.localtime import time_zone
    from outrider.service.demotion import lift

    loaded = load(config)
    found = lift(journal_path(loaded).parent)
    if found is None:
        click.echo(
            f"nothing to lift: no guard put this daemon back; its mode is {loaded.config.mode}"
        )
        return 1
    when = dt.datetime.fromtimestamp(found.at_s, time_zone(loaded.config.timezone))
    click.echo(f"fell back from {found.mode} to shadow on {when:%d %b %Y %H:%M:%S %Z}: {found.why}")
    click.echo(f"lifted: {loaded.config.mode} is in force with the next reload")
    return 0
