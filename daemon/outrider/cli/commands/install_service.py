"""``outrider install-service``: the systemd files for a configuration."""

from collections.abc import Sequence
from pathlib import Path

import click

from outrider.cli.daemon import UNIT_CONFIG
from outrider.cli.options import file_path, json_option
from outrider.cli.printing import echo


@click.command("install-service", short_help="Write the systemd service for a configuration.")
@click.option(
    "--config", type=file_path(dir_okay=False), default=UNIT_CONFIG, show_default=True,
    metavar="FILE", help="The daemon's configuration file.",
)  # fmt: skip
@click.option(
    "--root", type=file_path(file_okay=False), default=Path("/"), metavar="DIR",
    help="Write below this folder, for example into the image of another host. [default: /]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print every file and write none.")
@json_option
def command(config: Path, root: Path, dry_run: bool, as_json: bool) -> int:
    """Write the systemd service for a configuration.

    If there is no configuration yet, it writes one: in shadow mode, with a table for each batch
    system that this host is configured for (HTCondor by condor_config_val, Slurm by squeue and
    slurm.conf, PBS by qstat and pbs.conf), and lists what to review. An existing configuration is
    never changed.

    Run it as root, once, and again after a change of the configuration, of the batch system's hosts
    or of Python's location. It writes the unit, its user and group (sysusers.d), and drop-ins that
    follow from the configuration: the path of this command, addresses of other hosts (collector,
    slurmctld, broker; systemd accepts no host names), groups that may read the logs, paths that the
    unit would hide, variables such as CONDOR_CONFIG, and secrets that systemd passes on. It also
    writes outrider-release.timer if a lever's changes do not expire automatically, socket and
    service of a helper that an adapter needs, and outrider-twin.service unless [twin] disables it.
    It lists each file that it writes. A file that was edited is kept, and the new text goes to
    FILE.new. Exit code 1: there is such a FILE.new.

    Example:
      outrider install-service --dry-run
      outrider install-service --config /etc/outrider/outrider.toml
    """
    from outrider.cli.configuration import load
    from outrider.cli.printing import print_json, shown
    from outrider.service.unit.files import UnitFile, service_files, write
    from outrider.service.unit.first_config import first_config

    first = None if config.exists() else first_config(config.absolute())
    made = [] if first is None else [UnitFile(config.absolute(), first.text)]
    done = [write(file, root, dry_run=dry_run) for file in made]  # the rest is read off it
    needed, notes, enable = service_files(load(config) if first is None else first.loaded)
    done += [write(file, root, dry_run=dry_run) for file in needed]
    files, results = [*made, *needed], [one for one in done if one is not None]
    review = [] if first is None else first.review
    code = int(any(one.did == "beside" for one in results))
    if as_json:
        texts = {str(file.path): file.text for file in files if file.text}
        named = [{"path": shown(one.path), "did": one.did, "why": one.why} for one in results]
        answer = {"dry_run": dry_run, "files": named, "texts": texts, "notes": notes}
        print_json({**answer, "review": review, "enable": ["outrider.service", *enable]})
        return code
    for file in files if dry_run else ():
        if file.text:
            echo(f"==> {file.path}\n{file.text}")
    would = "would be " if dry_run else ""
    for one in results:
        echo(f"{would}{one.did:<9}  {shown(one.path)}" + (f": {one.why}" if one.why else ""))
    for note in notes:
        echo(f"note       {note}")
    for sentence in review:
        echo(f"review     {sentence}")
    echo(_then(config, root, ["outrider", *enable]))
    return code


def _then(config: Path, root: Path, units: Sequence[str]) -> str:
    """Return the next steps for the admin."""
    if root != Path("/"):
        return f"Then, on that host: systemd-sysusers; systemctl enable {' '.join(units)}"
    return "\n".join(
        (
            "Then:",
            "  systemd-sysusers",
            "  systemctl daemon-reload",
            f"  systemctl enable --now {' '.join(units)}",
            f"  outrider doctor --config {config}",
            "For shell completion for all users (zsh, fish: outrider completion --help):",
            "  outrider completion bash > /usr/local/share/bash-completion/completions/outrider",
        )
    )
