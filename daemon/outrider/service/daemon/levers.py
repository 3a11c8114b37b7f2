"""The levers of a daemon: made in a mode that acts, and in no other."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import structlog

from outrider.acting.gate import ACTING_MODES
from outrider.acting.leases import LeaseBounds
from outrider.acting.lever_runner import LeverRunner
from outrider.api.adapter import Adapter
from outrider.api.lever import Lever
from outrider.model.errors import OutriderError, PluginError
from outrider.service.config.declarations import Config, acting_of
from outrider.service.config.loaded import LoadedConfig

CLOSE_S: Final = 4.0
"""For taking back what stands: 10,000 leases of an HTCondor pool take .7 to .9 s, a thousand start
times of a Slurm 1.5. The rest lapses by itself; systemd gives the daemon ten seconds to end."""

log = structlog.get_logger()


def carried_actions(adapters: Mapping[str, Adapter]) -> dict[str, frozenset[str]]:
    """By adapter that declares levers, the actions for which it has one."""
    return {
        label: frozenset(action for lever in adapter.levers for action in lever.actions)
        for label, adapter in adapters.items()
        if adapter.levers
    }


def make_lever_runner(
    loaded: LoadedConfig,
    adapters: Mapping[str, Adapter],
    folder: Path,
    is_fresh: Callable[[], bool],
    adapter_of: Callable[[str], str | None],
) -> LeverRunner | None:
    """The levers of these adapters, ready; None in `observe` and `shadow`: none is even made.

    Args:
        loaded: the configuration.
        adapters: by label.
        folder: the state directory.
        is_fresh: whether what is known of the site is young enough to act on; from any thread.
        adapter_of: the label of the adapter that a job is of; None: one without levers.

    Raises:
        PluginError: a lever fails while it is made, or two of an adapter carry the same action.
    """
    config = loaded.config
    if config.mode not in ACTING_MODES:
        return None
    return LeverRunner(make_levers(adapters, folder), adapter_of, lease_bounds(config), is_fresh)


def lease_bounds(config: Config) -> LeaseBounds:
    """How much may be changed under a configuration."""
    acting = acting_of(config)
    return LeaseBounds(acting.acts_per_minute, acting.deferred_at_once, acting.longest_deferral_s)


def make_levers(adapters: Mapping[str, Adapter], folder: Path) -> dict[str, list[Lever]]:
    """One of each lever that these adapters declare, by adapter.

    Args:
        adapters: by label.
        folder: the state directory; of two Outriders on a host each has its own.

    Raises:
        PluginError: a lever fails while it is made.
    """
    levers: dict[str, list[Lever]] = {}
    for label, adapter in adapters.items():
        adapter.identity = f"{label}@{socket.gethostname()}:{folder}"
        for kind in adapter.levers:
            try:
                levers.setdefault(label, []).append(kind(adapter))
            except OutriderError:
                raise
            except Exception as error:
                raise PluginError(
                    f"[adapters.{label}]: lever {kind.__name__} fails: "
                    f"{type(error).__name__}: {error}"
                ) from error
    return levers


async def close_levers(runner: LeverRunner | None) -> list[str]:
    """Withdraw everything, as far as that can be done at once; the levers that could not."""
    left = [] if runner is None else await asyncio.to_thread(runner.close, CLOSE_S)
    if left:
        log.warning("leave_levers", levers=left, reason="what they changed lapses by itself")
    return left
