"""A new configuration in a running daemon: built beside the old one, then put in its place."""

import asyncio
from collections.abc import Iterable
from typing import Final

from outrider.acting.gate import ACTING_MODES
from outrider.api.adapter import Adapter
from outrider.model.errors import ConfigurationError
from outrider.service.config.declarations import Config
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core.core import Core
from outrider.service.core.mode_limit import in_force
from outrider.service.daemon.daemon_state import DaemonState, make_core, notes_on
from outrider.service.daemon.levers import close_levers
from outrider.service.daemon.pump import Pumps
from outrider.service.daemon.sources import make_adapters

_CLOSING_S = 5.0
_FIXED: Final = (
    "state_dir", "listen", "tls_cert", "tls_key", "token_file", "socket", "socket_group",
    "admin_group", "log_format",
)  # fmt: skip


async def reload(
    state: DaemonState, pumps: Pumps, loaded: LoadedConfig, note: str | None = None
) -> None:
    """Build the new beside the old, then swap. If it cannot be built, the old stays.

    Args:
        state: of the daemon.
        pumps: read the sources.
        loaded: the new configuration; a limit may leave less of its mode.
        note: what the person on call should know of it.

    Raises:
        OutriderError: the new configuration cannot be put in place; nothing has changed.
    """
    lowerings = state.lowerings
    loaded, limited = in_force(loaded, state.recording.folder)
    before = state.loaded.config.adapters
    same = {n: a for n, a in state.adapters.items() if before[n] == loaded.config.adapters.get(n)}
    adapters = await asyncio.to_thread(make_adapters, loaded, same)
    old_levers = state.levers
    async with state.lock:
        state.core.accounting.work_out()  # or the thread and a reader might do it at once
        core, fresh = await asyncio.to_thread(_successor, state, loaded, adapters, same)
        notes = [*filter(None, (note, limited)), *notes_on(loaded)]
        if fresh:
            notes.append(f"policies that start afresh: {', '.join(fresh)}")
        if not core.runners and state.core.runners:
            notes.append("nothing is decided: the policies rest, with what they learned")
        elif left := {s.name for s in state.core.runners} - {s.name for s in core.runners}:
            notes.append(f"policies that left with what they learned: {', '.join(sorted(left))}")
        if fixed := _needs_restart(state.loaded.config, loaded.config):
            notes.append(f"needs a restart to change: {', '.join(fixed)}")
        if loaded.config.mode in ACTING_MODES and state.lowerings != lowerings:
            raise ConfigurationError(f"{loaded.source}: the mode was lowered meanwhile")
        if not _act_alike(state.loaded.config, loaded.config):
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
    """A core for another configuration in the state of ours, and the policies new in it."""
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


def _act_alike(old: Config, new: Config) -> bool:
    """Return whether what stands in the batch system may go on standing."""
    keys = ("mode", "acting", "adapters", "policies")
    return all(getattr(old, key) == getattr(new, key) for key in keys)


def _needs_restart(old: Config, new: Config) -> list[str]:
    """Settings that differ and that a reload cannot change."""
    return [key for key in _FIXED if getattr(old, key) != getattr(new, key)]
