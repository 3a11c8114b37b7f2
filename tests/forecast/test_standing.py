"""State at a daemon's first look, which is in no journal, is taken from a snapshot."""

from pathlib import Path

import pytest

from outrider.engine import Engine, EventMerger
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.ingest.machine_registry import inferred_machine
from outrider.engine.state.site import Site
from outrider.forecast.followed_site import FollowedSite
from outrider.journal import Entry, Journal
from outrider.journal.journal_events import initial_meta
from outrider.journal.records import encode_extra
from outrider.journal.snapshots import SnapshotStore
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.localtime import ZoneTime
from outrider.model.machines import MachineSpec
from outrider.replay.log_files import NoDecisionLog

T = 1_600_000_000.0
BEFORE: list[NamedEvent] = [
    *((T, ev.JOINED, f"n{n}", MachineSpec("A", cpus=4)) for n in range(1, 5)),
    *((T, ev.USABLE, f"n{n}", None) for n in (1, 2, 3)),
    (T, ev.DRAINED, "n4", None),
    (T, ev.ELIGIBLE, "second", ("n2",)),
    (T + 1, ev.SUBMITTED, "runs", JobSpec(cpus=4, estimate_s=600.0)),
    (T + 2, ev.STARTED, "runs", ("n1", 4)),
    (T + 2, ev.SUBMITTED, "wide", JobSpec(cpus=6)),
    (T + 3, ev.STARTED, "wide", ("n2", 6)),
    (T + 4, ev.SUBMITTED, "waits", JobSpec(cpus=4, eligible="second")),
    (T + 5, ev.SUBMITTED, "held", JobSpec()),
    (T + 5, ev.HELD, "held", "by its user"),
]
AWAITED: list[NamedEvent] = [(T + 12, ev.SUBMITTED, "awaited", JobSpec())]
JOURNAL: list[NamedEvent] = [
    (T + 20, ev.SUBMITTED, "new", JobSpec()),
    (T + 30, ev.TICK, "slurm", None),
    (T + 40, ev.COMPLETED, "runs", None),
    (T + 50, ev.TICK, "slurm", None),
]


def snapshot(folder: Path, seq: int, events: list[NamedEvent]) -> None:
    """Write a snapshot of a daemon that received these events, up to T + 10."""
    merger = EventMerger((), inferred_machine)
    engine = Engine(
        Site(ZoneTime("UTC"), []), Accounting(ZoneTime("UTC")), [], merger, NoDecisionLog()
    )
    merger.arrive("slurm", [*events, *AWAITED])
    engine.feed(merger.advance(T + 10))
    engine.reach(T + 10)
    arrivals = merger.save()
    arrivals["waiting"] = [
        [at_s, n, label, [*event[:3], encode_extra(event[1], event[3])]]
        for at_s, n, label, event in arrivals["waiting"]
    ]
    SnapshotStore(folder).save(seq, {"merger": arrivals, "engine": engine.save()})


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Write a journal of a Slurm cluster."""
    with Journal(tmp_path / "journal.sqlite") as opened:
        opened.append(Entry(inputs=[("slurm", event) for event in JOURNAL]))
    return tmp_path / "journal.sqlite"


def waiting(site: FollowedSite) -> list[str]:
    return [site.name(job) for job in site.waiting()]


def test_machines_and_jobs_that_were_there_before_are_there(tmp_path: Path, journal: Path) -> None:
    snapshot(tmp_path / "snapshots", 0, BEFORE)
    site = FollowedSite(journal, tmp_path / "snapshots")
    times = site.catch_up()
    assert next(times) == T + 30
    state = site.state()
    assert waiting(site) == ["waits", "awaited", "new"]
    assert state.running.cpus.tolist() == [4, 6]
    assert state.since_s.tolist() == [T + 2, T + 3]
    # n4 is drained; of n3 a half is the wide job's, which is on record on n2
    assert (state.free_cpus, state.total_cpus) == (2, 12)
    assert site.arrivals().submit_s.tolist() == [T + 12, T + 20], "no record of what came before"
    assert site.started == []
    assert next(times) == T + 50
    assert site.state().free_cpus == 6
    assert float(site.recent.history.totals.max()) == 1.0, (
        "how long the job ran that was there before"
    )


def test_a_later_snapshot_tells_only_what_the_journal_did_not(
    tmp_path: Path, journal: Path
) -> None:
    snapshot(tmp_path / "snapshots", 2, [*BEFORE, (T + 9, ev.SUBMITTED, "new", JobSpec())])
    site = FollowedSite(journal, tmp_path / "snapshots")
    times = site.catch_up()
    next(times)
    assert [site.name(job) for job in site.without_machine()] == ["new"], "it was taken after that"
    next(times)
    assert waiting(site) == ["new", "waits"], "that one is no other, and the awaited one is older"
    assert site.state().free_cpus == 6


def test_a_machine_of_the_first_look_that_has_left_before_the_snapshot_is_not_there(
    tmp_path: Path, journal: Path
) -> None:
    first_look = [(T - 9e6, ev.JOINED, "left", MachineSpec("A", cpus=64))]
    with Journal(journal) as opened:
        opened.append(Entry(meta=initial_meta([*first_look, (T - 9e6, ev.USABLE, "left", None)])))
    snapshot(tmp_path / "snapshots", 0, BEFORE)
    site = FollowedSite(journal, tmp_path / "snapshots")
    assert list(site.catch_up()) == [T + 30, T + 50]
    assert site.state().total_cpus == 12
    alone = FollowedSite(journal)
    assert list(alone.catch_up()) == [T + 30, T + 50]
    assert alone.state().total_cpus >= 64, "where there is no snapshot it counts"


def test_a_snapshot_that_cannot_be_read_is_passed_over(tmp_path: Path, journal: Path) -> None:
    folder = tmp_path / "snapshots"
    SnapshotStore(folder).save(0, {"of": "another version"})
    (folder / f"snapshot-{1:020}.bin").write_bytes(b"damaged")
    snapshot(folder, 2, BEFORE)
    site = FollowedSite(journal, folder)
    assert list(site.catch_up()) == [T + 30, T + 50]
    assert waiting(site) == ["new", "waits"]
    assert FollowedSite(journal, tmp_path / "nowhere").state().total_cpus == 0
