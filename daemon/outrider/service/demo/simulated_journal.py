"""Generation of a daemon's journal from a simulated campus, as fast as the host can.

The daemon's own code writes it: batches of the adapter `simulated` go through the core into the
journal as in `outrider run`. There is nothing else: no page, no snapshots, no retention.
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from outrider.acting.lever_runner import InlineLever, LeverRunner
from outrider.api.adapter import Adapter
from outrider.formats.campus.files import read_campus
from outrider.model.errors import ConfigurationError
from outrider.plugins.finding import make_policy
from outrider.service.canary_trial.record import RUNNING, TrialRecord
from outrider.service.canary_trial.watch import TrialWatch
from outrider.service.commands.command import CommandHistory
from outrider.service.config.loaded import LoadedConfig, check_config
from outrider.service.config.reading import JOURNAL_NAME
from outrider.service.core.core import Core
from outrider.service.core.mode_limit import in_mode
from outrider.service.daemon.daemon_state import DaemonState
from outrider.service.daemon.levers import lease_bounds, make_levers
from outrider.service.daemon.pump import Pumps
from outrider.service.daemon.reload import reload
from outrider.service.daemon.sources import opened
from outrider.service.journal.recording import Recording
from outrider.service.modes.gathering import stated_by
from outrider.service.twin.cycle import TwinCycle

LABEL: Final = "campus"
"""Label of the adapter in the journal."""
_KEPT_DAYS: Final = 36_500.0
_BATCHES_AHEAD: Final = 20
"""Batches after which to wait for the writer, which holds unwritten rows in memory."""


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
        campus: folder of the campus.
        out: file of the journal; it is complete or not there at all.
        incumbent: the policy that starts the jobs.
        seed: random seed of the incumbent.
        until_s: second of the campus up to which the daemon watches; None: its last.
        progress: called with the ratio that is done, 0 to 1.

    Returns:
        The daemon's counts: `machines`, `jobs`, `starts`, `evictions`, `events`, events
        `set_aside`; and `span_s`, the seconds that it watched.

    Raises:
        ConfigurationError: `out` exists already, or cannot be written.
        LedgerError: the journal cannot be written.
        PluginError: there is no such policy, or it cannot be made.
        TraceError: the folder is not a campus.
    """
    if out.exists():
        raise ConfigurationError(f"{out}: exists already; expected a new file")
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
            f"{out}: cannot be written: {error.strerror}; expected a file in an existing folder "
            "that you may write to"
        ) from error
    with folder as name:
        given = {
            "mode": "observe", "state_dir": name, "retention_days": _KEPT_DAYS,
            "adapters": {LABEL: source},
        }  # fmt: skip
        watch = _watch(check_config(given, "generate journal"), Path(name), span_s, progress)
        counts = _counted(asyncio.run(watch)) | {"span_s": span_s}
        (Path(name) / JOURNAL_NAME).rename(out)
    return counts


async def _watch(
    loaded: LoadedConfig, folder: Path, span_s: float, progress: Callable[[float], None] | None
) -> Core:
    """Read the one source of a configuration to its end; return the core after it."""
    recording = Recording(folder)
    try:
        state = DaemonState(loaded, recording)
        state.await_history()
        pumps = Pumps(state, asyncio.TaskGroup())  # its tasks are not used to read sources
        adapter, number, first_s = state.adapters[LABEL], 0, 0.0
        async with opened(adapter, None) as batches:
            async for batch in batches:
                await pumps.take(LABEL, adapter, batch)
                if not batch.events:  # without a clock, an empty batch comes only after the end
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


# -- simulated canary ------------------------------------------------------------------------------
# A canary trial on a simulated campus, as fast as the host can.
#
# The daemon's own code runs it: batches of the adapter `simulated` go through the core into the
# journal, decisions through the gate to the adapter's lever, and the trial is registered, followed
# and ended as in `outrider run`. Only the real time between them is left out: the levers and the
# trial are worked before the simulated batch system continues. So the same seed gives the same
# outcome.


def run_canary(
    campus: Path,
    folder: Path,
    policy: str,
    *,
    past_s: float,
    days: int = 28,
    seed: int = 0,
    cycle_s: float = 60.0,
    twin: Mapping[str, Any] | None = None,
    acting: Mapping[str, Any] = MappingProxyType({}),
) -> TrialRecord | None:
    """Watch a campus in shadow, then let a policy act on it in a trial by days.

    Args:
        campus: folder of the campus.
        folder: the state directory of the daemon, in which the journal stays.
        policy: the policy that acts.
        past_s: second of the campus up to which the daemon is in shadow.
        days: length of the trial.
        seed: random seed of the incumbent and of the trial's days.
        cycle_s: seconds between two matchings of the simulated batch system.
        twin: settings of ``[twin]``, which evaluates the past before the trial is registered;
            None: the twin is not run, and the trial states no expectation.
        acting: further settings of ``[acting]``.

    Returns:
        The trial's record in the journal at the end of the campus or of the trial; None: it was
        never registered.

    Raises:
        OutriderError: the errors of a daemon with these settings.
    """
    source = {
        "type": "simulated", "campus": str(campus), "seed": seed, "speed": 0.0, "batch_s": 1e-6,
        "cycle_s": cycle_s,
    }  # fmt: skip
    given = {
        "mode": "canary", "state_dir": str(folder), "retention_days": _KEPT_DAYS,
        "runs_retention_days": _KEPT_DAYS, "adapters": {LABEL: source}, "policies": {policy: {}},
        "acting": {"canary_by": "days", "canary_days": days, "canary_seed": seed, **acting},
        "twin": dict(twin or {}),
    }  # fmt: skip
    loaded, span_s = check_config(given, "simulated canary"), read_campus(campus).span_s
    return asyncio.run(_live(loaded, folder, span_s, past_s, asks_twin=twin is not None))


class _InSimulatedTime(DaemonState):
    """A daemon's state whose levers run only on request, by the site's clock."""

    def new_levers(self, loaded: LoadedConfig, adapters: dict[str, Adapter]) -> LeverRunner | None:
        if loaded.config.mode != "canary":
            return None
        made = make_levers(adapters, self.recording.folder)
        bounds = lease_bounds(loaded.config)
        return LeverRunner(
            made, self.adapter_of, bounds, self.is_fresh, lambda: self.core.site.now, InlineLever
        )

    def work_levers(self) -> None:
        """Apply the changes that are due now."""
        for lever in self.levers.threads if self.levers is not None else ():
            if isinstance(lever, InlineLever):
                lever.work_off()


async def _live(
    loaded: LoadedConfig, folder: Path, span_s: float, past_s: float, asks_twin: bool
) -> TrialRecord | None:
    recording = Recording(folder)
    try:
        state = _InSimulatedTime(in_mode(loaded, "shadow"), recording)
        state.await_history()
        pumps = Pumps(state, asyncio.TaskGroup())  # its tasks are not used to read sources
        trials = TrialWatch(
            state, CommandHistory(recording).record,
            lambda config: stated_by(state.view.twin.file, config),
        )  # fmt: skip
        adapter, number, first_s = state.adapters[LABEL], 0, 0.0
        async with opened(adapter, None) as batches:
            async for batch in batches:
                first_s = first_s or batch.events[0][0]
                await pumps.take(LABEL, adapter, batch)
                number += 1
                acts = state.levers is not None
                if acts or number % _BATCHES_AHEAD == 0:
                    await recording.recorded()  # a decision is recorded before it is applied
                state.work_levers()
                async with state.lock:
                    await trials.look()
                if not acts and state.core.site.now >= first_s + past_s:
                    await _climb(state, pumps, loaded, asks_twin)
                ended = state.trial is not None and state.trial.state != RUNNING
                if ended or (batch.seen_until_s or 0.0) >= first_s + span_s:
                    break
        await recording.settle()
    finally:
        recording.close()
    return state.trial


async def _climb(
    state: DaemonState, pumps: Pumps, loaded: LoadedConfig, asks_twin: bool
) -> None:  # fmt: skip
    """Run the twin, then raise the mode to canary."""
    await state.recording.settle()
    if asks_twin:
        TwinCycle(loaded).once()
        state.view.twin.look()
    state.configured = loaded
    await reload(state, pumps, loaded)
