"""``outrider release``: take back at once whatever Outrider has changed in the batch system."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outrider.cli.daemon import (
    Answer,
    NoDaemonError,
    config_option,
    json_option,
    need_socket,
    post,
    socket_of,
    socket_option,
    tell,
    why_option,
)
from outrider.cli.printing import echo

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig


@click.command("release", short_help="Take back what Outrider has changed in the batch system.")
@why_option
@click.option(
    "--stale", is_flag=True,
    help="Only what does not lapse by itself, and no daemon has renewed in time.",
)  # fmt: skip
@config_option
@socket_option
@json_option
def command(
    why: str, stale: bool, config: Path | None, socket_path: Path | None, as_json: bool
) -> int:
    """Take back what Outrider has changed in the batch system.

    At once, and all of it. Where the daemon runs, it is asked over its Unix socket (by root, its
    own user or a member of the group outrider-admin): it falls to shadow first, or all would be
    made anew, and stays there until `outrider promote`. Where none runs, this command does it
    itself: what a daemon changed is found in the batch system itself or in the state directory of
    --config FILE. It says which of both it was. Without this command everything lapses by itself a
    little later, and a daemon that ends takes its changes back. Exit code 1: not all was taken
    back.

    With --stale it takes back only what does not lapse by itself and was not renewed, as a daemon
    that is dead leaves it, and nothing of a daemon that works. outrider-release.timer runs it so,
    each minute.

    Example:
      outrider release --why "users wait too long"
      outrider release --config /etc/outrider/outrider.toml
    """
    from outrider.cli.configuration import load
    from outrider.cli.printing import print_json

    loaded = None if config is None else load(config)
    if stale and loaded is None:
        raise click.UsageError("--stale is done by this command: --config FILE names the daemon's")
    answer = None if stale else _asked(loaded, socket_path, why)
    if answer is not None and as_json:
        print_json({"by": "daemon", **answer.body})
    elif answer is not None:
        echo("by the daemon that runs:")
        tell(answer)
    if answer is not None or loaded is None:
        return 0 if answer is None else answer.exit_code
    nothing_lasts = stale and not _has_lasting(loaded)  # asked each minute: no more is loaded then
    released = [] if nothing_lasts else _by_ourselves(loaded, stale=stale)
    if as_json:
        print_json({"by": "command", "command": "release", "outcome": "done", "released": released})
        return 0
    for one in released:
        echo(f"{one['lever']}: reverted for {one['jobs']:,} jobs.")
    if nothing_lasts:
        echo("Nothing was changed that does not lapse by itself.")
    elif not released:
        echo("No adapter here can change anything.")
    return 0


def _asked(loaded: "LoadedConfig | None", socket_path: Path | None, why: str) -> "Answer | None":
    """What the daemon that runs answers; None where none does and there is a configuration.

    Raises:
        PeerError: it does not let us command; or none answers, and nothing says whose it would be.
    """
    if loaded is not None and socket_path is None:
        socket = socket_of(None, loaded)
    else:
        socket = need_socket(socket_path, loaded)
    if socket is None:
        return None
    try:
        return post(socket, {"command": "release", "why": why})
    except NoDaemonError:
        if loaded is None:
            raise
        return None


def _has_lasting(loaded: "LoadedConfig") -> bool:
    from outrider.service.config.reading import state_folder
    from outrider.service.daemon.levers import has_lasting

    return has_lasting(state_folder(loaded))


def _by_ourselves(loaded: "LoadedConfig", *, stale: bool) -> list[dict[str, Any]]:
    """Take back without a daemon, and say so; what each lever took back."""
    from outrider.service.commands.reverting import revert_lever
    from outrider.service.config.reading import state_folder
    from outrider.service.daemon.levers import UndoFile, make_levers
    from outrider.service.daemon.sources import make_adapters

    folder = state_folder(loaded)
    if not stale:
        echo(f"by this command: {_why_not_by_the_daemon(loaded, folder)}", err=True)
    adapters = make_adapters(loaded, {})
    for label, adapter in adapters.items():
        adapter.undo_log = UndoFile(folder, label)
    return [
        {"lever": f"{label}: {lever.name}", "jobs": revert_lever(lever, stale=stale), "problem": ""}
        for label, levers in make_levers(adapters, folder).items()
        for lever in levers
    ]


def _why_not_by_the_daemon(loaded: "LoadedConfig", folder: Path) -> str:
    from outrider.acting.gate import ACTING_MODES
    from outrider.service.journal.recording import is_in_use

    if is_in_use(folder):
        return (
            "the daemon that runs has no socket to be asked at (`socket`), goes on deciding, and "
            "may make changes anew"
        )
    if loaded.config.mode in ACTING_MODES:
        mode = f'mode = "{loaded.config.mode}"'
        return (
            f"no daemon runs. {loaded.source} says {mode}: one that runs with it would make "
            "changes anew"
        )
    return "no daemon runs"
