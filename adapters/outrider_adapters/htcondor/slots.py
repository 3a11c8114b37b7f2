"""Poll the slots of a pool: machines that join, leave, sleep or wake, and owners.

Of thousands of slots a few change each second. So most queries ask only for those that the
collector has heard from since the last query.
"""

import fnmatch
from collections.abc import Callable, Iterable
from math import inf
from typing import Any, Final

import msgspec

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.machines import (
    SLOT_ATTRIBUTES,
    MachineState,
    WattsOfAds,
    ad_time_s,
    changes,
    machines_of,
)
from outrider_adapters.htcondor.pool_calls import Ad, PoolCalls, number, quote
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.polling import Asking
from outrider_adapters.readers.htcondor.job_ads import UNKNOWN_HOST, machine_of_slot

CLOSED_SLOTS: Final = "Start =?= false"
"""Constraint evaluated by the collector: the value of START needs the whole ad."""
WHOLE_SLOTS: Final = "DynamicSlot =!= true"
"""Constraint without dynamic slots: each is a part of its partitionable slot."""
_MAX_WHOLE_INTERVAL_S: Final = 60.0
"""Seconds between two queries for all slots: only these show which machines have left."""
_MAX_CLOCK_ERROR_S: Final = 86_400.0
"""Largest plausible difference between clocks of machines, the collector and this host."""


class SlotWatch:
    """The machines of a pool as its collector knows them.

    Args:
        calls: calls to the pool.
        settings: settings for watching it.

    Attributes:
        machines: their state at the last look, by name.
        heard_s: when the newest of their ads reached the collector, Unix seconds; None: no ads.
    """

    def __init__(self, calls: PoolCalls, settings: WatchSettings) -> None:
        self.machines: dict[str, MachineState] = {}
        self.heard_s: float | None = None
        self._calls = calls
        self._settings = settings
        self._missing_since_s: dict[str, float] = {}
        self._watts = WattsOfAds(settings)
        self._attributes = [
            *SLOT_ATTRIBUTES, settings.cluster_attribute, *self._watts.attributes,
        ]  # fmt: skip
        self._ads: dict[str, dict[str, Any]] = {}
        self._saved: dict[str, Any] = {}
        self._closed: set[str] = set()
        self._whole_s = -inf
        self._is_complete = False

    def look(self, now_s: float) -> list[NamedEvent]:
        """Return what happened to the machines since the last look.

        Raises:
            HTCondorException: the collector does not answer (`PoolCalls.failure`).
        """
        is_whole = self._is_whole(now_s)
        since = (
            "" if is_whole or self.heard_s is None else f" && LastHeardFrom >= {self.heard_s:.0f}"
        )
        query, slots = self._calls.collector.query, self._calls.slot_ads
        ads = query(slots, f"{WHOLE_SLOTS}{since}", self._attributes)
        closed = {
            ad["Name"] for ad in query(slots, f"{WHOLE_SLOTS}{since} && {CLOSED_SLOTS}", ["Name"])
        }
        if is_whole:
            since_s, self._whole_s = now_s - self._whole_s, now_s
            self._is_complete = self._collector_age_s() > since_s
            self._ads.clear()
            self._closed.clear()
        heard_s = max((number(ad, "LastHeardFrom") for ad in ads), default=None)
        if is_whole or heard_s is not None:
            self.heard_s = heard_s
        touched = self._take(ads, closed)
        every = (ad for machine in touched for ad in self._ads[machine].values())
        found = machines_of(every, self._closed, self._cluster_of, self._watts.of_states)
        new_events: list[NamedEvent] = []
        for name, from_ad in found.items():
            after = _dated(from_ad, now_s)
            before = self.machines.get(name)
            if before is not None and before.reported_s > now_s + _MAX_CLOCK_ERROR_S:
                before = msgspec.structs.replace(
                    before, reported_s=after.reported_s
                )  # ours was ahead then
            if before is not None and after.reported_s < before.reported_s:
                continue  # an older ad than the one known: nothing new
            new_events += changes(name, before, after)
            new_events += self._watts.news(name, self._ads[name].values(), after.reported_s)
            self.machines[name] = after
            self._saved[name] = msgspec.to_builtins(after)
        return new_events + self._gone(now_s) if is_whole else new_events

    def _collector_age_s(self) -> float:
        """Return for how long the collector has run; 0 if unknown."""
        calls = self._calls
        if calls.collector_ads is None:
            return 0.0
        ads = calls.collector.query(calls.collector_ads, "true", ["StatsLifetime"])
        return min((number(ad, "StatsLifetime") for ad in ads), default=0.0)

    def _is_whole(self, now_s: float) -> bool:
        """Return whether it is time to ask for all slots."""
        every_s = min(_MAX_WHOLE_INTERVAL_S, self._settings.left_after_s / 10)
        return not 0.0 <= now_s - self._whole_s < every_s

    def _take(self, ads: Iterable[Any], closed: set[str]) -> dict[str, None]:
        """Store ads of slots and return the machines that they belong to."""
        touched: dict[str, None] = {}
        for ad in ads:
            slot = str(ad["Name"])
            machine = machine_of_slot(slot)
            known = self._ads.setdefault(machine, {})
            if slot not in known or ad_time_s(ad) >= ad_time_s(known[slot]):
                known[slot] = ad
            self._closed.discard(slot)
            touched[machine] = None
        self._closed |= closed
        return touched

    def save(self) -> dict[str, Any]:
        """Return the machines, as JSON types."""
        return dict(self._saved)

    def restore(self, saved: Any) -> None:
        """Resume from the value of `save`. Raises `msgspec.ValidationError` if it does not fit."""
        self.machines = msgspec.convert(saved, dict[str, MachineState])
        self._saved = msgspec.to_builtins(self.machines)
        self._missing_since_s.clear()

    def _gone(self, now_s: float) -> list[NamedEvent]:
        """Return the departures of machines whose ads have been missing for too long.

        A machine takes no job from when its ads are missing. A restarted collector lacks the ads of
        most machines, and proves nothing. It has not been restarted if it has run since the last
        query for all slots; where that is unknown, if few machines are missing.
        """
        missing, found = self._missing_since_s, self._ads
        for name in [name for name in missing if name in found]:
            del missing[name]
        left: list[NamedEvent] = []
        gone = [name for name in self.machines if name not in found]
        are_off = self._is_complete or 2 * len(gone) <= len(self.machines)
        for name in gone:
            if are_off and name not in missing:
                left += self._closed_events(name, now_s)
            missing[name] = min(missing.get(name, now_s), now_s)  # the clock may have been set back
            if now_s - missing[name] >= self._settings.left_after_s:
                del missing[name], self.machines[name], self._saved[name]
                self._watts.forget(name)
                left.append((now_s, events.LEFT, name, None))
        return left

    def _closed_events(self, name: str, now_s: float) -> list[NamedEvent]:
        """Return the end of a machine's use by jobs; its next ad opens it again."""
        before = self.machines[name]
        self.machines[name] = msgspec.structs.replace(before, usable=False)
        self._saved[name] = msgspec.to_builtins(self.machines[name])
        is_open = before.usable and not before.owner
        return [(now_s, events.DRAINED, name, None)] if is_open else []

    def _cluster_of(self, machine: str, ad: Ad) -> str:
        named = ad.get(self._settings.cluster_attribute)
        if isinstance(named, str) and named:
            return named
        patterns = self._settings.machine_clusters.items()
        matching = (cluster for like, cluster in patterns if fnmatch.fnmatchcase(machine, like))
        return next(matching, "default")


def _dated(state: MachineState, now_s: float) -> MachineState:
    """Return a state dated now if the machine's clock, or ours, is wrong by days."""
    if abs(state.reported_s - now_s) <= _MAX_CLOCK_ERROR_S:
        return state
    return msgspec.structs.replace(state, reported_s=now_s, entered_s=min(state.entered_s, now_s))


# -- claimed slots ---------------------------------------------------------------------------------
# Check where jobs run against the slots: a queue alone is no proof.
#
# HTCondor lets users set ``JobStatus`` and ``RemoteHost`` of their own jobs. A start with a slot
# implies that the run before it on that slot is over, which may be another user's job. A start on
# an unknown machine would add that machine to the site.

_ATTRIBUTES: Final = ("Name", "GlobalJobId")
_MAX_QUERIED: Final = 1_000
"""Slots in one query; starts on others are reported without their slot."""


class ClaimedSlots:
    """Check of starts reported by a queue against the slots.

    Args:
        calls: calls to the pool.
        asking: makes the queries and records peers that do not answer.
        knows: True for a machine in the pool.
    """

    def __init__(self, calls: PoolCalls, asking: Asking, knows: Callable[[str], bool]) -> None:
        self._calls = calls
        self._asking = asking
        self._knows = knows

    def confirmed(self, new_events: list[NamedEvent], now_s: float) -> list[NamedEvent]:
        """Return the events, with the slot of a start only if that slot runs this job.

        A machine that is not in the pool becomes `UNKNOWN_HOST`.

        Args:
            new_events: events from a queue.
            now_s: time of the query.
        """
        names = {_slot(event) for event in new_events} - {""}
        runs = self._runs(sorted(names)[:_MAX_QUERIED], now_s) if names else {}
        return [self._placed(event, runs) if _slot(event) else event for event in new_events]

    def _placed(self, event: NamedEvent, runs: dict[str, str] | None) -> NamedEvent:
        time_s, kind, job, (machine, cpus, _) = event
        if runs is None:  # the collector does not answer
            return time_s, kind, job, (machine, cpus)
        job_id = runs.get(_slot(event))
        if job_id is not None and job_id.startswith(f"{job}#"):
            return event
        is_known = job_id is not None or self._knows(machine)
        return time_s, kind, job, (machine if is_known else UNKNOWN_HOST, cpus)

    def _runs(self, names: list[str], now_s: float) -> dict[str, str] | None:
        """Return the ``GlobalJobId`` of what runs on each of these slots; None: no answer."""
        constraint = f"member(Name, {{{','.join(map(quote, names))}}})"
        ads = self._asking.ask("collector", now_s, lambda: self._query(constraint))
        if ads is None:
            return None
        return {str(ad["Name"]): str(ad.get("GlobalJobId") or "") for ad in ads}

    def _query(self, constraint: str) -> Any:
        calls = self._calls
        return calls.collector.query(calls.slot_ads, constraint, list(_ATTRIBUTES))


def _slot(event: NamedEvent) -> str:
    """Return the name of the slot on which a run begins; empty where it has none."""
    _, kind, _, extra = event
    return f"{extra[2]}@{extra[0]}" if kind == events.STARTED and len(extra) > 2 else ""
