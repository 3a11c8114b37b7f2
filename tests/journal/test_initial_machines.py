"""Machines at a daemon's first look: events from its journal, though they are no inputs."""

from pathlib import Path

import pytest

from outrider.engine.state.site import Site, machine_events
from outrider.journal import Entry, Journal
from outrider.journal.journal_events import INITIAL_KEY, initial_meta
from outrider.model import events as ev
from outrider.model.errors import LedgerError
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.localtime import ZoneTime
from outrider.model.machines import MachineSpec
from outrider.replay.record_sources import record_of_ledger

T = 1_600_000_000.0
NAMES = ["free", "owned", "shut", "gone", "guessed"]
INPUTS: list[NamedEvent] = [
    (T, ev.SUBMITTED, "job", JobSpec(cpus=2)),
    (T + 5, ev.STARTED, "job", ("free", 2)),
    (T + 60, ev.OWNER_WENT, "owned", None),
    (T + 90, ev.COMPLETED, "job", None),
    (T + 100, ev.TICK, "pool", None),
]


def standing() -> list[NamedEvent]:
    site = Site(ZoneTime("UTC"), [])
    for machine in range(5):
        site.join(machine, MachineSpec("A", cpus=8, active_w=200.0, inferred=machine == 4))
    site.open_machine(0)
    site.owner[1] = 1
    site.leave(3)
    site.set_class("some", [2, 0], True)
    return list(machine_events(site, NAMES, T - 1e7, declared=True))


def test_what_stands_is_told_machine_by_machine() -> None:
    assert [(ev.KIND_NAMES[kind], name) for _, kind, name, _ in standing()] == [
        ("joined", "free"), ("usable", "free"), ("joined", "owned"), ("owner_came", "owned"),
        ("joined", "shut"), ("drained", "shut"), ("eligible", "some"),
    ]  # fmt: skip
    assert standing()[-1][3] == ("free", "shut")


def test_the_record_of_a_journal_begins_with_them_and_not_before_its_first_input(
    tmp_path: Path,
) -> None:
    with Journal(tmp_path / "journal.sqlite") as opened:
        opened.append(Entry(meta=initial_meta(standing())))
        opened.append(Entry(inputs=[("pool", event) for event in INPUTS]))
    record = record_of_ledger(tmp_path / "journal.sqlite")
    assert {machine.name: machine.cpus for machine in record.machines.values()} == {
        "free": 8, "owned": 8, "shut": 8,
    }  # fmt: skip
    assert not any(machine.spec.inferred for machine in record.machines.values())
    assert (record.first_s, record.last_s) == (T, T + 100)
    assert [(begin_s, end_s) for _, begin_s, end_s in record.sessions] == [(T, T + 60)]
    assert [(begin_s, end_s) for _, begin_s, end_s in record.absences] == [(T, T + 100)]


def test_where_nothing_stood_nothing_is_kept_and_nonsense_is_refused(tmp_path: Path) -> None:
    assert initial_meta([]) == {}
    with Journal(tmp_path / "journal.sqlite") as opened:
        opened.append(Entry(inputs=[("pool", event) for event in INPUTS]))
        opened.append(Entry(meta={INITIAL_KEY: [["soon", 15, "m", None]]}))
    with pytest.raises(LedgerError, match="is not as a daemon writes it"):
        record_of_ledger(tmp_path / "journal.sqlite")
