"""The journal that a daemon beside a simulated campus would have written, without waiting for it.

The daemon's own code writes it: batches of the adapter `simulated` go through the core into the
ledger as in `outrider run`. Only there is nothing else: no page, no snapshots, no retention.
"""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from outrider.formats.campus.files import read_campus
from outrider.model.errors import ConfigurationError
from outrider.plugins.making import make_policy
from outrider.service.config.loaded import LoadedConfig, check_config
from outrider.service.config.state_folder import JOURNAL_NAME
from outrider.service.core.core import Core
from outrider.service.daemon.daemon_state import DaemonState
from outrider.service.daemon.pump import Pumps
from outrider.service.daemon.sources import opened
from outrider.service.journal.recording import Recording

LABEL: Final = "campus"
"""Of the adapter, in the journal."""
_KEPT_DAYS: Final = 36_500.0
_BATCHES_AHEAD: Final = 20
"""After so many the writer is waited for: what it has not written yet is held in memory."""


def write_journal(
    campus: Path,
    out: Path,
    *,
    incumbent: str = "random_match",
    seed: int = 0,
    until_s: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Write the journal of a daemon in mode `observe` that watched a campus from its first second.

    Args:
        campus: its folder.
        out: the journal; it is there whole or not at all.
        incumbent: the policy that starts the jobs.
        seed: of the incumbent.
        until_s: second of the campus up to which the daemon saw it; None: its last.
        progress: called with the ratio that is done, 0 to 1.

    Returns:
        What the daemon counted: `machines`, `jobs`, `starts`, `evictions`, `events`, events
        `set_aside`; and `span_s`, the seconds that it watched.

    Raises:
        ConfigurationError: `out` is there, or cannot be written.
        LedgerError: the journal cannot be written.
        PluginError: there is no such policy, or it cannot be made.
        TraceError: the folder is no campus.
    """
    if out.exists():
        raise ConfigurationError(f"{out}: is there already; right would be a new file")
    make_policy(incumbent, {}, seed, "--incumbent")  # refused before a campus is read
    span_s = read_campus(campus).span_s
    span_s = span_s if until_s is None else min(until_s, span_s)
    source = {
        "type": "simulated", "campus": str(campus), "incumbent": incumbent, "seed": seed,
        "until_s": span_s, "speed": 0.0, "batch_s": 0.001,
    }  # fmt: skip
    try:
        folder = tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent)
    except OSError as error:
        raise ConfigurationError(
            f"{out}: cannot be written: {error.strerror}; right would be a file in a folder that "
            "is there and is yours to write to"
        ) from error
    with folder as name:
        given = {
            "mode": "observe", "state_dir": name, "retention_days": _KEPT_DAYS,
            "adapters": {LABEL: source},
        }  # fmt: skip
        watch = _watch(check_config(given, "generate journal"), Path(name), span_s, progress)
        told = _counted(asyncio.run(watch)) | {"span_s": span_s}
        (Path(name) / JOURNAL_NAME).rename(out)
    return told


async def _watch(
    loaded: LoadedConfig, folder: Path, span_s: float, progress: Callable[[float], None] | None
) -> Core:
    """Read the one source of a configuration to its end; returns the core after it."""
    recording = Recording(folder)
    try:
        state = DaemonState(loaded, recording)
        state.await_history()
        pumps = Pumps(state, asyncio.TaskGroup())  # which reads nothing in tasks of its own
        adapter, number, first_s = state.adapters[LABEL], 0, 0.0
        async with opened(adapter, None) as batches:
            async for batch in batches:
                await pumps.take(LABEL, adapter, batch)
                if not batch.events:  # as fast as it goes, it is quiet only after its end
                    break
                first_s = first_s or batch.events[0][0]
                number += 1
                if number % _BATCHES_AHEAD == 0:
                    await recording.settle()
                if progress is not None and span_s:
                    progress(min(1.0, (batch.events[-1][0] - first_s) / span_s))
        await recording.settle()
    finally:
        recording.close()
    return state.core


def _counted(core: Core) -> dict[str, Any]:
    accounting = core.accounting
    return {
        "machines": sum(spec is not None for spec in core.site.specs),
        "jobs": {
            "submitted": accounting.submitted,
            "completed": accounting.completed,
            "removed": accounting.removed,
        },
        "starts": accounting.starts,
        "evictions": accounting.evictions_by_reason(),
        "events": core.engine.events,
        "set_aside": sum(core.merger.set_aside.values()),
    }
