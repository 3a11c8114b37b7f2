"""``outrider release``: take back at once whatever Outrider has changed in the batch system."""

from pathlib import Path

import click

from outrider.cli.options import file_path


@click.command("release", short_help="Take back what Outrider has changed in the batch system.")
@click.option(
    "--config", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="The daemon's configuration file.",
)  # fmt: skip
@click.option(
    "--stale", is_flag=True,
    help="Only what does not lapse by itself, and no daemon has renewed in time.",
)  # fmt: skip
def command(config: Path, stale: bool) -> None:
    """Take back what Outrider has changed in the batch system.

    At once, and all of it. What this daemon changed, or one before it, is found in the batch
    system itself or in the state directory, so no daemon has to run for this. Without it
    everything lapses by itself a little later, and a daemon that ends takes its changes back.

    A daemon that runs in the mode canary or active goes on deciding, and would make changes anew:
    then first set mode = "shadow" in its configuration, and let it read that (systemctl reload
    outrider, or SIGHUP).

    With --stale it takes back only what does not lapse by itself and was not renewed, as a daemon
    that is dead leaves it, and nothing of a daemon that works. outrider-release.timer runs it so.

    Example:
      outrider release --config /etc/outrider/outrider.toml
    """
    from outrider.acting.gate import ACTING_MODES
    from outrider.cli.configuration import load
    from outrider.service.app import state_folder
    from outrider.service.levers import make_levers
    from outrider.service.sources import make_adapters
    from outrider.service.undo_file import UndoFile

    loaded = load(config)
    if loaded.config.mode in ACTING_MODES and not stale:
        click.echo(
            f'{loaded.source} says mode = "{loaded.config.mode}": a daemon that runs with it would '
            "make changes anew",
            err=True,
        )
    adapters = make_adapters(loaded, {})
    for label, adapter in adapters.items():
        adapter.undo_log = UndoFile(state_folder(loaded), label)
    levers = make_levers(adapters, state_folder(loaded))
    if not levers:
        click.echo("No adapter here can change anything.")
    for label, of_adapter in levers.items():
        for lever in of_adapter:
            try:
                jobs = lever.withdraw_stale() if stale else lever.withdraw_all()
            finally:
                lever.close()
            click.echo(f"{label}: {lever.name}: taken back for {jobs:,} jobs.")
