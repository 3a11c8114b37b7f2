"""State shared by the tasks of a running daemon: the core, the journal and one lock."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping

import msgspec
import structlog

from outrider.acting.lever_runner import LeverRunner
from outrider.api.adapter import Adapter
from outrider.journal import Entry, SetAsideRecord
from outrider.journal.site_facts import Incumbent, SiteFacts
from outrider.journal.snapshots import MIN_LEAP_S
from outrider.model.machines import ClusterSpec, SiteHabits
from outrider.service.canary_trial.record import (
    TrialRecord,
    active_trial,
    trial_on_record,
    trial_shown,
)
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core.core import Core
from outrider.service.core.mode_limit import effective_config, limit_of
from outrider.service.core.plugins import LostPolicyLog
from outrider.service.core.source_state import SourceState
from outrider.service.core.user_privacy import KEY_NAME, Pseudonyms, load_key
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.daemon.levers import carried_actions, make_lever_runner
from outrider.service.daemon.sources import make_adapters
from outrider.service.host.wall_clock import WallClock
from outrider.service.journal.recording import Recording
from outrider.service.journal.restart import StartProgress, bring_up
from outrider.service.mqtt.publisher import Publisher
from outrider.service.views.status import utility


def make_core(
    loaded: LoadedConfig,
    adapters: dict[str, Adapter],
    recording: Recording,
    trial: TrialRecord | None = None,
) -> Core:
    """Return an empty core for these adapters; it follows the trial if that is active."""
    sources = [
        SourceState(label, adapter.name, adapter.inferred, adapter.lateness_s)
        for label, adapter in adapters.items()
    ]
    clusters = [spec for adapter in adapters.values() for spec in adapter.clusters()]
    hide = None
    if loaded.config.pseudonymise_users:
        hide = Pseudonyms(load_key(recording.folder / KEY_NAME))
    facts = site_facts(loaded, adapters, clusters).as_meta()
    core = Core(loaded, sources, clusters, hide, carried_actions(adapters), facts)
    core.trial.follow(active_trial(trial, loaded.config))
    return core


def notes_on(loaded: LoadedConfig) -> list[str]:
    """Return notes for operators on a configuration."""
    note = loaded.discipline().note
    return [*loaded.broken.values(), *([note] if note else [])]


class DaemonState:
    """The active configuration, adapters, core and cursors, as a restart finds them.

    Args:
        loaded: the configuration.
        recording: the state directory.
        clock: returns Unix seconds.
        progress: receives the progress of the start.

    Attributes:
        loaded: the active configuration, whose mode a limit may have lowered.
        configured: the configuration as in its file.
        limit: the limit on the mode; None: there is none.
        trial: the last canary trial; None: there was none.
        trial_lost: error in reading its record in the journal; empty: none.
        lowerings: number of times the mode was lowered since the start, to detect races.
        clock: this host's clock.
        lock: held by every task that changes or replaces the core.
        levers: apply the decisions; None in a mode that never acts.
        cursors: where each adapter continues reading, by label.
        history_read: set once the history of every source has been read; only then is anything
            recorded.
        sources_with_history_read: labels of the sources whose history has been read.
        batch_in_core: label of the adapter whose batch is in the core but not yet submitted to the
            journal; None: there is none.

    Raises:
        OutriderError: the daemon cannot start so, or has been stopped.
    """

    def __init__(
        self,
        loaded: LoadedConfig,
        recording: Recording,
        clock: Callable[[], float] = time.time,
        progress: StartProgress | None = None,
    ) -> None:
        self.recording = recording
        self.configured = loaded
        self.limit = limit_of(recording.folder)
        self.lowerings = 0
        self.trial, self.trial_lost = trial_on_record(recording.path)
        self.loaded, limited = effective_config(loaded, recording.folder)
        loaded = self.loaded
        self.clock = WallClock(clock)
        self.lock = asyncio.Lock()
        self.history_read = asyncio.Event()
        self.sources_with_history_read: set[str] = set()
        self.batch_in_core: str | None = None
        self.adapters = make_adapters(loaded, {})
        self.core, self.cursors, notes = bring_up(
            self.new_core, recording, (), self.site_clock, progress
        )
        self.levers = self.new_levers(loaded, self.adapters)
        self.publisher = Publisher(
            recording, lambda: self.core, lambda: utility(self.core, self.view.expected_starts())
        )
        self.publisher.follow(loaded.config)
        self.view = DaemonView(
            self.core, recording, self.publisher, lambda: self.adapters, lambda: self.levers
        )
        self.view.configured_mode = lambda: self.configured.config.mode
        self.view.mode_limit = lambda: self.limit
        self.view.trial = lambda: trial_shown(self.trial, self.core.now_s)
        self.view.notes = [*([limited] if limited else []), *notes_on(loaded), *notes]
        for note in self.view.notes:
            log.warning("problem_noted", reason=note)
        self.view.own_clock = any(a.own_clock for a in self.adapters.values())
        self.log_discipline()
        self._lost_policies = LostPolicyLog()
        self.log_lost_policies()

    @property
    def site_clock(self) -> WallClock | None:
        """The host's clock if the site's time follows it; None if the site has its own clock."""
        own = any(adapter.own_clock for adapter in self.adapters.values())
        return None if own else self.clock

    def is_fresh(self) -> bool:
        """Return whether information is recent and recorded, so levers may act; thread-safe."""
        return self.core.is_fresh and self.recording.failure is None

    def adapter_of(self, job: str) -> str | None:
        """Return the label of the adapter with levers of a job; thread-safe."""
        return self.core.decision_log.job_sources.label_of(job)

    def new_levers(self, loaded: LoadedConfig, adapters: dict[str, Adapter]) -> LeverRunner | None:
        """Return the levers of these adapters; None in a mode that never acts."""
        folder = self.recording.folder
        return make_lever_runner(loaded, adapters, folder, self.is_fresh, self.adapter_of)

    def new_core(self) -> Core:
        """Return an empty core for the active configuration."""
        return make_core(self.loaded, self.adapters, self.recording, self.trial)

    def replace_core(self, core: Core) -> None:
        """Replace the core, also for the page and the metrics."""
        self.core = core
        self.view.show(core)

    def log_discipline(self) -> None:
        """Log the active discipline and its source."""
        chosen = self.core.discipline
        log.info("discipline_chosen", discipline=chosen.name, source=chosen.source, why=chosen.why)

    def log_lost_policies(self) -> None:
        """Log each policy that has been lost, once."""
        self._lost_policies.note(self.core.lost_policies)

    def await_history(self) -> None:
        """Suspend counting on the very first start, until all history has been read."""
        if self.recording.is_new:
            self.core.engine.be_silent()
        else:
            self.history_read.set()

    async def record_set_aside(self) -> None:
        """Record the events that were rejected only during the replay of the journal."""
        if aside := self.core.merger.take_set_aside():
            await self.recording.submit(Entry(set_aside=[SetAsideRecord.of(e) for e in aside]))

    async def snapshot(self) -> bool:
        """Write a snapshot, unless a restart must not use the present core.

        Returns:
            True if one was written.
        """
        if self.batch_in_core is not None or self.core.unrepaired or not self.history_read.is_set():
            return False
        snapshots = self.recording.snapshots
        snapshots.leap_s = max(MIN_LEAP_S, 2 * self.loaded.config.snapshot_every_s)
        went_well = await self.recording.snapshot(self.core, self.clock.now_s)
        self.log_lost_policies()  # a policy may fail at being saved
        return went_well


# -- site facts ------------------------------------------------------------------------------------
# Facts about the site from the configuration and the adapters, apart from events.

log = structlog.get_logger()


def site_facts(
    loaded: LoadedConfig, adapters: Mapping[str, Adapter], clusters: Iterable[ClusterSpec]
) -> SiteFacts:
    """Return the facts of a site, from the configuration first, then from the adapters.

    For the decision epoch the configuration comes last, since it always has one, if only the
    default.

    Args:
        loaded: the configuration.
        adapters: the active adapters, by label.
        clusters: as known to adapters; those of the configuration replace them.
    """
    habits = SiteHabits(reboot=loaded.config.reboot)
    incumbent = None
    for label, adapter in adapters.items():
        policy, more = _declared_by(label, adapter)
        habits = habits.completed_by(more)
        if incumbent is None and policy is not None:
            incumbent = Incumbent(policy, label)
    habits = habits.completed_by(SiteHabits(reconsider_s=loaded.config.reconsider_s))
    declared = {spec.name: spec for spec in [*clusters, *loaded.cluster_specs()]}
    return SiteFacts(loaded.discipline().name, habits, tuple(declared.values()), incumbent)


def _declared_by(label: str, adapter: Adapter) -> tuple[str | None, SiteHabits]:
    """Return the scheduler and habits that an adapter declares, ignoring invalid ones."""
    try:
        policy = msgspec.convert(adapter.incumbent, str | None)
        return policy, msgspec.convert(msgspec.to_builtins(adapter.habits), SiteHabits)
    except Exception as error:  # noqa: BLE001 - a plugin's declaration must not end the daemon
        log.warning("site_facts_ignored", adapter=label, error=f"{type(error).__name__}: {error}")
        return None, SiteHabits()
