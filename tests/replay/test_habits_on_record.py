"""Site rules from its journal; undeclared ones are inferred, and reported as such."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.formats.campus.files import read_campus, write_campus
from outrider.journal import Entry, Journal
from outrider.journal.site_facts import HABITS_KEY, SiteFacts, facts_on_record
from outrider.model import events as ev
from outrider.model.errors import LedgerError
from outrider.model.machines import ClusterSpec, MachineSpec, OpeningHours, SiteHabits
from outrider.replay.record_sources import record_of_ledger
from outrider.replay.recorded_campus import DELAYS, HABITS, HOURS, REBOOT, habits_of_ledger
from outrider.service.demo.simulated_journal import write_journal
from outrider.simulation.generators.campus import generate_campus
from tests.cli.running import outrider
from tests.replay.recordings import write_journal as write_events

NOON = 1_767_960_000.0
MORNING = [
    (NOON, ev.JOINED, "pc1", MachineSpec(cluster="lab")),
    (NOON + 10.0, ev.OWNER_CAME, "pc1", None),
    (NOON + 20.0, ev.OWNER_WENT, "pc1", None),
    (NOON + 320.0, ev.USABLE, "pc1", None),
]
LAB = ClusterSpec("lab", OpeningHours("mon-fri 09:00-17:00"), 600.0)


def journal(path: Path, facts: SiteFacts | None) -> Path:
    """Write the journal of a morning at one machine."""
    write_events(path, MORNING)
    if facts is not None:
        with Journal(path) as opened:
            opened.append(Entry(meta=facts.as_meta()))
    return path


def test_a_campus_exported_from_its_journal_has_the_habits_of_the_site(tmp_path: Path) -> None:
    made = generate_campus(8, weeks=0.3, machines=20, clusters=3)
    slow = made.run_rules._replace(suspend_s=90.0, wake_s=20.0)
    habits: dict[str, Any] = {
        "reboot_s": None,
        "idle_before_job_closed_s": 30.0,
        "reconsider_s": 1_800.0,
    }
    write_campus(replace(made, run_rules=slow, **habits), tmp_path / "made")
    write_journal(tmp_path / "made", tmp_path / "journal.sqlite")
    words = ("export", "campus", "--ledger", tmp_path / "journal.sqlite", "--json")
    facts = outrider(*words, "--out", tmp_path / "seen").json()
    was, seen = read_campus(tmp_path / "made"), read_campus(tmp_path / "seen")
    for name in ("reboot_s", "idle_before_job_open_s", "idle_before_job_closed_s", "reconsider_s",
                 "run_rules"):  # fmt: skip
        assert getattr(seen, name) == getattr(was, name), name
    assert [spec.hours.text for spec in seen.clusters] == [s.hours.text for s in was.clusters]
    assert [spec[2:] for spec in seen.clusters] == [spec[2:] for spec in was.clusters]
    assert not any("opening hours" in note or "reboot" in note for note in facts["notes"])


def test_what_was_not_told_is_inferred_and_said(tmp_path: Path) -> None:
    facts = SiteFacts("first_fit", SiteHabits(reboot="never", reconsider_s=60.0), (LAB,))
    path = journal(tmp_path / "journal.sqlite", facts)
    found = habits_of_ledger(path, record_of_ledger(path))
    assert found.inferred == {DELAYS}
    assert found.site.table.idle_before_job_open_s == 300.0  # as the one log-out shows
    assert (found.site.reboot_s, found.site.table.reconsider_s) == (None, 60.0)
    assert found.site.clusters[0].sleep_after_open_s == 600.0
    words = ("export", "campus", "--ledger", path, "--out", tmp_path / "seen", "--json")
    notes = " ".join(outrider(*words).json()["notes"])
    assert "idle before job 300 s: 1 of 1" in notes
    assert "opening hours" not in notes


def test_of_a_journal_that_is_older_all_is_inferred(tmp_path: Path) -> None:
    path = journal(tmp_path / "journal.sqlite", None)
    assert facts_on_record(path) is None
    found = habits_of_ledger(path, record_of_ledger(path))
    assert found.inferred == HABITS == {HOURS, DELAYS, REBOOT}
    assert found.site.clusters == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("clusters", {"lab": {"open": "whenever"}}),
        ("clusters", {"lab": {"open": "at noon", "sleep_after_open_s": 1.0,
                              "sleep_after_closed_s": 1.0}}),
        ("discipline", "chaos"),
        ("wake_s", -1.0),
        ("reboot", "3 am"),
    ],
)  # fmt: skip
def test_a_record_that_no_daemon_makes_is_an_error_that_names_the_file(
    tmp_path: Path, key: str, value: object
) -> None:
    path = journal(tmp_path / "journal.sqlite", SiteFacts("strict", SiteHabits(), (LAB,)))
    with closing(sqlite3.connect(path)) as opened:
        (text,) = opened.execute("SELECT value FROM meta WHERE key = ?", (HABITS_KEY,)).fetchone()
        changed = json.loads(text) | {key: value}
        opened.execute("UPDATE meta SET value = ? WHERE key = ?", (json.dumps(changed), HABITS_KEY))
        opened.commit()
    with pytest.raises(LedgerError, match=r"journal\.sqlite"):
        habits_of_ledger(path, record_of_ledger(path))


def test_facts_come_back_as_they_were_told(tmp_path: Path) -> None:
    every = SiteHabits("03:00", 900.0, 0.0, 60.0, 1.0, 2.0, 3.0, 4.0, float("inf"))
    facts = SiteFacts("conservative", every, (LAB,))
    found = facts_on_record(journal(tmp_path / "journal.sqlite", facts))
    assert found is not None
    assert found.habits == every
    assert msgspec.structs.replace(found, clusters=()) == msgspec.structs.replace(
        facts, clusters=()
    )
