"""Past of a site from its journal: its record and its costs, in one pass."""

from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path
from typing import Final, NamedTuple

from outrider.engine import Engine
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.journal import Journal
from outrider.journal.journal_events import JournalEvents
from outrider.journal.site_facts import SiteFacts, facts_on_record
from outrider.model import events as ev
from outrider.model.errors import TraceError
from outrider.model.events import Event
from outrider.model.localtime import ZoneTime
from outrider.replay.log_files import NoDecisionLog
from outrider.replay.site_record import SiteRecord
from outrider.twin.kill_clock import KillClock, KillsSeen
from outrider.twin.tally import Tally

# -- owner evictions -------------------------------------------------------------------------------
# Evictions by owners, and whether log-ins of owners explain them.

NEAR_S: Final = 300.0
"""Maximal time between an eviction and the record of its log-in, before or after, seconds."""


class OwnerEvictions:
    """Counter of evictions by owners, to detect a record without owners' sessions.

    Attributes:
        evictions: number of those by an owner.
        unexplained: those without an owner present, or who came or went within `NEAR_S`.
    """

    def __init__(self) -> None:
        self.evictions = 0
        self._machine: dict[int, int] = {}
        self._has_owner: set[int] = set()
        self._changed_s: dict[int, float] = {}
        self._open: dict[int, list[float]] = {}
        self._explained = 0

    @property
    def unexplained(self) -> int:
        """Evictions by an owner whose session is not on record."""
        return self.evictions - self._explained

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events unchanged, and count evictions."""
        for event in events:
            time_s, kind, subject, extra = event
            if kind == ev.STARTED:
                self._machine[subject] = extra[0]
            elif kind == ev.EVICTED and extra == "owner":
                self._evicted(time_s, self._machine.get(subject, -1))
            elif kind == ev.OWNER_CAME:
                self._has_owner.add(subject)
                self._changed(time_s, subject)
            elif kind == ev.OWNER_WENT:
                self._has_owner.discard(subject)
                self._changed(time_s, subject)
            yield event

    def _evicted(self, time_s: float, machine: int) -> None:
        self.evictions += 1
        near = time_s - self._changed_s.get(machine, -inf) <= NEAR_S
        if machine in self._has_owner or near:
            self._explained += 1
        else:
            self._open.setdefault(machine, []).append(time_s)

    def _changed(self, time_s: float, machine: int) -> None:
        self._changed_s[machine] = time_s
        waiting = self._open.pop(machine, ())
        self._explained += sum(time_s - evicted_s <= NEAR_S for evicted_s in waiting)


# -- observed --------------------------------------------------------------------------------------


class Observed(NamedTuple):
    """Past of a site.

    Attributes:
        path: the journal.
        record: its machines, owners and jobs; closed.
        facts: incumbent and site rules; None: not on record.
        tally: what happened; closed.
        owner_evictions: evictions by owners, and how many of them have a log-in on record.
        kill_clock: whether users kill sooner while jobs wait; None: too few kills are on record.
    """

    path: Path
    record: SiteRecord
    facts: SiteFacts | None
    tally: Tally
    owner_evictions: OwnerEvictions
    kill_clock: KillClock | None

    @property
    def span_s(self) -> float:
        """Seconds from the first event to the end of the record."""
        return self.record.last_s - self.record.first_s


def observe(path: Path) -> Observed:
    """Read the past of a site from its journal.

    Raises:
        LedgerError: the file cannot be read.
        TraceError: it holds no events of a site.
    """
    utc = ZoneTime("UTC")
    site, accounting = Site(utc, []), Accounting(utc, exact=True)
    tally, watched, kills = Tally(site, accounting), OwnerEvictions(), KillsSeen()
    with Journal(path, read_only=True) as journal:
        events = JournalEvents()
        record = SiteRecord(events.merger.normaliser)
        engine = Engine(site, accounting, [], events.merger, NoDecisionLog())
        recorded = _recorded(events.all_of(journal), record)
        engine.feed(tally.watch(kills.watch(watched.watch(recorded))))
        record.close(events.seen_s)
    if not record.machines and not record.jobs:
        raise TraceError(
            f"{path}: holds no events of a site; expected the journal of a daemon (what a "
            "replay writes are decisions only)"
        )
    engine.finish(record.last_s)
    tally.close()
    clock = kills.fit(record.last_s)
    return Observed(path, record, facts_on_record(path), tally, watched, clock)


def _recorded(events: Iterable[Event], record: SiteRecord) -> Iterator[Event]:
    """Yield the events of a journal, and pass each to the record."""
    for event in events:
        record.take(event)
        yield event
