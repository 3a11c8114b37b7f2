"""What stood at a site when a snapshot of its daemon was taken, told as events.

Machines and jobs that a daemon finds at its first look are history: no journal has them. Nor has it
what was told before the oldest event that it still keeps.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from outrider.engine import EventMerger
from outrider.engine.state.site import Site
from outrider.engine.state.standing import told_of_machines
from outrider.ledger.extras import decode_extra
from outrider.ledger.snapshots import read_snapshot
from outrider.model import events as ev
from outrider.model.errors import LedgerError
from outrider.model.events import NamedEvent
from outrider.model.jobs import HELD_STATE, RUNNING, SUSPENDED_STATE, Job
from outrider.model.localtime import ZoneTime
from outrider.replay.ingestion import inferred_machine

log = structlog.get_logger()


class Standing(NamedTuple):
    """What stood.

    Attributes:
        seq: number of the journal's last input by then.
        time_s: up to when the site had been seen, Unix seconds.
        machines: events that tell of machines, and of who may use them.
        jobs: those that tell of each job, by its name.
        awaited: had been told, and had not happened yet by the daemon's clock.
    """

    seq: int
    time_s: float
    machines: list[NamedEvent]
    jobs: dict[str, list[NamedEvent]]
    awaited: list[NamedEvent]


def oldest_standing(folder: Path) -> Standing | None:
    """What stood at the oldest snapshot of a folder that can be read; None: there is none."""
    for path in sorted(folder.glob("snapshot-*.bin")):
        try:
            seq, state = read_snapshot(path)
            return _standing(seq, state)
        except (LedgerError, LookupError, TypeError, ValueError) as error:
            log.warning("pass_over_snapshot", file=str(path), reason=str(error))
    return None


def _standing(seq: int, state: dict[str, Any]) -> Standing:
    merger = EventMerger((), inferred_machine)
    merger.restore(state["merger"], _event_of)
    site = Site(ZoneTime("UTC"), [])
    site.restore(state["engine"]["site"])
    machine_names, job_names = merger.normaliser.machine_names, merger.normaliser.job_names
    jobs = {
        job_names[job.number]: list(_told_of(job, job_names[job.number], machine_names, site.now))
        for job in site.jobs.values()
    }
    first_s = min((event[0] for told in jobs.values() for event in told), default=site.now)
    machines = list(told_of_machines(site, machine_names, first_s))
    awaited = [_event_of(event) for _, _, _, event in state["merger"]["waiting"]]
    return Standing(seq, site.now, machines, jobs, awaited)


def _told_of(job: Job, name: str, machine_names: list[str], now_s: float) -> Iterator[NamedEvent]:
    yield now_s if job.submit_s is None else job.submit_s, ev.SUBMITTED, name, job.spec
    if job.state in (RUNNING, SUSPENDED_STATE):
        yield job.start_s, ev.STARTED, name, (machine_names[job.machine], job.cpus)
    if job.state == SUSPENDED_STATE:
        yield now_s, ev.SUSPENDED, name, ev.CPUS_GIVEN_BACK if job.gave_back else None
    if job.state == HELD_STATE:
        yield now_s, ev.HELD, name, job.held_because or None


def _event_of(plain: list[Any]) -> NamedEvent:
    time_s, kind, subject, extra = plain
    return time_s, kind, subject, decode_extra(kind, extra)
