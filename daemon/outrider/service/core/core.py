"""The core of the daemon, without I/O: engine, event merger and journal entries.

Adapters' batches go in, journal entries come out. A core that replays the same inputs from the
journal ends in the same state. Restarts and their tests rely on this.
"""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import Any, Final

from outrider.api.adapter import Batch
from outrider.engine import Engine, EventMerger
from outrider.engine.accounting.distribution import DECISION_BOUNDS_S, Distribution
from outrider.engine.ingest.bounded_names import (
    CLASS,
    CLUSTER,
    ELIGIBLE,
    JOB,
    MACHINE,
    OTHER,
    USER,
    VO,
    Names,
    clean_events,
)
from outrider.engine.ingest.event_merger import EventIdentity
from outrider.engine.ingest.set_aside import FAULT, FIRST_S, LAST_S, TimeLimits
from outrider.engine.state.site import Site
from outrider.journal.records import TIMEZONE_KEY, Entry, SetAsideRecord, decode_extra, encode_extra
from outrider.model.events import TICK, NamedEvent
from outrider.model.localtime import ZoneTime
from outrider.model.machines import ClusterSpec
from outrider.service.canary_trial.trial import FollowedTrial
from outrider.service.config.declarations import Config, acting_of
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core.decision_log import (
    NO_LEVERS,
    JournalledAccounting,
    JournalledDecisions,
    canary_of,
)
from outrider.service.core.guarded_feed import GuardedFeed, is_well_formed
from outrider.service.core.plugins import (
    GuardedEstimator,
    GuardedUtility,
    guarded_utilities,
    make_runners,
    policies_without_runner,
)
from outrider.service.core.source_state import Gap, MachineSources, SourceState, add_bounded
from outrider.service.core.user_privacy import KnownUsers, Pseudonyms

PERSONAL_VOS_KEY: Final = "personal_vos"
"""Key in the journal of the VOs that are named for a user."""
MALFORMED = "malformed"
"""Reason for rejecting an event of a shape that no adapter should produce."""
CLOCK_EVERY_S: Final = 10.0
"""Shortest step, in seconds, by which the clock advances without events.

Each step is a row of 27 bytes in the journal: a day without any event takes 0.23 MB."""


class Core:
    """Engine and event merger of the daemon.

    Args:
        loaded: the configuration.
        sources: the adapters.
        clusters: cluster profiles from adapters, in addition to those of the configuration.
        pseudonyms: replaces users' names before anything is stored, or None.
        carried: by adapter with levers, the actions for which it has one.
        facts: metadata of the site, by name, recorded with the first entry.

    Attributes:
        trial: the canary trial that it follows and counts.
        names: limits on the names of users, VOs, machines and so on; all others are `other`.
        unrepaired: keys of events that failed and whose repair of the state failed too (None: a
            tick). While there are any, the state may be inconsistent.
    """

    def __init__(
        self,
        loaded: LoadedConfig,
        sources: Iterable[SourceState],
        clusters: Iterable[ClusterSpec] = (),
        pseudonyms: Pseudonyms | None = None,
        carried: Mapping[str, Collection[str]] = NO_LEVERS,
        facts: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        config: Config = loaded.config
        self.config = config
        self.discipline = loaded.discipline()
        self.sources = Sources(sources)
        self.machine_sources = MachineSources()
        clock = ZoneTime(config.timezone)
        declared = {spec.name: spec for spec in [*clusters, *loaded.cluster_specs()]}
        utilities = guarded_utilities(loaded.utilities())
        estimator = loaded.make_estimator()
        self._guarded = [u for u in utilities.values() if isinstance(u, GuardedUtility)]
        self._estimator = None if estimator is None else GuardedEstimator(estimator)
        self.site = Site(clock, list(declared.values()), loaded.reboot_day_s(), utilities)
        self.site.count_jobs()
        self.runners = make_runners(loaded)
        self.policies_without_runner = policies_without_runner(loaded)
        self.names = Names(
            forget_after_s=config.retention_days * 86_400.0, vos=config.shares, clusters=declared
        )
        self.names.vo.forget = lambda vos: self.accounting.merge_vos(vos, OTHER)
        self.merger = EventMerger(
            self.sources, loaded.describe_machine, loaded.complete_machine, self.names
        )
        self.accounting = JournalledAccounting(
            self.merger, self._keeps_runs, clock, config.shares, exact=False, utilities=utilities
        )
        self.pass_times = PassTimes()
        inferred = any(source.inferred for source in self.sources.values())
        self.decision_log = JournalledDecisions(
            config, [runner.name for runner in self.runners], self.merger, self.site,
            "inferred" if inferred else "full", lambda: self.input_age_s, carried,
            lambda: all(source.up for source in self.sources.values()),
            canary_of(acting_of(config), pseudonyms),
        )  # fmt: skip
        self.engine = Engine(
            self.site, self.accounting, self.runners, self.merger, self.decision_log,
            self.pass_times, self._estimator,
        )  # fmt: skip
        self.trial = FollowedTrial(self.decision_log, self.accounting)
        self._pseudonyms = pseudonyms
        self.known_users = KnownUsers(pseudonyms)
        self._new_personal_vos = False
        self._facts = facts
        self.unrepaired: list[EventIdentity | None] = []
        self._inputs: list[tuple[str, NamedEvent]] = []

    @property
    def input_age_s(self) -> float:
        """Age of the newest information, in seconds, of the source that is furthest behind."""
        return self.sources.age_s

    @property
    def is_fresh(self) -> bool:
        """True if information on the site is recent enough to act on; thread-safe."""
        return self.sources.are_fresh(self.config.stale_after_s)

    @property
    def sources_down(self) -> dict[str, str]:
        """The sources that cannot be read completely, by label, each with the cause."""
        return self.sources.down

    @property
    def gaps(self) -> list[Gap]:
        """The sources that have no data now, and since when."""
        known_s = None if self.accounting.begin_s is None else self.site.now
        found = (source.gap(known_s) for source in self.sources.values())
        return [gap for gap in found if gap is not None]

    @property
    def knows_nothing(self) -> bool:
        """True if no source has given any data, now or before the daemon started."""
        return self.accounting.begin_s is None and len(self.gaps) == len(self.sources)

    @property
    def now_s(self) -> float:
        """The time at the site: event time, or the wall clock before any event."""
        return self.site.now if self.merger.now > -inf else time.time()

    @property
    def lost_policies(self) -> dict[str, str]:
        """The policies that are disabled or failed, by name, each with the cause."""
        failed = {runner.name: runner.broken for runner in self.runners if runner.broken}
        return self.policies_without_runner | failed

    def notes(self) -> list[str]:
        """Return notes for operators on problems of sources, plugins and Outrider itself."""
        broken = [plugin.broken for plugin in self._guarded]
        if self._estimator is not None:
            broken.append(self._estimator.broken)
        notes = [*self.sources.troubles, *(why for why in broken if why)]
        if faults := self.merger.set_aside[FAULT]:
            notes.append(
                f"{faults} events rejected because of internal errors of Outrider: see "
                "`outrider ledger set-aside`, and please report it"
            )
        return [*notes, *name_notes(self.names)]

    def _keeps_runs(self) -> bool:
        """Return whether runs that end now are new: neither history nor already in the journal."""
        return not (self.decision_log.replaying or self.engine.silent)

    # -- input --------------------------------------------------------------------------------

    def take(
        self, label: str, batch: Batch, until_s: float | None, limits: TimeLimits | None = None
    ) -> GuardedFeed:
        """Take in a batch and return the feed of the engine, to be passed to `step` until done.

        Args:
            label: the adapter.
            batch: its events.
            until_s: time up to which this adapter is complete, or None.
            limits: events of other times are rejected; None: all times are accepted.
        """
        source = self.sources[label]
        source.note_batch(batch, self.config.stale_after_s)
        add_bounded(source.rejected, batch.rejected)
        add_bounded(source.ignored, batch.ignored)
        events: Sequence[NamedEvent] = batch.events
        malformed = len(events) - sum(map(is_well_formed, events))
        if malformed:
            source.rejected[MALFORMED] += malformed
            events = [event for event in events if is_well_formed(event)]
        events = clean_events(events)
        if self._pseudonyms is not None:
            events = [self._pseudonyms.hide(event) for event in events]
        if limits is not None:
            events = self.merger.admit(label, events, limits)
        if events:
            self._inputs.extend((label, event) for event in events)
            self.arrive(label, events)
        watermark_s = None if until_s is None else self.merger.note_seen(label, until_s)
        if watermark_s is None and source.up and self._clock_is_due():
            watermark_s = self.merger.watermark_s
        if watermark_s is None:
            return GuardedFeed(self.merger, self.engine, self.unrepaired)
        self._inputs.append((label, (watermark_s, TICK, label, None)))
        return GuardedFeed(self.merger, self.engine, self.unrepaired, watermark_s)

    def _clock_is_due(self) -> bool:
        """Return whether the clock must advance without an event."""
        return not self.engine.silent and self.merger.watermark_s >= self.site.now + CLOCK_EVERY_S

    def arrive(self, label: str, events: Sequence[NamedEvent]) -> None:
        """Queue events of an adapter until their time; a feed enters them."""
        if self.merger.now == -inf:  # until the first one is applied, an earlier one may come
            times_s = [event[0] for event in events if FIRST_S <= event[0] <= LAST_S]
            before = self.accounting.begin_s
            known = times_s if before is None else [*times_s, before]
            self.accounting.begin_s = min(known, default=None)
        if self.known_users.note(events, self.merger.normaliser.known_by):
            self._new_personal_vos = True
        self.decision_log.job_sources.note(label, events)
        if len(self.sources) > 1:
            self.machine_sources.note(label, events)
        self.merger.arrive(label, events)

    def step(self, feed: GuardedFeed, most: int) -> bool:
        """Feed at most `most` events; return False when nothing is left.

        An event on which Outrider itself fails is rejected, and the feed continues after it.
        """
        return feed.step(most)

    def entry(self, label: str, batch: Batch) -> Entry | None:
        """Return everything since the last entry as one journal entry; None if there is nothing."""
        source = self.sources[label]
        counts = [dict(source.rejected), dict(source.ignored)]
        counted = counts != source.recorded
        aside = [SetAsideRecord.of(event) for event in self.merger.newly_set_aside]
        if (
            not (self._inputs or aside or counted or self._new_personal_vos)
            and self.decision_log.is_empty
        ):
            return None
        source.recorded = counts
        decisions, outcomes = self.decision_log.take()
        meta: dict[str, Any] = {f"records:{label}": counts, TIMEZONE_KEY: self.config.timezone}
        if self._new_personal_vos:
            meta[PERSONAL_VOS_KEY] = dict(self.known_users.users)
            self._new_personal_vos = False
        meta |= self._facts
        self._facts = {}
        made = Entry(
            inputs=self._inputs,
            decisions=decisions,
            outcomes=outcomes,
            set_aside=aside,
            runs=self.accounting.take_runs(),
            cursors={label: batch.cursor},
            meta=meta,
        )
        self._inputs = []
        self.merger.newly_set_aside.clear()
        return made

    def past(self, until_s: float) -> GuardedFeed:
        """Return a feed of the remaining history up to a time, to be passed to `step`."""
        return GuardedFeed(self.merger, self.engine, self.unrepaired, until_s, moves_clock=False)

    def begin(self) -> None:
        """End the history: from now on everything is counted and decided.

        History is not recorded. A snapshot must follow, or a restart reads the history again.
        """
        self.engine.begin(self.site.now)
        self.merger.begin()
        for source in self.sources.values():
            source.forget_records()
        self._inputs = []
        self.decision_log.take()

    # -- restart ------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return the whole state as plain data."""
        state = saved_state(self.merger, self.engine, self.decision_log)
        return {**state, "trial": self.trial.save()}

    def restore(self, saved: dict[str, Any]) -> list[str]:
        """Restore a saved state; return the names of policies that start afresh.

        A policy that had failed is among these: it gets another chance.

        Raises:
            ValueError: it was saved by another version of the state, or does not fit a policy.
        """
        fresh = restore_state(saved, self.merger, self.engine, self.decision_log)
        self.trial.restore(saved.get("trial"))
        if saved["merger"]["tracker"].get("names") is None:  # saved before names were bounded
            self.names.vo.adopt(self.accounting.fairness.vos)
            self.names.cluster.adopt(self.site.cluster_names)
            self.names.machine.adopt(self.merger.normaliser.machine_names)
        for user in self.names.user:
            self.known_users.add(user)
        return fresh

    def succeed(self, old: "Core", kept: Iterable[str]) -> None:
        """Take over from another core what `save` leaves out; `kept` are unchanged sources."""
        self.pass_times.merge(old.pass_times)
        self.known_users.adopt(old.known_users)
        self._new_personal_vos = old._new_personal_vos
        self.sources |= {label: old.sources[label] for label in kept}
        for label in self.sources.keys() & old.sources.keys():
            self.sources[label].succeed(old.sources[label])
        self.machine_sources.succeed(old.machine_sources)


# -- name notes ------------------------------------------------------------------------------------
# Notes shown when a limit on names is exceeded.

_PLURAL: Final = {
    USER: "users",
    VO: "VOs",
    CLASS: "job classes",
    CLUSTER: "machine groups",
    MACHINE: "machines",
    ELIGIBLE: "kinds of eligibility",
}


def name_notes(names: Names) -> list[str]:
    """Return a sentence for each kind of name whose limit was exceeded."""
    return [
        _name_note(kind, limited.most, limited.folded)
        for kind, limited in names.by_kind.items()
        if limited.folded
    ]


def _name_note(kind: str, most: int, folded: int) -> str:
    if kind == JOB:
        return (
            f"{folded:,} jobs were submitted beyond the limit of {most:,} jobs in the queue: they "
            "are counted, and followed only from their start"
        )
    beyond = f"{folded:,} events named {_PLURAL[kind]} beyond the limit of {most:,}: "
    if kind == ELIGIBLE:
        return f"{beyond}Outrider knows of no machine for their jobs"
    return f'{beyond}they are counted as "{OTHER}"'


# -- pass times ------------------------------------------------------------------------------------
# Durations of scheduling passes.


class PassTimes(Distribution):
    """Distribution of the seconds per scheduling pass, called at each beginning and end."""

    def __init__(self) -> None:
        super().__init__(exact=False, bounds=DECISION_BOUNDS_S)
        self._began_s = 0.0

    def __call__(self, begins: bool) -> None:
        """Note that a pass begins or ends now."""
        if begins:
            self._began_s = time.perf_counter()
        else:
            self.add(time.perf_counter() - self._began_s)


# -- sources together ------------------------------------------------------------------------------
# The sources of a daemon together: the age of their information, and which are down.


class Sources(dict[str, SourceState]):
    """The sources of a daemon, by label.

    Args:
        states: one per source.
    """

    def __init__(self, states: Iterable[SourceState]) -> None:
        super().__init__((state.label, state) for state in states)

    @property
    def age_s(self) -> float:
        """Age of the newest information, in seconds, of the source that is furthest behind."""
        # a list, not a generator: this is asked for every decision
        return max([state.age_s for state in self.values()], default=0.0)

    @property
    def down(self) -> dict[str, str]:
        """The sources that cannot be read completely, by label, each with the cause."""
        return {
            label: f"adapter {label} is down: {state.down_because}"
            for label, state in self.items()
            if not state.up
        }

    @property
    def troubles(self) -> list[str]:
        """The sentences of `down`, without sources that are still opening and have no problem."""
        return [why for label, why in self.down.items() if not self[label].is_opening]

    def are_fresh(self, stale_after_s: float) -> bool:
        """Return whether all sources are up and recent enough to act on; thread-safe."""
        return all(one.up and one.age_s <= stale_after_s for one in list(self.values()))


# -- core state ------------------------------------------------------------------------------------
# The state of a core as plain data, for snapshots and reloads, and its restoration.

STATE_VERSION: Final = 5


def saved_state(
    merger: EventMerger, engine: Engine, decision_log: JournalledDecisions
) -> dict[str, Any]:
    """Return the whole state of a core, given its parts."""
    arrivals = merger.save()
    arrivals["waiting"] = [
        [t, n, label, [event[0], event[1], event[2], encode_extra(event[1], event[3])]]
        for t, n, label, event in arrivals["waiting"]
    ]
    return {
        "version": STATE_VERSION,
        "engine": engine.save(),
        "merger": arrivals,
        **decision_log.save(),
    }


def site_time_of(saved: dict[str, Any]) -> float:
    """Return the time at the site in a saved state; minus infinity before any event."""
    now: float | None = saved["merger"]["now"]
    return -inf if now is None else now


def restore_state(
    saved: dict[str, Any], merger: EventMerger, engine: Engine, decision_log: JournalledDecisions
) -> list[str]:
    """Restore a saved state; return the names of policies that start afresh.

    A policy that had failed is among these: it gets another chance.

    Raises:
        ValueError: it was saved by another version of the state, or does not fit a policy.
    """
    if saved.get("version") != STATE_VERSION:
        raise ValueError(f"state version {saved.get('version')}, known: {STATE_VERSION}")
    merger.restore(saved["merger"], _event_of)
    decision_log.restore(saved)
    state = saved["engine"]
    sound = [[name, runner] for name, runner in state["runners"] if not runner["broken"]]
    return engine.restore({**state, "runners": sound})


def _event_of(plain: list[Any]) -> NamedEvent:
    time_s, kind, subject, extra = plain
    return time_s, kind, subject, decode_extra(kind, extra)
