"""``outrider run``: the daemon."""

import gc
from pathlib import Path

import click

from outrider.cli.options import file_path


@click.command("run", short_help="Run the daemon beside a batch system.")
@click.option(
    "--config", type=file_path(dir_okay=False), required=True, metavar="FILE",
    help="The configuration file; `outrider check-config --example` prints one.",
)  # fmt: skip
def command(config: Path) -> int:
    """Run the daemon beside a batch system.

    Use it from systemd (a unit is shipped) or by hand. It reads what its adapters see, learns, and
    records what its policies would do. In the modes canary and active it carries that out, and what
    it changes in the batch system lapses by itself; in the others it changes nothing. It stops
    within 5 s on SIGTERM or SIGINT, takes back then what it changed, and reads its configuration
    again on SIGHUP. The environment variable STATE_DIRECTORY, which systemd sets, wins over
    `state_dir`.

    Example:
      outrider check-config outrider.toml && outrider run --config outrider.toml

    In the configuration times end in _s (seconds) and powers in _w (watts).
    """
    gc.disable()  # imported modules live as long as the daemon: nothing of them is garbage
    try:
        from outrider.cli.configuration import load
        from outrider.service.process.app import run

        loaded = load(config)
    finally:
        gc.enable()
    gc.freeze()
    return run(loaded)
