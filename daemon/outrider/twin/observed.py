"""What a journal tells of the past of a site: its record, and what it cost, in one pass."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from outrider.engine import Engine
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.ledger import Journal
from outrider.ledger.site_facts import SiteFacts, facts_on_record
from outrider.model.errors import TraceError
from outrider.model.events import Event
from outrider.model.localtime import ZoneTime
from outrider.replay.ingestion import NoDecisionLog
from outrider.replay.journal_events import JournalEvents
from outrider.replay.site_record import SiteRecord
from outrider.twin.kill_clock import KillClock, KillsSeen
from outrider.twin.owner_evictions import OwnerEvictions
from outrider.twin.tally import Tally


class Observed(NamedTuple):
    """The past of a site.

    Attributes:
        path: the journal.
        record: its machines, owners and jobs; closed.
        facts: incumbent and habits; None: not on record.
        tally: what happened; closed.
        owner_evictions: evictions by owners, and how many of them have a log-in on record.
        kill_clock: whether users kill sooner while jobs wait; None: too few kills to tell.
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
    """Read a journal.

    Raises:
        LedgerError: the file cannot be read.
        TraceError: it holds no events of a site.
    """
    utc = ZoneTime("UTC")
    site, accounting = Site(utc, []), Accounting(utc, exact=True)
    tally, watched, kills = Tally(site, accounting), OwnerEvictions(), KillsSeen()
    with Journal(path, read_only=True) as journal:
        events = JournalEvents(journal)
        record = SiteRecord(events.merger.normaliser)
        engine = Engine(site, accounting, [], events.merger, NoDecisionLog())
        engine.feed(tally.watch(kills.watch(watched.watch(_recorded(events, record)))))
    if not record.machines and not record.jobs:
        raise TraceError(
            f"{path}: holds no events of a site; right would be the journal of a daemon (what a "
            "replay writes are decisions only)"
        )
    engine.finish(record.last_s)
    tally.close()
    clock = kills.fit(record.last_s)
    return Observed(path, record, facts_on_record(path), tally, watched, clock)


def _recorded(events: JournalEvents, record: SiteRecord) -> Iterator[Event]:
    """The events of a journal on their way; the record takes each, and closes."""
    for event in events:
        record.take(event)
        yield event
    record.close(events.seen_s)
