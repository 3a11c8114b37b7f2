"""``outrider run``: runs the daemon."""

import gc
from pathlib import Path

import click

from outrider.cli.options import file_path


@click.command("run", short_help="Run the daemon alongside a batch system.")
@click.option(
    "--config", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="The configuration file; `outrider check-config --example` prints one.",
)  # fmt: skip
def command(config: Path) -> int:
    """Run the daemon alongside a batch system.

    Use it from systemd (a unit is shipped) or by hand. It reads events from its adapters, learns,
    and records what its policies would do. In the modes canary and active it applies their
    decisions, and its changes in the batch system expire automatically; in the other modes it
    changes nothing. On SIGTERM or SIGINT it reverts its changes and stops within 5 s. On SIGHUP it
    reloads its configuration. The environment variable STATE_DIRECTORY, which systemd sets,
    overrides `state_dir`.

    Example:
      outrider check-config outrider.toml && outrider run --config outrider.toml

    In the configuration names of times end in _s (seconds) and of powers in _w (watts).
    """
    gc.disable()  # imported modules live as long as the daemon, so there is no garbage to collect
    try:
        from outrider.cli.configuration import load
        from outrider.service.process.app import run

        loaded = load(config)
    finally:
        gc.enable()
    gc.freeze()
    return run(loaded)
