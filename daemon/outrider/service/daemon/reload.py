"""Reload of the configuration in a running daemon: build the new one, then swap."""

import asyncio
from collections.abc import Iterable
from typing import Final

from outrider.acting.gate import ACTING_MODES
from outrider.api.adapter import Adapter
from outrider.model.errors import ConfigurationError
from outrider.service.config.declarations import Config
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core.core import Core
from outrider.service.core.mode_limit import effective_config
from outrider.service.daemon.daemon_state import DaemonState, make_core, notes_on
from outrider.service.daemon.levers import close_levers
from outrider.service.daemon.pump import Pumps
from outrider.service.daemon.sources import make_adapters
from outrider.service.host.threads import in_own_thread

_CLOSING_S = 5.0
_FIXED: Final = (
    "state_dir", "listen", "tls_cert", "tls_key", "token_file", "socket", "socket_group",
    "admin_group", "log_format",
)  # fmt: skip


async def reload(
    state: DaemonState, pumps: Pumps, loaded: LoadedConfig, note: str | None = None
) -> None:
    """Build the new configuration's parts, then swap; on failure the old ones stay.

    Args:
        state: the daemon's state.
        pumps: read the sources.
        loaded: the new configuration, whose mode a limit may lower.
        note: a note on it for operators.

    Raises:
        OutriderError: the new configuration cannot be activated; nothing has changed.
    """
    lowerings = state.lowerings
    loaded, limited = effective_config(loaded, state.recording.folder)
    before = state.loaded.config.adapters
    same = {n: a for n, a in state.adapters.items() if before[n] == loaded.config.adapters.get(n)}
    adapters = await in_own_thread(lambda: make_adapters(loaded, same), "reload")
    old_levers = state.levers
    async with state.lock:
        state.core.accounting.work_out()  # or the thread and a reader might do it at the same time
        core, fresh = await in_own_thread(
            lambda: _successor(state, loaded, adapters, same), "reload"
        )
        notes = [*filter(None, (note, limited)), *notes_on(loaded)]
        if fresh:
            notes.append(f"policies that start afresh: {', '.join(fresh)}")
        if not core.runners and state.core.runners:
            notes.append("nothing is decided: the policies are paused and keep what they learned")
        elif left := {s.name for s in state.core.runners} - {s.name for s in core.runners}:
            notes.append(f"policies removed with what they learned: {', '.join(sorted(left))}")
        if fixed := _needs_restart(state.loaded.config, loaded.config):
            notes.append(f"needs a restart to change: {', '.join(fixed)}")
        if loaded.config.mode in ACTING_MODES and state.lowerings != lowerings:
            raise ConfigurationError(f"{loaded.source}: the mode has been lowered since")
        if not _acts_the_same(state.loaded.config, loaded.config):
            state.levers = state.new_levers(loaded, adapters)
        removed = [pumps.cancel(label) for label in state.adapters.keys() - same.keys()]
        state.loaded, state.adapters = loaded, adapters
        state.sources_with_history_read.intersection_update(same)
        state.publisher.follow(loaded.config)
        state.replace_core(core)
        state.view.notes = notes
        state.view.own_clock = any(a.own_clock for a in adapters.values())
        state.log_discipline()
        state.log_lost_policies()
        await state.snapshot()
    if state.levers is not old_levers:
        await close_levers(old_levers)
    if removed:
        await asyncio.wait(removed, timeout=_CLOSING_S)
    for label in adapters.keys() - same.keys():
        if label not in state.cursors:
            state.cursors[label] = await asyncio.to_thread(state.recording.cursor, label)
        pumps.start(label)
    await pumps.begin_if_history_read()  # the source that was waited for may have been removed


def _successor(
    state: DaemonState, loaded: LoadedConfig, adapters: dict[str, Adapter], same: Iterable[str]
) -> tuple[Core, list[str]]:
    """Return a core for another configuration with our state, and the new policies."""
    core = make_core(loaded, adapters, state.recording, state.trial)
    try:
        fresh = core.restore(state.core.save())
    except Exception as error:  # policies save and restore: a plugin's code
        raise ConfigurationError(
            f"{loaded.source}: what was learned does not fit: {type(error).__name__}: {error}"
        ) from error
    sound = {runner.name for runner in state.core.runners if not runner.broken}
    for name, why in core.lost_policies.items():
        if name in sound:
            raise ConfigurationError(f"{loaded.source}: what was learned is lost: {why}")
    core.succeed(state.core, same)
    return core, fresh


def _acts_the_same(old: Config, new: Config) -> bool:
    """Return whether active changes in the batch system may stay."""
    keys = ("mode", "acting", "adapters", "policies")
    return all(getattr(old, key) == getattr(new, key) for key in keys)


def _needs_restart(old: Config, new: Config) -> list[str]:
    """Return the settings that differ and that a reload cannot change."""
    return [key for key in _FIXED if getattr(old, key) != getattr(new, key)]
