"""The process asks the twin, writes down what it answers, and why where it does not."""

import sqlite3
import time
from pathlib import Path

import pytest

from outrider.service.twin.cycle import PresentLoad
from tests.cli.running import shell
from tests.service.config.plugins import install
from tests.service.twin.conftest import MakeSite
from tests.service.twin.watched_site import FEW, HANGS_AFTER_S, WatchedSite, write_small_journal


def test_the_answer_is_that_of_the_command_and_names_the_policies_with_their_settings(
    make_site: MakeSite,
) -> None:
    settings = "[policies.watts_hold]\nhold_after_h = 4.0\n[policies.fifo]"
    site = make_site(f"{FEW}\nseed = 3\nnext_weeks = 2", policies=settings)
    code, written = site.once()
    assert code == 0, site.log.read_text()
    assert written["candidates"] == {"watts_hold": {"hold_after_h": 4.0}, "fifo": {}}
    asked = shell(
        "twin", site.journal, "--policy", "watts_hold", "--policy", "fifo", "--seed", "3",
        "--set", "watts_hold.hold_after_h=4.0", "--replicates", "2", "--next", "2",
        "--longest-deferral", "4", "--json",
    ).json()  # fmt: skip
    assert written["answer"]["past"] == asked["past"]
    assert written["answer"] == {key: asked[key] for key in written["answer"]}
    assert written["answer"]["refused"] is None
    assert 0 < written["took_s"] < HANGS_AFTER_S
    assert abs(written["asked_s"] - time.time()) < HANGS_AFTER_S
    assert written["asking_since_s"] is None
    assert (site.state / "twin.json").stat().st_mode & 0o077 == 0


def test_present_load_and_waste_are_those_of_the_last_two_weeks(
    make_site: MakeSite, small_journal: Path
) -> None:
    present = PresentLoad(small_journal).look()
    assert present is not None
    runs = sqlite3.connect(small_journal)
    (last_s,) = runs.execute("SELECT max(time_s) FROM inputs").fetchone()
    assert present.until_s == pytest.approx(last_s)
    begin_s = present.until_s - 14 * 86_400
    query = "SELECT reason, sum(cpus * run_s) FROM runs WHERE end_s > ? GROUP BY reason"
    work_s = dict(runs.execute(query, (begin_s,)))
    assert present.load_cpus == pytest.approx(sum(work_s.values()) / (14 * 86_400))
    assert present.waste_share == pytest.approx(1 - work_s[""] / sum(work_s.values()))


def test_a_second_look_reads_the_same_and_a_new_journal_from_its_beginning(
    small_journal: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "journal.sqlite"
    copy.write_bytes(small_journal.read_bytes())
    load = PresentLoad(copy)
    first = load.look()
    assert load.look() == first
    with sqlite3.connect(copy) as journal:
        journal.execute("DELETE FROM runs WHERE id > 5")
    again = load.look()
    assert again is not None
    assert again.waste_share is None, "the runs that are left are older than two weeks"


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("missing", "no such journal"),
        ("empty", "contains no journal yet"),
        ("damaged", "journal.sqlite: cannot read the journal"),
        ("of text", "file is not a database"),
    ],
)
def test_a_journal_that_cannot_be_read_is_said(make_site: MakeSite, state: str, says: str) -> None:
    site = make_site()
    if state == "missing":
        site.journal.unlink()
    elif state == "empty":
        site.journal.write_bytes(b"")
    elif state == "damaged":
        whole = site.journal.read_bytes()
        site.journal.write_bytes(whole[:8192] + b"\xff" * 65536 + whole[8192 + 65536 :])
    else:
        site.journal.write_text("no journal at all\n" * 999)
    code, written = site.once()
    assert code == 1
    assert says in written["answer"]["refused"]
    assert written["failures"] == 1
    assert written["answer"]["past"] == {}


def test_a_journal_that_is_locked_is_said_and_one_that_is_written_is_read(
    make_site: MakeSite,
) -> None:
    site = make_site()
    writer = sqlite3.connect(site.journal, isolation_level=None)
    writer.execute("PRAGMA locking_mode = EXCLUSIVE")
    writer.execute("UPDATE counter SET last_seq = last_seq + 1")
    writer.execute("BEGIN EXCLUSIVE")
    code, written = site.once()
    assert code == 1
    assert "locked" in written["answer"]["refused"]
    writer.execute("ROLLBACK")
    writer.close()
    writer = sqlite3.connect(site.journal, isolation_level=None)  # as the daemon has it
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE counter SET last_seq = last_seq")
    code, written = site.once()
    writer.close()
    assert code == 0
    assert written["failures"] == 0
    assert written["answer"]["refused"] is None


def test_a_short_past_is_refused_with_the_reason_and_that_is_no_failure(
    make_site: MakeSite, tmp_path_factory: pytest.TempPathFactory
) -> None:
    short = write_small_journal(tmp_path_factory.mktemp("short"), weeks=1)
    site = make_site()
    site.journal.write_bytes(short.read_bytes())
    code, written = site.once()
    assert code == 0
    assert "expected 2 weeks or more" in written["answer"]["refused"]
    assert written["failures"] == 0


def test_a_policy_that_fails_is_refused_and_the_others_have_their_answer(
    make_site: MakeSite, tmp_path: Path
) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "alone").mkdir()
    plugins = install(tmp_path / "plugins")
    site = make_site(policies="[policies.late_failure]\n[policies.fifo]")
    code, written = site.once(**plugins)
    assert code == 0, site.log.read_text()
    assert list(written["answer"]["past"]) == ["fifo"]
    assert "out of ideas" in written["answer"]["candidates_refused"]["late_failure"]
    alone = WatchedSite(tmp_path / "alone", site.journal)
    assert alone.once()[1]["answer"]["past"] == written["answer"]["past"]
