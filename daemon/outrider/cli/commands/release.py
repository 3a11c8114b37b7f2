"""``outrider release``: reverts Outrider's changes in the batch system immediately."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from outrider.cli.daemon import (
    Answer,
    NoDaemonError,
    config_option,
    json_option,
    need_socket,
    post,
    print_answer,
    socket_of,
    socket_option,
    why_option,
)
from outrider.cli.printing import echo

if TYPE_CHECKING:
    from outrider.service.commands.reverting import Reverted
    from outrider.service.config.loaded import LoadedConfig


@click.command("release", short_help="Revert Outrider's changes in the batch system.")
@why_option
@click.option(
    "--stale", is_flag=True,
    help="Only changes that do not expire automatically and that no daemon has renewed in time.",
)  # fmt: skip
@config_option
@socket_option
@json_option
def command(
    why: str, stale: bool, config: Path | None, socket_path: Path | None, as_json: bool
) -> int:
    """Revert Outrider's changes in the batch system.

    It reverts all changes immediately. If the daemon runs, it does this on request over its Unix
    socket (from root, its own user or a member of the group outrider-admin). It enters shadow mode
    first, or it would make the changes again, and stays there until `outrider promote`. If no
    daemon runs, this command reverts the changes itself: it finds them in the batch system or in
    the state directory of --config FILE. It shows which of the two happened. Without this command
    changes expire a little later, and a daemon that stops reverts its own. Exit code 1: some
    changes could not be reverted.

    With --stale it reverts only changes that do not expire automatically and were not renewed, as a
    dead daemon leaves them, and none of a daemon that works. outrider-release.timer runs this each
    minute.

    Example:
      outrider release --why "users wait too long"
      outrider release --config /etc/outrider/outrider.toml
    """
    from outrider.cli.configuration import load
    from outrider.cli.printing import print_json

    loaded = None if config is None else load(config)
    if stale and loaded is None:
        raise click.UsageError("--stale: expected --config FILE, the daemon's configuration")
    answer = None if stale else _asked(loaded, socket_path, why)
    if answer is not None and as_json:
        print_json({"by": "daemon", **answer.body})
    elif answer is not None:
        echo("by the running daemon:")
        print_answer(answer)
    if answer is not None or loaded is None:
        return 0 if answer is None else answer.exit_code
    nothing_lasts = stale and not _has_lasting(loaded)  # runs each minute, so load no more then
    released = [] if nothing_lasts else _by_ourselves(loaded, stale=stale)
    failed = [one for one in released if one.problem]
    if as_json:
        outcome = {"outcome": "failed" if failed else "done"}
        print_json({"by": "command", "command": "release", **outcome, "released": released})
        return int(bool(failed))
    for one in released:
        echo(f"{one.sentence}.")
    if nothing_lasts:
        echo("There are no changes that do not expire automatically.")
    elif not released:
        echo("No configured adapter has a lever.")
    return int(bool(failed))


def _asked(loaded: "LoadedConfig | None", socket_path: Path | None, why: str) -> "Answer | None":
    """Return the running daemon's answer; None if none runs and a configuration is given.

    Raises:
        PeerError: the daemon denies the command; or none answers, and no configuration is given.
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


def _by_ourselves(loaded: "LoadedConfig", *, stale: bool) -> "list[Reverted]":
    """Revert the changes without a daemon; return the result of each lever."""
    from outrider.service.commands.reverting import revert_each
    from outrider.service.config.reading import state_folder
    from outrider.service.daemon.levers import UndoFile, make_levers
    from outrider.service.daemon.sources import make_adapters

    folder = state_folder(loaded)
    if not stale:
        echo(f"by this command: {_why_not_by_the_daemon(loaded, folder)}", err=True)
    adapters = make_adapters(loaded, {})
    for label, adapter in adapters.items():
        adapter.undo_log = UndoFile(folder, label)
    made = make_levers(adapters, folder).items()
    every = {f"{label}: {lever.name}": lever for label, levers in made for lever in levers}
    return revert_each(every, stale=stale)


def _why_not_by_the_daemon(loaded: "LoadedConfig", folder: Path) -> str:
    from outrider.acting.gate import ACTING_MODES
    from outrider.service.journal.recording import is_in_use

    if is_in_use(folder):
        return (
            "the running daemon has no admin socket (`socket`); it continues to decide and may "
            "make the changes again"
        )
    if loaded.config.mode in ACTING_MODES:
        mode = f'mode = "{loaded.config.mode}"'
        return (
            f"no daemon runs. {loaded.source} sets {mode}: a daemon started with it would make "
            "the changes again"
        )
    return "no daemon runs"
