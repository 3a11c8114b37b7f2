"""A journal of a simulation equals that of a daemon at the same campus."""

import asyncio
import datetime as dt
from pathlib import Path

import numpy as np
import pytest

from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import read_campus, write_campus
from outrider.journal import Journal
from outrider.model.errors import LedgerError
from outrider.model.events import SUBMITTED, TICK, NamedEvent
from outrider.plugins.finding import make_policy
from outrider.replay.record_sources import record_of_ledger
from outrider.replay.recorded_campus import recorded_campus
from outrider.replay.run import CampusRun
from outrider.service.config.loaded import check_config
from outrider.service.config.reading import JOURNAL_NAME
from outrider.service.demo.simulated_journal import LABEL, write_journal
from outrider.simulation.exogenous_events import owner_intervals
from outrider.simulation.generators.campus import generate_campus
from tests.service.running.disks import small_disk
from tests.service.running.scripted import running, until

SEED = 6
NOON_S = 4.5 * 86_400.0
"""Owners sit at their machines then, and jobs run."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campus of a week that begins in term, and the journal of the whole of it."""
    folder = tmp_path_factory.mktemp("journals")
    made = generate_campus(8, weeks=1, machines=40, clusters=3, start=dt.date(2010, 2, 1), jobs=600)
    write_campus(made, folder / "campus")
    write_journal(folder / "campus", folder / "whole.sqlite", seed=SEED)
    return folder


@pytest.fixture(scope="module")
def noon(folder: Path) -> Path:
    """The journal up to a noon in the middle."""
    write_journal(folder / "campus", folder / "noon.sqlite", seed=SEED, until_s=NOON_S)
    return folder / "noon.sqlite"


def inputs(path: Path) -> list[tuple[str, NamedEvent]]:
    """All that was read, how far each source was seen included."""
    with Journal(path, read_only=True) as journal:
        return [(label, event) for _, label, event in journal.inputs_after(0)]


def events(path: Path) -> list[tuple[str, NamedEvent]]:
    """Return all inputs of a journal except ticks."""
    return [row for row in inputs(path) if row[1][1] != TICK]


def seen(path: Path) -> Campus:
    """The campus as the journal has it."""
    return recorded_campus(record_of_ledger(path), "seen")


def test_a_running_daemon_records_the_same_inputs_row_by_row(folder: Path, tmp_path: Path) -> None:
    whole = inputs(folder / "whole.sqlite")
    with Journal(folder / "whole.sqlite", read_only=True) as journal:
        last_seq = journal.last_seq()  # of the ends of runs, too
    source = {
        "type": "simulated", "campus": str(folder / "campus"), "seed": SEED, "speed": 0.0,
        "batch_s": 0.001,
    }  # fmt: skip
    configured = check_config(
        {"mode": "observe", "state_dir": str(tmp_path), "adapters": {LABEL: source}}, "test"
    )

    async def watch() -> None:
        async with running(configured, tmp_path) as supervisor:
            await until(lambda: supervisor.view.recording.last_seq >= last_seq)

    asyncio.run(watch())
    assert len(whole) > 5_000
    assert inputs(tmp_path / JOURNAL_NAME) == whole


def test_what_was_seen_is_the_campus(folder: Path) -> None:
    made, found = read_campus(folder / "campus"), seen(folder / "whole.sqlite")
    assert found.start == made.start
    assert found.span_s == made.span_s
    assert found.machine_names == made.machine_names
    assert found.job_names == made.job_names
    np.testing.assert_array_equal(found.submit_s, made.submit_s)
    one, other = owner_intervals(made), owner_intervals(found)
    for column in ("machine", "came_s", "went_s"):
        np.testing.assert_array_equal(getattr(other, column), getattr(one, column))
    completed, killed = ~np.isnan(found.run_s), ~np.isnan(found.kill_s)
    assert completed.sum() > 200
    assert killed.sum() > 50
    np.testing.assert_allclose(found.run_s[completed], made.run_s[completed], rtol=0, atol=1e-5)
    np.testing.assert_array_equal(found.kill_s[killed], made.kill_s[killed])


def test_the_incumbent_does_what_it_does_in_a_replay_with_the_same_seed(folder: Path) -> None:
    campus = read_campus(folder / "campus")
    policy = make_policy("random_match", {}, SEED, "test")
    report = CampusRun(campus, [policy], lambda *_: None, until_s=NOON_S).run()
    again = folder / "again.sqlite"
    result = write_journal(folder / "campus", again, seed=SEED, until_s=NOON_S)
    assert result["starts"] == report["starts"] > 100
    assert result["evictions"] == report["evictions"]
    for name in ("submitted", "completed", "removed"):
        assert result["jobs"][name] == report["jobs"][name]
    assert result["set_aside"] == 0


def test_a_journal_until_some_second_is_the_beginning_of_the_whole_one(
    folder: Path, noon: Path
) -> None:
    whole, part = events(folder / "whole.sqlite"), events(noon)
    start_s = whole[0][1][0]
    assert part == [row for row in whole if row[1][0] <= start_s + NOON_S]
    assert inputs(noon)[-1][1][:2] == (start_s + NOON_S, TICK)


def test_owners_and_jobs_that_are_there_at_its_end_stay_open(folder: Path, noon: Path) -> None:
    made, found = read_campus(folder / "campus"), seen(noon)
    assert found.span_s == NOON_S
    arrived = made.submit_s <= NOON_S
    np.testing.assert_array_equal(found.submit_s, made.submit_s[arrived])
    there = (owner_intervals(made).came_s <= NOON_S) & (owner_intervals(made).went_s > NOON_S)
    assert there.sum() == (owner_intervals(found).went_s == NOON_S).sum() > 0
    assert np.isnan(found.run_s[np.isnan(found.kill_s)]).any()  # jobs that had not ended
    assert (found.kill_s[~np.isnan(found.kill_s)] <= NOON_S).all()


def test_the_same_command_writes_the_same_and_another_seed_other_starts(
    folder: Path, noon: Path, tmp_path: Path
) -> None:
    for name, seed in (("same", SEED), ("other", SEED + 1)):
        write_journal(folder / "campus", tmp_path / name, seed=seed, until_s=NOON_S)
    assert inputs(tmp_path / "same") == inputs(noon)
    assert events(tmp_path / "other") != events(noon)


def test_at_second_0_there_are_the_machines_alone(folder: Path, tmp_path: Path) -> None:
    result = write_journal(folder / "campus", tmp_path / "first.sqlite", until_s=0.0)
    assert (result["machines"], result["starts"], result["span_s"]) == (40, 0, 0.0)
    assert not any(event[1] == SUBMITTED for _, event in inputs(tmp_path / "first.sqlite"))


def test_a_disk_that_fills_up_ends_it_and_nothing_is_left(folder: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        with pytest.raises(LedgerError, match="full"):
            write_journal(folder / "campus", disk / "journal.sqlite", seed=SEED)
        assert list(disk.iterdir()) == []
